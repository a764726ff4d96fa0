"""The end of a member's timer: `GroupMetadataManager.expireClassicGroupMemberHeartbeat`."""

from __future__ import annotations

from heartwheel.engine.rules import messages
from heartwheel.engine.rules.classic.rebalance import (
    complete_join,
    maybe_prepare_rebalance_or_complete_join,
    report_expired,
)
from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.model import GroupState, Member
from heartwheel.wire.verdicts import Cause, ExpiryReason, Kind


def fire_member(ctx: Context, member: Member) -> None:
    """Remove a member whose timer ran out, unless it only waits for the others.

    A member that awaits a join or a sync has satisfied its heartbeat: its expiry is ignored and its timer is not
    re-armed, because the end of that phase does it. Only a new member is expired nevertheless, because it may be gone.
    """
    if member.pending:
        _expire_pending(ctx, member)
    elif member.is_new or not (member.awaiting_join or member.awaiting_sync):
        _expire(ctx, member)


def may_have_missed_phase(ctx: Context, member: Member) -> bool:
    """Return whether a member may have missed a join or sync phase before its session ended.

    A phase lasts for the longest rebalance timeout of the members. If one of these may be unknown, no timer of the
    group runs, and a member that such a timer may have removed is not expired by its session.
    """
    group = ctx.group
    if not group.awaits_proof or member.pending:
        return False
    if member.pending_sync:
        since_ms = group.sync_armed_ms
    elif group.state is GroupState.PREPARING_REBALANCE and member.group_instance_id is None:
        since_ms = group.rebalance_started_ms
    else:
        return False
    known_ms = max((each.rebalance_timeout_ms for each in group.members.values()), default=0)
    return ctx.now_ms - since_ms >= known_ms


def _expire_pending(ctx: Context, member: Member) -> None:
    """Remove a member that never joined with its id: `removePendingMemberAndUpdateClassicGroup`."""
    ctx.roster.remove(member.member_id)
    ctx.report_expired(
        member,
        Kind.PENDING_MEMBER_EXPIRED,
        messages.pending_failed(ctx.group.group_id, member.member_id),
        Cause.MEMBER_EXPIRED,
        expiry_reason=ExpiryReason.PENDING_TIMEOUT,
        session_timeout_ms=member.timer_ms,
    )
    _complete_join_if_all_joined(ctx)


def _expire(ctx: Context, member: Member) -> None:
    """Remove an expired member and rebalance: `removeMemberAndUpdateClassicGroup`."""
    ctx.roster.remove(member.member_id)
    report_expired(ctx, member)
    if ctx.group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        reason = messages.removing_failed(member.member_id)
        maybe_prepare_rebalance_or_complete_join(ctx, reason, Cause.MEMBER_EXPIRED)
    else:
        _complete_join_if_all_joined(ctx)


def _complete_join_if_all_joined(ctx: Context) -> None:
    """End the join phase if no member is missing now. Unlike a leave, an expiry also ends the initial one early."""
    if ctx.group.state is GroupState.PREPARING_REBALANCE and ctx.roster.has_all_members_joined():
        complete_join(ctx, Cause.ALL_JOINED)
