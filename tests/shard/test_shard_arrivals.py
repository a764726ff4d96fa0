"""Members that arrive many at once: the same verdicts and the same state as the rules reach one event at a time."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from heartwheel.coordinator.machine import GroupMachine
from heartwheel.coordinator.model import Group
from heartwheel.shard import Shard, ShardLimits
from heartwheel.testing import LogBuilder, by_group, read_records
from heartwheel.wire.events import Event, EventType, decode_accepted, fingerprint
from heartwheel.wire.verdicts import Verdict
from support.heartbeat_logs import CONFIG, EXAMPLES, SESSIONS_MS, T0, cuts_of

ROOMY = dataclasses.replace(CONFIG, group_max_size=12)


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
            type=draw(st.sampled_from([EventType.LEAVE, EventType.COMMIT, EventType.SYNC]))
            if draw(odd)
            else EventType.HEARTBEAT,
            group_id=f"g{which}",
            member_id=f"m{draw(st.integers(0, 14))}",
            generation_id=draw(st.sampled_from([-1, 0, 2, 5])) if draw(odd) else generations[which],
            session_timeout_ms=draw(st.sampled_from([*SESSIONS_MS, 100])) if draw(odd) else 4_000,
            group_instance_id="i" if draw(odd) else None,
            client_id=draw(st.sampled_from([None, "c", "d"])) if draw(odd) else "c",
        )
        log.add(now, event)
    return log


def _by_the_rules(log: LogBuilder) -> tuple[list[Verdict], dict[str, Group]]:
    verdicts: list[Verdict] = []
    machines: dict[str, GroupMachine] = {}
    for record in log.records:
        event = decode_accepted(record.value or b"")
        if event.group_id not in machines:
            machines[event.group_id] = GroupMachine(Group(group_id=event.group_id), ROOMY, verdicts.append)
        mark = fingerprint(event) if event.type is EventType.HEARTBEAT else 0
        machines[event.group_id].apply(event, record.append_ms, mark)
    groups = {group_id: machine.group for group_id, machine in machines.items() if not machine.is_forgettable()}
    return verdicts, groups


@given(crowds(), st.data())
@settings(max_examples=EXAMPLES)
def test_p3_a_crowd_leaves_what_the_rules_leave(log: LogBuilder, data: st.DataObject) -> None:
    """P3: members first heard of in any mixture, at any cuts: verdicts and every field of a group are the rules'."""
    blob, verdicts = "", []
    bounds = sorted({0, *data.draw(cuts_of(log)), len(log.records)})
    for start, stop in pairwise(bounds):
        shard = Shard(coordinator=ROOMY, limits=ShardLimits(), blob=blob)
        verdicts += shard.apply_apart(read_records(log.records[start:stop]).packs).verdicts
        blob = shard.encode()
    shard = Shard(coordinator=ROOMY, limits=ShardLimits(), blob=blob)
    expected, groups = _by_the_rules(log)
    assert by_group(verdicts) == by_group(expected)
    assert {group.group_id: group for group, forgettable in shard.dump() if not forgettable} == groups


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
