"""The demo's lines and figures: readable, one a fact, true to the rows they come from."""

from __future__ import annotations

from typing import Any

import pytest

from heartwheel.base.percentiles import percentile
from heartwheel.front.cli.demo import when_live
from heartwheel.front.cli.demo_screen import DemoScreen, plain_figures
from heartwheel.front.demo.lines import RollUp, expiration_line
from heartwheel.front.demo.tally import Tally
from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.wire.status import AtRiskMember, StatusRow
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow
from support.output_rows import topic_rows


def expiration(**more: Any) -> ExpirationRow:
    """Build a row of the expirations topic: last seen at 1 s, over at 7 s, detected at 8 s."""
    row: dict[str, Any] = {
        "id": "1",
        "group_id": "orders",
        "member_id": "orders-1-ab",
        "group_instance_id": None,
        "client_id": "orders-1",
        "client_host": "/10.0.0.2",
        "generation_id": 3,
        "reason": "session_timeout",
        "last_seen_ms": 1_000,
        "session_timeout_ms": 6_000,
        "deadline_ms": 7_000,
        "detected_ms": 8_000,
        "lateness_ms": 1_000,
        "group_state": "Stable",
        "shard": 0,
    }
    return ExpirationRow(**(row | more))


def at(append_ms: int, *rows: ExpirationRow | TriggerRow | StatusRow) -> list[TopicRow]:
    """Put rows into their topics, all appended at one moment, epoch ms."""
    return [each._replace(append_ms=append_ms) for each in topic_rows(*rows)]


def trigger(type_: str, generation: int, **more: Any) -> TriggerRow:
    """Build a row of the triggers topic."""
    row: dict[str, Any] = {
        "id": f"{type_}/{generation}",
        "type": type_,
        "group_id": "orders",
        "generation_id": generation,
        "reason": "",
        "cause": "member_expired",
        "time_ms": 7_000,
        "deadline_ms": None,
        "awaiting": (),
        "leader": None,
        "member_count": 4,
        "removed": (),
        "duration_ms": 0,
        "detected_ms": 8_000,
        "shard": 0,
        "group_kind": "classic",
    }
    row |= more
    return TriggerRow(awaiting_count=len(row["awaiting"]), removed_count=len(row["removed"]), **row)


def status(shard: int, clock_ms: int, *at_risk: AtRiskMember) -> StatusRow:
    """Build a row of the status topic: two members in one group."""
    return StatusRow(
        shard=shard,
        batch_ms=clock_ms + 1_000,
        clock_ms=clock_ms,
        held=False,
        members=2,
        groups=1,
        groups_by_state={"Stable": 1},
        groups_by_kind={"presence": 1},
        wheel=(),
        wheel_moves=0,
        wheel_fires=0,
        at_risk=at_risk,
        strays={},
        counts={},
        totals={},
        state_bytes=100,
    )


def said(*rows: TriggerRow) -> list[str]:
    """Give the lines of triggers, without the time of day."""
    roll_up = RollUp()
    first = list(roll_up.add((row, 8_500) for row in rows))
    assert first == []
    return [line.plain[10:] for line in roll_up.add(())]


def test_an_expiration_says_who_why_and_how_late() -> None:
    """One line names member, group, host and reason, how long it was silent, and how late that was known."""
    line = expiration_line(expiration(), known_ms=8_500).plain
    assert line[10:] == (
        "expired    orders       orders-1-ab at /10.0.0.2  session timeout, silent for 7.5 s, known 1.5 s late"
    )
    assert " at " not in expiration_line(expiration(client_host=None), known_ms=8_500).plain


def test_a_rebalance_is_one_line() -> None:
    """The trigger and the completion of one rebalance make one line, from the old generation to the new one."""
    rows = [trigger("rebalance_triggered", 3), trigger("rebalance_completed", 4)]
    assert said(*rows) == ["rebalance  orders       generation 3 -> 4  member expired, 4 members"]


def test_a_storm_is_rolled_up() -> None:
    """However many rebalances of a group come at once, they are one line with the count of each cause."""
    rows = [
        row
        for generation, cause in ((3, "member_expired"), (4, "member_expired"), (5, "member_joined"))
        for row in (
            trigger("rebalance_triggered", generation, cause=cause),
            trigger("rebalance_completed", generation + 1, cause=cause),
        )
    ]
    other = trigger("rebalance_completed", 9, group_id="payments", member_count=1, leader="p-1")
    assert said(rows[0], other, *rows[1:]) == [
        "rebalance  orders       generation 3 -> 6  2 x member expired, member joined, 4 members",
        "rebalance  payments     generation 8 -> 9  member expired, 1 member, leader p-1",
    ]


def test_a_rebalance_seen_in_two_parts_is_one_line() -> None:
    """A completion that comes a poll later than its trigger joins it, and is not said again."""
    roll_up = RollUp()
    assert list(roll_up.add([(trigger("rebalance_triggered", 3), 8_500)])) == []
    later = [(trigger("rebalance_completed", 4), 8_600), (trigger("group_empty", 2, group_id="other"), 8_600)]
    assert [line.plain[34:] for line in roll_up.add(later)] == ["generation 3 -> 4  member expired, 4 members"]
    assert [line.plain[21:26] for line in roll_up.add(())] == ["other"]
    assert list(roll_up.add(())) == []


