"""Members of the classic protocol inside a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Read beside `GroupMetadataManager`: every function names the method it mirrors. Nothing of them is ever parked, and
their generation is their member epoch. Besides the session, which is their own, they have a join timer, from the first
answer that tells them to join again, and a sync timer, from each join
(`scheduleConsumerGroupSyncTimeout`).
"""

from __future__ import annotations

from heartwheel.coordinator import consumer_messages as messages
from heartwheel.coordinator.answer import Answer
from heartwheel.coordinator.classic_sync import lacks_protocol
from heartwheel.coordinator.consumer_context import EpochContext
from heartwheel.coordinator.consumer_epochs import check_instance, is_full
from heartwheel.coordinator.consumer_heartbeat import replace_static_member
from heartwheel.coordinator.consumer_leave import bump_or_downgrade, validate_online_downgrade
from heartwheel.coordinator.consumer_model import ClassicProtocol, EpochMember, TimerName
from heartwheel.coordinator.consumer_takeover import (
    take_generation,
    take_over_classic,
    was_there_before,
)
from heartwheel.coordinator.consumer_target import bump_epoch, catch_up_with, maybe_update_target
from heartwheel.coordinator.messages import leave_reason
from heartwheel.wire.events import CONSUMER_PROTOCOL, Event, Leaving
from heartwheel.wire.verdicts import Cause, Kind


def join(ctx: EpochContext, event: Event, answered_epoch: int | None) -> Answer:
    """Handle a JoinGroup: `classicGroupJoinToConsumerGroup`.

    Args:
        ctx: the group.
        event: the join; a changed subscription cannot be read from it, as its metadata has the owned partitions too.
        answered_epoch: the generation that it was answered with, if known.
    """
    group = ctx.group
    refusal = _validate_join(ctx, event) if ctx.accepted is None else Answer.NONE
    if refusal is not Answer.NONE:
        return refusal
    if _requires_known_member_id(event):
        ctx.note_id(event.assigned_member_id or "")
        return Answer.MEMBER_ID_REQUIRED
    member_id = event.member_id or event.assigned_member_id or ""
    holder = ctx.static_member(event.group_instance_id)
    is_new = holder is None and member_id not in group.members and not was_there_before(ctx, event)
    ends_new_protocol = holder is not None and holder.classic is None
    member = _joining_member(ctx, event, member_id)
    if isinstance(member, Answer):
        return member
    config = ctx.config.coordinator
    session_ms = _session_ms(ctx, event)
    rebalance_ms = event.rebalance_timeout_ms or config.default_rebalance_timeout_ms
    member.classic = ClassicProtocol(session_ms, event.protocols)
    member.rebalance_timeout_ms = rebalance_ms
    member.client_id, member.client_host = event.client_id, event.client_host
    if is_new:
        bump_epoch(ctx, Cause.MEMBER_JOINED, joined=(member_id,))
    if answered_epoch is not None:
        catch_up_with(ctx, answered_epoch)
    maybe_update_target(ctx, answered_epoch)
    member.previous_epoch = member.epoch
    member.epoch = group.target_epoch if answered_epoch is None else answered_epoch
    member.epoch_is_known = answered_epoch is not None
    member.unrevoked, member.revoking = False, {}
    ctx.cancel(member, TimerName.JOIN, TimerName.REBALANCE)
    if ends_new_protocol and validate_online_downgrade(ctx):
        ctx.downgraded_by, ctx.downgrade_rebalances = member_id, False
        return Answer.NONE
    ctx.arm_session(member)
    ctx.arm(member, TimerName.SYNC, rebalance_ms)
    ctx.remember_heartbeat(member, 0)
    return Answer.NONE


def _validate_join(ctx: EpochContext, event: Event) -> Answer:
    """Check a join whose answer is not known, in the order in which Kafka does."""
    if not ctx.config.coordinator.accepts_session_timeout(_session_ms(ctx, event)):
        return Answer.INVALID_SESSION_TIMEOUT
    if is_full(ctx, event.member_id):
        return Answer.GROUP_MAX_SIZE_REACHED
    return Answer.NONE if _supports_protocols(ctx, event) else Answer.INCONSISTENT_GROUP_PROTOCOL


def _supports_protocols(ctx: EpochContext, event: Event) -> bool:
    """Tell whether a join offers what all classic members do: `throwIfClassicProtocolIsNotSupported`.

    Beyond Kafka, as in a classic group: a join that says nothing of protocols is accepted, and members whose join was
    not seen stand in nobody's way.
    """
    if event.protocol_type is None and not event.protocols:
        return True
    members = ctx.group.members.values()
    offers = [member.classic.protocols for member in members if member.classic is not None and member.classic.protocols]
    common = {protocol.name for protocol in event.protocols}
    common.intersection_update(*({protocol.name for protocol in offer} for offer in offers))
    return event.protocol_type == CONSUMER_PROTOCOL and bool(common)


def _requires_known_member_id(event: Event) -> bool:
    """Tell whether a member has to join again with its id first: `JoinGroupRequest.requiresKnownMemberId`."""
    is_new = not event.member_id and event.group_instance_id is None
    return is_new and (event.api_version is None or event.api_version >= 4)


def _session_ms(ctx: EpochContext, event: Event) -> int:
    return event.session_timeout_ms or ctx.config.coordinator.default_session_timeout_ms


