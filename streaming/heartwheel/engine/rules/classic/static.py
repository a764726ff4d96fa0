"""Static members that come back under a new id (KIP-345)."""

from __future__ import annotations

from heartwheel.engine.rules import messages
from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.classic.rebalance import (
    maybe_complete_join_phase,
    maybe_prepare_rebalance_or_complete_join,
    prepare_rebalance,
    store_record,
)
from heartwheel.engine.rules.classic.update import update_member
from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.model import GroupState, Member
from heartwheel.wire.events import Event
from heartwheel.wire.verdicts import Cause, Kind


def replace_static_member(ctx: Context, event: Event, old: Member, new_id: str) -> Answer:
    """Replace a static member's id, then rebalance or not: `updateStaticMemberThenRebalanceOrCompleteJoin`.

    The new id's timer starts with the *old* session timeout. The one in the join holds from the next reset on.
    """
    group = ctx.group
    reason = messages.static_replaced(group.group_id, group.state.value, event.group_instance_id, old.member_id)
    ctx.report_member(old, Kind.STATIC_REPLACED, reason, Cause.MEMBER_REJOINED)
    new = ctx.roster.replace_static_member(old, new_id)
    ctx.reset_session(new)
    update_member(ctx, event, new)
    if group.state is GroupState.STABLE:
        return _come_back_to_stable(ctx, event, new)
    if group.state is GroupState.COMPLETING_REBALANCE:
        # The leader may be assigning to the old id right now. The new one would get no assignment.
        reason = messages.static_updating(new_id, event.group_instance_id, event.reason)
        prepare_rebalance(ctx, reason, Cause.STATIC_MEMBER_UPDATED)
    else:
        maybe_complete_join_phase(ctx)
    return Answer.PARKED


def _come_back_to_stable(ctx: Context, event: Event, member: Member) -> Answer:
    """Accept a member again at the same generation, unless it changes the protocol that the group would select."""
    if ctx.roster.select_protocol() == ctx.group.protocol_name:
        ctx.roster.set_awaiting_join(member, awaiting=False)
        store_record(ctx)
        return Answer.NONE
    reason = messages.static_changes_protocol(member.member_id, event.group_instance_id, event.reason)
    maybe_prepare_rebalance_or_complete_join(ctx, reason, Cause.STATIC_MEMBER_UPDATED)
    return Answer.PARKED
