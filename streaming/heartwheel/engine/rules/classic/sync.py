"""SyncGroup of a classic group: the leader's assignment, and the time limit for all SyncGroups.

Read it next to `GroupMetadataManager`: every function names the method it mirrors.
"""

from __future__ import annotations

from typing import Final

from heartwheel.engine.rules import messages
from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.classic.rebalance import prepare_rebalance, propagate_assignment, store_record
from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.model import NEVER, GroupState, Member
from heartwheel.wire.events import UNCHECKED_GENERATION, Event
from heartwheel.wire.verdicts import Cause, ExpiryReason, Kind

_PROTOCOL_VERSION: Final = 5


def lacks_protocol(event: Event) -> bool:
    """Return whether a SyncGroup is refused before a coordinator reads it: `areMandatoryProtocolTypeAndNamePresent`."""
    lacks = event.protocol_type is None or event.protocol_name is None
    return lacks and event.api_version is not None and event.api_version >= _PROTOCOL_VERSION


def sync(ctx: Context, event: Event) -> Answer:
    """Handle a SyncGroup: `classicGroupSyncToClassicGroup`. In Stable it does not reset the session."""
    group = ctx.group
    refusal = _validate_sync_group(ctx, event)
    if refusal is not Answer.NONE:
        return refusal
    if group.state is GroupState.PREPARING_REBALANCE:
        return Answer.REBALANCE_IN_PROGRESS
    member = group.members[event.member_id]
    if group.state is GroupState.STABLE:
        _remove_pending_sync_member(ctx, member)
        return Answer.NONE
    member.last_seen_ms = ctx.now_ms
    member.awaiting_sync = True
    _remove_pending_sync_member(ctx, member)
    if group.leader == member.member_id:
        _receive_assignment(ctx, member)
    return Answer.PARKED if member.awaiting_sync else Answer.NONE


def _validate_sync_group(ctx: Context, event: Event) -> Answer:
    """Return the refusal of a SyncGroup by member, generation or protocol, if any: `validateSyncGroup`."""
    group = ctx.group
    if group.state is GroupState.EMPTY:
        return Answer.UNKNOWN_MEMBER_ID
    refusal = ctx.roster.validate_member(event.member_id, event.group_instance_id)
    if refusal is not Answer.NONE:
        return refusal
    if event.generation_id not in (UNCHECKED_GENERATION, group.generation):
        return Answer.ILLEGAL_GENERATION
    if _is_inconsistent(event.protocol_type, group.protocol_type):
        return Answer.INCONSISTENT_GROUP_PROTOCOL
    if _is_inconsistent(event.protocol_name, group.protocol_name):
        return Answer.INCONSISTENT_GROUP_PROTOCOL
    return Answer.NONE


def _is_inconsistent(asked: str | None, of_group: str | None) -> bool:
    return asked is not None and of_group is not None and asked != of_group


def _remove_pending_sync_member(ctx: Context, member: Member) -> None:
    """Stop waiting for a member's SyncGroup, and for the whole phase after the last: `removePendingSyncMember`."""
    ctx.roster.set_pending_sync(member, pending=False)
    if ctx.roster.has_received_sync_from_all_members():
        ctx.group.sync_deadline_ms = NEVER


def _receive_assignment(ctx: Context, leader: Member) -> None:
    """Store the leader's assignment; the group becomes Stable when the broker's log has it."""
    group = ctx.group
    reason = messages.assignment_received(
        leader.member_id, group.group_id, group.generation, len(group.members), ctx.roster.static_count()
    )
    ctx.report_member(leader, Kind.ASSIGNMENT_RECEIVED, reason)
    store_record(ctx)
    if ctx.conditions.append_delay_ms > 0:
        group.store_armed_ms = ctx.now_ms
        group.store_deadline_ms = ctx.now_ms + ctx.conditions.append_delay_ms
    else:
        fire_store(ctx)


def fire_store(ctx: Context) -> None:
    """Send the stored assignment to the members and make the group Stable: `setAndPropagateAssignment`.

    A rebalance that starts in between stops the timer, so the generation is still the assignment's.
    """
    propagate_assignment(ctx)
    ctx.transition_to(GroupState.STABLE)


def fire_sync(ctx: Context) -> None:
    """Remove the members that never sent their SyncGroup and rebalance: `expirePendingSync` (KAFKA-12890)."""
    group = ctx.group
    unsynced = ctx.roster.pending_sync_ids()
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not unsynced:
        return
    waited_ms = ctx.roster.rebalance_timeout_ms() or 0
    members = [(member_id, ctx.roster.remove(member_id)) for member_id in unsynced]
    reason = messages.removing_unsynced(unsynced)
    for member_id, member in members:
        if member is None:
            # A static member's old id belongs to no member, so no expiry is reported.
            ctx.report(Kind.SYNC_TIMEOUT, reason, Cause.SYNC_EXPIRED, member_id=member_id)
            continue
        ctx.report_expired(
            member,
            Kind.SYNC_TIMEOUT,
            reason,
            Cause.SYNC_EXPIRED,
            expiry_reason=ExpiryReason.SYNC_TIMEOUT,
            session_timeout_ms=waited_ms,
        )
    prepare_rebalance(ctx, reason, Cause.SYNC_EXPIRED)
