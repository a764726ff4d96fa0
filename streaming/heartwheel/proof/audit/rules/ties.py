"""The order in which Kafka runs several timers of a group that end in one millisecond.

Kafka's `SystemTimer` has ticks of one millisecond, and `TimerTaskList` appends to a bucket and empties it from its
head. So the timer that was scheduled first runs first, and each `schedule` of a key is a new entry at the tail. When
was each scheduled?

- By a heartbeat, or an offset commit: at that request.
- `completeClassicGroupJoin`: `allMembers().forEach` starts the sessions, in the order of the `HashMap`, and only then
  `schedulePendingSync` the time limit for syncs. A load (`onLoaded`) walks in the same way.
- `classicGroupJoinNewDynamicMember` and `addMemberThenRebalanceOrCompleteJoin`: one member a request, and the latter
  before `prepareRebalance` starts the time limit for joins.
- `prepareRebalance`: first the sessions of those who waited in a sync (`propagateAssignment`), then that time limit.

So within one millisecond members come before the phase. The order of two heartbeats within one millisecond is not kept,
so they count as if a walk had scheduled them. Kafka has no loaded and presence groups: there the first to join ends
first.
"""

from __future__ import annotations

from heartwheel.proof.audit.rules.java import spread_hash
from heartwheel.proof.audit.rules.model import CLASSIC, FORGET, JOIN, MEMBER, NEVER, SYNC, AuditedGroup, AuditedMember

Entry = tuple[int, int, int, str]
"""Deadline (epoch ms), timer, the member's place in the join order, the member's id."""

_WALKED, _ASKED, _PHASE = range(3)


def running(group: AuditedGroup, entry: Entry) -> AuditedMember | int | None:
    """Return the timer of a heap entry; `None` if it does not end at that deadline any more."""
    deadline, whose, seq, member_id = entry
    if whose == MEMBER:
        member = group.members.get(member_id) or group.pending.get(member_id)
        there = member is not None and member.seq == seq and member.deadline_ms == deadline
        return member if there else None
    ends = {JOIN: group.join_ms, SYNC: group.sync_ms, FORGET: group.forget_ms}
    return whose if ends[whose] == deadline else None


def place(group: AuditedGroup, entry: Entry) -> tuple[int, int, int, int]:
    """Return the rank of a running timer among those that end with it."""
    deadline, whose, seq, member_id = entry
    if whose == FORGET:
        return NEVER, _PHASE, 0, 0
    if whose != MEMBER:
        return (group.join_from_ms if whose == JOIN else group.sync_from_ms), _PHASE, whose, 0
    if group.kind != CLASSIC:
        return 0, _WALKED, 0, seq
    member = group.members.get(member_id) or group.pending[member_id]
    started = deadline - member.timer_ms
    if member.expiry != "session_timeout":
        return started, _ASKED, 0, seq
    return started, _WALKED, spread_hash(member_id) % (group.walked_buckets or group.buckets or 16), seq
