"""Compare what a job wrote with what it should have written: the promises, one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from heartwheel.coordinator.consumer_model import EpochGroup, EpochMember
from heartwheel.coordinator.manager import AnyGroup
from heartwheel.coordinator.model import Group, Member
from heartwheel.partitioner import shard_of
from heartwheel.shard.shard import Shard
from heartwheel.simulation.astray import Astray, Strays
from heartwheel.simulation.checkpoint import Checkpoint, SinkRecord
from heartwheel.simulation.fed_log import FedLog
from heartwheel.simulation.fed_partition import Aside
from heartwheel.simulation.oracle import Expected, Log, Place, expect
from heartwheel.simulation.plan import Plan
from heartwheel.simulation.problem import Problem
from heartwheel.simulation.silences import falsely_expired, wrongly_ended
from heartwheel.simulation.sink import Row, read_reject, read_row
from heartwheel.simulation.topic import Topic
from heartwheel.wire.events import RejectCause
from heartwheel.wire.verdicts import ExpirationRow, ExpiryReason

_LIMITS: Final = ("the shard holds ", "the group has ")
"""How the details of rejects begin whose records met a limit of the shard: of them only the time reached the rules."""


_TOLD_BY_RECORDS: Final = frozenset({ExpiryReason.POLL_TIMEOUT, ExpiryReason.WORKER_FAILED})
"""Reasons that no timer gives: the record that tells them decides, and its time is the verdict's."""


class Said(NamedTuple):
    """Hold a verdict as it was first written."""

    row: Row
    written: SinkRecord


