"""P3: the same log read in one batch, by a job that never died, gives the same verdicts and leaves the same state.

So whatever batches, restarts, workers and the codec have done to a history must not show. That the rules and the time
are right is the audit's to say: the engine is compared with itself here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import msgspec

from heartwheel.engine.rules.epochs.model import EpochGroup, EpochMember
from heartwheel.engine.rules.manager import AnyGroup
from heartwheel.engine.rules.model import Group, Member
from heartwheel.engine.shard.limits import ShardLimits
from heartwheel.engine.shard.shard import Shard
from heartwheel.proof.simulation.checkers.problem import BrokenPromise
from heartwheel.proof.simulation.checkers.read_log import ReadLog
from heartwheel.proof.simulation.checkers.rows import WrittenRows, content
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.world.checkpoint import Checkpoint
from heartwheel.proof.simulation.world.one_batch import read_at_once

_Rows = list[dict[str, object]]
_State = dict[str, object]


class _Cut(NamedTuple):
    """The verdicts of each group, and the state that is left of it."""

    rows: dict[str, _Rows]
    states: dict[str, _State]


def check_cut(
    plan: Plan,
    log: ReadLog,
    checkpoint: Checkpoint,
    runs: tuple[str, ...],
    rows: WrittenRows,
    unordered: Collection[str],
) -> Iterator[BrokenPromise]:
    """Return every group of which one batch says something else than the batches of the history did.

    Args:
        checkpoint: after the job has ended.
        runs: of the job's ticker.
        unordered: groups whose verdicts may depend on the batches.
    """
    once = _at_once(plan, log, checkpoint, runs, rows, tick_ms=plan.tick_ms)
    written = {group_id: [content(one.row) for one in first] for group_id, first in rows.first.items()}
    states = {
        group_id: state
        for shard in range(plan.shards)
        for group_id, state in states_of(plan, checkpoint.state(shard)[5]).items()
    }
    groups = {*written, *states, *once.rows, *once.states} - {*unordered}
    other = {
        group_id
        for group_id in groups
        if written.get(group_id, []) != once.rows.get(group_id, [])
        or states.get(group_id, _NOTHING) != once.states.get(group_id, _NOTHING)
    }
    if not other:
        return
    # Some process of the history may have had a finer wheel, and noticed what the plan's leaves to the next tick.
    finest = _at_once(plan, log, checkpoint, runs, rows, tick_ms=1)
    for group_id in sorted(other):
        said, most = written.get(group_id, []), finest.rows.get(group_id, [])
        if said != most[: len(said)] or len(said) < len(once.rows.get(group_id, [])):
            at = next((at for at, row in enumerate(said) if row not in most[at : at + 1]), len(said))
            yield BrokenPromise(
                "P3", f"{group_id}, verdict {at}: written {said[at : at + 1]}, in one batch {most[at : at + 1]}"
            )
        one, two = states.get(group_id, _NOTHING), once.states.get(group_id, _NOTHING)
        if one != two and two == finest.states.get(group_id, _NOTHING):
            yield BrokenPromise("P3", f"{group_id}: the state that is left is {one}, in one batch {two}")


def _at_once(
    plan: Plan, log: ReadLog, checkpoint: Checkpoint, runs: tuple[str, ...], rows: WrittenRows, *, tick_ms: int
) -> _Cut:
    # Which records a full shard refuses depends on the batches: those that were refused count for their time alone.
    records = [
        record._replace(value=b"") if (record.partition, record.offset) in rows.refused else record
        for of_partition in log.records
        for record in of_partition
    ]
    found = WrittenRows([])
    states: dict[str, _State] = {}
    for sink, blob in read_at_once(plan, records, runs, tuple(checkpoint.counts), tick_ms=tick_ms):
        found.first |= WrittenRows(sink).first
        states |= states_of(plan, blob)
    verdicts = {group_id: [content(one.row) for one in first] for group_id, first in found.first.items()}
    return _Cut(verdicts, states)


def states_of(plan: Plan, blob: str) -> dict[str, _State]:
    """Return the state of each group of a shard, without what only the way there decides."""
    end = Shard(coordinator=plan.coordinator, limits=ShardLimits(), blob=blob)
    return {group.group_id: _plain(group) for group, _ in end.dump()}


def _plain(group: AnyGroup) -> _State:
    """Return a group's fields but for where it was seen, and what was remembered for speed."""
    fields = msgspec.structs.asdict(group)
    counted = ("next_seq",) if isinstance(group, EpochGroup) else ()
    for name in ("group_id", "partition", "last_event_ms", *counted):
        fields.pop(name, None)
    for table in {"members", "pending", "departed"} & fields.keys():
        fields[table] = {member_id: _plain_member(member) for member_id, member in fields[table].items()}
    return fields


def _plain_member(member: Member | EpochMember) -> _State:
    fields = msgspec.structs.asdict(member)
    if isinstance(member, EpochMember):
        # How many timers were armed before is known to the rules path alone.
        timers = member.timers.items()
        fields["timers"] = {name: (each.deadline_ms, each.length_ms, each.epoch) for name, each in timers}
        del fields["seq"]
    else:
        del fields["fingerprint_generation"]
    del fields["fingerprint"]
    return fields


_NOTHING = _plain(Group(group_id=""))
"""The state of a group of which nothing is left."""
