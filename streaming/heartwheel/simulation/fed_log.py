"""What must and must not be said of groups that feeds pass on, by the words of docs/tap.md and docs/events.md alone.

The whole log is there at once. Of each feed it says when every event happened, up to where its marks came, and what it
has missed; so the rules are run over a group's events in the order in which they happened, and never beyond the marks.

What a feed says of a time that its marks had promised to be over may have come too late for the job, or not: that
depends on where its batches ended. Such groups are put aside, but for one thing: nobody of them is expired before the
marks have come so far.
"""

from __future__ import annotations

from collections.abc import Iterator

from heartwheel.coordinator.consumer_config import EpochConfig
from heartwheel.coordinator.manager import GroupManager
from heartwheel.coordinator.model import Group
from heartwheel.partitioner import partition_of
from heartwheel.simulation.checkpoint import Checkpoint
from heartwheel.simulation.fed_moving import MovingGroup
from heartwheel.simulation.fed_partition import NOWHERE, Aside, FedPartition, Followed, Missed, Reach
from heartwheel.simulation.oracle import Entry, Expected, Place, rows_of
from heartwheel.simulation.plan import Plan
from heartwheel.simulation.topic import Topic
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.verdicts import Verdict

_Source = tuple[str, int]


class FedLog:
    """Know what feeds have said in a history, as far as the job has read it.

    Args:
        plan: the history's parameters.
        topic: the heartbeats.
        checkpoint: after the job has ended.
        heard_in: the first batch that knew of the topic's growth.
    """

    def __init__(self, plan: Plan, topic: Topic, checkpoint: Checkpoint, heard_in: int) -> None:
        self._plan = plan
        self._groups: dict[str, Followed] = {}
        starts = checkpoint.offsets[0].starts if checkpoint.offsets else {}
        parts = {}
        for log in topic.records(starts, checkpoint.read) if plan.passed_on.feeds else ():
            if log:
                ends = [planned.ends.get(log[0].partition, 0) for planned in checkpoint.offsets]
                part = parts[log[0].partition] = FedPartition(plan, log, ends)
                self._groups |= part.groups
        if plan.grown is not None:
            for group_id in self._groups:
                self._follow_on(group_id, parts, heard_in, len(checkpoint.offsets))

    def _follow_on(self, group_id: str, parts: dict[int, FedPartition], heard_in: int, batches: int) -> None:
        """Follow a group that may have gone from one partition to another as the topic grew."""
        plan = self._plan
        assert plan.grown is not None, "the topic has grown"  # noqa: S101 - of others no group moves
        old, new = (partition_of(group_id.encode(), count) for count in (plan.partitions, plan.grown[1]))
        if old == new:
            return
        foreseen = plan.grown[0] > plan.start_ms
        after = {old, new} if foreseen else {new}
        homes = [after if batch >= heard_in else {old} for batch in range(batches)]
        mine = {number: part for number, part in parts.items() if number in (old, new)}
        self._groups[group_id] = MovingGroup(group_id, mine, homes, is_foreseen=foreseen).followed

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def why_aside(self, group_id: str) -> Aside | None:
        """Tell why nothing is promised of a group; `None` if all is. It has been found by `expect` alone in part."""
        return self._groups[group_id].aside

    def reach(self, group_id: str, batch: int) -> Reach:
        """Tell how far a group had come with the end of a batch; before the first batch nowhere."""
        reached = self._groups[group_id].reached
        return reached[batch] if 0 <= batch < len(reached) else NOWHERE

    def is_moving(self, group_id: str) -> bool:
        """Tell whether a group's id hashes to another partition since the topic has grown."""
        return self._groups[group_id].several

    def feeds_of(self, group_id: str) -> int:
        """Count the feeds that told of a group."""
        return len(self._groups[group_id].feeds)

    def entries(self, group_id: str) -> list[Entry]:
        """List a group's events in the order in which they happened."""
        entries = (entry for entry, _ in self._groups[group_id].entries)
        return sorted(entries, key=lambda entry: (entry.time_ms, entry.record.offset))

    def expect(self, group_id: str, refused: set[Place]) -> Expected:
        """Run the rules over a group.

        Args:
            group_id: the group.
            refused: records that met a limit of the shard: they tell what time it is, and nothing else.
        """
        plan, followed = self._plan, self._groups[group_id]
        reach = followed.reached[-1]
        verdicts: list[Verdict] = []
        machine = GroupManager(Group(group_id=group_id), EpochConfig(plan.coordinator), verdicts.append)
        heard: list[_Source] = []
        for number, (moment_ms, source, step) in enumerate(_steps(group_id, followed, reach.records)):
            counts = not isinstance(step, Entry) or _moves(machine, heard, followed, step, source)
            machine.advance(moment_ms)
            if machine.is_forgettable():
                heard.clear()
                if number and len(followed.feeds) > 1:
                    followed.aside = Aside.BEGUN_ANEW  # of which less is promised than of one with another reason
            if isinstance(step, Missed):
                if source in heard:
                    machine.renew(moment_ms, step.to_ms)
                    # What was heard just before the end of a gap comes with it, and takes nobody's session back.
                    machine.group.last_event_ms = max(machine.group.last_event_ms, step.to_ms)
                continue
            if counts and (step.record.partition, step.record.offset) not in refused:
                machine.apply(step.request, moment_ms)
                if source not in heard:
                    # A feed that goes on in another partition is no other one, and keeps its turn.
                    turns = [at for at, (feed, _) in enumerate(heard) if feed == source[0]]
                    heard.insert(turns[0] if turns else len(heard), source)
            if machine.is_forgettable():
                heard.clear()
        machine.advance(reach.surely // plan.tick_ms * plan.tick_ms)
        surely = len(rows_of(plan, group_id, verdicts))
        group = machine.group if machine.next_deadline_ms() > reach.at_most else None
        machine.advance(reach.at_most)
        return Expected(rows_of(plan, group_id, verdicts), surely, group)


def _moves(machine: GroupManager, heard: list[_Source], followed: Followed, entry: Entry, source: _Source) -> bool:
    """Let a group go over to the broker that loads it; tell whether an event counts, as an unload elsewhere does not.

    Args:
        machine: the group's.
        heard: where it was heard from, the feed of its newest coordinator at the end; changed in place.
        followed: the group.
        entry: the event.
        source: which feed tells of it, and in which partition.
    """
    kind = entry.request.type if isinstance(entry.request, Event) else None
    feed, at_ms = source[0], entry.time_ms
    before = heard[-1][0] if heard else feed
    if before == feed or kind not in (EventType.LOAD, EventType.UNLOAD):
        return True
    if kind is EventType.UNLOAD:
        return False
    machine.go_back_to_load(at_ms)
    # Who ran out since a feed that is gone was heard of last, nobody knows: they have whole sessions from the load on.
    if (known_ms := followed.passed_ms.get(before, at_ms)) < at_ms:
        machine.renew(known_ms, at_ms)
    heard.sort(key=lambda each: each[0] == feed)
    return True


def _steps(group_id: str, group: Followed, until_ms: int) -> list[tuple[int, _Source, Entry | Missed]]:
    """List what happened to a group up to a moment, in order: when, by which feed in which partition, what.

    What a feed missed begins after all that it had heard by then. A group that it held back begins to miss earlier; if
    nothing is left of it by then, what begins meanwhile misses as much as any other.
    """
    steps: list[tuple[int, int, int, _Source, Entry | Missed]] = [
        (entry.time_ms, 0, entry.record.offset, (feed, entry.record.partition), entry) for entry, feed in group.entries
    ]
    steps += [
        (began_ms, 1, at, (gap.feed, gap.partition), gap)
        for at, gap in enumerate(group.missed)
        if gap.feed in group.feeds
        for began_ms in {gap.began_ms(group_id), gap.from_ms}
    ]
    ordered = sorted(steps, key=lambda step: step[:3])
    # In another partition something may still come of the very millisecond in which a gap begins.
    return [
        (at_ms, source, step)
        for at_ms, kind, _, source, step in ordered
        if at_ms <= until_ms - (kind == 1 and group.several)
    ]
