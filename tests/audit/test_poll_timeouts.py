"""A consumer that takes itself out as it had not polled in time: a row of its own, in the engine and in the audit."""

from __future__ import annotations

import msgspec
import pytest

from audit.engine_runs import Run, engine_run
from audit.rich_log import CONFIG, T0
from heartwheel.proof.testing import LogBuilder
from heartwheel.wire.events import Event, EventType, Leaving, Protocol
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

SAID = "consumer poll timeout has expired."
END_MS = T0 + 9_000


def _classic(member: str, kind: EventType, generation: int = -1, **fields: object) -> Event:
    join = {
        "session_timeout_ms": 6_000,
        "rebalance_timeout_ms": 4_000,
        "protocol_type": "consumer",
        "protocols": (Protocol("range"),),
    }
    more = join if kind is EventType.JOIN else {}
    event = Event(type=kind, group_id="classic", member_id=member, generation_id=generation, client_id="c")
    return msgspec.structs.replace(event, **more | fields)


def _log(*leaves: tuple[int, Event]) -> LogBuilder:
    """Two members of a classic group at generation 1, two of one that was met in mid-life, two plain workers."""
    events = [(10, _classic(m, EventType.JOIN, assigned_member_id=m)) for m in ("a", "b")]
    events = [
        (at, Event(**{name: getattr(event, name) for name in event.__struct_fields__} | {"member_id": ""}))
        for at, event in events
    ]
    events += [(20, _classic(m, EventType.JOIN)) for m in ("a", "b")]
    events += [(2_000, _classic(m, EventType.SYNC, 1)) for m in ("a", "b")]
    for at in range(0, 9_000, 1_000):
        events += [(at + 5, Event(group_id="met", member_id=m, generation_id=7)) for m in ("x", "y")]
        events += [(at + 6, Event(group_id="workers", member_id=m, session_timeout_ms=5_000)) for m in ("v", "w")]
        if at > 2_000:
            events += [(at, _classic(m, EventType.HEARTBEAT, 1)) for m in ("a", "b")]
    log = LogBuilder()
    for at, event in sorted([*events, *leaves], key=lambda each: each[0]):
        log.add(T0 + at, event)
    return log


def _run(*leaves: tuple[int, Event], cuts: tuple[int, ...] = ()) -> Run:
    return engine_run(_log(*leaves), clock_ms=END_MS, config=CONFIG, cuts=cuts)


def _out(run: Run) -> list[ExpirationRow]:
    return [
        each.row for each in run.written if isinstance(each.row, ExpirationRow) and each.row.reason == "poll_timeout"
    ]


LEAVE = (5_500, _classic("a", EventType.LEAVE, reason=SAID))


@pytest.mark.parametrize("cuts", [(), (5,), (20, 30), (40,)])
def test_it_is_told_with_its_poll_interval(cuts: tuple[int, ...]) -> None:
    """Who, when, last seen, and the limit that it broke: its rebalance timeout is its max.poll.interval.ms."""
    run = _run(LEAVE, cuts=cuts)
    (row,) = _out(run)
    assert (row.group_id, row.member_id, row.client_id, row.generation_id) == ("classic", "a", "c", 1)
    assert (row.deadline_ms, row.last_seen_ms, row.session_timeout_ms) == (T0 + 5_500, T0 + 5_000, 4_000)
    triggers = [
        each.row for each in run.written if isinstance(each.row, TriggerRow) and each.row.cause == "member_left"
    ]
    assert [(each.type, each.time_ms) for each in triggers] == [("rebalance_triggered", T0 + 5_500)]
    report = run.audit()
    assert report.ok
    assert report.confirmed == len(run.written)


def test_batches_and_groups_met_in_mid_life() -> None:
    """Each leaver of a batch is judged by its own words, also of a group whose joins were not seen."""
    batch = Event(
        type=EventType.LEAVE,
        group_id="met",
        leaving=(Leaving("x", None, SAID), Leaving("y", None, "the consumer is being closed")),
    )
    run = _run((5_500, batch))
    assert [(row.group_id, row.member_id) for row in _out(run)] == [("met", "x")]
    assert run.audit().ok


@pytest.mark.parametrize(
    "leave",
    [
        (5_500, _classic("a", EventType.LEAVE, reason="the consumer is being closed")),
        (5_500, _classic("a", EventType.LEAVE)),
        (5_500, _classic("nobody", EventType.LEAVE, reason=SAID)),
        (5_500, Event(type=EventType.LEAVE, group_id="workers", member_id="w", reason=SAID)),
    ],
)
def test_other_leaves_are_none(leave: tuple[int, Event]) -> None:
    """Not one that closed, that gives no reason, that is no member, or a worker, which does not poll."""
    run = _run(leave)
    assert _out(run) == []
    assert run.audit().ok


def test_the_audit_misses_it_if_it_is_not_told() -> None:
    """An engine that keeps it to itself is found out, and so is one that makes one up."""
    run = _run(LEAVE)
    run.written = [
        each for each in run.written if not (isinstance(each.row, ExpirationRow) and each.row.reason == "poll_timeout")
    ]
    assert {kind.value: number for kind, number in run.audit().faults.items()} == {"missed": 1}
    made_up = _run((5_500, _classic("a", EventType.LEAVE, reason="bye")))
    made_up.append(_out(_run(LEAVE))[0])
    assert {kind.value for kind in made_up.audit().faults} == {"false"}
