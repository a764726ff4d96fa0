"""The page on a broker's log against a world that was written line by line: each number and sentence is its own."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from heartwheel.settings import Settings
from heartwheel.settings.servers import DashboardSettings
from heartwheel.sources.explain.page import LogPage
from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scan import Scanned
from support.browser import Tab
from support.scripted_log import START_MS, lines_of, member, preparing, stable

pytestmark = pytest.mark.ui

BUSY = 75
"""So many rebalances has group busy: more lines than a page shows at once."""


def clock(second: float) -> str:
    """Write a moment of the world as the page does: 22 Nov 02:12:26."""
    whole = START_MS // 1000 + int(second)
    return f"22 Nov {whole // 3600 % 24:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def failed(name: str, group: str) -> str:
    """Write the line of a session timeout."""
    return f"Member {member(name)} in group {group} has failed, removing it from the group"


def leaves(name: str, number: int, group: str, words: str) -> str:
    """Write the line of a member that leaves in its own words; its poll interval is 5 minutes."""
    return (
        f"Member MemberMetadata(memberId={member(name, number)}, groupInstanceId=None, clientId={name}, "
        "clientHost=/10.0.0.7, sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, supportedProtocols=List(range)) has "
        f"left group {group} through explicit `LeaveGroup`; client reason: {words}"
    )


def comes(name: str, number: int, group: str) -> str:
    """Write the line that begins a rebalance as a member joins."""
    reason = f"Adding new member {member(name, number)} with group instance id None; client reason: not provided"
    return preparing(number, reason, group)


def world() -> str:
    """Write the log.

    pay: three members, all dead within two seconds, and nobody since. slow: one is over its poll interval, and back
    12 s later. roll: three restarts in a row, each member says so. stuck: a join waits 5 s for one that never comes.
    busy: one rebalance a second, of 100 ms each. calm: nothing happens. feed: a consumer group that is known from its
    first epoch on. The broker starts, is killed, and starts again.
    """
    old: list[tuple[float, str]] = [(0, "Starting up."), (1, stable(3, "pay", 3)), (1, stable(1, "calm", 2))]
    old += [(60 + number, failed(f"pay-{number}", "pay")) for number in (0, 1, 2)]
    old += [(60.001, preparing(3, f"removing member {member('pay-0')} on heartbeat expiration", "pay"))]
    old += [(62.001, "Group pay with generation 4 is now empty (__consumer_offsets-3)")]
    old += [(70, leaves("slow-1", 1, "slow", "consumer poll timeout has expired."))]
    old += [
        (
            70,
            preparing(
                1,
                f"Removing member {member('slow-1')} on LeaveGroup; client reason: consumer poll timeout has expired.",
                "slow",
            ),
        )
    ]
    old += [(70.5, stable(2, "slow", 1)), (82, comes("slow-1", 2, "slow")), (82.25, stable(3, "slow", 2))]
    for number in (1, 2, 3):
        at, generation = 100 + number * 10, 2 * number
        old += [(at, leaves(f"roll-{number}", 1, "roll", "rolling restart"))]
        old += [
            (
                at,
                preparing(
                    generation - 1,
                    f"Removing member {member(f'roll-{number}')} on LeaveGroup; client reason: rolling restart",
                    "roll",
                ),
            )
        ]
        old += [(at + 0.2, stable(generation, "roll", 2))]
        old += [(at + 4, comes(f"roll-{number}", generation, "roll")), (at + 4.3, stable(generation + 1, "roll", 3))]
    old += [(150, comes("stuck-2", 1, "stuck"))]
    old += [(155, f"Group stuck removed dynamic members who haven't joined: Set({member('stuck-1')})")]
    old += [(155.001, stable(2, "stuck", 1))]
    for number in range(BUSY):
        old += [(200 + number, comes("busy-1", number + 1, "busy")), (200.1 + number, stable(number + 2, "busy", 1))]
    old += [(300, "Starting up.")]
    new = [
        (160, "[GroupId feed] Member Ak3yQq0TSVuRW1yU3oCQeg joins the consumer group using the consumer protocol."),
        (160, "[GroupId feed] Bumped group epoch to 1."),
        (161, "[GroupId feed] Member Bk3yQq0TSVuRW1yU3oCQeg joins the consumer group using the consumer protocol."),
        (161, "[GroupId feed] Bumped group epoch to 2."),
        (170, "[GroupId feed] Member Ak3yQq0TSVuRW1yU3oCQeg fenced from the group because the member session expired."),
        (170, "[GroupId feed] Bumped group epoch to 3."),
    ]
    return lines_of(*sorted(old, key=lambda line: line[0])) + lines_of(*new, new=True)  # fmt: skip


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """Serve the page on the world's log."""
    file = tmp_path_factory.mktemp("world") / "server.log"
    file.write_text(world())
    scanned = Scanned()
    with LogPage(Settings(dashboard=DashboardSettings(port=0)), [str(file)]) as page:
        page.take(list(explain_logs([str(file)], scanned, stdin=io.BytesIO())), scanned)
        page.take([], scanned)
        yield SimpleNamespace(url=page.url.rstrip("/"))


