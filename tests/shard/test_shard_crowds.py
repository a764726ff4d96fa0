"""Members that arrive or fall silent many at once: the verdicts and the state that the rules reach one at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group
from heartwheel.engine.shard import Shard, ShardLimits
from heartwheel.proof.testing import LogBuilder, ProducedRecord, by_group, read_records, until
from heartwheel.wire.event_codec import decode_accepted, fingerprint
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.verdicts import Kind, Verdict
from support.heartbeat_logs import CONFIG, EXAMPLES, SESSIONS_MS, T0, cuts_of

ROOMY = dataclasses.replace(CONFIG, group_max_size=12)
NEVER_MS = 1_000_000_000
"""A gap that no log here has: a silence is no outage."""


_RARE = [EventType.LEAVE, EventType.COMMIT, EventType.SYNC, EventType.UNLOAD, EventType.LOAD]


@st.composite
def crowds(draw: st.DrawFn) -> LogBuilder:
    """Draw a log in which many members are first heard of in few groups, mostly by plain heartbeats of one kind."""
    log, now = LogBuilder(), T0
    generations = draw(st.lists(st.sampled_from([-1, 1, 1, 4]), min_size=2, max_size=2))
    odd = st.integers(0, 11).map(lambda chance: chance == 0)
    for _ in range(draw(st.integers(1, 50))):
        now += draw(st.sampled_from([0, 0, 1, 20, 300, 900]))
        which = draw(st.integers(0, 1))
        event = Event(
            type=draw(st.sampled_from(_RARE)) if draw(odd) else EventType.HEARTBEAT,
            group_id=f"g{which}",
            member_id=f"m{draw(st.integers(0, 14))}",
            generation_id=draw(st.sampled_from([-1, 0, 2, 5])) if draw(odd) else generations[which],
            session_timeout_ms=draw(st.sampled_from([*SESSIONS_MS, 100])) if draw(odd) else 4_000,
            group_instance_id="i" if draw(odd) else None,
            client_id=draw(st.sampled_from([None, "c", "d"])) if draw(odd) else "c",
            incarnation=draw(st.sampled_from([None, 1, 2])) if draw(odd) else 1,
        )
        log.add(now, event)
    return log


class _Rules:
    """Run the machines of all groups, event by event, by the time of their partition."""

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []
        self._machines: dict[str, GroupMachine] = {}
        self._now_ms = T0

    def apply(self, records: Sequence[ProducedRecord]) -> None:
        for record in records:
            self._now_ms = max(self._now_ms, record.append_ms)
            event = decode_accepted(record.value or b"")
            if event.group_id not in self._machines:
                group = Group(group_id=event.group_id)
                self._machines[event.group_id] = GroupMachine(group, ROOMY, self.verdicts.append)
            mark = fingerprint(event) if event.type is EventType.HEARTBEAT else 0
            self._machines[event.group_id].apply(event, self._now_ms, mark)

    def advance(self, clock_ms: int) -> None:
        self._now_ms = max(self._now_ms, clock_ms)
        for machine in self._machines.values():
            machine.advance(clock_ms)

    def groups(self) -> dict[str, Group]:
        return {name: machine.group for name, machine in self._machines.items() if not machine.is_forgettable()}


def _end_of_tick(clock_ms: int, tick_ms: int) -> int:
    """Round up to the tick (ms): a wheel notices the silences of a whole tick at its end, the rules at their own."""
    return -(-clock_ms // tick_ms) * tick_ms


def _assert_as_the_rules(
    log: LogBuilder, bounds: Sequence[int], silences_ms: Callable[[], int], tick_ms: int
) -> list[Verdict]:
    """Apply a log cut at `bounds`, with a silence (ms, or 0) after each part; return the verdicts, which both give."""
    blob, verdicts, rules = "", [], _Rules()
    for start, stop in pairwise(bounds):
        shard = Shard(coordinator=ROOMY, limits=ShardLimits(), tick_ms=tick_ms, outage_min_ms=NEVER_MS, blob=blob)
        records = log.records[start:stop]
        clock_ms = _end_of_tick(records[-1].append_ms + silences_ms(), tick_ms)
        verdicts += shard.apply(*read_records(records, clock_ms=clock_ms, outage_min_ms=NEVER_MS)).verdicts
        rules.apply(records)
        rules.advance(clock_ms)
        blob = shard.encode()
    shard = Shard(coordinator=ROOMY, limits=ShardLimits(), blob=blob)
    assert by_group(verdicts) == by_group(rules.verdicts)
    assert {group.group_id: group for group, forgettable in shard.dump() if not forgettable} == rules.groups()
    return verdicts


@given(crowds(), st.data(), st.sampled_from([1, 100]))
@settings(max_examples=EXAMPLES)
def test_p3_a_crowd_leaves_what_the_rules_leave(log: LogBuilder, data: st.DataObject, tick_ms: int) -> None:
    """P3: members that come and fall silent in any mixture, at any cuts: verdicts and every field are the rules'."""
    bounds = sorted({0, *data.draw(cuts_of(log)), len(log.records)})
    _assert_as_the_rules(log, bounds, lambda: data.draw(st.sampled_from([0, 0, 1_000, 4_000, 9_000])), tick_ms)


