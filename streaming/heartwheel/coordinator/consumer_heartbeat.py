"""ConsumerGroupHeartbeat, ShareGroupHeartbeat and StreamsGroupHeartbeat of members that join or stay.

Read beside `GroupMetadataManager`: every function names the method it mirrors.
"""

from __future__ import annotations

from heartwheel.coordinator import consumer_messages as messages
from heartwheel.coordinator.answer import Answer
from heartwheel.coordinator.consumer_context import EpochContext
from heartwheel.coordinator.consumer_epochs import check_epoch, check_instance, check_instance_is_released, is_full
from heartwheel.coordinator.consumer_model import Departure, EpochMember, GroupType, TimerName
from heartwheel.coordinator.consumer_reconcile import maybe_reconcile, suspect_debt
from heartwheel.coordinator.consumer_takeover import may_be_unseen, meet_by_join, take_over_by_heartbeat
from heartwheel.coordinator.consumer_target import (
    catch_up_with,
    delay_first_target,
    maybe_update_target,
    update_subscription,
)
from heartwheel.wire.group_heartbeats import JOIN_EPOCH, LEAVE_STATIC_EPOCH, GroupHeartbeat
from heartwheel.wire.verdicts import Cause, ExpiryReason, Kind


def heartbeat(ctx: EpochContext, beat: GroupHeartbeat) -> Answer:
    """Handle a heartbeat at epoch 0 or above: `consumerGroupHeartbeat`, `shareGroupHeartbeat`, `streamsGroupHeartbeat`.

    The rebalance timer is armed before the session, so of equal deadlines it fires first.
    """
    if is_full(ctx, beat.sender) and beat.member_epoch == JOIN_EPOCH and not ctx.accepted:
        return Answer.GROUP_MAX_SIZE_REACHED
    static = beat.group_instance_id is not None and ctx.group.type is not GroupType.SHARE
    if static:
        _drop_if_fenced_unseen(ctx, beat)
    members = len(ctx.group.members)
    meet_by_join(ctx, beat)
    departure = ctx.group.left.get(beat.sender) if beat.member_epoch == JOIN_EPOCH else None
    state = "" if departure is None else ctx.group.state().value
    member = _static_member(ctx, beat) if static else _dynamic_member(ctx, beat)
    if isinstance(member, Answer):
        return member
    if member.classic is not None:
        member.classic = None
        ctx.cancel(member, TimerName.JOIN, TimerName.SYNC)
    if beat.member_epoch > 0 and not member.epoch_is_known and beat.member_epoch > member.epoch:
        member.previous_epoch, member.epoch = member.epoch, beat.member_epoch
    ctx.describe(member, beat)
    if departure is not None:
        _say_returned(ctx, member, departure, state)
    is_new = beat.member_epoch == JOIN_EPOCH and len(ctx.group.members) > members
    update_subscription(ctx, member, beat, is_new=is_new)
    if beat.answer_member_epoch is not None:
        catch_up_with(ctx, beat.answer_member_epoch)
    maybe_update_target(ctx, beat.answer_member_epoch)
    maybe_reconcile(ctx, member, beat)
    suspect_debt(ctx, member, ctx.group.target_epoch)
    ctx.arm_session(member)
    return Answer.NONE


def _dynamic_member(ctx: EpochContext, beat: GroupHeartbeat) -> EpochMember | Answer:
    """Find or make a dynamic member: `getOrMaybeSubscribeDynamicConsumerGroupMember`; each epoch 0 logs a join."""
    member = ctx.group.members.get(beat.sender)
    if member is None:
        if beat.member_epoch != JOIN_EPOCH:
            return take_over_by_heartbeat(ctx, beat)
        member = _add(ctx, beat)
    elif ctx.accepted is None and (refusal := check_epoch(ctx, member, beat)) is not Answer.NONE:
        return refusal
    if beat.member_epoch == JOIN_EPOCH:
        _say_joined(ctx, member)
    return member


def _static_member(ctx: EpochContext, beat: GroupHeartbeat) -> EpochMember | Answer:
    """Find, make or replace a static member: `getOrMaybeSubscribeStaticConsumerGroupMember`."""
    instance_id = beat.group_instance_id or ""
    holder = ctx.static_member(instance_id)
    if beat.member_epoch == JOIN_EPOCH:
        return _join_static(ctx, holder, beat)
    if holder is None and may_be_unseen(ctx, beat.sender):
        return take_over_by_heartbeat(ctx, beat)
    refusal = check_instance(holder, beat.sender)
    if holder is None or refusal is not Answer.NONE:
        return refusal
    if ctx.accepted is None and (refusal := check_epoch(ctx, holder, beat)) is not Answer.NONE:
        return refusal
    return holder