@pytest.fixture(scope="module")
def reader(browser: Browser, log: SimpleNamespace) -> Iterator[Tab]:
    """Keep a tab on the log."""
    one = Tab(browser, log.url, viewport={"width": 1440, "height": 900}, color_scheme="light")
    yield one
    one.close()


@pytest.fixture
def shown(reader: Tab) -> Iterator[Callable[[str], Page]]:
    """Give a function that goes to a page of the log; at the end it may not have complained."""
    yield reader.go
    assert reader.complaints == []


def cells(rows: Locator) -> list[list[str]]:
    """Read the cells of a table, each as the lines in it."""
    expect(rows.first).to_be_visible()
    return [[cell.inner_text() for cell in row.locator("td").all()] for row in rows.all()]


def facts(page: Page) -> dict[str, str]:
    """Read the facts of a page, by their names."""
    names, values = page.locator(".facts dt").all_inner_texts(), page.locator(".facts dd").all_inner_texts()
    return dict(zip(names, values, strict=True))


def test_who_was_out(shown: Callable[[str], Page]) -> None:
    """When, why, who, what to change and who came back; times as in the log, and in full."""
    page = shown("/expired")
    rows = cells(page.locator(".table tbody tr"))
    truth: list[tuple[float, str, str, str, str]] = [
        (170, "Silent", "feed", "Ak3yQq0TSVuRW1yU3oCQeg", "no"),
        (155, "Did not rejoin", "stuck", member("stuck-1"), "no"),
        (70, "Took itself out", "slow", member("slow-1"), "12 s later"),
        (62, "Silent", "pay", member("pay-2"), "no"),
        (61, "Silent", "pay", member("pay-1"), "no"),
        (60, "Silent", "pay", member("pay-0"), "no"),
    ]
    found = [(row[0].split("\n")[0], row[1], row[2].split("\n")[0], row[3].split("\n")[0], row[5]) for row in rows]
    assert found == [(clock(second), *rest) for second, *rest in truth]
    assert [row[2].split("\n")[1] for row in rows][:3] == ["epoch 2", "generation 1", "generation 1"]
    assert all(re.fullmatch(r"server\.log:\d+", row[0].split("\n")[1]) for row in rows)
    advice = [row[4] for row in rows]
    assert "consumer.session.timeout.ms" in advice[0]
    assert "max.poll.interval.ms" in advice[1]
    assert "max.poll.interval.ms" in advice[2]
    assert "raise session.timeout.ms" in advice[3]
    expect(page.locator(".pager").first).to_contain_text("6 shown of 6.")
    for element in page.locator(".table .line.strong").all():
        assert element.evaluate("e => e.scrollWidth <= e.clientWidth"), "a time is cut off"
    heads = page.locator(".table thead th").all_inner_texts()
    assert heads == ["Out", "Why", "Group", "Member", "What to change", "Came back"]


def test_what_the_log_says_of_all(shown: Callable[[str], Page]) -> None:
    """Who has no members at its end, who was out at once, and what brokers did."""
    page = shown("/expired")
    report = page.locator(".report")
    expect(report).to_be_visible()
    parts = {
        part.locator("h2").inner_text(): part.locator("li").all_inner_texts() for part in report.locator("> div").all()
    }
    assert parts["No members at the end of the log"] == [f"pay since {clock(62)}"]
    assert parts["Out at the same time"] == [
        (
            f"{clock(60)} 3 members of group pay were out within 2.0 s. No other group was: look at this application, "
            "its deployment and what it depends on. Broker 1 had started 1 min before."
        )
    ]
    assert parts["Brokers"] == [
        f"{clock(0)} broker 1: it starts",
        f"{clock(300)} broker 1: it starts, though no line says that it shut down: it was killed or crashed",
    ]
    expect(page.locator("#foot")).to_contain_text("Times are as in the log, which names no time zone.")
    expect(page.locator("#foot")).not_to_contain_text("Metrics")
    expect(page.locator(".tabs a:visible")).to_have_text(["Timeline", "Expired", "Groups", "Rebalances"])