def _beat(log: LogBuilder, at_ms: int, member_id: str, instance: str | None = None) -> None:
    """Add a heartbeat of a worker in a presence group, with a session of 4 s."""
    event = Event(
        type=EventType.HEARTBEAT,
        group_id="g",
        member_id=member_id,
        generation_id=-1,
        session_timeout_ms=4_000,
        group_instance_id=instance,
    )
    log.add(T0 + at_ms, event)


def _expired(verdicts: Sequence[Verdict]) -> list[tuple[str | None, int]]:
    return [(verdict.member_id, verdict.time_ms - T0) for verdict in verdicts if verdict.expiry_reason is not None]


@pytest.mark.parametrize("tick_ms", [1, 100])
@pytest.mark.parametrize("bounds", [[0, 4], [0, 2, 4]])
def test_a_static_member_is_not_replaced_after_its_silence(tick_ms: int, bounds: list[int]) -> None:
    """A session that ends within a tick of the wheel has ended before what comes at that millisecond: no replacement.

    Records behind the end of the silence count as of it.
    """
    log = LogBuilder()
    _beat(log, 20, "a", "i")
    _beat(log, 20, "b", "i")
    _beat(log, 4_020 if len(bounds) == 2 else 20, "c", "i")
    _beat(log, 4_020, "d")
    said = _assert_as_the_rules(log, bounds, lambda: 4_000, tick_ms)
    assert [verdict.member_id for verdict in said if verdict.kind is Kind.STATIC_REPLACED] == ["a"]
    counted_ms = 4_020 if len(bounds) == 2 else _end_of_tick(4_020, tick_ms)
    assert _expired(said) == [("b", 4_020), ("c", counted_ms + 4_000), ("d", counted_ms + 4_000)]


def test_a_silence_is_noticed_at_the_end_of_its_tick() -> None:
    """A wheel notices a silence late by less than a tick, and tells its own time; one of 1 ms at that millisecond."""
    for tick_ms, noticed_ms in ((1, 4_020), (100, 4_100)):
        log = LogBuilder()
        _beat(log, 20, "a", "i")
        shard = Shard(coordinator=ROOMY, limits=ShardLimits(), tick_ms=tick_ms, outage_min_ms=NEVER_MS)
        shard.apply(*read_records(log.records))
        assert shard.apply([], until(T0 + noticed_ms - 1)).verdicts == []
        said = shard.apply([], until(T0 + noticed_ms)).verdicts
        assert [(verdict.kind, verdict.time_ms - T0) for verdict in said] == [
            (Kind.MEMBER_EXPIRED, 4_020),
            (Kind.GROUP_EMPTY, 4_020),
        ]


def test_a_crowd_falls_silent_in_the_order_of_its_deadlines() -> None:
    """The session that ends first is told first; of those that end in one millisecond, that of who came first."""
    log = LogBuilder()
    for at_ms, member in ((0, "c"), (0, "d"), (0, "b"), (0, "a"), (10, "c")):
        _beat(log, at_ms, member)
    said = _assert_as_the_rules(log, [0, 5], lambda: 4_000, 100)
    assert _expired(said) == [("d", 4_000), ("b", 4_000), ("a", 4_000), ("c", 4_010)]


def test_a_static_member_among_a_crowd_replaces_and_does_not_arrive() -> None:
    """A first heartbeat that names a held instance id is no plain one: it replaces, and makes no new generation."""
    log = LogBuilder()
    for at_ms, member, instance in ((0, "a", "i"), (1, "b", "i"), (1, "c", None)):
        _beat(log, at_ms, member, instance)
    kinds = [verdict.kind for verdict in _assert_as_the_rules(log, [0, 1, 3], lambda: 0, 100)]
    arrival = [Kind.REBALANCE_STARTED, Kind.REBALANCE_COMPLETED]
    assert kinds == [*arrival, Kind.STATIC_REPLACED, *arrival]


def test_a_crowd_costs_no_rule() -> None:
    """Hundreds of members of loaded and presence groups arrive within a batch, in several frames, without one rule."""
    log = LogBuilder()
    for beat in range(3):
        for member in range(300):
            generation = -1 if member % 2 else 7
            log.beat(T0 + beat, f"g{member % 10}", f"m{member}", generation_id=generation, session_timeout_ms=4_000)
    shard = Shard(coordinator=dataclasses.replace(CONFIG, group_max_size=50), limits=ShardLimits())
    outcome = shard.apply(*read_records(log.records, frame_max=200))
    assert (outcome.counts["records_rules"], outcome.counts["records_fast"]) == (0, 900)
    assert shard.member_count == 300
    assert len(outcome.verdicts) == 2 * 150


def test_a_crowd_falls_silent_without_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of sessions of loaded and presence groups that end together need no state machine."""
    log = LogBuilder()
    for member in range(300):
        generation = -1 if member % 2 else 7
        log.beat(T0, f"g{member % 10}", f"m{member}", generation_id=generation, session_timeout_ms=4_000)
    shard = Shard(coordinator=dataclasses.replace(CONFIG, group_max_size=50), limits=ShardLimits())
    shard.apply(*read_records(log.records))
    monkeypatch.setattr("heartwheel.engine.rules.machine.GroupMachine.advance", None)
    outcome = shard.apply([], until(T0 + 4_000))
    assert sum(verdict.expiry_reason is not None for verdict in outcome.verdicts) == 300
    assert shard.member_count == 0
