"""The timers of one group: which one is due next.

A member has one timer, its `deadline_ms`; the group has a few of its own. As in the timing wheel, re-arming is lazy: a
heartbeat only moves the deadline, and an entry that is reached too early is filed again. So a heartbeat costs no heap
operation, and the expiry of ten thousand members costs n log n.

Join, sync and session timeouts are timers under a key here, as in Kafka's new coordinator (`CoordinatorTimer`), and not
delayed operations of a purgatory, as in its old one (`DelayedJoin`, `DelayedSync`, `DelayedHeartbeat`). An operation
has a condition that is tried whenever its key is touched. Here every event goes through the one state machine of its
group, which knows by itself when a phase is complete. The condition would be checked in vain, and the operation would
be a second copy of the state. A deadline remains, which is replaced when it is armed again. The purgatory is for
conditions that are met elsewhere (`timing_wheel.Purgatory`, `heartwheel.engine.operations`).
"""

from __future__ import annotations

import enum
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from heartwheel.engine.rules.java_map import bucket_of
from heartwheel.engine.rules.model import NEVER, Group, GroupKind, Member, TimerKind

_UNPLACED: Final = -1
"""The bucket of an entry that was not computed yet: it takes a hash of the member id, and few entries ever tie."""

_Rank = tuple[int, int, int]
"""Deadline and arming time, epoch ms, then the kind of owner: 0 a session, 1 a first join, 2 the group."""


class GroupTimer(enum.Enum):
    """A timer of the group itself, in the order in which those armed and due together fire."""

    JOIN = "join"
    SYNC = "sync"
    STORE = "store"
    FORGET = "forget"


