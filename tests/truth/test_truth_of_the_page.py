"""What a browser shows of a scripted world is what happened in it: every number and sentence, by the script's truth."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from support.browser import Tab
from support.dashboard_server import FedDashboard, dashboard
from support.told_world import DIED_MS, LAGGING, MOMENT, NEXT, NOTHING, STORIES, Story, T, history, killed

pytestmark = pytest.mark.ui


class Looked:
    """A browser that looks at the world at one moment."""

    def __init__(self, browser: Browser, server: FedDashboard, at: dt.datetime) -> None:
        self.tab = Tab(browser, server.url, timezone_id="UTC", locale="en-US", viewport={"width": 1440, "height": 900})
        self.tab.page.clock.set_fixed_time(at)

    def open(self, path: str) -> Page:
        """Go to a page."""
        return self.tab.go(path)


def world(*, is_dead: bool) -> Iterator[FedDashboard]:
    """Run a dashboard over the world."""
    now_ms = DIED_MS if is_dead else T
    with dashboard(now_ms=lambda: now_ms) as server:
        server.tell(history())
        if is_dead:
            server.tell([killed()])
        yield server


@pytest.fixture(scope="module")
def alive(browser: Browser) -> Iterator[Looked]:
    """Look at the world while the job runs."""
    for server in world(is_dead=False):
        looked = Looked(browser, server, MOMENT)
        yield looked
        looked.tab.close()


@pytest.fixture(scope="module")
def dead(browser: Browser) -> Iterator[Looked]:
    """Look at the world a minute after the job was killed."""
    for server in world(is_dead=True):
        looked = Looked(browser, server, MOMENT + dt.timedelta(minutes=1))
        yield looked
        looked.tab.close()


def read(cells: Locator) -> tuple[str, ...]:
    """Read cells as a person does: each as its lines."""
    return tuple(
        "\n".join(line.strip() for line in text.splitlines() if line.strip()) for text in cells.all_inner_texts()
    )


def tiles(page: Page) -> dict[str, tuple[str, str]]:
    """Read the figures of page Now: each by its name, with the note below it."""
    expect(page.locator(".tile .note").last).not_to_be_empty()
    found = {}
    for tile in page.locator(".tile").all():
        figure, note = tile.locator(".figure").inner_text(), tile.locator(".note").inner_text()
        found[tile.locator("dt").inner_text()] = (figure, note)
    return found


def troubled(page: Page) -> dict[str, tuple[str, ...]]:
    """Read the groups in trouble: each by its name, with what is wrong."""
    return {
        item.locator("a").inner_text(): tuple(
            " ".join(text.split()) for text in item.locator("> span").all_inner_texts()
        )
        for item in page.locator(".troubled > li").all()
    }


TROUBLED = {story.group_id: story.troubles for story in STORIES if story.troubles}
EXPIRED = sum(len(story.gone) for story in STORIES)


def test_first_page_tells_the_truth(alive: Looked) -> None:
    """While the job runs: both lights, every figure, and which groups are in trouble, the worst first."""
    page = alive.open("/")
    expect(page.locator(".health h2")).to_have_text(
        ["Healthy, with 1 warning: every shard decides as its members fall silent.", "4 groups in trouble."]
    )
    expect(page.locator(".shell .health-pill")).to_have_text(["1 warning", "4 groups in trouble"])
    expect(page.locator(".health.tone-good, .health-pill.tone-good")).to_have_count(0)
    expect(page.locator(".health").first.locator("li")).to_have_text([LAGGING])
    assert troubled(page) == TROUBLED
    assert list(troubled(page)) == ["night", "backup", "fraud", "exports"]
    assert tiles(page) == {
        "Members alive": ("22", "not expired, and not left"),
        "Groups": ("10", "none rebalancing"),
        "Expired a minute": ("3", f"{EXPIRED} in 1 h"),
        "Known after": ("730 ms", f"longest of {EXPIRED}: 790 ms"),
        "Clock behind": ("1.5 s", "1 shard"),
        "Last batch": ("420 ms", "160 records, just now"),
        "Backlog": ("0", "everything is read"),
        "Heartbeats": ("4 /s", "none rejected"),
    }


def test_both_lights_fit_on_a_phone(alive: Looked) -> None:
    """Also where both have something to say, the head stays within the screen."""
    page = alive.open("/")
    wide = page.viewport_size
    assert wide is not None
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".shell .health-pill").last).to_be_visible()
    right = page.locator("#theme-button").evaluate("(one) => one.getBoundingClientRect().right - innerWidth")
    page.set_viewport_size(wide)
    assert right <= 0


def test_expired_members_are_those_of_the_script(alive: Looked) -> None:
    """Each expiration has its row, with every field as it was."""
    page = alive.open("/expired")
    expect(page.locator("tbody tr")).to_have_count(EXPIRED)
    shown = {
        row[3].partition("\n")[0]: row for row in (read(each.locator("td")) for each in page.locator("tbody tr").all())
    }
    assert shown == {gone.member_id: gone.cells for story in STORIES for gone in story.gone}


def test_groups_are_those_of_the_script(alive: Looked) -> None:
    """Each group has its row: kind, state, members, generation, last change, expirations and what is wrong."""
    page = alive.open("/groups")
    expect(page.locator("tbody tr")).to_have_count(len(STORIES))
    shown = {
        row[0].partition("\n")[0]: row for row in (read(each.locator("td")) for each in page.locator("tbody tr").all())
    }
    assert shown == {story.group_id: story.cells for story in STORIES}


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.group_id)
def test_group_has_its_own_course(alive: Looked, story: Story) -> None:
    """The page of a group says what happened to it, the newest first."""
    page = alive.open(f"/groups/{story.group_id}")
    expect(page.locator("h1")).to_have_text(story.group_id)
    expect(page.locator(".panel .tag").first).to_have_text(story.cells[1])
    expect(page.locator(".state-words")).to_contain_text(story.words)
    if story.course:
        expect(page.locator(".timeline li").nth(len(story.course) - 1)).to_be_visible()
    lines = tuple(" ".join(text.split()) for text in page.locator(".timeline li").all_inner_texts())
    assert lines[: len(story.course)] == story.course
    expect(page.locator(".timeline li.tone-good", has_text="expired")).to_have_count(0)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.group_id)
def test_only_groups_of_the_protocol_have_the_words_of_the_coordinator(alive: Looked, story: Story) -> None:
    """A presence group commits nothing, and no coordinator says a word about it."""
    page = alive.open(f"/groups/{story.group_id}")
    expect(page.locator(".state-words")).to_be_visible()
    facts = page.locator(".facts", has=page.locator("dt", has_text="In Kafka's words"))
    expect(facts).to_have_count(int("classic" in story.cells[0] and "no members left" not in story.cells[3]))
    if "presence" in story.cells[0]:
        expect(page.locator("main")).not_to_contain_text(re.compile("commit|rebalance", re.IGNORECASE))


UNKNOWN = [story for story in STORIES if story.listed is not None and story.listed.unknown_sessions]


@pytest.mark.parametrize("story", UNKNOWN, ids=lambda story: story.group_id)
def test_unknown_member_is_not_judged(alive: Looked, story: Story) -> None:
    """A member of unknown session is called so in full; no length of a session is made up, and nothing is green."""
    page = alive.open("/groups")
    row = page.locator("tbody tr", has_text=story.group_id)
    members = row.locator(".line", has_text="unknown")
    expect(members).to_have_text("3 (1 unknown)")
    assert members.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    expect(row.locator(".tone-good")).to_have_count(0)
    page = alive.open(f"/groups/{story.group_id}")
    expect(page.locator(".facts div", has_text="Members").locator("dd")).to_have_text("3 (1 unknown)")
    expect(page.locator("main .tone-good, main .tone-bad, main .tone-warn")).to_have_count(0)
    assert re.findall(r"\d+ ?(?:ms|s|m|min)\b", page.locator("main").inner_text()) == []
    for path in ("/expired", "/at-risk", "/rebalances"):
        page = alive.open(path)
        expect(page.locator("main").locator("tbody tr, .rebalances").first).to_be_visible()
        expect(page.locator("main")).not_to_contain_text(story.group_id)


@pytest.mark.parametrize(
    ("group_id", "gone"), [(story.group_id, gone) for story in STORIES for gone in story.gone], ids=str
)
def test_member_has_its_own_words(alive: Looked, group_id: str, gone: Any) -> None:
    """The page of a member says why it was expired and whether it came back."""
    page = alive.open(f"/members/{group_id}/{quote(gone.member_id)}")
    expect(page.locator(".verdict")).to_be_visible()
    for words in gone.page:
        expect(page.locator(".verdict")).to_contain_text(words)


def test_rebalances_cost_what_they_cost(alive: Looked) -> None:
    """Each group that rebalanced has its sum; the others, where nobody waits, are not there."""
    page = alive.open("/rebalances")
    expect(page.locator(".rebalances").first).to_be_visible()
    shown = {
        part.locator("h2").inner_text(): part.locator(".panel-head .soft").inner_text()
        for part in page.locator(".rebalances").all()
    }
    assert shown == {story.group_id: story.rebalances for story in STORIES if story.rebalances}
    waited = {
        part.locator("h2").inner_text(): part.locator(".members a").all_inner_texts()
        for part in page.locator(".rebalances").all()
    }
    assert {group: members for group, members in waited.items() if members} == {
        story.group_id: list(story.waited_for) for story in STORIES if story.waited_for
    }


@pytest.mark.parametrize("path", ["/groups", "/groups/fraud", "/rebalances"])
def test_rebalance_stops_eager_consumers_alone(alive: Looked, path: str) -> None:
    """Cooperative consumers work on while their group rebalances, so no page says that nobody does."""
    page = alive.open(path)
    expect(page.locator("main")).to_contain_text("eager consumers stop, and cooperative ones continue")
    assert re.findall(r"no(?:body| member) (?:in it|of the group)? ?work", page.locator("main").inner_html()) == []


def test_who_is_next_has_its_own_session(alive: Looked) -> None:
    """The member that is near its deadline, with what is left of its own session."""
    cells = alive.open("/at-risk").locator("tbody td")
    expect(cells).to_have_count(3)
    assert read(cells) == (f"{NEXT[1]}\nshard 0", f"{NEXT[0]}\ndeadline 09:41:11", "4.0 s\nof 10 s")


def test_dead_job_is_told_with_its_cause(dead: Looked) -> None:
    """A minute after the job was killed: the cause, and nothing as if it were so now."""
    page = dead.open("/")
    expect(page.locator(".health h2")).to_have_text(
        [
            (
                "Stalled for 59 s: the job has ended: Spark's JVM was ended by signal 9. "
                "No member expires during that time."
            ),
            "Not known which groups are in trouble; 4 groups were before.",
        ]
    )
    expect(page.locator(".health").first.locator("li")).to_have_count(0)  # nobody reads what the tap passes on
    assert tiles(page) == {
        "Members alive": (NOTHING, "not known; 22 at 09:41:07"),
        "Groups": ("10", "as of 09:41:07"),
        "Expired a minute": (NOTHING, f"no decisions; {EXPIRED} in 1 h"),
        "Known after": ("730 ms", f"longest of {EXPIRED}: 790 ms"),
        "Clock behind": ("1 min 1 s", "1 shard"),
        "Last batch": ("420 ms", "160 records, 1 min ago"),
        "Backlog": (NOTHING, "not known: nothing is read"),
        "Heartbeats": (NOTHING, "none rejected"),
    }


@pytest.mark.parametrize(
    "path", ["/", "/expired", "/groups", "/groups/orders", "/rebalances", "/at-risk", "/wheel?shard=0"]
)
def test_nothing_is_green_when_the_job_is_dead(dead: Looked, path: str) -> None:
    """Each page carries the banner with the cause, or has it in full, and no light or state is green."""
    page = dead.open(path)
    expect(page.locator("main").locator("tbody tr, .empty, .rings, .strip, .timeline li").first).to_be_visible()
    where = page.locator(".health").first if path == "/" else page.locator("#engine-banner")
    expect(where).to_be_visible()
    expect(where).to_contain_text("Spark's JVM was ended by signal 9")
    # That a member came back, and that a rebalance ended, is true for ever.
    green = page.locator(".tone-good").filter(has_not_text="4 s").filter(has_not_text="8 s")
    expect(green.filter(has_not=page.locator("time"))).to_have_count(0)


def test_dead_job_leaves_former_states_and_undecided_deadlines(dead: Looked) -> None:
    """Groups are as they were, and a deadline that has passed is not decided."""
    page = dead.open("/groups")
    expect(page.locator("tbody tr")).to_have_count(len(STORIES))
    shown = {
        row[0].partition("\n")[0]: row[1]
        for row in (read(each.locator("td")) for each in page.locator("tbody tr").all())
    }
    assert shown == {story.group_id: story.former for story in STORIES}
    cells = dead.open("/at-risk").locator("tbody td")
    expect(cells).to_have_count(3)
    assert read(cells)[2] == "not decided\nthe engine does not decide at the moment"


def test_dashboard_that_is_gone_leaves_nothing_green(browser: Browser) -> None:
    """When the dashboard's own process ends, neither pill nor box goes on saying that all is well."""
    with dashboard() as server:
        server.tell(history())
        looked = Tab(browser, server.url)
        page = looked.open("/")
        expect(page.locator(".health").first).to_be_visible()
    expect(page.locator("#link-banner")).to_contain_text("Connection lost")
    expect(page.locator(".shell .health-pill")).to_have_text(["Not known", "Groups: not known"])
    expect(page.locator(".health.tone-good, .health-pill.tone-good")).to_have_count(0)
    looked.close()
