"""The join phase and the sync phase of a classic group: begin, end, extension, and timeout.

Facts of Kafka 4's `GroupMetadataManager`: `prepareRebalance`, `tryCompleteInitialRebalanceElseSchedule`,
`completeClassicGroupJoin`, `propagateAssignment`, `expirePendingSync`.
"""

from __future__ import annotations

from heartwheel.proof.audit.rules import members
from heartwheel.proof.audit.rules.context import Run
from heartwheel.proof.audit.rules.java import buckets_for, walk
from heartwheel.proof.audit.rules.model import (
    COMPLETING,
    EMPTY,
    NEVER,
    PREPARING,
    STABLE,
    AuditedGroup,
    AuditedMember,
    CommittedGroup,
)

ABOUT_MS = 1_000
"""How much earlier a session may have ended at the coordinator than here, ms."""

SHOWN = "generation_advanced"
"""The cause of a change that an accepted request shows; its actual cause is unknown."""


def rebalance_or_complete(run: Run, reason: str, cause: str) -> None:
    """Begin a join phase; a running one ends if all members have joined and it is not the initial one."""
    if run.group.state != PREPARING:
        begin(run, reason, cause)
    elif run.group.came_from != EMPTY:
        complete_if_all_joined(run)


def begin(run: Run, reason: str, cause: str) -> None:
    """Begin a join phase; members that wait in a sync are answered and get a whole session."""
    group = run.group
    if group.state == COMPLETING:
        parked = [member for member in group.members.values() if member.syncing]
        answer_syncs(run)
        for member in parked if group.unproven else ():
            member.deadline_ms = NEVER  # an unknown leader may have sent the assignment long ago
    group.unsynced = {}
    group.sync_ms = NEVER
    patience = members.patience_ms(group)
    initial = group.state == EMPTY and patience is not None
    delay = run.config.group_initial_rebalance_delay_ms
    longest = max(patience, delay) if initial and patience is not None else patience
    run.emit(
        "rebalance_triggered",
        reason,
        cause,
        deadline_ms=None if longest is None else group.now_ms + longest,
        awaiting=tuple(member.member_id for member in members.absent(group)),
    )
    group.phase_ms = group.now_ms
    group.came_from, group.state = group.state, PREPARING
    group.initial = initial
    if initial and patience is not None:
        _extend_initial(run, delay, max(patience - delay, 0))
    elif members.all_joined(group):
        complete(run, "all_joined")
    else:
        run.start_join_timer(patience)


def _extend_initial(run: Run, delay_ms: int, left_ms: int) -> None:
    run.group.join_delay_ms, run.group.join_left_ms = delay_ms, left_ms
    run.start_join_timer(delay_ms)


def join_timer_fires(run: Run) -> None:
    """End the join phase; an initial one that a member joined meanwhile is extended, up to the rebalance timeout."""
    group = run.group
    if group.initial and group.more_came and group.join_left_ms:
        group.more_came = False
        delay = min(run.config.group_initial_rebalance_delay_ms, group.join_left_ms)
        _extend_initial(run, delay, max(group.join_left_ms - group.join_delay_ms, 0))
    else:
        complete(run, "join_timeout")


def complete_if_all_joined(run: Run) -> None:
    """End the join phase, also an initial one, if no member is absent."""
    if run.group.state == PREPARING and members.all_joined(run.group):
        complete(run, "all_joined")


def complete(run: Run, cause: str) -> None:
    """End the join phase: remove absent dynamic members, and begin the next generation or become empty."""
    group = run.group
    out = [member for member in members.absent(group) if cause == SHOWN and _ran_out(group, member)]
    group.join_ms, group.unproven = NEVER, group.now_ms < group.whole_ms
    removed = _remove_absent(run, silently=cause == SHOWN)
    for member in out:
        run.emit_expired(member, "session_timeout", member.timer_ms)
    if not members.elect(group) and group.members:
        group.initial = False
        run.start_join_timer(members.patience_ms(group))
        return
    group.generation += 1
    group.unsynced = {}
    group.met_late = False
    group.protocol = members.vote(group)
    if group.members:
        _stabilize(run, cause, removed)
    else:
        become_empty(run, removed)