def test_how_groups_stand(shown: Callable[[str], Page]) -> None:
    """State, size, number, what was wrong; what the log does not tell is not logged."""
    page = shown("/groups")
    found = {row[0].split("\n")[0]: row for row in cells(page.locator(".table tbody tr"))}
    truth: dict[str, list[Any]] = {
        "pay": ["classic", "Empty", "0", "generation 4", "3\nno members"],
        "slow": ["classic", "Stable", "2", "generation 3", "1"],
        "roll": ["classic", "Stable", "3", "generation 7", "0\nstorm"],
        "stuck": ["classic", "Stable", "1", "generation 2", "1"],
        "busy": ["classic", "Stable", "1", f"generation {BUSY + 1}", "0\nstorm"],
        "calm": ["classic", "Stable", "2", "generation 1", "0"],
        "feed": ["consumer", "Unknown", "1", "epoch 3", "1"],
    }
    assert found.keys() == truth.keys()
    for group, (kind, state, members, number, out) in truth.items():
        row = found[group]
        assert [row[0], row[1], row[2], row[3].strip()] == [f"{group}\n{kind}", state, f"{members}\n{number}", out], (
            group
        )
    assert found["stuck"][4] == f"member joined\n{clock(150)}"  # it ended five seconds later
    page.locator("label.check input").check()
    expect(page.locator(".table tbody tr")).to_have_count(3)


SENTENCES = {
    "pay": [
        "It has had no member since 2026-11-22 02:12:52.",
        "3 times a member was thrown out by its session timeout, all within 2.0 s.",
        "1 rebalance took 2.0 s, and 1 more of unknown length.",
        (
            "The log shows none of those that were out back within an hour, so it does not show which "
            "session.timeout.ms would have been enough."
        ),
    ],
    "slow": [
        "Once a member took itself out by a poll timeout: slow-1.",
        "2 rebalances took 750 ms, the longest 500 ms.",
        "slow-1 was back 12.0 s later: a max.poll.interval.ms of 5 min 12 s would have been enough.",
    ],
    "roll": [
        "No member was thrown out, but the group rebalanced again and again: 3 x a member left, 3 x a member joined.",
        '3 leaves: 3 x "rolling restart".',
        "6 rebalances took 1.5 s, the longest 300 ms.",
    ],
    "stuck": [
        "Once a member was thrown out as it did not join a rebalance in time: stuck-1.",
        "1 rebalance took 5.0 s.",
    ],
    "feed": ["Once a member was thrown out by its session timeout: Ak3yQq0TSVuRW1yU3oCQeg.", "It had 3 new epochs."],
    "calm": ["No member was thrown out.", "1 rebalance; how long is not known."],
}


@pytest.mark.parametrize("group", SENTENCES)
def test_what_the_log_says_of_a_group(shown: Callable[[str], Page], group: str) -> None:
    """The verdict, sentence by sentence; and nothing that only an engine has."""
    page = shown(f"/groups/{group}")
    expect(page.locator(".why h2")).to_have_text("What the log says")
    sentences = page.locator(".why p").all_inner_texts()
    assert sentences[: len(SENTENCES[group])] == SENTENCES[group]
    text = page.locator("main").inner_text()
    for wrong in ("Heartbeats are not read", "Members seen", "Shard", "the engine", "silent for", " 0 ms"):
        assert wrong not in text
    known = facts(page)
    assert known["Kind"] == ("consumer" if group == "feed" else "classic")
    assert known["Members"] == {"pay": "0", "slow": "2", "roll": "3", "stuck": "1", "feed": "1", "calm": "2"}[group]


def test_why_members_left(shown: Callable[[str], Page]) -> None:
    """Each line of the timeline, in its order."""
    page = shown("/groups/roll")
    lines = page.locator(".timeline li .wrap")
    expect(lines).to_have_count(3 * 5 + 1)
    texts = lines.all_inner_texts()
    left = [text for text in texts if " left: " in text]
    assert left == [
        f"{member(f'roll-{number}')} left: rolling restart, generation {2 * number - 1}; the rebalance took 200 ms"
        for number in (3, 2, 1)
    ]
    assert sum(text.startswith("Storm: 6 rebalances in ") for text in texts) == 1
    assert texts[0] == "Generation 7 begins with 3 members after 300 ms: member joined"


