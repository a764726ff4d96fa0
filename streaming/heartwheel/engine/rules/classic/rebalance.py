"""The join phase of a classic group: how it starts, is extended, and ends.

Read it next to `GroupMetadataManager`: every function names the method it mirrors.
"""

from __future__ import annotations

from heartwheel.engine.rules import messages
from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.java_map import in_set_order
from heartwheel.engine.rules.model import NEVER, GroupState, Member, TimerKind
from heartwheel.wire.verdicts import Cause, ExpiryReason, Kind

IN_DOUBT_MS = 1_000
"""How much earlier a session may have ended at the coordinator when only requests show what it did, ms."""

_CAN_REBALANCE = frozenset({GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY})


def maybe_prepare_rebalance_or_complete_join(ctx: Context, reason: str, cause: Cause) -> None:
    """Start a join phase, or end the running one if it is complete: `maybePrepareRebalanceOrCompleteJoin`."""
    if ctx.group.state in _CAN_REBALANCE:
        prepare_rebalance(ctx, reason, cause)
    else:
        maybe_complete_join_phase(ctx)


def prepare_rebalance(ctx: Context, reason: str, cause: Cause) -> None:
    """Start a join phase: `prepareRebalance`.

    Parked SyncGroups are answered REBALANCE_IN_PROGRESS, which resets the sessions of their members.
    """
    group = ctx.group
    if group.state is GroupState.COMPLETING_REBALANCE:
        _send_back_syncs(ctx)
    ctx.roster.clear_pending_sync()
    group.sync_deadline_ms = group.store_deadline_ms = NEVER
    timeout_ms = ctx.roster.rebalance_timeout_ms()
    initial = group.state is GroupState.EMPTY and timeout_ms is not None
    window_ms = max(timeout_ms or 0, ctx.config.group_initial_rebalance_delay_ms) if initial else timeout_ms
    ctx.report(
        Kind.REBALANCE_STARTED,
        reason,
        cause,
        deadline_ms=None if window_ms is None else ctx.now_ms + window_ms,
        awaiting=tuple(m.member_id for m in ctx.roster.not_yet_rejoined()),
    )
    group.rebalance_started_ms = ctx.now_ms
    ctx.transition_to(GroupState.PREPARING_REBALANCE)
    # A heartbeat that was accepted in another state may show later that no join phase runs.
    ctx.clear_checked_fingerprints()
    if initial:
        delay_ms = ctx.config.group_initial_rebalance_delay_ms
        _schedule_initial_join(ctx, delay_ms, max((timeout_ms or 0) - delay_ms, 0))
    elif ctx.roster.has_all_members_joined():
        complete_join(ctx, Cause.ALL_JOINED)
    else:
        schedule_join(ctx, timeout_ms)


def _send_back_syncs(ctx: Context) -> None:
    """Answer the parked SyncGroups when a rebalance begins.

    If not all members are known, the leader may be unknown, and its assignment may have arrived unseen. Then the time
    of the answers is unknown, and so is the end of these sessions.
    """
    parked = [member for member in ctx.group.members.values() if member.awaiting_sync]
    propagate_assignment(ctx)
    for member in parked if ctx.group.awaits_proof else ():
        ctx.timers.disarm(member)
        member.fingerprint = 0


def schedule_join(ctx: Context, timeout_ms: int | None) -> None:
    """Arm the timer that ends the join phase after the rebalance timeout, if that is known."""
    ctx.group.join_armed_ms = ctx.now_ms
    ctx.group.join_deadline_ms = ctx.moment_after(timeout_ms)
    ctx.group.join_is_initial = False


def _schedule_initial_join(ctx: Context, delay_ms: int, remaining_ms: int) -> None:
    group = ctx.group
    group.join_armed_ms = ctx.now_ms
    group.join_deadline_ms = ctx.now_ms + delay_ms
    group.join_delay_ms = delay_ms
    group.join_remaining_ms = remaining_ms
    group.join_is_initial = True