class Timers:
    """The timers of one group, in the order in which they fire.

    Equal deadlines of a classic group fire in the order in which the timers were armed, as tasks in one bucket of
    Kafka's `TimingWheel` do. Of timers armed in the same millisecond, sessions fire first, in the order of Java's map
    (`completeClassicGroupJoin` arms them while it walks through it, and `schedulePendingSync` follows). Then come
    pending and new members, each armed by its own request, then the group's own timer. Members of other groups fire in
    join order. The timer that forgets the group is always last.

    Args:
        group: the group. Its deadlines are the truth; this class only finds the earliest.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self._file_all()

    def arm(self, member: Member, now_ms: int, length_ms: int, kind: TimerKind) -> None:
        """Start a member's timer, replacing the one that runs.

        Args:
            now_ms: when it starts: the time of an event, or the deadline of the timer that fired.
        """
        member.timer = kind
        member.timer_ms = length_ms
        member.deadline_ms = deadline = now_ms + length_ms
        if self._filed_by != self._order():
            # Otherwise a group that is of another kind for a moment would leave entries that are ranked by that kind.
            self._file_all()
        filed = self._filed.get(member.seq)
        if filed is None or deadline <= filed[0]:
            rank = self._rank(member)
            if filed is None or rank < filed:
                self._filed[member.seq] = rank
                heappush(self._heap, (rank, _UNPLACED, member.seq, member.member_id))

    def disarm(self, member: Member) -> None:
        """Stop a member's timer; its entry is dropped when it is reached."""
        member.deadline_ms = NEVER
        member.timer = TimerKind.NONE

    def next_deadline_ms(self) -> int:
        """Return when the next timer fires, epoch ms; `NEVER` if none is armed."""
        self._settle()
        first = self._heap[0][0][0] if self._heap else NEVER
        return min(first, self._group_deadline_ms())

    def is_due(self, clock_ms: int) -> bool:
        """Return whether any timer has a deadline at or before the clock; cheap when none has."""
        if self._group_deadline_ms() <= clock_ms:
            return True
        # An entry is never filed later than the true deadline, so an unsettled heap may only report too early.
        return bool(self._heap) and self._heap[0][0][0] <= clock_ms and self.next_deadline_ms() <= clock_ms

    def pop_due(self, clock_ms: int) -> tuple[int, Member | GroupTimer] | None:
        """Remove and disarm the first timer with a deadline at or before the clock.

        Returns:
            Its deadline (epoch ms) and its owner, or `None` if no timer is due.
        """
        self._settle()
        rank, timer = self._first_group_timer()
        if not self._heap or rank < self._heap[0][0]:
            if rank[0] > clock_ms:
                return None
            self._disarm_group(timer)
            return rank[0], timer
        (deadline, _, _), _, seq, member_id = self._heap[0]
        if deadline > clock_ms:
            return None
        heappop(self._heap)
        del self._filed[seq]
        member = self._find(member_id, seq)
        assert member is not None, "settling leaves a living member on top"  # noqa: S101 - an invariant of this class
        member.deadline_ms = NEVER
        return deadline, member

    def _group_deadline_ms(self) -> int:
        group = self._group
        return min(group.join_deadline_ms, group.sync_deadline_ms, group.store_deadline_ms, group.forget_deadline_ms)

    def _first_group_timer(self) -> tuple[_Rank, GroupTimer]:
        group = self._group
        ranked = (
            ((group.join_deadline_ms, group.join_armed_ms, 2), GroupTimer.JOIN),
            ((group.sync_deadline_ms, group.sync_armed_ms, 2), GroupTimer.SYNC),
            ((group.store_deadline_ms, group.store_armed_ms, 2), GroupTimer.STORE),
            ((group.forget_deadline_ms, NEVER, 2), GroupTimer.FORGET),
        )
        return min(ranked, key=lambda one: one[0])

    def _disarm_group(self, timer: GroupTimer) -> None:
        setattr(self._group, f"{timer.value}_deadline_ms", NEVER)

    def _find(self, member_id: str, seq: int) -> Member | None:
        member = self._group.members.get(member_id) or self._group.pending.get(member_id)
        return member if member is not None and member.seq == seq else None

    def _rank(self, member: Member) -> _Rank:
        deadline = member.deadline_ms
        if self._group.kind is not GroupKind.CLASSIC:
            return deadline, 0, 0
        return deadline, deadline - member.timer_ms, int(member.timer is not TimerKind.SESSION)

    def _order(self) -> tuple[bool, int]:
        """Return what else than the members decides the order of equal deadlines."""
        group = self._group
        return group.kind is GroupKind.CLASSIC, group.armed_table_size or group.table_size

    def _file_all(self) -> None:
        armed = [m for m in self._group.all_members() if m.deadline_ms != NEVER]
        self._heap = [(self._rank(m), _UNPLACED, m.seq, m.member_id) for m in armed]
        self._filed = {seq: rank for rank, _, seq, _ in self._heap}
        self._filed_by = self._order()
        heapify(self._heap)

    def _settle(self) -> None:
        """Drop and re-file entries until the first one belongs to the member whose timer fires first."""
        if self._filed_by != self._order():
            self._file_all()
        heap, filed = self._heap, self._filed
        while heap:
            rank, bucket, seq, member_id = heap[0]
            if filed.get(seq) != rank:  # another entry of this member was filed since
                heappop(heap)
                continue
            member = self._find(member_id, seq)
            if member is None or member.deadline_ms == NEVER:
                heappop(heap)
                del filed[seq]
            elif member.deadline_ms != rank[0] or self._rank(member) != rank:
                filed[seq] = self._rank(member)
                heapreplace(heap, (filed[seq], _UNPLACED, seq, member_id))
            elif bucket == _UNPLACED and self._ties(rank):
                heapreplace(heap, (rank, bucket_of(member_id, self._filed_by[1]), seq, member_id))
            else:
                return

    def _ties(self, rank: _Rank) -> bool:
        """Return whether the first entry may be one of several sessions of a classic group that were armed together."""
        classic, _ = self._filed_by
        return classic and rank[2] == 0 and any(entry[0] == rank for entry in self._heap[1:3])