def _ran_out(group: AuditedGroup, member: AuditedMember) -> bool:
    """Return whether only the end of an absent member's session can have ended the join phase.

    It was not the phase's own timer, which has time left. And the phase began after the source's last gap, so a leave
    would be in the log.
    """
    doubtful_ms = group.now_ms + ABOUT_MS
    return (
        doubtful_ms < group.join_ms < NEVER and member.deadline_ms <= doubtful_ms and group.phase_ms >= group.renewed_ms
    )


def _remove_absent(run: Run, *, silently: bool) -> tuple[str, ...]:
    group = run.group
    away = {member.member_id: member for member in members.absent(group)}
    removed = {
        member_id: member
        for member_id, member in away.items()
        # A static member whose session does not run, or ends about now, may or may not still be a member.
        if member.instance_id is None or (silently and not group.now_ms + ABOUT_MS < member.deadline_ms < NEVER)
    }
    order = walk(away, group.buckets or 16)
    for member_id in removed:
        members.remove(group, member_id)
    # Kafka copies them from the table of members into one of all absent members, and from there into another one.
    for ids in (away, removed):
        order = walk([member_id for member_id in order if member_id in ids], buckets_for(len(ids)))
    for member_id in () if silently else order:
        run.emit_expired(removed[member_id], "rebalance_timeout", group.now_ms - group.phase_ms)
    return tuple(order)


def _stabilize(run: Run, cause: str, removed: tuple[str, ...]) -> None:
    group = run.group
    group.came_from, group.state = group.state, COMPLETING
    run.emit(
        "rebalance_completed",
        stabilized(group),
        cause,
        leader=group.leader,
        removed=removed,
        joined=tuple(member.member_id for member in group.members.values() if member.is_new),
        duration_ms=group.now_ms - group.phase_ms,
    )
    group.walked_buckets = group.buckets
    for member in group.members.values():
        member.joining = member.is_new = False
        run.reset(member)
        group.unsynced[member.member_id] = None
    run.start_sync_timer(members.patience_ms(group))


def stabilized(group: AuditedGroup) -> str:
    """Return Kafka's reason for a completed rebalance."""
    return f"Stabilized group {group.group_id} generation {group.generation} with {len(group.members)} members."


def become_empty(run: Run, removed: tuple[str, ...] = ()) -> None:
    """Make the group empty."""
    group = run.group
    group.came_from, group.state = group.state, EMPTY
    words = f"Group {group.group_id} with generation {group.generation} is now empty."
    run.emit("group_empty", words, "no_members", removed=removed, duration_ms=group.now_ms - group.phase_ms)
    write_record(group)


def answer_syncs(run: Run) -> None:
    """Answer the members that wait in a sync, which restarts their sessions."""
    for member in run.group.members.values():
        if member.syncing:
            member.syncing = False
            run.reset(member)


def assign(run: Run) -> None:
    """Apply the leader's assignment: the group becomes Stable."""
    write_record(run.group)
    answer_syncs(run)
    run.group.came_from, run.group.state = run.group.state, STABLE


def sync_timer_fires(run: Run) -> None:
    """Remove the members that have not sent their sync, and rebalance."""
    group = run.group
    waited_for = walk(group.unsynced, group.buckets or 16)
    late = walk(waited_for, buckets_for(len(waited_for)))  # Kafka iterates over a copy of its set
    if group.state not in (COMPLETING, STABLE) or not late:
        return
    waited = members.patience_ms(group) or 0
    removed = [members.remove(group, member_id) for member_id in late]
    for member in removed:
        if member is not None:  # else it is the former id of a static member that came back
            run.emit_expired(member, "sync_timeout", waited)
    begin(run, f"Removing [{', '.join(late)}] on pending sync request expiration", "sync_expired")


def write_record(group: AuditedGroup) -> None:
    """Write the record that a coordinator would read from now on: the members, and what each asked for."""
    group.record = CommittedGroup(group.generation, group.leader, group.protocol, dict(group.members))