def test_an_open_join_phase_says_who_is_awaited() -> None:
    """A rebalance that is not over says how many members it waits for."""
    row = trigger("rebalance_triggered", 3, awaiting=("a", "b"))
    assert said(row) == ["rebalance  orders       generation 3 ends  member expired, waiting for 2 of 4 members"]


def test_an_empty_group_is_told() -> None:
    """A group that has lost its last member is called empty."""
    row = trigger("group_empty", 4, cause="no_members", member_count=0)
    assert said(row) == ["empty      orders       generation 3 -> 4  no members left"]


def test_the_tally_counts_each_id_once() -> None:
    """A duplicate with the same id, as a crash may leave, is neither shown nor counted again."""
    tally = Tally(shards=1)
    rows = at(8_500, expiration(), trigger("group_empty", 4))
    first, second = tally.take(rows, 8_500), tally.take(rows, 8_500)
    assert (len(first.expirations), len(first.triggers), second) == (1, 1, ([], []))
    assert (tally.expired, tally.triggers) == ({"session_timeout": 1}, {"group_empty": 1})
    assert list(tally.lateness_ms) == [1_500]


def test_the_clock_is_that_of_the_slowest_shard() -> None:
    """Until every shard has reported there is no clock; then it is the earliest one."""
    tally = Tally(shards=2)
    tally.take(at(8_500, status(0, 5_000)), 8_500)
    assert tally.clock_ms == -1
    tally.take(at(8_500, status(1, 4_000)), 8_500)
    assert (tally.clock_ms, tally.members, tally.groups) == (4_000, 4, 2)
    tally.take(at(8_500, status(1, 6_000)), 8_500)
    assert tally.clock_ms == 5_000


def test_the_nearest_to_expiry_is_of_all_shards() -> None:
    """Of the members that the shards name, the one with the earliest deadline is shown."""
    tally = Tally(shards=2)
    tally.take(at(8_500, status(0, 5_000, AtRiskMember(group_id="g", member_id="later", deadline_ms=9_000))), 8_500)
    tally.take(at(8_500, status(1, 5_000, AtRiskMember(group_id="h", member_id="sooner", deadline_ms=8_000))), 8_500)
    found = tally.next_at_risk(8_500)
    assert found is not None
    assert found.member_id == "sooner"


@pytest.mark.parametrize(("share", "value"), [(0.5, 2), (0.75, 3), (0.76, 4), (0.99, 4), (1.0, 4)])
def test_percentiles_are_values_that_were_measured(share: float, value: int) -> None:
    """A percentile is the value at the nearest rank, and 0 of nothing."""
    assert percentile([4, 2, 1, 3], share) == value
    assert percentile([], share) == 0


def test_figures_are_plain_lines_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    """Where no person looks, figures are a line on stderr at each change of phase, and events alone go to stdout."""
    tally = Tally(shards=1)
    tally.take(at(8_500, expiration()), 8_500)
    with DemoScreen(tally) as screen:
        screen.refresh()
        screen.refresh()
        tally.phase = "live"
        screen.refresh()
        screen.say(expiration_line(expiration(), 8_500))
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert [line.partition(",")[0] for line in err.splitlines()] == ["-- starting", "-- live"]
    assert "expired 1, " in plain_figures(tally)


def test_the_page_is_named_first(capsys: pytest.CaptureFixture[str]) -> None:
    """The address of the dashboard's page is the first line, before any event."""
    with DemoScreen(Tally(shards=1), address="http://127.0.0.1:8484/") as screen:
        screen.say(expiration_line(expiration(), 8_500))
    assert capsys.readouterr().out.splitlines()[0] == "http://127.0.0.1:8484/"


def test_the_canary_is_in_no_figure() -> None:
    """The reports count the canary's groups and members, and the terminal leaves them out, as the page does."""
    tally = Tally(shards=1)
    tally.take(at(8_500, status(0, 5_000)), 8_500)
    tally.take(at(8_500, trigger("rebalance_completed", 1, group_id="heartwheel-canary-1", member_count=1)), 8_500)
    assert (tally.members, tally.groups) == (1, 0)
    tally.take(at(8_500, trigger("group_empty", 2, group_id="heartwheel-canary-1", member_count=0)), 8_500)
    assert (tally.members, tally.groups) == (2, 0)


def test_joining_in_is_shown_when_the_job_is_ready() -> None:
    """Before that a beat would be a member whom nobody watches yet: the line comes with the canary, and not earlier."""
    told: list[str] = []

    class Screen:
        def note(self, words: str) -> None:
            told.append(words)

    class Page:
        def start_canary(self) -> None:
            told.append("canary")

    begin = when_live(Page(), Screen(), "http://127.0.0.1:8486")  # type: ignore[arg-type]  # what of them is called
    assert told == []
    begin()
    assert told[0] == "canary"
    assert told[1].startswith("join in     curl -X POST 'http://127.0.0.1:8486/beat/mine/me?session=10s'")
