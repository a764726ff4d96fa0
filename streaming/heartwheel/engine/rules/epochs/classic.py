"""Members of the classic protocol inside a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Read it next to `GroupMetadataManager`: every function names the method it mirrors. Their requests are never parked, and
their generation is their member epoch. Besides their own session they have two timers: a join timer, from the first
answer that tells them to join again, and a sync timer, from each join (`scheduleConsumerGroupSyncTimeout`).
"""

from __future__ import annotations

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.classic.sync import lacks_protocol
from heartwheel.engine.rules.epochs import messages
from heartwheel.engine.rules.epochs.context import EpochContext
from heartwheel.engine.rules.epochs.epochs import check_instance, is_full
from heartwheel.engine.rules.epochs.heartbeat import replace_static_member
from heartwheel.engine.rules.epochs.leave import bump_or_downgrade, validate_online_downgrade
from heartwheel.engine.rules.epochs.model import ClassicProtocol, EpochMember, TimerName
from heartwheel.engine.rules.epochs.takeover import (
    joined_before_log,
    take_generation,
    take_over_classic,
)
from heartwheel.engine.rules.epochs.target import bump_epoch, catch_up_with, maybe_update_target
from heartwheel.engine.rules.messages import leave_reason
from heartwheel.wire.events import CONSUMER_PROTOCOL, Event, Leaving
from heartwheel.wire.verdicts import Cause, Kind


def join(ctx: EpochContext, event: Event, answered_epoch: int | None) -> Answer:
    """Handle a JoinGroup: `classicGroupJoinToConsumerGroup`.

    Args:
        event: the join. A changed subscription cannot be read from it, because its metadata has the owned partitions
            too.
        answered_epoch: the generation in its answer, if known.
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
    is_new = holder is None and member_id not in group.members and not joined_before_log(ctx, event)
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
    """Check a join whose answer is not known, in Kafka's order."""
    if not ctx.config.coordinator.accepts_session_timeout(_session_ms(ctx, event)):
        return Answer.INVALID_SESSION_TIMEOUT
    if is_full(ctx, event.member_id, event.group_instance_id):
        return Answer.GROUP_MAX_SIZE_REACHED
    return Answer.NONE if _supports_protocols(ctx, event) else Answer.INCONSISTENT_GROUP_PROTOCOL


def _supports_protocols(ctx: EpochContext, event: Event) -> bool:
    """Return whether a join offers a protocol of all classic members: `throwIfClassicProtocolIsNotSupported`.

    Beyond Kafka, as in a classic group: a join that names no protocols is accepted, and members whose join was not seen
    are not counted.
    """
    if event.protocol_type is None and not event.protocols:
        return True
    members = ctx.group.members.values()
    offers = [member.classic.protocols for member in members if member.classic is not None and member.classic.protocols]
    common = {protocol.name for protocol in event.protocols}
    common.intersection_update(*({protocol.name for protocol in offer} for offer in offers))
    return event.protocol_type == CONSUMER_PROTOCOL and bool(common)


def _requires_known_member_id(event: Event) -> bool:
    """Return whether a member has to join again with its id first: `JoinGroupRequest.requiresKnownMemberId`."""
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
    is_strange = instance_id is not None and event.member_id and not joined_before_log(ctx, event)
    if is_strange and ctx.accepted is None:
        return Answer.UNKNOWN_MEMBER_ID
    if holder is None:
        holder = ctx.add(EpochMember(member_id=member_id, group_instance_id=instance_id))
    ctx.report_member(holder, Kind.MEMBER_JOINED, messages.joins(group, holder, "classic"), Cause.MEMBER_JOINED)
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
    """Return whether a sync names the protocol in the answer to its join: `throwIfClassicProtocolUnmatched`."""
    member = ctx.group.members.get(event.member_id)
    offers = member.classic.protocols if member is not None and member.classic is not None else ()
    answered = offers[0].name if offers else event.protocol_name
    fits = event.protocol_type in (None, CONSUMER_PROTOCOL) and event.protocol_name in (None, answered)
    return fits and not lacks_protocol(event)


def heartbeat(ctx: EpochContext, event: Event) -> Answer:
    """Handle a Heartbeat: `classicGroupHeartbeatToConsumerGroup`. It also keeps a member alive that has to rejoin."""
    member = _validate(ctx, event)
    if isinstance(member, Answer):
        return member
    ctx.arm_session(member)
    if _must_rejoin(ctx, member) or member.unrevoked:
        _schedule_join_timeout_if_absent(ctx, member)
        return Answer.REBALANCE_IN_PROGRESS
    return Answer.NONE


def _must_rejoin(ctx: EpochContext, member: EpochMember) -> bool:
    """Return whether the answer is REBALANCE_IN_PROGRESS; a recorded answer decides if there is one.

    A member that has to give partitions back, or that can get free ones, has to join again too. Only the answer shows
    that.
    """
    return member.epoch < ctx.group.epoch if ctx.accepted is None else not ctx.accepted


def _schedule_join_timeout_if_absent(ctx: EpochContext, member: EpochMember) -> None:
    """Start a member's join timer with its rebalance timeout: `scheduleConsumerGroupJoinTimeoutIfAbsent`.

    If its join was not seen, its rebalance timeout is unknown, and only its session limits the time.
    """
    if TimerName.JOIN not in member.timers and member.rebalance_timeout_ms >= 0:
        ctx.arm(member, TimerName.JOIN, member.rebalance_timeout_ms)


def _validate(ctx: EpochContext, event: Event) -> EpochMember | Answer:
    """Return the sender: `validateConsumerGroupMember`, `throwIfMemberDoesNotUseClassicProtocol` and the generation."""
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

    Members of the new protocol may be in it too: an administrator can remove them this way.
    """
    group = ctx.group
    leavers: list[EpochMember] = []
    alone = Leaving(event.member_id, event.group_instance_id, event.reason)
    for leaver in event.leaving or (alone,):
        instance_id = leaver.group_instance_id
        member = group.members.get(leaver.member_id) if instance_id is None else ctx.static_member(instance_id)
        if member is None or leaver.member_id not in ("", member.member_id):
            continue
        reason = messages.left_classic(group, member, leave_reason(leaver.reason))
        ctx.report_member(member, Kind.MEMBER_LEFT, reason, Cause.MEMBER_LEFT)
        ctx.remove(member)
        leavers.append(member)
    if not leavers:
        return Answer.UNKNOWN_MEMBER_ID
    bump_or_downgrade(ctx, leavers, Cause.MEMBER_LEFT)
    return Answer.NONE
