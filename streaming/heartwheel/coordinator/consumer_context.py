"""What every rule about member epochs works on: one group at one moment, its timers and its verdicts."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any

from heartwheel.coordinator.consumer_config import EpochConfig
from heartwheel.coordinator.consumer_model import ArmedTimer, EpochGroup, EpochMember, TimerName
from heartwheel.coordinator.speaker import Speaker
from heartwheel.wire.group_heartbeats import GroupHeartbeat
from heartwheel.wire.verdicts import Cause, Kind, Verdict


class EpochContext(Speaker):
    """Hold one group, its timers, and the present moment.

    Args:
        group: the state.
        config: what holds for groups.
        emit: called with every verdict, in order.
    """

    def __init__(self, group: EpochGroup, config: EpochConfig, emit: Callable[[Verdict], None]) -> None:
        self.group = group
        self.config = config
        self.emit = emit
        self.now_ms = group.last_event_ms
        self.answered_ms = group.last_event_ms
        """When the request at hand was answered, epoch ms; the present moment if that is not known."""
        self.accepted: bool | None = None
        """Whether a broker is known to have accepted the request at hand; `None` leaves it to the rules."""
        self.downgraded_by: str | None = None
        """The member with which the last one of the new protocol went, so that the group is to be a classic one."""
        self.downgrade_rebalances = True
        """Whether the classic group then begins with a rebalance."""
        self._heap = [
            (timer.deadline_ms, timer.seq, member.member_id, name)
            for member in group.members.values()
            for name, timer in member.timers.items()
        ]
        heapify(self._heap)

    # Timers

    def arm(self, member: EpochMember, name: TimerName, length_ms: int) -> None:
        """Arm a timer of a member anew from now: `timer.schedule`."""
        group = self.group
        timer = ArmedTimer(self.now_ms + length_ms, length_ms, group.next_seq, member.epoch)
        group.next_seq += 1
        member.timers[name] = timer
        heappush(self._heap, (timer.deadline_ms, timer.seq, member.member_id, name))

    def arm_session(self, member: EpochMember) -> None:
        """Give a member a whole session from now: `scheduleConsumerGroupSessionTimeout` and its twins.

        The length is the one that holds now: the broker's or the group's, of a classic member its own.
        """
        group = self.group
        if member.classic is not None:
            length_ms = member.classic.session_timeout_ms
        else:
            length_ms = self.config.session_timeout_ms(group.group_id, group.type, self.now_ms)
        member.last_seen_ms = self.now_ms
        self.arm(member, TimerName.SESSION, length_ms)

    def cancel(self, member: EpochMember, *names: TimerName) -> None:
        """Stop timers of a member: `timer.cancel`."""
        for name in names:
            member.timers.pop(name, None)

    def postpone(self, member: EpochMember, name: TimerName, deadline_ms: int) -> None:
        """Let a timer end later than the rules say, because a broker's is known to have run that long."""
        timer = member.timers[name]
        member.timers[name] = ArmedTimer(deadline_ms, timer.length_ms, timer.seq, timer.epoch)
        heappush(self._heap, (deadline_ms, timer.seq, member.member_id, name))

    def next_due(self) -> tuple[int, EpochMember, TimerName] | None:
        """Find the timer that ends first; of equal deadlines the one that was armed first."""
        heap = self._heap
        while heap:
            deadline_ms, seq, member_id, name = heap[0]
            member = self.group.members.get(member_id)
            timer = None if member is None else member.timers.get(name)
            if member is not None and timer is not None and (timer.deadline_ms, timer.seq) == (deadline_ms, seq):
                return deadline_ms, member, name
            heappop(heap)
        return None

    # Verdicts

    def say(self, kind: Kind, reason: str, cause: Cause | None = None, **fields: Any) -> None:
        """Emit a verdict about the group at this moment; `fields` are further fields of `Verdict`."""
        group = self.group
        self.emit(
            Verdict(
                kind=kind,
                group_id=group.group_id,
                time_ms=self.now_ms,
                generation_id=group.epoch,
                reason=reason,
                cause=cause,
                group_kind=group.type.value,
                member_count=len(group.members),
                **fields,
            )
        )

    def describe(self, member: EpochMember, beat: GroupHeartbeat) -> None:
        """Take over who a member says it is, and the rebalance timeout if the request changes it."""
        member.client_id = beat.client_id or member.client_id
        member.client_host = beat.client_host or member.client_host
        if beat.rebalance_timeout_ms is not None and beat.rebalance_timeout_ms >= 0:
            member.rebalance_timeout_ms = beat.rebalance_timeout_ms
