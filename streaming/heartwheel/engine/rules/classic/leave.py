"""LeaveGroup of a classic group, of one member or of many.

Read it next to `GroupMetadataManager`: every function names the method it mirrors.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from heartwheel.engine.rules import messages
from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.classic.rebalance import (
    maybe_complete_join_phase,
    maybe_prepare_rebalance_or_complete_join,
)
from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.model import GroupKind, GroupState, Member
from heartwheel.wire.events import Event, Leaving
from heartwheel.wire.verdicts import POLL_TIMEOUT_WORDS, Cause, ExpiryReason, Kind


@dataclass
class LeaveResult:
    """The result of a LeaveGroup.

    Args:
        named: the member ids in the accepted leavers; empty for a leaver that named only its instance id.
        members: the removed members, pending ones included.
        answer: NONE if any member left, else the last refusal.
    """

    named: list[str] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    answer: Answer = Answer.UNKNOWN_MEMBER_ID


def remove_leavers(ctx: Context, event: Event) -> LeaveResult:
    """Remove the leavers of an event, either a batch or the sender; each is checked separately."""
    alone = Leaving(event.member_id, event.group_instance_id, event.reason)
    departures = LeaveResult()
    for leaver in event.leaving or (alone,):
        member = find_leaver(ctx, leaver)
        if isinstance(member, Answer):
            departures.answer = member
            continue
        _remove(ctx, member, leaver)
        departures.named.append(leaver.member_id)
        departures.members.append(member)
    if departures.members:
        departures.answer = Answer.NONE
    return departures


def find_leaver(ctx: Context, leaver: Leaving) -> Member | Answer:
    """Return a leaver by its member id or (for administrators) by its instance id alone; else return the refusal."""
    group, member_id = ctx.group, leaver.member_id
    if not member_id:
        holder = ctx.roster.static_member_id(leaver.group_instance_id) if leaver.group_instance_id else None
        return group.members[holder] if holder is not None else Answer.UNKNOWN_MEMBER_ID
    if member_id in group.pending:
        return group.pending[member_id]
    refusal = ctx.roster.validate_member(member_id, leaver.group_instance_id)
    return group.members[member_id] if refusal is Answer.NONE else refusal


def _remove(ctx: Context, member: Member, leaver: Leaving) -> None:
    """Remove a member and emit that: `removeCurrentMemberFromClassicGroup`; a parked join gets UNKNOWN_MEMBER_ID.

    A consumer that leaves because it did not poll in time was ended by a timer of its own, and its verdict says so.
    """
    ctx.roster.remove(member.member_id)
    if is_poll_timeout(ctx, member, leaver):
        ctx.report_expired(
            member,
            Kind.MEMBER_LEFT,
            messages.leave_reason(leaver.reason),
            Cause.MEMBER_LEFT,
            expiry_reason=ExpiryReason.POLL_TIMEOUT,
            session_timeout_ms=member.rebalance_timeout_ms,
        )
        return
    kind = Kind.PENDING_MEMBER_LEFT if member.pending else Kind.MEMBER_LEFT
    ctx.report_member(member, kind, messages.leave_reason(leaver.reason), Cause.MEMBER_LEFT)


def is_poll_timeout(ctx: Context, member: Member, leaver: Leaving) -> bool:
    """Return whether a consumer left because it did not poll in time; workers of presence groups do not poll."""
    if member.pending or ctx.group.kind is GroupKind.PRESENCE:
        return False
    return POLL_TIMEOUT_WORDS in (leaver.reason or "").lower()


def leave(ctx: Context, event: Event) -> Answer:
    """Handle a LeaveGroup: `classicGroupLeaveToClassicGroup`.

    All that left cause a single rebalance. A pending member that leaves also rebalances a group that is not in a join
    phase, as at the broker. Unlike an expiry, a leave never ends the initial join phase early.
    """
    departures = remove_leavers(ctx, event)
    if departures.members:
        if ctx.group.state is GroupState.PREPARING_REBALANCE:
            maybe_complete_join_phase(ctx)
        elif ctx.group.state is not GroupState.EMPTY:
            maybe_prepare_rebalance_or_complete_join(ctx, messages.leaving(departures.named), Cause.MEMBER_LEFT)
    return departures.answer