def fire_join(ctx: Context) -> None:
    """End or extend the join phase when its timer fires: `tryCompleteInitialRebalanceElseSchedule` and its plain twin.

    An initial rebalance is extended while members keep arriving, up to the rebalance timeout in total.
    """
    group = ctx.group
    if group.join_is_initial and group.new_member_added and group.join_remaining_ms != 0:
        group.new_member_added = False
        delay_ms = min(ctx.config.group_initial_rebalance_delay_ms, group.join_remaining_ms)
        _schedule_initial_join(ctx, delay_ms, max(group.join_remaining_ms - group.join_delay_ms, 0))
    else:
        complete_join(ctx, Cause.JOIN_TIMEOUT)


def maybe_complete_join_phase(ctx: Context) -> None:
    """End the join phase if all have joined, unless it is the initial one: `maybeCompleteJoinPhase`."""
    group = ctx.group
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and group.previous_state is not GroupState.EMPTY
        and ctx.roster.has_all_members_joined()
    ):
        complete_join(ctx, Cause.ALL_JOINED)


def complete_join(ctx: Context, cause: Cause) -> None:
    """End the join phase: `completeClassicGroupJoin`.

    Dynamic members that did not join are removed, static ones stay. If none joined and some stay, the phase is extended
    at the same generation.
    """
    group, roster = ctx.group, ctx.roster
    is_shown = cause is Cause.GENERATION_ADVANCED
    expired = [member for member in roster.not_yet_rejoined() if is_shown and _must_have_expired(ctx, member)]
    group.join_deadline_ms = NEVER
    group.awaits_proof = ctx.now_ms < group.unseen_until_ms
    removed = _remove_absent(ctx, is_shown=is_shown)
    for member in expired:
        report_expired(ctx, member)
    if not roster.maybe_elect_new_joined_leader() and group.members:
        _extend_join(ctx)
        return
    group.generation += 1
    group.orphaned_syncs = ()
    group.taken_over = False
    ctx.clear_checked_fingerprints()
    group.protocol_name = roster.select_protocol()
    if group.members:
        _stabilize(ctx, cause, removed)
    else:
        become_empty(ctx, removed)


def _must_have_expired(ctx: Context, member: Member) -> bool:
    """Return whether the session of a member must have ended: a request shows that a join phase ended without it.

    A join phase ends by its timer, or when no member is missing. So if the timer still runs, an absent member is no
    longer a member. A leave would have been seen, so its session has ended, a little sooner at the coordinator than
    here: after a gap the restart of sessions is known only roughly.
    """
    group, soon_ms = ctx.group, ctx.now_ms + IN_DOUBT_MS
    began_in_sight = group.rebalance_started_ms >= ctx.renewed_ms
    return began_in_sight and member.deadline_ms <= soon_ms < group.join_deadline_ms < NEVER


def report_expired(ctx: Context, member: Member) -> None:
    """Emit that a member, just removed, was expired by the timer that it had."""
    new = member.timer is TimerKind.NEW_MEMBER
    ctx.report_expired(
        member,
        Kind.MEMBER_EXPIRED,
        messages.failed(ctx.group.group_id, member.member_id),
        Cause.MEMBER_EXPIRED,
        expiry_reason=ExpiryReason.NEW_MEMBER_TIMEOUT if new else ExpiryReason.SESSION_TIMEOUT,
        session_timeout_ms=member.timer_ms,
    )


