"""Poll timeouts of groups that go by member epochs, and sessions of theirs that an outage renewed.

Both are rows of the engine, which the audit derives anew. The poll timeouts are known by the return under the same id.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from audit.engine_runs import Run, audit_config, engine_run, parts_of
from heartwheel.engine.rules.config import coordinator_config
from heartwheel.engine.rules.epochs.model import LEFT_MAX
from heartwheel.proof.audit import Audit
from heartwheel.proof.testing import OUTAGE_MIN_MS, RUN, TICK_INTERVAL_MS, LogBuilder, read_records
from heartwheel.wire.group_heartbeats import GroupHeartbeat, HeartbeatType
from heartwheel.wire.verdict_rows import ExpirationRow
from support.heartbeat_logs import T0

SESSION_MS = 5_000
KINDS = ("consumer", "share", "streams")
CONFIG = coordinator_config({f"group_{kind}_session_timeout_ms": SESSION_MS for kind in KINDS})


class Group:
    """Write the log of one group of a kind; times are ms after `T0`."""

    def __init__(self, kind: str = "consumer") -> None:
        self.log = LogBuilder()
        self._type = HeartbeatType(f"{kind}_heartbeat")

    def beat(self, at_ms: int, member: str, epoch: int, **fields: Any) -> None:
        """Append a heartbeat."""
        beat = GroupHeartbeat(type=self._type, group_id="g", member_id=member, member_epoch=epoch, **fields)
        self.log.add(T0 + at_ms, beat)

    def run(self, until_ms: int, cuts: tuple[int, ...] = ()) -> Run:
        """Run the engine, and hold that the audit derives the very same rows."""
        run = engine_run(self.log, clock_ms=T0 + until_ms, config=CONFIG, cuts=cuts)
        report = run.audit()
        assert (report.faults, report.confirmed) == ({}, len(run.written)), report.findings
        return run


def _out(run: Run) -> list[ExpirationRow]:
    rows = [each.row for each in run.written if isinstance(each.row, ExpirationRow)]
    return [row for row in rows if row.reason == "poll_timeout"]


def _told(run: Run) -> list[tuple[str, int, int, int | None]]:
    return [(row.member_id, row.last_seen_ms - T0, row.deadline_ms - T0, row.member_epoch) for row in _out(run)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cuts", [(), (3,), (2, 4)])
def test_the_return_under_the_same_id_tells_it(kind: str, cuts: tuple[int, ...]) -> None:
    """When it left, when it was back, its poll interval where the request has it, and the group as it was before."""
    group = Group(kind)
    group.beat(0, "a", 0, answer_member_epoch=2, rebalance_timeout_ms=3_000, client_id="c", client_host="/h")
    group.beat(10, "b", 0, answer_member_epoch=3)
    group.beat(1_000, "a", 3, answer_member_epoch=3)
    group.beat(2_000, "a", -1, answer_member_epoch=-1)
    group.beat(6_000, "a", 0, answer_member_epoch=5, rebalance_timeout_ms=3_000, client_id="c", client_host="/h")
    run = group.run(7_000, cuts)
    assert _told(run) == [("a", 2_000, 6_000, -1)]
    (row,) = _out(run)
    assert (row.session_timeout_ms, row.client_id, row.group_kind, row.out_ms) == (3_000, "c", kind, T0 + 2_000)


@pytest.mark.parametrize("returns_ms", [4_000, 20_000])
def test_a_static_member_that_comes_back_as_itself(returns_ms: int) -> None:
    """It leaves for a while (-2) and is back under its id; a second -2 is the same leave. P3: late, it has expired."""
    group = Group()
    group.beat(0, "s", 0, group_instance_id="i", rebalance_timeout_ms=3_000)
    group.beat(2_000, "s", -2, group_instance_id="i")
    group.beat(3_000, "s", -2, group_instance_id="i")
    group.beat(returns_ms, "s", 0, group_instance_id="i", rebalance_timeout_ms=3_000)
    run = group.run(returns_ms + 100)
    in_time = returns_ms < 10_000
    assert _told(run) == ([("s", 2_000, returns_ms, -2)] if in_time else [])
    assert len([one for one in run.written if isinstance(one.row, ExpirationRow)]) == 1


@pytest.mark.parametrize("cuts", [(), (1,), (2,)])
def test_a_static_member_that_was_fenced_joins_anew(cuts: tuple[int, ...]) -> None:
    """An answer shows that it was: the epochs since then are a join's, and no poll timeout is made of it."""
    group = Group()
    group.beat(0, "s", 0, group_instance_id="i", answer_member_epoch=2, subscribed_topics=["t"])
    group.beat(10, "b", 0, answer_member_epoch=3, subscribed_topics=["t"])
    group.beat(3_000, "s", 0, group_instance_id="i", answer_member_epoch=5, subscribed_topics=["t"])
    run = group.run(4_000, cuts)
    assert _out(run) == []
    bumped = [each.row for each in run.written if getattr(each.row, "type", "") == "epoch_bumped"]
    assert [(row.generation_id, row.cause) for row in bumped][-2:] == [(4, "member_joined"), (5, "metadata_changed")]  # type: ignore[union-attr]


