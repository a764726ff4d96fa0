"""ConsumerGroupHeartbeat, ShareGroupHeartbeat and StreamsGroupHeartbeat of members that join or stay.

Read it next to `GroupMetadataManager`: every function names the method it mirrors.
"""

from __future__ import annotations

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.epochs import messages
from heartwheel.engine.rules.epochs.context import EpochContext
from heartwheel.engine.rules.epochs.epochs import check_epoch, check_instance, check_instance_is_released, is_full
from heartwheel.engine.rules.epochs.model import Departure, EpochMember, GroupType, TimerName
from heartwheel.engine.rules.epochs.reconcile import maybe_reconcile, suspect_unrevoked
from heartwheel.engine.rules.epochs.takeover import may_be_unseen, recognize_by_join, take_over_by_heartbeat
from heartwheel.engine.rules.epochs.target import (
    bump_epoch,
    catch_up_with,
    delay_first_target,
    maybe_update_target,
    update_metadata,
    update_subscription,
)
from heartwheel.wire.group_heartbeats import JOIN_EPOCH, LEAVE_STATIC_EPOCH, GroupHeartbeat
from heartwheel.wire.verdicts import Cause, ExpiryReason, Kind


def heartbeat(ctx: EpochContext, beat: GroupHeartbeat) -> Answer:
    """Handle a heartbeat at epoch 0 or above: `consumerGroupHeartbeat`, `shareGroupHeartbeat`, `streamsGroupHeartbeat`.

    The rebalance timer is armed before the session, so of equal deadlines it fires first.
    """
    joins = beat.member_epoch == JOIN_EPOCH
    if joins and not ctx.accepted and is_full(ctx, beat.sender, beat.group_instance_id):
        return Answer.GROUP_MAX_SIZE_REACHED
    static = beat.group_instance_id is not None and ctx.group.type is not GroupType.SHARE
    if static:
        _drop_if_fenced_unseen(ctx, beat)
    members = len(ctx.group.members)
    recognize_by_join(ctx, beat)
    departure = ctx.group.left.get(beat.sender) if joins else None
    state = "" if departure is None else ctx.group.state().value
    member = _static_member(ctx, beat) if static else _dynamic_member(ctx, beat)
    if isinstance(member, Answer):
        return member
    if member.classic is not None:
        member.classic = None
        ctx.cancel(member, TimerName.JOIN, TimerName.SYNC)
    if beat.member_epoch > 0 and not member.epoch_is_known and beat.member_epoch > member.epoch:
        member.previous_epoch, member.epoch = member.epoch, beat.member_epoch
    is_new = joins and len(ctx.group.members) > members
    has_changed = update_metadata(member, beat) and not is_new
    ctx.describe(member, beat)
    if departure is not None:
        _report_returned(ctx, member, departure, state)
    update_subscription(ctx, member, beat, is_new=is_new)
    if has_changed:
        bump_epoch(ctx, Cause.MEMBER_UPDATED, by=member.member_id)
    if beat.answer_member_epoch is not None:
        catch_up_with(ctx, beat.answer_member_epoch, by=member.member_id)
    maybe_update_target(ctx, beat.answer_member_epoch)
    maybe_reconcile(ctx, member, beat)
    suspect_unrevoked(ctx, member, ctx.group.target_epoch)
    ctx.arm_session(member)
    return Answer.NONE


def _dynamic_member(ctx: EpochContext, beat: GroupHeartbeat) -> EpochMember | Answer:
    """Return a dynamic member, added if new: `getOrMaybeSubscribeDynamicConsumerGroupMember`."""
    member = ctx.group.members.get(beat.sender)
    if member is None:
        if beat.member_epoch != JOIN_EPOCH:
            return take_over_by_heartbeat(ctx, beat)
        member = _add(ctx, beat)
    elif ctx.accepted is None and (refusal := check_epoch(ctx, member, beat)) is not Answer.NONE:
        return refusal
    if beat.member_epoch == JOIN_EPOCH:
        _report_joined(ctx, member)
    return member


def _static_member(ctx: EpochContext, beat: GroupHeartbeat) -> EpochMember | Answer:
    """Return a static member, added or replaced if needed: `getOrMaybeSubscribeStaticConsumerGroupMember`."""
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

    Kafka refuses a join for the instance id of a member that has not left, even from that member itself
    (`throwIfInstanceIdIsUnreleased`). So if it accepted such a join, at an epoch that the group had not reached, the
    member was fenced before, which no request shows. The join replaces no member.
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
        _report_joined(ctx, member)
        return member
    if ctx.accepted is None and holder.classic is None:
        refusal = check_instance_is_released(holder)
        if refusal is not Answer.NONE:
            return refusal
    return replace_static_member(ctx, holder, beat.sender, ctx.group.type)


def replace_static_member(ctx: EpochContext, holder: EpochMember, new_id: str, protocol: str) -> EpochMember:
    """Replace a static member with its return: `replaceMember`; the id may be the same.

    Kafka does not cancel the old id's session timer, but it fires without effect, so it is dropped with the old id.
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
        metadata=holder.metadata,
        assigned=holder.assigned,
    )
    ctx.add(member)
    ctx.report_member(
        holder,
        Kind.STATIC_REPLACED,
        messages.replaced(group, instance_id, holder.member_id, new_id, protocol),
        Cause.MEMBER_REJOINED,
        new_member_id=new_id,
    )
    return member


def _add(ctx: EpochContext, beat: GroupHeartbeat) -> EpochMember:
    """Create a member: `getOrMaybeCreateMember`."""
    delay_first_target(ctx)
    instance_id = None if ctx.group.type is GroupType.SHARE else beat.group_instance_id
    member = EpochMember(member_id=beat.sender, group_instance_id=instance_id, assigned={})
    return ctx.add(member)


def _report_joined(ctx: EpochContext, member: EpochMember) -> None:
    kind = ctx.group.type
    ctx.report_member(member, Kind.MEMBER_JOINED, messages.joins(ctx.group, member, kind), Cause.MEMBER_JOINED)


def _report_returned(ctx: EpochContext, member: EpochMember, departure: Departure, state: str) -> None:
    """Emit that a member that had left is back under its id, so it left because it did not poll in time.

    Java's consumers leave this way (`AbstractHeartbeatRequestManager.poll`, `transitionToSendingLeaveGroup`) and join
    again when they poll (`maybeRejoinStaleMember`). A closed one never comes back, and a new one has an id of its own.
    Only a consumer that unsubscribes and subscribes again looks the same.
    """
    del ctx.group.left[member.member_id]
    ctx.report_member(
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