class Judge:
    """Judge one history.

    Args:
        plan: its parameters.
        topic: the heartbeats, with the broken records.
        checkpoint: after the job has ended.
        runs: of the job's ticker.
    """

    def __init__(self, plan: Plan, topic: Topic, checkpoint: Checkpoint, runs: tuple[str, ...]) -> None:
        self.plan = plan
        self.topic = topic
        self.checkpoint = checkpoint
        self.rejects = [
            (reject, written) for written in checkpoint.sink if (reject := read_reject(written)) is not None
        ]
        self.refused: set[Place] = {
            (reject.partition, reject.offset) for reject, _ in self.rejects if reject.detail.startswith(_LIMITS)
        }
        self.log = Log(plan, topic, checkpoint, runs)
        self._strays = Strays(plan, self.log, checkpoint)
        self.fed = FedLog(plan, topic, checkpoint, self._strays.heard_in)
        self.said: dict[str, list[Said]] = defaultdict(list)
        self.seen: Counter[str] = Counter()
        self.astray: set[str] = set()
        """Groups whose records have no promised order; known once the problems were listed."""
        self._copies: dict[str, Row] = {}
        self._contradictions: dict[str, list[Problem]] = defaultdict(list)
        """Of groups that feeds pass on; whether they are promised not to be is known later."""

    def problems(self) -> Iterator[Problem]:
        """List every broken promise."""
        yield from self._read_sink()
        states: dict[str, AnyGroup] = {}
        for shard in range(self.plan.shards):
            states |= self._states(shard)
            yield from self._check_clock(shard)
        self.seen["outage renews"] += len(self.log.outages)
        for group_id in sorted({*self.log.entries, *self.said}):
            if group_id in self.fed:
                continue
            parts = {entry.record.partition for entry in self.log.entries.get(group_id, ())}
            self.seen["group in two partitions"] += len(parts) > 1
            if (why := self._strays.why(group_id)) is not None:
                self.seen[f"group astray, {why}"] += 1
                self.astray.add(group_id)
                if why is Astray.PARTITIONER:
                    yield from self._check_silences(group_id)
                continue
            expected = expect(self.plan, self.log, group_id, self.refused)
            yield from self._compare(group_id, expected)
            yield from _compare_state(expected, states.get(group_id))
            yield from self._check_silences(group_id)
        for group_id in sorted(self.fed):
            yield from self._judge_fed(group_id, states.get(group_id))
        yield from self._check_rejects()

    def _states(self, shard: int) -> dict[str, AnyGroup]:
        blob = self.checkpoint.state(shard)[5]
        end = Shard(coordinator=self.plan.coordinator, limits=self.plan.limits, blob=blob)
        self.seen["records waiting at the end"] += end.waiting_count
        return {group.group_id: group for group, _ in end.dump()}

    def _check_clock(self, shard: int) -> Iterator[Problem]:
        """P1 rests on it: a clock never goes back, but where a new partition is heard of."""
        clocks = [self.checkpoint.state_at(batch, shard)[2] for batch in range(self.checkpoint.commits + 1)]
        for batch, (one, other) in enumerate(pairwise(clocks)):
            planned = self.checkpoint.offsets[batch]
            heard_of = any(end and not planned.starts.get(partition) for partition, end in planned.ends.items())
            if -1 < other < one and not heard_of:
                yield Problem("P1", f"the clock of shard {shard} went back from {one} to {other} in batch {batch}")

    # -- the sink

    def _read_sink(self) -> Iterator[Problem]:
        for written in self.checkpoint.sink:
            row = read_row(written)
            if row is None:
                continue
            yield from self._check_stamp(row, written)
            first = self._copies.get(row.id)
            if first is None:
                self._copies[row.id] = row
                self._note(row)
                self.said[row.group_id].append(Said(row, written))
                yield from self._check_lateness(row, written)
            elif _content(first) != _content(row):
                problem = Problem("P3", f"one id, two contents: {first} and {row}")
                if row.group_id in self.fed:
                    self._contradictions[row.group_id].append(problem)
                else:
                    yield problem
            else:
                self.seen["written again"] += 1

    def _note(self, row: Row) -> None:
        if isinstance(row, ExpirationRow):
            self.seen[f"expired {row.reason}"] += 1
        else:
            self.seen[row.type] += 1
            self.seen[f"cause {row.cause}"] += 1

    def _check_stamp(self, row: Row, written: SinkRecord) -> Iterator[Problem]:
        batch_ms = self.checkpoint.offsets[written.batch].batch_ms
        if row.detected_ms != batch_ms:
            yield Problem("P3", f"detected_ms is not the batch's timestamp {batch_ms}: {row}")
        if row.shard != shard_of(row.group_id, self.plan.shards) or row.shard != written.shard:
            yield Problem("P3", f"written by shard {written.shard}, which it does not belong to: {row}")

    def _check_lateness(self, row: Row, written: SinkRecord) -> Iterator[Problem]:
        """P2 without a look at any clock: what was due by the time that was read before a batch has been written by it.

        So a verdict is in the sink a batch after the record was read that proves its deadline. A poll timeout and
        a failure have none: they are known by a record, which may be of the newest millisecond that was read before.
        Nor has a verdict about a group of a partition that the batch before had not heard of: the clock of its shard
        was that of others.
        """
        if row.group_id in self.fed:
            return
        before_ms = self.checkpoint.state_at(written.batch, written.shard)[2]
        tick_ms = self.plan.tick_ms
        if (
            isinstance(row, ExpirationRow)
            and row.reason not in _TOLD_BY_RECORDS
            and row.deadline_ms <= before_ms // tick_ms * tick_ms
            and self.plan.limits.verdicts_max > 1
            and not self._is_heard_of(row.group_id, written.batch)
        ):
            yield Problem("P2", f"was due at clock {before_ms} of the batch before: {row}")

    def _is_heard_of(self, group_id: str, batch: int) -> bool:
        """Tell whether a batch was the first to read of a partition that a group is in."""
        planned = self.checkpoint.offsets[batch]
        parts = {entry.record.partition for entry in self.log.entries.get(group_id, ())}
        return any(planned.ends.get(part) and not planned.starts.get(part) for part in parts)

    # -- groups

    def _compare(self, group_id: str, expected: Expected) -> Iterator[Problem]:
        said = [_content(one.row) for one in self.said[group_id]]
        wanted = [_content(row) for row in expected.rows]
        for number, (one, other) in enumerate(zip(said, wanted, strict=False)):
            if one != other:
                yield Problem("P1", f"{group_id}, verdict {number}: written {one}, should be {other}")
                return
        if len(said) > len(wanted):
            yield Problem("P1", f"{group_id}: written {said[len(wanted)]}, should be nothing more")
        elif len(said) < expected.surely:
            yield Problem("P5", f"{group_id}: missed {wanted[len(said)]}")

    def _judge_fed(self, group_id: str, state: AnyGroup | None) -> Iterator[Problem]:
        """Judge a group that feeds pass on: by their marks, and by no append time."""
        self.seen["fed group heard by two feeds"] += self.fed.feeds_of(group_id) > 1
        expected = self.fed.expect(group_id, self.refused)
        why = self.fed.why_aside(group_id)
        if why not in (Aside.BEGUN_ANEW, Aside.UNFORESEEN):
            yield from self._check_marks(group_id)
        if why is not None:
            self.seen[f"fed group put aside, {why}"] += 1
            self.astray.add(group_id)
            return
        yield from self._contradictions[group_id]
        if self.fed.is_moving(group_id) and self.plan.partitions not in self.log.named:
            self.astray.add(group_id)  # by the log alone, as the audit goes, there was no former partition to wait for
        self.seen["fed group judged"] += 1
        self.seen["fed group judged beside a growth"] += self.fed.is_moving(group_id)
        self.seen["fed verdicts"] += expected.surely
        yield from self._compare(group_id, expected)
        yield from _compare_state(expected, state)
        yield from self._check_silences(group_id)

    def _check_marks(self, group_id: str) -> Iterator[Problem]:
        """Nobody is expired before the marks have come so far, and whoever is due is expired once they have."""
        tick_ms, prompt = self.plan.tick_ms, self.plan.limits.verdicts_max > 1 and not self.fed.why_aside(group_id)
        for row, written in self.said[group_id]:
            if not isinstance(row, ExpirationRow) or row.reason in _TOLD_BY_RECORDS:
                continue
            at_most_ms = self.fed.reach(group_id, written.batch).at_most
            if row.deadline_ms > at_most_ms:
                yield Problem("P1", f"the feeds' marks had come to {at_most_ms} when it was written: {row}")
            before_ms = self.fed.reach(group_id, written.batch - 1).surely
            if prompt and row.deadline_ms <= before_ms // tick_ms * tick_ms:
                yield Problem("P2", f"was due by marks at {before_ms}, which the batch before had read: {row}")

    def _check_silences(self, group_id: str) -> Iterator[Problem]:
        """Look for the living among the expired, without asking the rules."""
        rows = [one.row for one in self.said[group_id]]
        entries = self.fed.entries(group_id) if group_id in self.fed else self.log.entries.get(group_id, [])
        for row in falsely_expired(self.plan, group_id, entries, self.refused, rows):
            yield Problem("P1", f"{group_id}: there is a heartbeat between {row.last_seen_ms} and the end of {row}")
        for row in wrongly_ended(self.plan, group_id, entries, self.refused, rows):
            yield Problem("P1", f"{group_id}: the worker had ended before, or its failure was reported before: {row}")

    # -- rejects

    def _check_rejects(self) -> Iterator[Problem]:
        """P6: what is broken, and what met a limit, is on the rejects topic by name; nothing else is."""
        read = self.checkpoint.read
        starts = self.checkpoint.offsets[0].starts
        broken = {
            (partition, offset, cause)
            for (partition, offset), cause in self.topic.garbage.items()
            if starts.get(partition, 0) <= offset < read.get(partition, 0)
        }
        written: dict[int, set[tuple[int, int, str]]] = defaultdict(set)
        named = set()
        for reject, at in self.rejects:
            entry = (reject.partition, reject.offset, reject.cause)
            written[at.batch].add(entry)
            if reject.cause not in _BY_LIMIT:
                named.add(entry)
            if reject.value_base64 is None and reject.cause != RejectCause.TOMBSTONE:
                yield Problem("P6", f"a reject without its record: {reject}")
        for entry in {entry for of_batch in written.values() for entry in of_batch}:
            self.seen[f"reject {entry[2]}"] += 1
        for entry in sorted(broken ^ named):
            yield Problem("P6", f"{'missing from' if entry in broken else 'wrongly on'} the rejects topic: {entry}")


