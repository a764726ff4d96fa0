"""The context of every rule about member epochs: one group at one moment, its timers and its verdicts."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any

from heartwheel.engine.rules.epochs.config import EpochConfig
from heartwheel.engine.rules.epochs.model import (
    LEFT_MAX,
    NON_MEMBERS_MAX,
    ArmedTimer,
    Departure,
    EpochGroup,
    EpochMember,
    TimerName,
)
from heartwheel.engine.rules.speaker import Speaker
from heartwheel.wire.group_heartbeats import GroupHeartbeat
from heartwheel.wire.verdicts import Cause, Kind, Verdict


class EpochContext(Speaker):
    """One group, its timers, and the present moment.

    Args:
        renewed_ms: end of the newest outage that has renewed the group's sessions, epoch ms; -1 if there was none.
    """

    def __init__(
        self, group: EpochGroup, config: EpochConfig, emit: Callable[[Verdict], None], renewed_ms: int = -1
    ) -> None:
        self.group = group
        self.config = config
        self.emit = emit
        self.renewed_ms = renewed_ms
        self.now_ms = group.last_event_ms
        self.answered_ms = group.last_event_ms
        """When the request at hand was answered, epoch ms; the present moment if that is not known."""
        self.accepted: bool | None = None
        """Whether a broker is known to have accepted the request at hand; `None` leaves it to the rules."""
        self.downgraded_by: str | None = None
        """The last member of the new protocol, after whose end the group becomes a classic one."""
        self.downgrade_rebalances = True
        """Whether the classic group then begins with a rebalance."""
        self._heap = [
            (_rank(member, timer), member.member_id, name)
            for member in group.members.values()
            for name, timer in member.timers.items()
        ]
        heapify(self._heap)
        self._static = {m.group_instance_id: m.member_id for m in group.members.values() if m.group_instance_id}
        self._has_fingerprints = any(member.fingerprint for member in group.members.values())

    # Members

    def static_member(self, instance_id: str | None) -> EpochMember | None:
        """Return the member with an instance id, if any: `ConsumerGroup.staticMember`."""
        return self.group.members.get(self._static.get(instance_id or "", ""))

    def add(self, member: EpochMember) -> EpochMember:
        """Append a member to the join order."""
        group = self.group
        if (old := group.members.get(member.member_id)) is not None:
            self.remove(old)
        member.seq, group.next_seq = group.next_seq, group.next_seq + 1
        group.members[member.member_id] = member
        if member.group_instance_id:
            self._static[member.group_instance_id] = member.member_id
        return member

    def remove(self, member: EpochMember) -> None:
        """Remove a member and its timers: `cancelTimers`."""
        group = self.group
        del group.members[member.member_id]
        self.note_id(member.member_id)
        if self._static.get(member.group_instance_id or "") == member.member_id:
            del self._static[member.group_instance_id or ""]

    def note_id(self, member_id: str) -> None:
        """Add an id that is known to belong to no member, in a group that may have unseen members."""
        group = self.group
        if group.taken_over:
            group.non_members = [*group.non_members, member_id][-NON_MEMBERS_MAX:]

    def remember_departure(self, member: EpochMember, epoch: int) -> None:
        """Remember that a member left by itself, by a heartbeat at this epoch."""
        left = self.group.left
        left.pop(member.member_id, None)
        if len(left) >= LEFT_MAX:
            del left[next(iter(left))]
        left[member.member_id] = Departure(self.now_ms, epoch)

    def remember_heartbeat(self, member: EpochMember, fingerprint: int) -> None:
        """Store the fingerprint of a heartbeat that may be repeated without applying a rule; 0 if each must be read."""
        member.fingerprint = fingerprint
        self._has_fingerprints = self._has_fingerprints or fingerprint != 0

    def clear_fingerprints(self) -> None:
        """Clear the fingerprints of all heartbeats, because a repeated one may now do more than reset a session."""
        if self._has_fingerprints:
            for member in self.group.members.values():
                member.fingerprint = 0
            self._has_fingerprints = False

    # Timers

    def arm(self, member: EpochMember, name: TimerName, length_ms: int) -> None:
        """Restart a timer of a member from now: `timer.schedule`."""
        group = self.group
        timer = ArmedTimer(self.now_ms + length_ms, length_ms, group.next_seq, member.epoch)
        group.next_seq += 1
        member.timers[name] = timer
        heappush(self._heap, (_rank(member, timer), member.member_id, name))

    def arm_session(self, member: EpochMember) -> None:
        """Give a member a whole session from now: `scheduleConsumerGroupSessionTimeout` and its twins.

        The length is the present one: the broker's or the group's, or for a classic member its own. If that is unknown
        (0), no session runs.
        """
        group = self.group
        if member.classic is not None:
            length_ms = member.classic.session_timeout_ms
        else:
            length_ms = self.config.session_timeout_ms(group.group_id, group.type, self.now_ms)
        member.last_seen_ms = self.now_ms
        if length_ms:
            self.arm(member, TimerName.SESSION, length_ms)

    def cancel(self, member: EpochMember, *names: TimerName) -> None:
        """Stop timers of a member: `timer.cancel`."""
        for name in names:
            member.timers.pop(name, None)

    def postpone(self, member: EpochMember, name: TimerName, deadline_ms: int) -> None:
        """Move a timer's deadline beyond what the rules say: a broker's timer is known to have run that long."""
        old = member.timers[name]
        timer = member.timers[name] = ArmedTimer(deadline_ms, old.length_ms, old.seq, old.epoch)
        heappush(self._heap, (_rank(member, timer), member.member_id, name))

    def renew(self, now_ms: int) -> int:
        """Restart the timers of members, each with its own length; one that ends later than that is left alone.

        Args:
            now_ms: when they start, epoch ms.

        Returns:
            The number of members with such timers.
        """
        renewed = 0
        for member in self.group.members.values():
            early = [name for name, timer in member.timers.items() if timer.deadline_ms < now_ms + timer.length_ms]
            for name in early:
                self.postpone(member, name, now_ms + member.timers[name].length_ms)
            renewed += bool(early)
        return renewed

    def postponed_by(self, member: EpochMember, name: TimerName, timer: ArmedTimer) -> int | None:
        """Return the end of the outage that postponed a timer that ends now, epoch ms (as in classic groups).

        Each heartbeat restarts the session, and no other timer.
        """
        start_ms = timer.deadline_ms - timer.length_ms
        heard_ms = member.last_seen_ms
        by_member = heard_ms >= start_ms if name is TimerName.SESSION else heard_ms == start_ms
        return start_ms if start_ms == self.renewed_ms and not by_member else None

    def next_due(self) -> tuple[int, EpochMember, TimerName] | None:
        """Return the timer that ends first; of equal deadlines the one that was armed first.

        Timers of several members that were armed in the same millisecond end in join order, so the order does not
        depend on which heartbeats the rules have read. Timers of one member end in the order in which they were armed.
        """
        heap = self._heap
        while heap:
            rank, member_id, name = heap[0]
            member = self.group.members.get(member_id)
            timer = None if member is None else member.timers.get(name)
            if member is not None and timer is not None and _rank(member, timer) == rank:
                return timer.deadline_ms, member, name
            heappop(heap)
        return None

    # Verdicts

    def report(self, kind: Kind, reason: str, cause: Cause | None = None, **fields: Any) -> None:
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
        """Update a member's client, and its rebalance timeout if the request changes it."""
        member.client_id = beat.client_id or member.client_id
        member.client_host = beat.client_host or member.client_host
        if beat.rebalance_timeout_ms is not None and beat.rebalance_timeout_ms >= 0:
            member.rebalance_timeout_ms = beat.rebalance_timeout_ms


def _rank(member: EpochMember, timer: ArmedTimer) -> tuple[int, int, int, int]:
    return timer.deadline_ms, timer.deadline_ms - timer.length_ms, member.seq, timer.seq
