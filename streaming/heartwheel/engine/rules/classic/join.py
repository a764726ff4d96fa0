"""JoinGroup of a classic group.

Read it next to `GroupMetadataManager`: every function names the method it mirrors.
"""

from __future__ import annotations

from typing import Final

from heartwheel.engine.rules import messages
from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.classic.rebalance import maybe_prepare_rebalance_or_complete_join
from heartwheel.engine.rules.classic.static import replace_static_member
from heartwheel.engine.rules.classic.update import update_member
from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.model import GroupState, Member, TimerKind
from heartwheel.engine.rules.takeover import take_over
from heartwheel.wire.events import ACCEPTED, Event
from heartwheel.wire.verdicts import Cause

_KNOWN_MEMBER_ID_VERSION: Final = 4


def join(ctx: Context, event: Event) -> Answer:
    """Handle a JoinGroup: `classicGroupJoinToClassicGroup`; the session timeout was checked before."""
    _maybe_take_over(ctx, event)
    if not accepts_joining_member(ctx, event.member_id):
        return refuse_over_capacity(ctx, event)
    if not ctx.roster.supports_protocols(event.protocol_type, event.protocols):
        return Answer.INCONSISTENT_GROUP_PROTOCOL
    return _join_existing_member(ctx, event) if event.member_id else _join_new_member(ctx, event)


def _maybe_take_over(ctx: Context, event: Event) -> None:
    """Add the sender if it may be an unseen member, which Kafka would know."""
    group, member_id = ctx.group, event.member_id
    may_be_unseen = group.taken_over or event.error_code == ACCEPTED
    if may_be_unseen and member_id and member_id not in group.members and member_id not in group.pending:
        take_over(ctx, event)


def accepts_joining_member(ctx: Context, member_id: str) -> bool:
    """Return whether the group has room for a joining member: `acceptJoiningMember` (KIP-389).

    While members join again, the number of waiting members counts, so that the last ones are removed from a group that
    has become too big.
    """
    group, group_max_size = ctx.group, ctx.config.group_max_size
    member = group.members.get(member_id)
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING_REBALANCE:
        return (member is not None and member.awaiting_join) or ctx.roster.awaiting_join < group_max_size
    return member is not None or len(group.members) < group_max_size


def refuse_over_capacity(ctx: Context, event: Event) -> Answer:
    """Remove a member that found no room, without a verdict and without checking the join phase again."""
    ctx.roster.remove(event.member_id)
    return Answer.GROUP_MAX_SIZE_REACHED


def _join_new_member(ctx: Context, event: Event) -> Answer:
    """Handle a join without member id: `classicGroupJoinNewMember`; the event carries the id that the member got."""
    group, new_id = ctx.group, event.assigned_member_id
    if not new_id:
        return Answer.UNKNOWN_MEMBER_ID
    if new_id in group.members or new_id in group.pending:
        # The broker never hands out an id twice, so this is the same record again.
        return Answer.MEMBER_ID_REQUIRED if event.group_instance_id is None else Answer.PARKED
    if event.group_instance_id is not None:
        old_id = ctx.roster.static_member_id(event.group_instance_id)
        if old_id is not None:
            return replace_static_member(ctx, event, group.members[old_id], new_id)
        return _add_member(ctx, event, new_id)
    if not _requires_known_member_id(ctx, event):
        return _add_member(ctx, event, new_id)
    return _add_pending_member(ctx, event, new_id)


def _requires_known_member_id(ctx: Context, event: Event) -> bool:
    """Return whether a first join is sent back with its id: `JoinGroupRequest.requiresKnownMemberId` (KIP-394).

    A source that does not know versions is assumed to describe current clients.
    """
    required = ctx.conditions.member_id_required
    return event.api_version is None or event.api_version >= _KNOWN_MEMBER_ID_VERSION if required is None else required


def _add_pending_member(ctx: Context, event: Event, member_id: str) -> Answer:
    """Add a pending member, which got its id and has to join with it: `classicGroupJoinNewDynamicMember`."""
    member = _new_member(ctx, event, member_id)
    member.pending = True
    ctx.group.pending[member_id] = member
    ctx.timers.arm(member, ctx.now_ms, member.session_timeout_ms, TimerKind.PENDING)
    return Answer.MEMBER_ID_REQUIRED