def test_p3_two_returns_of_one_millisecond_have_two_ids() -> None:
    """A static member is back, leaves for a while and is back, all in one epoch, while append times stand still."""
    group = Group()
    group.beat(0, "s", 0, group_instance_id="i")
    for at_ms, epoch in ((2_000, -2), (3_000, 0), (3_000, -2), (3_000, 0)):
        group.beat(at_ms, "s", epoch, group_instance_id="i")
    run = group.run(3_500)
    assert _told(run) == [("s", 2_000, 3_000, -2), ("s", 3_000, 3_000, -2)]
    assert len({row.id for row in _out(run)}) == 2


def test_others_that_come_are_none() -> None:
    """Not a restart with an id of its own, not one that was expired, not one that never left, and each leave once."""
    group = Group()
    for member in ("closed", "dead", "again"):
        group.beat(0, member, 0, rebalance_timeout_ms=3_000)
    group.beat(10, "s", 0, group_instance_id="i")
    group.beat(1_000, "closed", -1)
    group.beat(1_000, "s", -2, group_instance_id="i")
    group.beat(1_500, "new", 0)
    group.beat(1_600, "s2", 0, group_instance_id="i")
    group.beat(1_700, "again", 0)
    group.beat(9_000, "dead", 0)
    group.beat(9_100, "s", 0)
    assert _out(group.run(9_500)) == []
    group.beat(9_600, "closed", 0)
    group.beat(9_700, "closed", 0)
    assert _told(group.run(9_800)) == [("closed", 1_000, 9_600, -1)]


def test_so_many_leavers_are_remembered() -> None:
    """A group's last leavers are kept, and no more of them: who left before those is not known when it comes back."""
    group = Group()
    names = [f"m{number:04}" for number in range(LEFT_MAX + 1)]
    for name in names:
        group.beat(0, name, 0, answer_member_epoch=2)
        group.beat(0, name, -1, answer_member_epoch=-1)
    for name in (names[0], names[1], names[-1]):
        group.beat(500, name, 0)
    assert [told[0] for told in _told(group.run(600, cuts=(LEFT_MAX,)))] == [names[1], names[-1]]


def test_the_audit_misses_it_if_it_is_not_told() -> None:
    """An engine that keeps it to itself is found out, and so is one that dates the leave otherwise."""
    group = Group()
    group.beat(0, "a", 0)
    group.beat(1_000, "a", -1)
    group.beat(2_000, "a", 0)
    run = group.run(3_000)
    (row,) = _out(run)
    run.written = [each for each in run.written if each.row is not row]
    assert {kind.value: number for kind, number in run.audit().faults.items()} == {"missed": 1}
    run.append(msgspec.structs.replace(row, last_seen_ms=row.last_seen_ms + 1))
    assert {kind.value for kind in run.audit().faults} == {"forged"}


def _with_an_outage(kind: str) -> Group:
    """Write a log with ticks that stand still from 6 to 20 s: `dead` is heard of before it, `owes` owes partitions.

    `owes` was asked for them at 5.5 s, with 2 s for that.
    """
    group = Group(kind)
    events: list[tuple[int, str, int, dict[str, Any]]] = [
        (100, "owes", 0, {"answer_member_epoch": 2, "rebalance_timeout_ms": 2_000, "assignment": {"t": (0, 1)}}),
        (200, "dead", 0, {"answer_member_epoch": 2}),
        (3_000, "owes", 2, {"answer_member_epoch": 2}),
        (4_900, "dead", 2, {"answer_member_epoch": 2}),
        (5_500, "owes", 2, {"answer_member_epoch": 2, "owned": {"t": (0, 1)}, "assignment": {"t": (0,)}}),
        (21_000, "owes", 2, {"answer_member_epoch": 2}),
    ]
    for at_ms in range(0, 40_000, TICK_INTERVAL_MS):
        for event_ms, member, epoch, fields in events:
            if at_ms <= event_ms < at_ms + TICK_INTERVAL_MS:
                group.beat(event_ms, member, epoch, **fields)
        if not 6_000 < at_ms < 20_000:
            group.log.tick(T0 + at_ms)
    group.log.records.sort(key=lambda record: record.append_ms)
    group.log.records[:] = [record._replace(offset=offset) for offset, record in enumerate(group.log.records)]
    return group


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", [0, 40, 60])
def test_an_expiry_of_a_renewed_timer_says_so(kind: str, cut: int) -> None:
    """The end of the outage stands in the row of whoever was not heard of since, and the audit derives it."""
    group = _with_an_outage(kind)
    run = Run(group.log, CONFIG, T0)
    run.play(map(read_records, parts_of(group.log, [cut])))
    audit = Audit(audit_config(CONFIG, runs=(RUN,), outage_min_ms=OUTAGE_MIN_MS, examples_max=1_000))
    for record in group.log.records:
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    run.write_to(audit)
    report = audit.finish()
    assert (report.faults, report.confirmed, report.outages) == ({}, len(run.written), 1), report.findings
    rows = [each.row for each in run.written if isinstance(each.row, ExpirationRow)]
    dead = [(row.member_id, row.deadline_ms - T0, row.renewed_ms) for row in rows if row.member_id == "dead"]
    assert dead == [("dead", 20_000 + SESSION_MS, T0 + 20_000)]
    others = [(row.reason, row.deadline_ms - T0, row.renewed_ms) for row in rows if row.member_id == "owes"]
    if kind == "share":
        assert others == [("session_timeout", 21_000 + SESSION_MS, None)]
    else:
        assert others == [("revocation_timeout", 22_000, T0 + 20_000)]
