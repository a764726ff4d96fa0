"""Every page, light and dark, wide and narrow: it shows its data, complains of nothing, and anybody can use it."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect

from support.browser import Tab
from support.dashboard_rows import expired, job, status
from support.dashboard_scene import canary_figures
from support.dashboard_server import FedDashboard, dashboard

pytestmark = pytest.mark.ui

PAGES = {
    "now": ("/", "Now"),
    "expired": ("/expired", "Expired members"),
    "groups": ("/groups", "Groups"),
    "rebalances": ("/rebalances", "Rebalances"),
    "at-risk": ("/at-risk", "At risk"),
    "wheel": ("/wheel?shard=2", "Timing wheel"),
    "group": ("/groups/fraud-scoring", "fraud-scoring"),
    "waiting": ("/groups/search-indexer", "search-indexer"),
    "member": ("", ""),  # the newest expiration's, which each run makes anew
    "missing": ("/groups/a/b/c", "No such page"),
}
WIDTHS = (360, 390, 768, 1280, 1920)
AXE = gzip.decompress((Path(__file__).parent / "vendor" / "axe.min.js.gz").read_bytes()).decode()
AXE_ALL = "axe.run(document, {resultTypes: ['violations']})"
AXE_COLOURS = "axe.run(document, {resultTypes: ['violations'], runOnly: ['color-contrast', 'link-in-text-block']})"
FINISH = "document.getAnimations().forEach((one) => one.finish())"

HEARS_ITS_FIRST_SIZE_ONLY = """
const Real = ResizeObserver;
ResizeObserver = class extends Real {
  constructor(hear) {
    super((sizes) => { hear(sizes); if (sizes.at(-1).contentRect.width) this.disconnect(); });
  }
};
"""


@pytest.fixture(scope="module")
def survey(browser: Browser, shop: FedDashboard) -> Iterator[dict[str, dict[str, Any]]]:
    """Visit every page once, and note all that these tests ask about: a visit costs more than a question."""
    one = Tab(browser, shop.url, color_scheme="light")
    yield {name: look(one, shop, name) for name in PAGES}
    one.close()


def look(one: Tab, shop: FedDashboard, name: str) -> dict[str, Any]:
    """Visit one page."""
    path = path_of(name, shop)
    page = one.open(path)
    expect(page.locator("h1")).to_have_text(PAGES[name][1] or path.rsplit("/", 1)[-1])
    expect(page.locator("main").locator(".table tbody tr, .empty, .rings, .strip").first).to_be_visible()
    page.evaluate(FINISH)
    page.evaluate(AXE)
    found: dict[str, Any] = {"light": serious(page, AXE_ALL)}
    page.emulate_media(color_scheme="dark")
    page.evaluate(FINISH)  # a new row's light ground would fade out on a dark page
    found["dark"] = serious(page, AXE_COLOURS)
    page.emulate_media(color_scheme="light")
    found["wide"] = [width for width in WIDTHS if sticks_out(page, width)]
    page.set_viewport_size({"width": 1280, "height": 800})
    found["complaints"], one.complaints = one.complaints, []
    return found


def path_of(name: str, shop: FedDashboard) -> str:
    """Tell where a page lies."""
    newest = shop.picture.window.rows[-1]
    return PAGES[name][0] or f"/members/{newest.group_id}/{newest.member_id}"


def serious(page: Page, question: str) -> list[str]:
    """Ask axe-core what is wrong with a page, and keep what is serious or worse."""
    return [
        f"{violation['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for violation in page.evaluate(question)["violations"]
        if violation["impact"] in {"serious", "critical"}
        for node in violation["nodes"][:3]
    ]


def sticks_out(page: Page, width: int) -> bool:
    """Tell whether something is wider than a screen of that width."""
    page.set_viewport_size({"width": width, "height": 800})
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))


@pytest.mark.parametrize("name", PAGES)
def test_everybody_can_use_it(name: str, survey: dict[str, dict[str, Any]]) -> None:
    """Axe finds nothing serious or critical on any page, in light and in dark."""
    assert (survey[name]["light"], survey[name]["dark"]) == ([], [])


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_the_screen(name: str, survey: dict[str, dict[str, Any]]) -> None:
    """Nothing sticks out to the right, from a small phone to a wide screen."""
    assert survey[name]["wide"] == []


@pytest.mark.parametrize("name", ["now", "member"])
def test_chart_that_is_still_of_the_old_width_widens_no_page(
    name: str, shop: FedDashboard, tab: Callable[..., Tab]
) -> None:
    """A screen that gets narrower (a phone is turned) shows nothing too wide until a busy page has redrawn."""
    one = tab(shop, own=True)
    one.page.add_init_script(HEARS_ITS_FIRST_SIZE_ONLY)
    page = one.open(path_of(name, shop))
    expect(page.locator(".chart canvas").first).to_be_visible()
    assert not sticks_out(page, 360)


@pytest.mark.parametrize("name", PAGES)
def test_browser_has_nothing_to_complain_of(name: str, survey: dict[str, dict[str, Any]]) -> None:
    """No page writes an error or a warning to the console, and none is refused anything by the content policy."""
    assert survey[name]["complaints"] == []


@pytest.mark.parametrize("clipboard", [True, False], ids=["clipboard", "no clipboard"])
def test_page_now_has_the_line_to_beat_with(shop: FedDashboard, tab: Callable[..., Tab], clipboard: bool) -> None:  # noqa: FBT001
    """Page Now shows the line with the gateway's address, and a button copies it, with or without a clipboard."""
    one = tab(shop, permissions=["clipboard-read", "clipboard-write"])
    if not clipboard:
        one.page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page = one.open("/")
    line = page.locator(".beat-line")
    expect(line).to_have_text("curl -X POST 'http://127.0.0.1:8486/beat/mine/me?session=10s'")
    button = page.locator(".beat button")
    button.click()
    expect(button).to_have_text("Copied")
    copied = "navigator.clipboard.readText()" if clipboard else "getSelection().toString()"
    assert page.evaluate(copied) == line.text_content()


