"""How members leave: by a request, for a while, or fenced by a timer.

Read it next to `GroupMetadataManager`: every function names the method it mirrors.
"""

from __future__ import annotations

from collections.abc import Sequence

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.epochs import messages
from heartwheel.engine.rules.epochs.context import EpochContext
from heartwheel.engine.rules.epochs.epochs import check_instance
from heartwheel.engine.rules.epochs.model import EpochMember, GroupType, TimerName
from heartwheel.engine.rules.epochs.reconcile import has_unseen_rebalance_timeout
from heartwheel.engine.rules.epochs.target import bump_epoch, reset_empty_target
from heartwheel.wire.group_heartbeats import LEAVE_STATIC_EPOCH, GroupHeartbeat
from heartwheel.wire.verdicts import Cause, ExpiryReason, Kind


def leave(ctx: EpochContext, beat: GroupHeartbeat) -> Answer:
    """Handle a heartbeat at epoch -1 or -2: `consumerGroupLeave`, `shareGroupLeave`, `streamsGroupLeave`."""
    group, instance_id = ctx.group, beat.group_instance_id
    if instance_id is None or group.type is GroupType.SHARE:
        if beat.member_epoch == LEAVE_STATIC_EPOCH:
            return Answer.INVALID_REQUEST
        member = group.members.get(beat.sender)
        if member is None and ctx.accepted:
            # It joined before the log begins.
            member = ctx.add(EpochMember(beat.sender))
        if member is None:
            return Answer.UNKNOWN_MEMBER_ID
    else:
        member = ctx.static_member(instance_id)
        refusal = check_instance(member, beat.sender)
        if member is None or refusal is not Answer.NONE:
            return refusal
        if beat.member_epoch == LEAVE_STATIC_EPOCH:
            return _leave_for_a_while(ctx, member)
    ctx.report_member(member, Kind.MEMBER_LEFT, messages.left(group, member), Cause.MEMBER_LEFT)
    ctx.remember_departure(member, beat.member_epoch)
    fence_member(ctx, member, Cause.MEMBER_LEFT)
    return Answer.NONE


def _leave_for_a_while(ctx: EpochContext, member: EpochMember) -> Answer:
    """Keep a static member's place: `consumerGroupStaticMemberGroupLeave`.

    Its session runs on. Its rebalance timer runs on too, but it is guarded by the member's epoch. A second leave of
    this kind is accepted like the first.
    """
    ctx.report_member(member, Kind.STATIC_LEFT, messages.left(ctx.group, member, for_a_while=True), Cause.MEMBER_LEFT)
    if member.epoch != LEAVE_STATIC_EPOCH:
        ctx.remember_departure(member, LEAVE_STATIC_EPOCH)
    member.epoch, member.epoch_is_known = LEAVE_STATIC_EPOCH, True
    member.unrevoked, member.revoking = False, {}
    ctx.remember_heartbeat(member, 0)
    return Answer.NONE


def fence_member(ctx: EpochContext, member: EpochMember, cause: Cause) -> None:
    """Remove a member from the group: `consumerGroupFenceMember`, `shareGroupFenceMember`, `streamsGroupFenceMember`.

    All its timers end with it (`cancelTimers`).
    """
    ctx.remove(member)
    bump_or_downgrade(ctx, [member], cause)


def bump_or_downgrade(ctx: EpochContext, removed: Sequence[EpochMember], cause: Cause) -> None:
    """Bump the epoch after members have left, or downgrade the group: `consumerGroupFenceMembers`.

    If only classic members stay, a consumer group becomes a classic group again, and then its epoch is not bumped.
    """
    if validate_online_downgrade(ctx):
        ctx.downgraded_by = removed[-1].member_id
        return
    silently = ctx.group.type is not GroupType.CONSUMER
    bump_epoch(ctx, cause, silently=silently, removed=tuple(member.member_id for member in removed))
    reset_empty_target(ctx)


def validate_online_downgrade(ctx: EpochContext) -> bool:
    """Return whether the others make a classic group: `validateOnlineDowngradeWithFencedMembers` and its twin."""
    group, config = ctx.group, ctx.config
    if group.type is not GroupType.CONSUMER or not config.downgrade or not group.members:
        return False
    fits = len(group.members) <= config.coordinator.group_max_size
    return fits and all(member.classic is not None for member in group.members.values())


_REASONS = {
    TimerName.SESSION: (Kind.MEMBER_EXPIRED, messages.SESSION_EXPIRED, ExpiryReason.SESSION_TIMEOUT),
    TimerName.JOIN: (Kind.CLASSIC_MEMBER_JOIN_TIMEOUT, messages.FAILED_TO_JOIN, ExpiryReason.REBALANCE_TIMEOUT),
    TimerName.SYNC: (Kind.CLASSIC_MEMBER_SYNC_TIMEOUT, messages.FAILED_TO_SYNC, ExpiryReason.SYNC_TIMEOUT),
}


def fire(ctx: EpochContext, member: EpochMember, name: TimerName) -> None:
    """Fence a member whose timer has ended: `consumerGroupFenceMemberOperation` and its twins.

    A rebalance timer does nothing if its member has left the epoch at which it was armed
    (`scheduleConsumerGroupRebalanceTimeout`).
    """
    timer = member.timers.pop(name)
    if member.unrevoked and name is TimerName.SESSION and has_unseen_rebalance_timeout(ctx, member):
        _remove_in_doubt(ctx, member)
        return
    if name is TimerName.REBALANCE:
        if member.epoch != timer.epoch:
            return
        kind, expiry_reason = Kind.MEMBER_FENCED_REBALANCE_TIMEOUT, ExpiryReason.REVOCATION_TIMEOUT
        reason = messages.failed_to_transition(timer.epoch, timer.length_ms)
    else:
        kind, reason, expiry_reason = _REASONS[name]
    ctx.report_member(
        member,
        kind,
        reason,
        Cause.MEMBER_EXPIRED,
        group_state=ctx.group.state().value,
        expiry_reason=expiry_reason,
        last_seen_ms=member.last_seen_ms,
        session_timeout_ms=timer.length_ms,
        epoch=timer.epoch if name is TimerName.REBALANCE else None,
        member_epoch=member.epoch,
        timeout_ms=timer.length_ms,
        renewed_ms=ctx.postponed_by(member, name, timer),
    )
    # A static member may have been away. This ends its absence; a return later does not.
    ctx.group.left.pop(member.member_id, None)
    fence_member(ctx, member, Cause.MEMBER_EXPIRED)


def _remove_in_doubt(ctx: EpochContext, member: EpochMember) -> None:
    """Remove a member that was ended either by its session or, earlier, by an unknown rebalance timer.

    Answers show when the epoch was bumped.
    """
    ctx.group.left.pop(member.member_id, None)
    ctx.remove(member)
    if validate_online_downgrade(ctx):
        ctx.downgraded_by = member.member_id
