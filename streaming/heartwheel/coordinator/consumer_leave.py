"""How members go: they leave, leave for a while, or are fenced by a timer.

Read beside `GroupMetadataManager`: every function names the method it mirrors.
"""

from __future__ import annotations

from collections.abc import Sequence

from heartwheel.coordinator import consumer_messages as messages
from heartwheel.coordinator.answer import Answer
from heartwheel.coordinator.consumer_context import EpochContext
from heartwheel.coordinator.consumer_epochs import check_instance
from heartwheel.coordinator.consumer_model import EpochMember, GroupType, TimerName
from heartwheel.coordinator.consumer_reconcile import is_unseen_patience
from heartwheel.coordinator.consumer_target import bump_epoch
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
    ctx.say_of(member, Kind.MEMBER_LEFT, messages.left(group, member), Cause.MEMBER_LEFT)
    ctx.remember_departure(member, beat.member_epoch)
    fence_member(ctx, member, Cause.MEMBER_LEFT)
    return Answer.NONE


def _leave_for_a_while(ctx: EpochContext, member: EpochMember) -> Answer:
    """Keep a static member's place: `consumerGroupStaticMemberGroupLeave`.

    Its session runs on as it was; its rebalance timer too, but that is guarded by the epoch it had. A second one is
    accepted like the first.
    """
    ctx.say_of(member, Kind.STATIC_LEFT, messages.left(ctx.group, member, for_a_while=True), Cause.MEMBER_LEFT)
    if member.epoch != LEAVE_STATIC_EPOCH:
        ctx.remember_departure(member, LEAVE_STATIC_EPOCH)
    member.epoch, member.epoch_is_known = LEAVE_STATIC_EPOCH, True
    member.unrevoked, member.revoking = False, {}
    ctx.remember_heartbeat(member, 0)
    return Answer.NONE


def fence_member(ctx: EpochContext, member: EpochMember, cause: Cause) -> None:
    """Take a member out of the group: `consumerGroupFenceMember`, `shareGroupFenceMember`, `streamsGroupFenceMember`.

    All its timers end with it (`cancelTimers`).
    """
    ctx.remove(member)
    bump_or_downgrade(ctx, [member], cause)


def bump_or_downgrade(ctx: EpochContext, gone: Sequence[EpochMember], cause: Cause) -> None:
    """Move the epoch on as members have gone: `consumerGroupFenceMembers`.

    If only classic members stay, a consumer group becomes a classic group again, and then its epoch does not move.
    """
    if validate_online_downgrade(ctx):
        ctx.downgraded_by = gone[-1].member_id
        return
    silently = ctx.group.type is not GroupType.CONSUMER
    bump_epoch(ctx, cause, silently=silently, removed=tuple(member.member_id for member in gone))


def validate_online_downgrade(ctx: EpochContext) -> bool:
    """Tell whether who stays makes a classic group: `validateOnlineDowngradeWithFencedMembers` and its twin."""
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

    A rebalance timer whose member has left the epoch that it was armed at does nothing
    (`scheduleConsumerGroupRebalanceTimeout`).
    """
    timer = member.timers.pop(name)
    if member.unrevoked and name is TimerName.SESSION and is_unseen_patience(ctx, member):
        _remove_in_doubt(ctx, member)
        return
    if name is TimerName.REBALANCE:
        if member.epoch != timer.epoch:
            return
        kind, expiry_reason = Kind.MEMBER_FENCED_REBALANCE_TIMEOUT, ExpiryReason.REVOCATION_TIMEOUT
        reason = messages.failed_to_transition(timer.epoch, timer.length_ms)
    else:
        kind, reason, expiry_reason = _REASONS[name]
    ctx.say_of(
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
        renewed_ms=ctx.put_off_by(member, name, timer),
    )
    # A static member may have been away: what ends its absence is this, and no return after it.
    ctx.group.left.pop(member.member_id, None)
    fence_member(ctx, member, Cause.MEMBER_EXPIRED)


def _remove_in_doubt(ctx: EpochContext, member: EpochMember) -> None:
    """Take out a member that is gone by now, by its session or before that by a rebalance timer which is not known.

    When the epoch moved on, answers tell.
    """
    ctx.group.left.pop(member.member_id, None)
    ctx.remove(member)
    if validate_online_downgrade(ctx):
        ctx.downgraded_by = member.member_id
