"""The timers of one group: which one is due next.

A member has one timer, its `deadline_ms`; the group has a few of its own. As in the timing wheel, re-arming is lazy:
a heartbeat only moves the deadline, and an entry that comes up too early is filed again. So a heartbeat costs no heap
operation, and ten thousand members that expire together cost n log n.

Join, sync and session time-outs are timers under a key here, as in Kafka's new coordinator (`CoordinatorTimer`), and
not delayed operations of a purgatory, as in its old one (`DelayedJoin`, `DelayedSync`, `DelayedHeartbeat`). An
operation holds a condition that is tried whenever its key is touched; here every event goes through the one state
machine of its group, which knows by itself when a phase is complete, so that the condition would be asked for in vain
and the operation would be a second copy of the state. What is left is a deadline, replaced when it is armed anew. The
purgatory is for those whose conditions come from elsewhere (`timing_wheel.Purgatory`, `heartwheel.operations`).
"""

from __future__ import annotations

import enum
from heapq import heapify, heappop, heappush, heapreplace

from heartwheel.coordinator.model import NEVER, Group, Member, TimerKind


class GroupTimer(enum.Enum):
    """Name a timer of the group itself, in the order in which equal deadlines fire; all but `FORGET` before members."""

    JOIN = "join"
    SYNC = "sync"
    STORE = "store"
    FORGET = "forget"


class Timers:
    """Order the timers of one group.

    Equal deadlines fire in this order: join, sync, the storing of an assignment, then the members in join order, then
    the forgetting of the group.

    Args:
        group: the group; its deadlines are the truth, this class only finds the earliest.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self._heap = [(m.deadline_ms, m.seq, m.member_id) for m in group.all_members() if m.deadline_ms != NEVER]
        self._filed = {seq: deadline for deadline, seq, _ in self._heap}
        heapify(self._heap)

    def arm(self, member: Member, now_ms: int, length_ms: int, kind: TimerKind) -> None:
        """Start a member's timer afresh, replacing the one that runs.

        Args:
            member: a member or pending member of the group.
            now_ms: when it starts: the time of an event, or the deadline of the timer that fired.
            length_ms: how long it runs.
            kind: what its end will mean.
        """
        member.timer = kind
        member.timer_ms = length_ms
        deadline = now_ms + length_ms
        member.deadline_ms = deadline
        if deadline < self._filed.get(member.seq, NEVER):
            self._filed[member.seq] = deadline
            heappush(self._heap, (deadline, member.seq, member.member_id))

    def disarm(self, member: Member) -> None:
        """Stop a member's timer; its entry is dropped when it comes up."""
        member.deadline_ms = NEVER
        member.timer = TimerKind.NONE

    def next_deadline_ms(self) -> int:
        """Tell when the next timer fires, epoch ms; `NEVER` if none is armed."""
        self._settle()
        first = self._heap[0][0] if self._heap else NEVER
        return min(first, self._group_deadline_ms())

    def is_due(self, clock_ms: int) -> bool:
        """Tell whether any timer has a deadline at or before the clock; cheap when none has."""
        if self._group_deadline_ms() <= clock_ms:
            return True
        # An entry is never filed later than the true deadline, so an unsettled heap can only err on the safe side.
        return bool(self._heap) and self._heap[0][0] <= clock_ms and self.next_deadline_ms() <= clock_ms

    def pop_due(self, clock_ms: int) -> tuple[int, Member | GroupTimer] | None:
        """Take the first timer with a deadline at or before the clock; it is disarmed by that.

        Returns:
            Its deadline (epoch ms) and whose it is, or `None` if no timer is due.
        """
        self._settle()
        group_deadline = self._group_deadline_ms()
        first = self._heap[0][0] if self._heap else NEVER
        if min(first, group_deadline) > clock_ms:
            return None
        timer = self._first_group_timer(group_deadline)
        if group_deadline < first or (group_deadline == first and timer is not GroupTimer.FORGET):
            self._disarm_group(timer)
            return group_deadline, timer
        _, seq, member_id = heappop(self._heap)
        del self._filed[seq]
        member = self._find(member_id, seq)
        assert member is not None, "settling leaves a living member on top"  # noqa: S101 - an invariant of this class
        member.deadline_ms = NEVER
        return first, member

    def _group_deadline_ms(self) -> int:
        group = self._group
        return min(group.join_deadline_ms, group.sync_deadline_ms, group.store_deadline_ms, group.forget_deadline_ms)

    def _first_group_timer(self, deadline_ms: int) -> GroupTimer:
        group = self._group
        if group.join_deadline_ms == deadline_ms:
            return GroupTimer.JOIN
        if group.sync_deadline_ms == deadline_ms:
            return GroupTimer.SYNC
        return GroupTimer.STORE if group.store_deadline_ms == deadline_ms else GroupTimer.FORGET

    def _disarm_group(self, timer: GroupTimer) -> None:
        setattr(self._group, f"{timer.value}_deadline_ms", NEVER)

    def _find(self, member_id: str, seq: int) -> Member | None:
        member = self._group.members.get(member_id) or self._group.pending.get(member_id)
        return member if member is not None and member.seq == seq else None

    def _settle(self) -> None:
        """Drop and re-file entries until the first one tells its member's true deadline."""
        heap, filed = self._heap, self._filed
        while heap:
            deadline, seq, member_id = heap[0]
            if filed.get(seq) != deadline:  # an earlier entry of this member was filed later, and has been up
                heappop(heap)
                continue
            member = self._find(member_id, seq)
            if member is None or member.deadline_ms == NEVER:
                heappop(heap)
                del filed[seq]
            elif member.deadline_ms != deadline:
                filed[seq] = member.deadline_ms
                heapreplace(heap, (member.deadline_ms, seq, member_id))
            else:
                return