def test_a_kafka_that_never_answered_leaves_no_zeros(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """Before anything was read it is not known whether somebody was expired or a record rejected."""
    empty_dashboard.picture.link(False, now_ms=empty_dashboard.now_ms() - 60_000)
    page = tab(empty_dashboard).open("/")
    expect(page.locator("#health-pill")).to_contain_text("Unreachable")
    main = page.locator("main")
    expect(main).to_contain_text("Not known who was expired.")
    for words in ("none rejected", "none expired yet", "No member was expired", "0 in 1 h"):
        expect(main).not_to_contain_text(words)
    page.goto(f"{empty_dashboard.url}/expired")
    expect(page.locator("main")).to_contain_text("Not known who was expired.")
    empty_dashboard.picture.link(True, now_ms=empty_dashboard.now_ms())
    expect(page.locator("main")).to_contain_text("No member was expired yet.")


def test_without_a_gateway_there_is_no_line(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """A dashboard that knows no gateway shows no line that would not work."""
    page = tab(empty_dashboard).open("/")
    expect(page.locator("h2", has_text="Canary")).to_be_visible()
    expect(page.locator(".beat-line")).to_have_count(0)


def test_page_now_answers_in_one_look(shop: FedDashboard, tab: Callable[..., Tab]) -> None:
    """Page Now says whether the engine can be trusted and which groups are in trouble, before figures and charts."""
    page = tab(shop).open("/")
    expect(page.locator(".health h2").first).to_contain_text("Healthy")
    expect(page.locator("#groups-pill")).to_have_text("1 group in trouble")
    expect(page.locator(".troubled", has_text="fraud-scoring")).to_contain_text("rebalances")
    expect(page.locator(".tile")).to_have_count(8)
    expect(page.locator(".tile", has_text="Groups").locator(".figure")).to_have_text("12")
    expect(page.locator(".chart canvas")).to_have_count(4)
    expect(page.locator(".chart").nth(1)).to_have_attribute(
        "aria-label", _starts("Known after the deadline. median: now")
    )
    expect(page.get_by_text("All 410 silences that can be judged were found in time")).to_be_visible()


CANARY: dict[str, tuple[dict[str, Any], str, str]] = {
    "nothing yet": (
        {"expected": 0, "known": 0, "pending": 0},
        "Starting",
        "No member of the canary has fallen silent yet.",
    ),
    "the first awaited": ({"expected": 2, "known": 0}, "Starting", "The first silence may still be found in time."),
    "none can be judged": (
        {"expected": 3, "known": 0, "pending": 0, "void": 3, "void_reason": "Kafka did not answer"},
        "Not known",
        "No silence can be judged: Kafka did not answer.",
    ),
    "some cannot be judged": (
        {"expected": 415, "void": 3, "void_reason": "Kafka did not answer"},
        "Proved",
        "All 410 silences that can be judged were found in time, and no living member was expired.",
    ),
    "late": ({"late": 3}, "Late", "3 of 410 silences were found later than 2.5 s after the deadline."),
    "missed": (
        {"expected": 413, "missed": 1, "late": 2},
        "Broken",
        "1 of 411 silences was not found in time: the engine's promises do not hold. Look at its log.",
    ),
    "missed and false": (
        {"expected": 414, "missed": 2, "false_": 1},
        "Broken",
        (
            "2 of 412 silences were not found in time, and 1 living member was expired: the engine's promises do not "
            "hold. Look at its log."
        ),
    ),
}


@pytest.mark.parametrize("state", CANARY)
def test_canary_says_one_thing(tab: Callable[..., Tab], state: str) -> None:
    """Each state of the canary is one sentence, which none of the figures below it contradicts."""
    changed, label, sentence = CANARY[state]
    figures = msgspec.structs.replace(canary_figures(), **changed)
    with dashboard(canary=lambda: figures) as server:
        server.tell([status(0, server.now_ms()), job(server.now_ms(), shards=1)])
        page = tab(server).open("/")
        box = page.locator(".panel", has=page.locator("h2", has_text="Canary"))
        expect(box.locator("p")).to_have_text([f"{label} {sentence}"])
        cells = dict(zip(box.locator("dt").all_inner_texts(), box.locator("dd").all_inner_texts(), strict=True))
        assert cells["Silent on schedule"] == str(figures.expected)
        assert cells["Cannot be judged"] == str(figures.void)
        assert ("99 of 100 within" in cells) == (figures.known >= 100)


def test_whole_course_of_a_group_can_be_read(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """What happened to a group is shown with how much of it that is, and with older lines on demand."""
    first_ms = empty_dashboard.now_ms() - 200_000
    empty_dashboard.tell(expired("orders", f"m-{i}", first_ms + 1_000 * i) for i in range(130))
    page = tab(empty_dashboard).open("/groups/orders")
    lines, foot = page.locator(".timeline li"), page.locator(".timeline + .pager > span")
    expect(foot).to_have_text("100 of 130 lines.")
    expect(lines).to_have_count(100)
    page.get_by_role("button", name="Older").click()
    expect(foot).to_have_text("130 of 130 lines.")
    expect(lines.last).to_contain_text("m-0 expired")
    empty_dashboard.tell([expired("orders", "newest", first_ms + 150_000)])
    expect(foot).to_have_text("131 of 131 lines.")
    expect(lines.first).to_contain_text("newest expired")


def test_group_says_who_blocks_it_and_for_how_long(shop: FedDashboard, tab: Callable[..., Tab]) -> None:
    """A group in a rebalance names whom it waits for, and counts down to when they are taken out."""
    page = tab(shop).open("/groups/search-indexer")
    callout = page.locator(".callout.tone-warn")
    expect(callout).to_contain_text("Waiting for 2 members to rejoin")
    left = callout.locator("[data-until]")
    before = left.text_content() or ""
    assert before
    expect(left).not_to_have_text(before)


def test_storm_is_told_with_its_cause_and_its_offenders(shop: FedDashboard, tab: Callable[..., Tab]) -> None:
    """A group that rebalances again and again has a badge in the list, and a first cause and offenders in its view."""
    page = tab(shop).open("/groups?trouble=true")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("storm")
    page.get_by_role("link", name="fraud-scoring").click()
    storm = page.locator(".callout.tone-bad")
    expect(storm).to_contain_text("The first of these: member expired")
    storm.locator("a").first.click()
    expect(page.locator("tbody tr").first).to_contain_text("fraud-scoring")


def test_wheel_turns_with_the_clock(shop: FedDashboard, tab: Callable[..., Tab]) -> None:
    """The hands go on between two updates, the slots add up to the timers, and another shard can be picked."""
    page = tab(shop).open("/wheel?shard=2")
    hand = page.locator(".hand").first
    before = hand.get_attribute("transform") or ""
    expect(hand).not_to_have_attribute("transform", before)
    numbers = page.evaluate(
        "[...document.querySelectorAll('.box')].reduce((sum, box) => sum + Number(box.textContent), 0)"
    )
    assert numbers == 90
    page.get_by_label("Shard").select_option("5")
    expect(page.locator(".facts")).to_contain_text("State in Spark")
    assert page.url.endswith("/wheel?shard=5")


def test_bars_run_down(shop: FedDashboard, tab: Callable[..., Tab]) -> None:
    """Page At risk lists who is next, nearest first, and the bars move between two updates."""
    page = tab(shop).open("/at-risk")
    bar = page.locator(".bar > i").nth(5)
    before = bar.get_attribute("style") or ""
    expect(bar).not_to_have_attribute("style", before)


def test_who_asks_for_less_motion_gets_less(shop: FedDashboard, tab: Callable[..., Tab]) -> None:
    """With prefers-reduced-motion nothing is animated, and the hands jump with each batch."""
    page = tab(shop, reduced_motion="reduce").open("/wheel?shard=2")
    expect(page.locator(".hand").first).to_have_attribute("transform", _starts("rotate"))
    assert page.evaluate("document.getAnimations().length") == 0


def _starts(text: str) -> re.Pattern[str]:
    return re.compile("^" + re.escape(text))


def test_groups_and_members_of_dots_have_pages(tab: Callable[..., Tab], empty_dashboard: FedDashboard) -> None:
    """Ids that a browser would take for steps in a path are followed from their links, and found when loaded anew."""
    now_ms = empty_dashboard.now_ms()
    ids = (".", "..", "~.")
    empty_dashboard.tell(expired(group, member, now_ms - 5_000) for group in ids for member in ids)
    page = tab(empty_dashboard).open("/groups")
    for group in ids:
        page.locator("main").get_by_role("link", name=group, exact=True).first.click()
        expect(page.locator("h1")).to_have_text(group)
        page.reload()
        expect(page.locator("h1")).to_have_text(group)
        for member in ids:
            page.locator("main").get_by_role("link", name=member, exact=True).first.click()
            expect(page.locator("h1")).to_have_text(member)
            page.go_back()
            expect(page.locator("h1")).to_have_text(group)
        page.goto(f"{empty_dashboard.url}/groups")


@pytest.mark.parametrize("path", ["/docs", "/troubleshooting"])
def test_plain_pages_fit_a_phone(shop: FedDashboard, tab: Callable[..., Tab], path: str) -> None:
    """Pages that need no script are not wider than the narrowest screen either, and anybody can use them."""
    page = tab(shop).page
    page.goto(f"{shop.url}{path}")
    expect(page.locator("h1")).to_be_visible()
    assert [width for width in WIDTHS if sticks_out(page, width)] == []
    page.evaluate(AXE)
    assert serious(page, AXE_ALL) == []


def test_page_of_a_group_leads_to_what_to_do(shop: FedDashboard, tab: Callable[..., Tab]) -> None:
    """What is wrong with a group links to its section of the documentation, which the dashboard serves itself."""
    page = tab(shop).open("/groups/fraud-scoring")
    page.get_by_role("link", name="What to do: group storm").click()
    expect(page.locator("h3:target")).to_have_text("Group storm")
    expect(page.locator("h3:target")).to_be_in_viewport()


def test_expiration_takes_little_height_on_a_phone(shop: FedDashboard, tab: Callable[..., Tab]) -> None:
    """On a phone a row is a card, and not half a screen: five and more of them are seen at once."""
    page = tab(shop, viewport={"width": 390, "height": 844}).open("/expired")
    row = page.locator("tbody tr").first
    expect(row).to_be_visible()
    assert row.evaluate("(one) => one.getBoundingClientRect().height") < 170


def test_group_takes_little_height_on_a_phone(shop: FedDashboard, tab: Callable[..., Tab]) -> None:
    """A group is a card of some lines: nothing of its state is cut off, and what it does not wait for has no line."""
    page = tab(shop, viewport={"width": 390, "height": 844}).open("/groups")
    stable = page.locator("tbody tr", has_text="email-notifier")
    expect(stable).to_be_visible()
    assert stable.evaluate("(one) => one.getBoundingClientRect().height") < 150
    expect(stable.locator("td.c-waiting")).to_be_hidden()
    waiting = page.locator("tbody tr", has_text="search-indexer")
    expect(waiting.get_by_text("2 members")).to_be_visible()
    assert waiting.locator(".tag").first.evaluate(
        "(one) => one.getBoundingClientRect().right <= one.closest('td').getBoundingClientRect().right"
    )


@pytest.mark.parametrize("path", ["/", "/expired", "/groups", "/at-risk"])
def test_head_of_a_phone_is_two_lines(shop: FedDashboard, tab: Callable[..., Tab], path: str) -> None:
    """The head stays on the screen while a page is scrolled, so it has one line of lights and one of tabs."""
    page = tab(shop, viewport={"width": 390, "height": 844}).open(path)
    expect(page.locator("#groups-pill")).to_be_visible()
    assert page.locator(".shell").evaluate("(one) => one.getBoundingClientRect().height") < 100


def test_times_of_another_day_are_seen_in_full(tab: Callable[..., Tab], empty_dashboard: FedDashboard) -> None:
    """At 1440 pixels no time of an expiration is cut off, also with its day."""
    at_ms = empty_dashboard.now_ms() - 1_000
    empty_dashboard.tell([expired("orders", "m", at_ms - 86_400_000, late_ms=86_400_000)])
    page = tab(empty_dashboard, viewport={"width": 1440, "height": 900}).open("/expired")
    cells = page.locator("tbody td.c-time .line, tbody td.c-late .line")
    expect(cells.first).to_contain_text(re.compile(r"^\w+ \w+ \d\d:\d\d:\d\d$"))
    assert cells.evaluate_all("(lines) => lines.filter((one) => one.scrollWidth > one.clientWidth).length") == 0


def test_keys_are_named(shop: FedDashboard, tab: Callable[..., Tab]) -> None:
    """? names the keys in a dialog, and Escape closes it."""
    page = tab(shop).open("/groups")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_contain_text("go to the filter of the page")
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()


def test_tables_are_ordered_by_their_heads(shop: FedDashboard, tab: Callable[..., Tab]) -> None:
    """The head of a column orders the table by it, and the address has the order."""
    page = tab(shop).open("/groups")
    expect(page.locator("tbody tr").first).to_contain_text("fraud-scoring")
    page.get_by_role("button", name="Group", exact=True).click()
    expect(page.locator("tbody tr").first).to_contain_text("audit-archive")
    expect(page.locator("th[aria-sort=descending]")).to_have_text("Group")
    assert page.url.endswith("/groups?order=name")
    page.goto(f"{shop.url}/expired?order=silent")
    expect(page.locator("tbody tr").first).to_contain_text("5 min")
