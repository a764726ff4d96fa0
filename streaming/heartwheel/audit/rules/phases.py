"""The join phase and the sync phase of a classic group: how they begin, end, are extended, and run out.

Facts of Kafka 4's `GroupMetadataManager`: `prepareRebalance`, `tryCompleteInitialRebalanceElseSchedule`,
`completeClassicGroupJoin`, `propagateAssignment`, `expirePendingSync`.
"""

from __future__ import annotations

from heartwheel.audit.rules import members as who
from heartwheel.audit.rules.context import Run
from heartwheel.audit.rules.java import buckets_for, walk
from heartwheel.audit.rules.model import COMPLETING, EMPTY, NEVER, PREPARING, STABLE, Group, Member, Record

ABOUT_MS = 1_000
"""How much sooner a session may have ended at the coordinator than it seems to, ms."""

SHOWN = "generation_advanced"
"""The cause of what an accepted request shows to be so; for which other cause it came, nobody knows."""


def rebalance_or_complete(run: Run, reason: str, cause: str) -> None:
    """Begin a join phase, or, if one runs, end it if everybody has joined and it is not the initial one."""
    if run.group.state != PREPARING:
        begin(run, reason, cause)
    elif run.group.came_from != EMPTY:
        complete_if_all_joined(run)


def begin(run: Run, reason: str, cause: str) -> None:
    """Begin a join phase; who waits in a sync is sent back with a whole session."""
    group = run.group
    if group.state == COMPLETING:
        parked = [member for member in group.members.values() if member.syncing]
        answer_syncs(run)
        for member in parked if group.unproven else ():
            member.deadline_ms = NEVER  # or long ago, if the assignment came from a leader who is not known
    group.unsynced = {}
    group.sync_ms = NEVER
    patience = who.patience_ms(group)
    initial = group.state == EMPTY and patience is not None
    delay = run.config.group_initial_rebalance_delay_ms
    longest = max(patience, delay) if initial and patience is not None else patience
    run.say(
        "rebalance_triggered",
        reason,
        cause,
        deadline_ms=None if longest is None else group.now_ms + longest,
        awaiting=tuple(member.member_id for member in who.absent(group)),
    )
    group.phase_ms = group.now_ms
    group.came_from, group.state = group.state, PREPARING
    group.initial = initial
    if initial and patience is not None:
        _extend_initial(run, delay, max(patience - delay, 0))
    elif who.all_joined(group):
        complete(run, "all_joined")
    else:
        run.start_join_timer(patience)


def _extend_initial(run: Run, delay_ms: int, left_ms: int) -> None:
    run.group.join_delay_ms, run.group.join_left_ms = delay_ms, left_ms
    run.start_join_timer(delay_ms)


def join_timer_fires(run: Run) -> None:
    """End the join phase; an initial one to which somebody came meanwhile is extended, up to the rebalance timeout."""
    group = run.group
    if group.initial and group.more_came and group.join_left_ms:
        group.more_came = False
        delay = min(run.config.group_initial_rebalance_delay_ms, group.join_left_ms)
        _extend_initial(run, delay, max(group.join_left_ms - group.join_delay_ms, 0))
    else:
        complete(run, "join_timeout")


def complete_if_all_joined(run: Run) -> None:
    """End the join phase, the initial one too, if nobody is missing."""
    if run.group.state == PREPARING and who.all_joined(run.group):
        complete(run, "all_joined")


def complete(run: Run, cause: str) -> None:
    """End the join phase: who is absent and dynamic goes, the next generation stands or the group is empty."""
    group = run.group
    out = [member for member in who.absent(group) if cause == SHOWN and _ran_out(group, member)]
    group.join_ms, group.unproven = NEVER, group.now_ms < group.whole_ms
    gone = _remove_absent(run, silently=cause == SHOWN)
    for member in out:
        run.say_expired(member, "session_timeout", member.timer_ms)
    if not who.elect(group) and group.members:
        group.initial = False
        run.start_join_timer(who.patience_ms(group))
        return
    group.generation += 1
    group.unsynced = {}
    group.met_late = False
    group.protocol = who.vote(group)
    if group.members:
        _stabilize(run, cause, gone)
    else:
        become_empty(run, gone)