def _drop_if_fenced_unseen(ctx: EpochContext, beat: GroupHeartbeat) -> None:
    """Remove a static member that joins again under its own id, if the answer shows that it had been fenced.

    Kafka refuses a join for the instance id of a member that has not left, even by that member itself
    (`throwIfInstanceIdIsUnreleased`). So one that it accepted, at an epoch that the group had not reached, comes after
    a fence that no request shows: it is a join, and replaces nobody.
    """
    holder = ctx.static_member(beat.group_instance_id or "")
    if holder is None or holder.member_id != beat.sender or holder.classic is not None:
        return
    is_join = beat.member_epoch == JOIN_EPOCH and holder.epoch != LEAVE_STATIC_EPOCH
    if is_join and ctx.accepted and (beat.answer_member_epoch or 0) > ctx.group.epoch:
        ctx.remove(holder)


def _join_static(ctx: EpochContext, holder: EpochMember | None, beat: GroupHeartbeat) -> EpochMember | Answer:
    if holder is None:
        member = _add(ctx, beat)
        _say_joined(ctx, member)
        return member
    if ctx.accepted is None and holder.classic is None:
        refusal = check_instance_is_released(holder)
        if refusal is not Answer.NONE:
            return refusal
    return replace_static_member(ctx, holder, beat.sender, "consumer")


def replace_static_member(ctx: EpochContext, holder: EpochMember, new_id: str, protocol: str) -> EpochMember:
    """Give a static member's place to its return: `replaceMember`; the id may be the same.

    The old id's session timer is not cancelled in Kafka, but fires for nobody, so it is dropped with the old id.
    """
    group, instance_id = ctx.group, holder.group_instance_id or ""
    ctx.remove(holder)
    if holder.member_id != new_id:
        group.left.pop(holder.member_id, None)
    member = EpochMember(
        member_id=new_id,
        group_instance_id=instance_id,
        client_id=holder.client_id,
        client_host=holder.client_host,
        rebalance_timeout_ms=holder.rebalance_timeout_ms,
        topics=holder.topics,
        regex=holder.regex,
        assigned=holder.assigned,
    )
    ctx.add(member)
    ctx.say_of(
        holder,
        Kind.STATIC_REPLACED,
        messages.replaced(group, instance_id, holder.member_id, new_id, protocol),
        Cause.MEMBER_REJOINED,
        new_member_id=new_id,
    )
    return member


def _add(ctx: EpochContext, beat: GroupHeartbeat) -> EpochMember:
    """Make a member: `getOrMaybeCreateMember`."""
    delay_first_target(ctx)
    instance_id = None if ctx.group.type is GroupType.SHARE else beat.group_instance_id
    member = EpochMember(member_id=beat.sender, group_instance_id=instance_id, assigned={})
    return ctx.add(member)


def _say_joined(ctx: EpochContext, member: EpochMember) -> None:
    kind = ctx.group.type
    ctx.say_of(member, Kind.MEMBER_JOINED, messages.joins(ctx.group, member, kind), Cause.MEMBER_JOINED)


def _say_returned(ctx: EpochContext, member: EpochMember, departure: Departure, state: str) -> None:
    """Say that a member that had left is back under its id, so it left as it had not polled in time.

    Java's consumers leave so (`AbstractHeartbeatRequestManager.poll`, `transitionToSendingLeaveGroup`) and join again
    when they poll (`maybeRejoinStaleMember`). One that was closed never comes back, a new one has an id of its own;
    only one that unsubscribes and subscribes again looks alike.
    """
    del ctx.group.left[member.member_id]
    ctx.say_of(
        member,
        Kind.MEMBER_RETURNED,
        messages.returned(ctx.group, member),
        Cause.MEMBER_LEFT,
        group_state=state,
        expiry_reason=ExpiryReason.POLL_TIMEOUT,
        last_seen_ms=departure.time_ms,
        session_timeout_ms=max(member.rebalance_timeout_ms, 0),
        member_epoch=departure.epoch,
    )