_BY_LIMIT: Final = {RejectCause.SHARD_FULL, RejectCause.GROUP_FULL, RejectCause.INVALID_SESSION_TIMEOUT}


def _content(row: Row) -> dict[str, object]:
    """Show what must be the same whenever a verdict is written: all but the trigger that decided it."""
    content = msgspec.structs.asdict(row)
    del content["detected_ms"]
    content.pop("lateness_ms", None)
    return content


def _compare_state(expected: Expected, found: AnyGroup | None) -> Iterator[Problem]:
    """Hold the state that is left against the state of the rules: nothing lost, nothing left behind."""
    wanted = expected.group
    if wanted is None:
        return
    one, other = _plain(found), _plain(wanted)
    if one != other:
        yield Problem("P3", f"the state that is left: {one}, should be {other}")


def _plain(group: AnyGroup | None) -> dict[str, object]:
    """Show a group without what only the way there decides: where it was seen, and what was remembered for speed."""
    content = msgspec.structs.asdict(group or Group(group_id=""))
    counted = ("next_seq",) if isinstance(group, EpochGroup) else ()
    for name in ("group_id", "partition", "last_event_ms", *counted):
        content.pop(name, None)
    for table in {"members", "pending", "departed"} & content.keys():
        content[table] = {member_id: _plain_member(member) for member_id, member in content[table].items()}
    return content


def _plain_member(member: Member | EpochMember) -> dict[str, object]:
    content = msgspec.structs.asdict(member)
    if isinstance(member, EpochMember):
        # How many timers were armed before is known to the rules path alone.
        timers = member.timers.items()
        content["timers"] = {name: (each.deadline_ms, each.length_ms, each.epoch) for name, each in timers}
        del content["seq"]
    else:
        del content["fingerprint_generation"]
    del content["fingerprint"]
    return content