def _ran_out(group: Group, member: Member) -> bool:
    """Tell whether only the session of an absent member can have ended the join phase without it.

    It was not the phase's own timer, which has time left; and the phase began after what the source has missed, so a
    leave would have been heard.
    """
    doubtful_ms = group.now_ms + ABOUT_MS
    return (
        doubtful_ms < group.join_ms < NEVER and member.deadline_ms <= doubtful_ms and group.phase_ms >= group.renewed_ms
    )


def _remove_absent(run: Run, *, silently: bool) -> tuple[str, ...]:
    group = run.group
    away = {member.member_id: member for member in who.absent(group)}
    gone = {
        member_id: member
        for member_id, member in away.items()
        # Whether a static member is still there of which no session runs, or one that ends about now, nobody knows.
        if member.instance_id is None or (silently and not group.now_ms + ABOUT_MS < member.deadline_ms < NEVER)
    }
    order = walk(away, group.buckets or 16)
    for member_id in gone:
        who.remove(group, member_id)
    # From the table of the members Kafka takes them into one of all who are absent, and from that into another one.
    for ids in (away, gone):
        order = walk([member_id for member_id in order if member_id in ids], buckets_for(len(ids)))
    for member_id in () if silently else order:
        run.say_expired(gone[member_id], "rebalance_timeout", group.now_ms - group.phase_ms)
    return tuple(order)


def _stabilize(run: Run, cause: str, gone: tuple[str, ...]) -> None:
    group = run.group
    group.came_from, group.state = group.state, COMPLETING
    run.say(
        "rebalance_completed",
        stabilized(group),
        cause,
        leader=group.leader,
        removed=gone,
        joined=tuple(member.member_id for member in group.members.values() if member.is_new),
        duration_ms=group.now_ms - group.phase_ms,
    )
    group.walked_buckets = group.buckets
    for member in group.members.values():
        member.joining = member.is_new = False
        run.reset(member)
        group.unsynced[member.member_id] = None
    run.start_sync_timer(who.patience_ms(group))


def stabilized(group: Group) -> str:
    """Say in Kafka's words that a generation stands."""
    return f"Stabilized group {group.group_id} generation {group.generation} with {len(group.members)} members."


def become_empty(run: Run, gone: tuple[str, ...] = ()) -> None:
    """Note that nobody is left."""
    group = run.group
    group.came_from, group.state = group.state, EMPTY
    words = f"Group {group.group_id} with generation {group.generation} is now empty."
    run.say("group_empty", words, "no_members", removed=gone, duration_ms=group.now_ms - group.phase_ms)
    write_record(group)


def answer_syncs(run: Run) -> None:
    """Answer who waits in a sync, which gives each a whole session."""
    for member in run.group.members.values():
        if member.syncing:
            member.syncing = False
            run.reset(member)


def assign(run: Run) -> None:
    """Take the leader's assignment: the group is Stable."""
    write_record(run.group)
    answer_syncs(run)
    run.group.came_from, run.group.state = run.group.state, STABLE


def sync_timer_fires(run: Run) -> None:
    """Remove who has not sent its sync, and rebalance."""
    group = run.group
    waited_for = walk(group.unsynced, group.buckets or 16)
    late = walk(waited_for, buckets_for(len(waited_for)))  # Kafka goes through a copy of its set
    if group.state not in (COMPLETING, STABLE) or not late:
        return
    waited = who.patience_ms(group) or 0
    gone = [who.remove(group, member_id) for member_id in late]
    for member in gone:
        if member is not None:  # else the old id of a static member that came back: nobody's any more
            run.say_expired(member, "sync_timeout", waited)
    begin(run, f"Removing [{', '.join(late)}] on pending sync request expiration", "sync_expired")


def write_record(group: Group) -> None:
    """Note what a coordinator would read from now on: who is a member, and what each asked for."""
    group.record = Record(group.generation, group.leader, group.protocol, dict(group.members))
