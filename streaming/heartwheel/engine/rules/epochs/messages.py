"""Kafka's own texts about epoch groups, as exact copies.

No request has the hash in a line about a bumped epoch or the assignor of a target assignment, so both lines end before
them.
"""

from __future__ import annotations

from heartwheel.engine.rules.epochs.model import EpochGroup, EpochMember, GroupType

SESSION_EXPIRED = "the member session expired"
FAILED_TO_JOIN = "the classic member failed to join within the rebalance timeout"
FAILED_TO_SYNC = "the member failed to sync within timeout"


def failed_to_transition(epoch: int, timeout_ms: int) -> str:
    """Return the reason why a member that does not give partitions back is fenced."""
    return f"it failed to transition from epoch {epoch} within {timeout_ms}ms"


def joins(group: EpochGroup, member: EpochMember, protocol: str) -> str:
    """Return the log line of a member that joins, for the first time or again."""
    static = _static(member)
    if group.type is GroupType.STREAMS:
        return f"{_place(group, member.member_id)} {static or 'Member'} joins the streams group."
    who = static or f"Member {member.member_id}"
    return f"{_place(group)} {who} joins the {group.type} group using the {protocol} protocol."


def replaced(group: EpochGroup, instance_id: str, old_id: str, new_id: str, protocol: str) -> str:
    """Return the log line of a static member that is back."""
    return (
        f"{_place(group, new_id)} Static member with instance id {instance_id} re-joins the {group.type} group "
        f"using the {protocol} protocol. Created a new member {new_id} to replace the existing member {old_id}."
    )


def left(group: EpochGroup, member: EpochMember, *, for_a_while: bool = False) -> str:
    """Return the log line of a member that left."""
    how = "temporarily left" if for_a_while else "left"
    who = _static(member) or f"Member {member.member_id}"
    return f"{_place(group, member.member_id)} {who} {how} the {group.type} group."


def returned(group: EpochGroup, member: EpochMember) -> str:
    """Return heartwheel's own text for a member that left and is back under the same id."""
    return f"[GroupId {group.group_id}] Member {member.member_id} had left the {group.type} group and joins it again."


def left_classic(group: EpochGroup, member: EpochMember, reason: str) -> str:
    """Return the log line of a classic member that left a consumer group."""
    who = _static(member) or f"Member {member.member_id}"
    return (
        f"[Group {group.group_id}] {who} has left group through explicit `LeaveGroup` request; client reason: {reason}"
    )


def bumped(group: EpochGroup, by: str = "") -> str:
    """Return the log line of a bumped group epoch, in a streams group with the member that caused it."""
    what = "streams group epoch" if group.type is GroupType.STREAMS else "group epoch"
    return f"{_place(group, by)} Bumped {what} to {group.epoch}."


def target_computed(group: EpochGroup) -> str:
    """Return the log line of a computed target assignment."""
    return f"[GroupId {group.group_id}] Computed a new target assignment for epoch {group.target_epoch}."


def downgrade(group_id: str) -> str:
    """Return the reason why a group that is classic again rebalances."""
    return f"Downgrade group {group_id} from consumer to classic."


def _place(group: EpochGroup, member_id: str = "") -> str:
    """Return what a line begins with; in streams groups the member, too."""
    named = group.type is GroupType.STREAMS and member_id
    return f"[GroupId {group.group_id}]" + (f"[MemberId {member_id}]" if named else "")


def _static(member: EpochMember) -> str:
    """Return how a line names a static member; empty for a dynamic one."""
    instance_id = member.group_instance_id
    return "" if instance_id is None else f"Static member {member.member_id} with instance id {instance_id}"