def test_older_lines_are_a_click_away(shown: Callable[[str], Page]) -> None:
    """All of them, to the first."""
    page = shown("/groups/busy")
    lines = page.locator(".timeline li")
    expect(lines).to_have_count(100)
    page.locator(".pager button", has_text="Older").click()
    expect(lines).to_have_count(2 * BUSY + 1)
    expect(page.locator(".pager button", has_text="Older")).to_have_count(0)
    expect(lines.last).to_contain_text("Rebalance to generation 2 begins: member joined")
    expect(lines.last.locator("time")).to_have_text(clock(200))
    expect(lines.first).to_contain_text(f"Generation {BUSY + 1} begins with 1 member after 100 ms")


def test_what_rebalances_cost(shown: Callable[[str], Page]) -> None:
    """Of each classic group; a consumer group has none."""
    page = shown("/rebalances")
    expect(page.locator(".rebalances").first).to_be_visible()
    heads = [head.inner_text().split("\n") for head in page.locator(".rebalances .panel-head").all()]
    assert {head[0]: head[-1] for head in heads} == {
        "busy": f"{BUSY} rebalances, 7.5 s in all, the longest 100 ms",
        "stuck": "1 rebalance, 5 s in all, the longest 5 s",
        "pay": "2 rebalances, 2 s in all, the longest 2 s, and 1 of unknown length",
        "roll": "6 rebalances, 1.5 s in all, the longest 300 ms",
        "slow": "2 rebalances, 750 ms in all, the longest 500 ms",
        "calm": "1 rebalance; how long is not known",
    }
    panel = page.locator(".rebalances", has=page.locator("h2", has_text="calm"))
    days = panel.locator("p.soft.small", has_text="per day")
    expect(days).to_have_text("Rebalanced per day: 2026-11-22: 1 rebalance of unknown length")
    panel = page.locator(".rebalances", has=page.locator("h2", has_text="pay"))
    days = panel.locator("p.soft.small", has_text="per day")
    expect(days).to_have_text("Rebalanced per day: 2026-11-22: 2 s in 1 rebalance, and 1 more of unknown length")


def test_rebalance_that_is_not_over_stands_first(tab: Callable[..., Tab], tmp_path: Path) -> None:
    """It has no length to be ranked by, and is what the reader looks for."""
    lines: list[tuple[float, str]] = []
    for number in range(7):
        lines += [(number * 10, comes("a", number + 1, "open")), (number * 10 + 1, stable(number + 2, "open", 2))]
    file = tmp_path / "server.log"
    file.write_text(lines_of(*lines, (100, comes("a", 8, "open")), (160, stable(1, "other", 1))))
    scanned = Scanned()
    with LogPage(Settings(dashboard=DashboardSettings(port=0)), [str(file)]) as log:
        log.take(list(explain_logs([str(file)], scanned, stdin=io.BytesIO())), scanned)
        log.take([], scanned)
        page = tab(SimpleNamespace(url=log.url.rstrip("/"))).open("/rebalances?text=open")
        part = page.locator(".rebalances")
        expect(part.locator(".list-title")).to_have_text("The open one and the 4 longest of 8:")
        expect(part.locator("li").first).to_contain_text(f"{clock(100)}, not over at the end of the log: member joined")
        expect(part.locator("li").nth(1)).to_contain_text("took 1 s: member joined")
        expect(part.locator(".panel-head .soft")).to_have_text(
            "8 rebalances, 7 s in all, the longest 1 s, one still under way"
        )
        numbers = [item.locator(".nowrap").inner_text() for item in part.locator("li").all()]
        assert numbers == ["gen. 9", *(f"gen. {number}" for number in (8, 7, 6, 5))]


def test_one_member(shown: Callable[[str], Page]) -> None:
    """Why, when, and that it was back."""
    page = shown(f"/members/slow/{member('slow-1')}")
    expect(page.locator(".verdict .tags")).to_have_text("Out: took itself outCame back 12 s later")
    known = facts(page)
    assert (known["Generation"], known["Its timeout"], known["Out"]) == ("1", "5 min", f"{clock(70)}.0")
    assert known["Who"] == "slow-1 · 10.0.0.7"
    expect(page.locator(".why")).to_contain_text("max.poll.interval.ms, 5 min, and said so when it left.")


@pytest.mark.parametrize("path", ["/expired", "/groups", "/groups/pay", "/groups/busy", "/rebalances"])
def test_nothing_is_wider_than_a_phone(tab: Callable[..., Tab], log: SimpleNamespace, path: str) -> None:
    """No page of a log scrolls sideways."""
    page = tab(log, viewport={"width": 390, "height": 844}, color_scheme="light").open(path)
    expect(page.locator("main .panel").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
