"""Refusals of requests: by epoch, by instance id, or because the group is full.

Read it next to `GroupMetadataManager`: every function names the method it mirrors. A refused request changes nothing:
it keeps no member alive and removes none.
"""

from __future__ import annotations

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.epochs.context import EpochContext
from heartwheel.engine.rules.epochs.model import EpochMember, GroupType
from heartwheel.engine.rules.epochs.reconcile import is_subset
from heartwheel.wire.group_heartbeats import JOIN_EPOCH, LEAVE_STATIC_EPOCH, GroupHeartbeat


def check_epoch(ctx: EpochContext, member: EpochMember, beat: GroupHeartbeat) -> Answer:
    """Check a heartbeat's epoch: `throwIfConsumerGroupMemberEpochIsInvalid`, `throwIfShareGroupMemberEpochIsInvalid`.

    Epoch 0 of a known member is always accepted. The previous epoch is accepted while the answer with the present one
    may have been lost; in a consumer group only if `owned` is within the member's assignment.
    """
    received = beat.member_epoch
    if received in (JOIN_EPOCH, member.epoch):
        return Answer.NONE
    if received > member.epoch:
        could_be_given = not member.epoch_is_known and member.epoch >= 0 and received <= ctx.group.epoch
        return Answer.NONE if could_be_given else Answer.FENCED_MEMBER_EPOCH
    if received != member.previous_epoch:
        return Answer.FENCED_MEMBER_EPOCH
    if ctx.group.type is GroupType.SHARE:
        return Answer.NONE
    inside = beat.owned is not None and is_subset(beat.owned, member.assigned or {})
    return Answer.NONE if inside else Answer.FENCED_MEMBER_EPOCH


def check_instance_is_released(holder: EpochMember) -> Answer:
    """Check that the holder of an instance id has left for a while: `throwIfInstanceIdIsUnreleased`.

    Until then even the holder itself may not join again.
    """
    return Answer.NONE if holder.epoch == LEAVE_STATIC_EPOCH else Answer.UNRELEASED_INSTANCE_ID


def check_instance(holder: EpochMember | None, member_id: str) -> Answer:
    """Check that an instance id belongs to the sender: `throwIfStaticMemberIsUnknown`, `throwIfInstanceIdIsFenced`."""
    if holder is None:
        return Answer.UNKNOWN_MEMBER_ID
    return Answer.NONE if holder.member_id == member_id else Answer.FENCED_INSTANCE_ID


def is_full(ctx: EpochContext, member_id: str, instance_id: str | None = None) -> bool:
    """Return whether there is no room for a member: `throwIfConsumerGroupIsFull` and its twins.

    Before Kafka 4.4 a static member that comes back under another id is a new one to this rule, and a full streams
    group refuses the joins of its own members too.
    """
    group = ctx.group
    if len(group.members) < ctx.config.max_size(group.type):
        return False
    if ctx.config.before_4_4:
        return group.type is GroupType.STREAMS or member_id not in group.members
    return member_id not in group.members and ctx.static_member(instance_id) is None