def _joining_member(ctx: EpochContext, event: Event, member_id: str) -> EpochMember | Answer:
    group, instance_id = ctx.group, event.group_instance_id
    holder = ctx.static_member(instance_id) if instance_id is not None else group.members.get(member_id)
    if instance_id is not None and holder is not None:
        if not event.member_id:
            return replace_static_member(ctx, holder, member_id, "classic")
        refusal = check_instance(holder, member_id)
        return holder if refusal is Answer.NONE else refusal
    is_strange = instance_id is not None and event.member_id and not was_there_before(ctx, event)
    if is_strange and ctx.accepted is None:
        return Answer.UNKNOWN_MEMBER_ID
    if holder is None:
        holder = ctx.add(EpochMember(member_id=member_id, group_instance_id=instance_id))
    ctx.say_of(holder, Kind.MEMBER_JOINED, messages.joins(group, holder, "classic"), Cause.MEMBER_JOINED)
    return holder


def sync(ctx: EpochContext, event: Event) -> Answer:
    """Handle a SyncGroup: `classicGroupSyncToConsumerGroup`."""
    if ctx.accepted is None and not _names_its_protocol(ctx, event):
        return Answer.INCONSISTENT_GROUP_PROTOCOL
    member = _validate(ctx, event)
    if isinstance(member, Answer):
        return member
    if _must_rejoin(ctx, member) and not member.unrevoked:
        _schedule_join_timeout_if_absent(ctx, member)
        return Answer.REBALANCE_IN_PROGRESS
    ctx.cancel(member, TimerName.SYNC)
    ctx.arm_session(member)
    return Answer.NONE


def _names_its_protocol(ctx: EpochContext, event: Event) -> bool:
    """Tell whether a sync names the protocol that its join was answered with: `throwIfClassicProtocolUnmatched`."""
    member = ctx.group.members.get(event.member_id)
    offers = member.classic.protocols if member is not None and member.classic is not None else ()
    answered = offers[0].name if offers else event.protocol_name
    fits = event.protocol_type in (None, CONSUMER_PROTOCOL) and event.protocol_name in (None, answered)
    return fits and not lacks_protocol(event)


def heartbeat(ctx: EpochContext, event: Event) -> Answer:
    """Handle a Heartbeat: `classicGroupHeartbeatToConsumerGroup`; one that is asked to join again keeps alive too."""
    member = _validate(ctx, event)
    if isinstance(member, Answer):
        return member
    ctx.arm_session(member)
    if _must_rejoin(ctx, member) or member.unrevoked:
        _schedule_join_timeout_if_absent(ctx, member)
        return Answer.REBALANCE_IN_PROGRESS
    return Answer.NONE


def _must_rejoin(ctx: EpochContext, member: EpochMember) -> bool:
    """Tell whether the answer is REBALANCE_IN_PROGRESS, by the recorded one if there is one.

    A member that has to give partitions back, or for which some have become free, has to join again too, and only
    the answer shows that.
    """
    return member.epoch < ctx.group.epoch if ctx.accepted is None else not ctx.accepted


def _schedule_join_timeout_if_absent(ctx: EpochContext, member: EpochMember) -> None:
    """Give a member its rebalance timeout to join: `scheduleConsumerGroupJoinTimeoutIfAbsent`.

    One whose join was not seen has an unknown one, and so all the time that its session gives it.
    """
    if TimerName.JOIN not in member.timers and member.rebalance_timeout_ms >= 0:
        ctx.arm(member, TimerName.JOIN, member.rebalance_timeout_ms)


def _validate(ctx: EpochContext, event: Event) -> EpochMember | Answer:
    """Find the sender: `validateConsumerGroupMember`, `throwIfMemberDoesNotUseClassicProtocol` and the generation."""
    group, instance_id = ctx.group, event.group_instance_id
    member = group.members.get(event.member_id) if instance_id is None else ctx.static_member(instance_id)
    if member is None and event.member_id not in group.members:
        return take_over_classic(ctx, event)
    if instance_id is not None:
        refusal = check_instance(member, event.member_id)
        if refusal is not Answer.NONE:
            return refusal
    if member is None or member.classic is None:
        return Answer.UNKNOWN_MEMBER_ID
    if not take_generation(ctx, member, event.generation_id) and ctx.accepted is None:
        return Answer.ILLEGAL_GENERATION
    return member


def leave(ctx: EpochContext, event: Event) -> Answer:
    """Handle a LeaveGroup: `classicGroupLeaveToConsumerGroup`, `consumerGroupFenceMembers`.

    Members of the new protocol go by it too: an administrator may remove them so.
    """
    group = ctx.group
    gone: list[EpochMember] = []
    alone = Leaving(event.member_id, event.group_instance_id, event.reason)
    for leaver in event.leaving or (alone,):
        instance_id = leaver.group_instance_id
        member = group.members.get(leaver.member_id) if instance_id is None else ctx.static_member(instance_id)
        if member is None or leaver.member_id not in ("", member.member_id):
            continue
        reason = messages.left_classic(group, member, leave_reason(leaver.reason))
        ctx.say_of(member, Kind.MEMBER_LEFT, reason, Cause.MEMBER_LEFT)
        ctx.remove(member)
        gone.append(member)
    if not gone:
        return Answer.UNKNOWN_MEMBER_ID
    bump_or_downgrade(ctx, gone, Cause.MEMBER_LEFT)
    return Answer.NONE
