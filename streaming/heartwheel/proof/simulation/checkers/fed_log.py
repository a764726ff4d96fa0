"""Groups that feeds pass on: how far their marks have come, by the words of docs/tap.md and docs/events.md alone.

What a feed says of a time that its marks had promised to be over may have come too late for the job, or not: that
depends on where its batches ended. Such groups are put aside, with one exception: nobody of them is expired before the
marks have come so far. Of several feeds it is then enough that one has come so far. A group without members that is
forgotten begins again without the feeds that told of it before, and whether it was forgotten may depend on the batches,
too (seed 4710: the unload and the load of a group stood before the outage of another partition, and its first
heartbeat after it).
"""

from __future__ import annotations

from collections.abc import Iterator

from heartwheel.proof.simulation.checkers.fed_moving import MovingGroup
from heartwheel.proof.simulation.checkers.fed_partition import NOWHERE, Aside, FedPartition, Followed, Reach
from heartwheel.proof.simulation.checkers.read_log import PlacedRequest
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.world.checkpoint import Checkpoint
from heartwheel.proof.simulation.world.topic import SimulatedTopic
from heartwheel.wire.partitioner import partition_of


class FedLog:
    """What feeds have written in a history, as far as the job has read it.

    Args:
        plan: the history's parameters.
        topic: the heartbeats.
        checkpoint: after the job has ended.
        known_since: the first batch that knew of the topic's growth.
    """

    def __init__(self, plan: Plan, topic: SimulatedTopic, checkpoint: Checkpoint, known_since: int) -> None:
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
                self._follow_on(group_id, parts, known_since, len(checkpoint.offsets))

    def _follow_on(self, group_id: str, parts: dict[int, FedPartition], known_since: int, batches: int) -> None:
        """Add a group that may have moved from one partition to another as the topic grew."""
        plan = self._plan
        assert plan.grown is not None, "the topic has grown"  # noqa: S101 - of others no group moves
        old, new = (partition_of(group_id.encode(), count) for count in (plan.partitions, plan.grown[1]))
        if old == new:
            return
        foreseen = plan.grown[0] > plan.start_ms
        after = {old, new} if foreseen else {new}
        homes = [after if batch >= known_since else {old} for batch in range(batches)]
        mine = {number: part for number, part in parts.items() if number in (old, new)}
        self._groups[group_id] = MovingGroup(group_id, mine, homes, is_foreseen=foreseen).followed

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def why_aside(self, group_id: str) -> Aside | None:
        """Return why nothing is promised of a group; `None` if all is."""
        return self._groups[group_id].aside

    def reach(self, group_id: str, batch: int) -> Reach:
        """Return how far a group had come with the end of a batch; before the first batch nowhere."""
        reached = self._groups[group_id].reached
        return reached[batch] if 0 <= batch < len(reached) else NOWHERE

    def is_moving(self, group_id: str) -> bool:
        """Return whether a group's id hashes to another partition since the topic has grown."""
        return self._groups[group_id].several

    def feeds_of(self, group_id: str) -> int:
        """Return how many feeds reported a group."""
        return len(self._groups[group_id].feeds)

    def entries(self, group_id: str) -> list[PlacedRequest]:
        """Return a group's events in the order in which they happened."""
        entries = (entry for entry, _ in self._groups[group_id].entries)
        return sorted(entries, key=lambda entry: (entry.time_ms, entry.record.offset))
