"""How a repeated JoinGroup changes a member."""

from __future__ import annotations

import msgspec

from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.model import Group, Member
from heartwheel.wire.events import Event


def update_member(ctx: Context, event: Event, member: Member) -> None:
    """Update a member from a join, and park the join: `ClassicGroup.updateMember`. The running timer is left alone."""
    keep_recorded(ctx.group, member)
    if event.protocols:
        ctx.roster.update_protocols(member, event.protocols)
    if event.session_timeout_ms is not None and event.session_timeout_ms != member.session_timeout_ms:
        member.session_timeout_ms = event.session_timeout_ms
        member.fingerprint = 0
    if event.rebalance_timeout_ms is not None or event.api_version == 0:
        member.rebalance_timeout_ms = ctx.rebalance_timeout_ms(event)
    member.last_seen_ms = ctx.now_ms
    ctx.roster.set_awaiting_join(member, awaiting=True)


def keep_recorded(group: Group, member: Member) -> None:
    """Keep a member that is about to change as the group's record has it.

    A coordinator that comes back in the middle of the rebalance knows nothing of the change
    (`test_what_a_member_asked_in_an_unfinished_rebalance_is_forgotten`).
    """
    if member.stored:
        group.departed[member.member_id] = msgspec.structs.replace(member)
        member.stored = False
