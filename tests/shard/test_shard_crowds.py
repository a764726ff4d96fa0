"""Members that arrive or fall silent many at once: the verdicts and the state that the rules reach one at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heartwheel.coordinator.machine import GroupMachine
from heartwheel.coordinator.model import Group
from heartwheel.shard import Shard, ShardLimits
from heartwheel.testing import LogBuilder, Record, by_group, read_records, until
from heartwheel.wire.events import Event, EventType, decode_accepted, fingerprint
from heartwheel.wire.verdicts import Verdict
from support.heartbeat_logs import CONFIG, EXAMPLES, SESSIONS_MS, T0, cuts_of

ROOMY = dataclasses.replace(CONFIG, group_max_size=12)


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
        )
        log.add(now, event)
    return log


class _Rules:
    """Run the machines of all groups, event by event."""

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []
        self._machines: dict[str, GroupMachine] = {}

    def apply(self, records: Sequence[Record]) -> None:
        for record in records:
            event = decode_accepted(record.value or b"")
            if event.group_id not in self._machines:
                group = Group(group_id=event.group_id)
                self._machines[event.group_id] = GroupMachine(group, ROOMY, self.verdicts.append)
            mark = fingerprint(event) if event.type is EventType.HEARTBEAT else 0
            self._machines[event.group_id].apply(event, record.append_ms, mark)

    def advance(self, clock_ms: int) -> None:
        for machine in self._machines.values():
            machine.advance(clock_ms)

    def groups(self) -> dict[str, Group]:
        return {name: machine.group for name, machine in self._machines.items() if not machine.is_forgettable()}


@given(crowds(), st.data())
@settings(max_examples=EXAMPLES)
def test_p3_a_crowd_leaves_what_the_rules_leave(log: LogBuilder, data: st.DataObject) -> None:
    """P3: members that come and fall silent in any mixture, at any cuts: verdicts and every field are the rules'."""
    blob, verdicts, rules = "", [], _Rules()
    bounds = sorted({0, *data.draw(cuts_of(log)), len(log.records)})
    for start, stop in pairwise(bounds):
        shard = Shard(coordinator=ROOMY, limits=ShardLimits(), blob=blob)
        records = log.records[start:stop]
        verdicts += shard.apply_apart(read_records(records).packs).verdicts
        rules.apply(records)
        silence_ms = data.draw(st.sampled_from([0, 0, 1_000, 4_000, 9_000]))
        if silence_ms:
            verdicts += shard.advance(records[-1].append_ms + silence_ms).verdicts
            rules.advance(records[-1].append_ms + silence_ms)
        blob = shard.encode()
    shard = Shard(coordinator=ROOMY, limits=ShardLimits(), blob=blob)
    assert by_group(verdicts) == by_group(rules.verdicts)
    assert {group.group_id: group for group, forgettable in shard.dump() if not forgettable} == rules.groups()


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
    monkeypatch.setattr("heartwheel.coordinator.machine.GroupMachine.advance", None)
    outcome = shard.apply([], until(T0 + 4_000))
    assert sum(verdict.expiry_reason is not None for verdict in outcome.verdicts) == 300
    assert shard.member_count == 0