def _remove_absent(ctx: Context, *, is_shown: bool) -> tuple[str, ...]:
    """Remove the dynamic members that did not join; return their ids.

    If a request showed that the phase is over, they are no longer members, but the cause is not known: their sessions
    may have ended unseen. So no verdict is emitted about them here. The same holds for a static member without a
    running session, or with one that ends about now: it may or may not still be a member.
    """
    absent = {
        m.member_id: m
        for m in ctx.roster.not_yet_rejoined()
        if m.group_instance_id is None or (is_shown and not ctx.now_ms + IN_DOUBT_MS < m.deadline_ms < NEVER)
    }
    if not absent:
        return ()
    # `notYetRejoinedMembers` fills a new map from the group's, and the dynamic ones are collected in a third.
    everybody = ctx.roster.in_map_order(m.member_id for m in ctx.roster.not_yet_rejoined())
    removed = tuple(in_set_order(member_id for member_id in in_set_order(everybody) if member_id in absent))
    for member in absent.values():
        ctx.roster.remove(member.member_id)
    if is_shown:
        return removed
    words_of_all = messages.removed_at_join(ctx.group.group_id, removed)
    for member_id in removed:
        ctx.report_expired(
            absent[member_id],
            Kind.MEMBER_REMOVED_AT_JOIN,
            words_of_all,
            Cause.JOIN_TIMEOUT,
            expiry_reason=ExpiryReason.REBALANCE_TIMEOUT,
            session_timeout_ms=ctx.now_ms - ctx.group.rebalance_started_ms,
        )
    return removed


def _extend_join(ctx: Context) -> None:
    group = ctx.group
    schedule_join(ctx, ctx.roster.rebalance_timeout_ms())
    ctx.report(
        Kind.JOIN_EXTENDED,
        messages.nobody_joined(group.group_id),
        Cause.JOIN_TIMEOUT,
        deadline_ms=None if group.join_deadline_ms == NEVER else group.join_deadline_ms,
        awaiting=tuple(group.members),
    )


def _stabilize(ctx: Context, cause: Cause, removed: tuple[str, ...]) -> None:
    group = ctx.group
    ctx.transition_to(GroupState.COMPLETING_REBALANCE)
    ctx.report(
        Kind.REBALANCE_COMPLETED,
        messages.stabilized(group.group_id, group.generation, len(group.members)),
        cause,
        group_state=group.previous_state.value,
        leader=group.leader,
        removed=removed,
        joined=tuple(member.member_id for member in group.members.values() if member.is_new),
        duration_ms=ctx.now_ms - group.rebalance_started_ms,
    )
    group.armed_table_size = group.table_size
    for member in group.members.values():
        _answer_join(ctx, member)
    # schedulePendingSync: members that never send their SyncGroup are removed (KAFKA-12890).
    group.sync_armed_ms = ctx.now_ms
    group.sync_deadline_ms = ctx.moment_after(ctx.roster.rebalance_timeout_ms())


def _answer_join(ctx: Context, member: Member) -> None:
    ctx.roster.set_awaiting_join(member, awaiting=False)
    ctx.reset_session(member)
    member.is_new = False
    ctx.roster.set_pending_sync(member, pending=True)


def become_empty(ctx: Context, removed: tuple[str, ...] = ()) -> None:
    """Make the group Empty at its present generation, which is stored."""
    group = ctx.group
    ctx.transition_to(GroupState.EMPTY)
    ctx.report(
        Kind.GROUP_EMPTY,
        messages.empty(group.group_id, group.generation),
        Cause.NO_MEMBERS,
        group_state=group.previous_state.value,
        removed=removed,
        duration_ms=ctx.now_ms - group.rebalance_started_ms,
    )
    store_record(ctx)


def propagate_assignment(ctx: Context) -> None:
    """Answer the parked SyncGroups, with the assignment or an error: `propagateAssignment`.

    In both cases those members get a whole session: while they were parked their expiry was ignored and not re-armed.
    """
    for member in ctx.group.members.values():
        if member.awaiting_sync:
            member.awaiting_sync = False
            ctx.reset_session(member)


def store_record(ctx: Context) -> None:
    """Update what a coordinator would read at a load: a group record was written to the log."""
    group = ctx.group
    group.stored_generation = group.generation
    group.stored_leader = group.leader
    group.stored_protocol_name = group.protocol_name
    group.departed = {}
    for member in group.members.values():
        member.stored = True
