"""Loaded groups: groups first seen in mid-life, by a request that carries a generation, as after a coordinator's load.

Joins of such a group were not seen, so there is no join phase to run. The group stays Stable, and any sender that names
its generation is a member.
"""

from __future__ import annotations

from heartwheel.engine.rules import messages
from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.classic.leave import remove_leavers
from heartwheel.engine.rules.classic.rebalance import become_empty, report_expired
from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.model import Member
from heartwheel.engine.rules.takeover import catch_up, is_behind, remember_heartbeat, take_over
from heartwheel.wire.events import UNCHECKED_GENERATION, Event, EventType
from heartwheel.wire.verdicts import Cause, Kind


def request(ctx: Context, event: Event, fingerprint: int) -> Answer:
    """Handle a heartbeat, sync or commit: accept a later generation, refuse an earlier one.

    A member at the group's generation that was not seen before is added without a verdict.
    """
    group = ctx.group
    if event.generation_id not in (UNCHECKED_GENERATION, group.generation):
        if not is_behind(group, event):
            return Answer.ILLEGAL_GENERATION
        catch_up(ctx, event.generation_id)
    member = group.members.get(event.member_id)
    if member is None:
        if len(group.members) >= ctx.config.group_max_size:
            return Answer.GROUP_MAX_SIZE_REACHED
        member = take_over(ctx, event)
    refusal = ctx.roster.validate_member(event.member_id, event.group_instance_id)
    if refusal is Answer.FENCED_INSTANCE_ID:
        return refusal
    _keep_alive(ctx, event, member, fingerprint)
    return Answer.NONE


def _keep_alive(ctx: Context, event: Event, member: Member, fingerprint: int) -> None:
    if event.type is EventType.SYNC:
        # As in a Stable classic group, a sync does not reset the session. A sync that waits for the leader's does when
        # it is answered. If that answer is all that was seen of its sync phase, the time of the reset is unknown.
        if event.error_code is not None:
            ctx.timers.disarm(member)
            member.fingerprint = 0
        return
    member.last_seen_ms = ctx.now_ms
    ctx.reset_session(member)
    if event.type is EventType.HEARTBEAT:
        remember_heartbeat(ctx, event, member, fingerprint)


def leave(ctx: Context, event: Event) -> Answer:
    """Handle a LeaveGroup: remove the leavers that are known, and trigger a rebalance."""
    departures = remove_leavers(ctx, event)
    if departures.members:
        _request_rebalance(ctx, messages.leaving(departures.named), Cause.MEMBER_LEFT)
    return departures.answer


def fire_member(ctx: Context, member: Member) -> None:
    """Remove a member whose session ran out, and trigger a rebalance."""
    ctx.roster.remove(member.member_id)
    report_expired(ctx, member)
    _request_rebalance(ctx, messages.removing_failed(member.member_id), Cause.MEMBER_EXPIRED)


def _request_rebalance(ctx: Context, reason: str, cause: Cause) -> None:
    """Trigger one rebalance per generation. The joins that follow are not seen, so the group stays Stable."""
    group = ctx.group
    is_first = group.triggered_generation != group.generation
    if is_first:
        group.triggered_generation = group.generation
        group.rebalance_started_ms = ctx.now_ms
    if not group.members:
        group.generation += 1
        become_empty(ctx)
    elif is_first:
        patience_ms = ctx.roster.rebalance_timeout_ms()
        deadline_ms = None if patience_ms is None else ctx.now_ms + patience_ms
        ctx.report(Kind.REBALANCE_STARTED, reason, cause, deadline_ms=deadline_ms)