def _new_member(ctx: Context, event: Event, member_id: str) -> Member:
    return Member(
        member_id=member_id,
        seq=ctx.roster.new_seq(),
        group_instance_id=event.group_instance_id,
        client_id=event.client_id,
        client_host=event.client_host,
        session_timeout_ms=ctx.session_timeout_ms(event),
        rebalance_timeout_ms=ctx.rebalance_timeout_ms(event),
        protocols=event.protocols,
        last_seen_ms=ctx.now_ms,
    )


def _add_member(ctx: Context, event: Event, member_id: str) -> Answer:
    """Add a member and rebalance: `addMemberThenRebalanceOrCompleteJoin`.

    Its session does not run yet. It cannot send heartbeats while its join is parked, so it gets a time of its own in
    which the join phase has to end (KAFKA-7610).
    """
    group = ctx.group
    member = _new_member(ctx, event, member_id)
    member.is_new = True
    if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
        group.new_member_added = True
    ctx.roster.add(member, event.protocol_type, awaiting_join=True)
    if not group.awaits_proof:  # else its join was accepted at an unknown time
        ctx.timers.arm(member, ctx.now_ms, ctx.config.new_member_join_timeout_ms, TimerKind.NEW_MEMBER)
    reason = messages.adding(member_id, event.group_instance_id, event.reason)
    maybe_prepare_rebalance_or_complete_join(ctx, reason, Cause.MEMBER_JOINED)
    return Answer.PARKED


def _join_existing_member(ctx: Context, event: Event) -> Answer:
    """Handle a join with a member id: `classicGroupJoinExistingMember`."""
    group = ctx.group
    if event.member_id in group.pending:
        if event.group_instance_id is not None:
            return Answer.UNKNOWN_MEMBER_ID  # a static member is never pending; Kafka fails on its own assertion here
        return _add_member(ctx, event, event.member_id)
    refusal = ctx.roster.validate_member(event.member_id, event.group_instance_id)
    if refusal is not Answer.NONE:
        return refusal
    return _rejoin(ctx, event, group.members[event.member_id])


def _rejoin(ctx: Context, event: Event, member: Member) -> Answer:
    """Rebalance, or answer a member for which nothing changes with the present generation.

    The leader of a Stable group may always trigger a rebalance. A follower, or any member before the assignment, does
    so only by a change of its protocols.
    """
    group, state = ctx.group, ctx.group.state.value
    if group.state is GroupState.PREPARING_REBALANCE:
        reason = messages.joining(member.member_id, state, event.reason)
        return _update_member(ctx, event, member, reason, Cause.MEMBER_REJOINED)
    if group.state is GroupState.STABLE and group.leader == member.member_id:
        reason = messages.leader_rejoining(member.member_id, state, event.reason)
        return _update_member(ctx, event, member, reason, Cause.LEADER_REJOINED)
    if event.error_code == ACCEPTED and event.generation_id == group.generation + 1 and _matches(member, event):
        # The coordinator rebalances for a reason that was not seen: an unseen member may have gone.
        reason = messages.let_in(member.member_id, event.generation_id)
        return _update_member(ctx, event, member, reason, Cause.GENERATION_ADVANCED)
    if not _matches(member, event):
        reason = messages.updating(member.member_id, state, event.reason)
        return _update_member(ctx, event, member, reason, Cause.MEMBER_UPDATED)
    return Answer.NONE


def _matches(member: Member, event: Event) -> bool:
    silent = event.protocol_type is None and not event.protocols
    return silent or member.protocols == event.protocols


def _update_member(ctx: Context, event: Event, member: Member, reason: str, cause: Cause) -> Answer:
    """Update the member from its join and rebalance: `updateMemberThenRebalanceOrCompleteJoin`."""
    update_member(ctx, event, member)
    maybe_prepare_rebalance_or_complete_join(ctx, reason, cause)
    return Answer.PARKED
