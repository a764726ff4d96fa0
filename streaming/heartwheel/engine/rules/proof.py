"""Conclusions from a coordinator's answers: who is a member of a group, and which generation the group has.

A source that reads a broker's request log knows the answer to each request (`Event.error_code`). A request that was
accepted, or answered REBALANCE_IN_PROGRESS, is a fact: its sender is a member, and the group has its generation. The
rules may expect something else, because the log was read from mid-life of the group or a setting differs from the
broker's. Then the group is moved to the state that the request shows. From there until the end of its next join phase,
in which every member is seen to join, nothing is concluded from members that are missing (`Group.awaits_proof`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.engine.rules import messages
from heartwheel.engine.rules.classic.rebalance import complete_join
from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.model import GroupKind, GroupState, Member
from heartwheel.engine.rules.takeover import catch_up, take_over
from heartwheel.wire.events import ACCEPTED, Event, EventType
from heartwheel.wire.verdicts import Cause, Kind

REORDER_MS: Final = 1_000
"""How long after the start of a join phase a heartbeat may still be answered as before it, ms. A busy broker does not
handle requests in the order of their arrival."""


def adapt_to_request(ctx: Context, event: Event) -> None:
    """Move a group to the state that a heartbeat, sync or commit of a member (`FROM_MEMBERS`) shows."""
    group = ctx.group
    if group.kind is GroupKind.LOADED and event.generation_id < group.generation:
        catch_up(ctx, event.generation_id, in_silence=True)
        _report_shown(ctx)
    if group.kind is not GroupKind.CLASSIC:
        return
    member = group.members.get(event.member_id)
    if _has_ended(ctx, event.generation_id - 1) and member is not None and member.awaiting_join:
        complete_join(ctx, Cause.GENERATION_ADVANCED)
    elif event.generation_id != group.generation or group.state is GroupState.EMPTY or _is_over(ctx, event):
        catch_up(ctx, event.generation_id, in_silence=True)
        if member is None:
            take_over(ctx, event)
        _report_shown(ctx)
        return
    elif member is None or not _holds_its_instance(ctx, event):
        ctx.roster.remove(event.member_id)
        take_over(ctx, event)
    if event.type is EventType.SYNC:
        group.protocol_type = event.protocol_type or group.protocol_type
        group.protocol_name = event.protocol_name or group.protocol_name


def adapt_to_join(ctx: Context, event: Event) -> bool:
    """Move a group to the state that an accepted join shows; the answer carries the generation that it leads to.

    Returns:
        Whether no join phase follows, so that nothing is left to do.
    """
    group, generation = ctx.group, event.generation_id
    if group.kind is GroupKind.NEW:
        if not event.member_id and generation == 1:
            return False  # the group's first join
        group.kind, group.generation = GroupKind.LOADED, generation
    elif group.kind is GroupKind.CLASSIC and _is_expected(ctx, event):
        return False
    if group.kind is GroupKind.LOADED and not group.generation <= generation <= group.generation + 1:
        catch_up(ctx, generation if generation < group.generation else generation - 1)
    if group.kind is GroupKind.PRESENCE or generation > group.generation:
        return False
    _note_join(ctx, event)
    return True


def _is_expected(ctx: Context, event: Event) -> bool:
    """Return whether the rules would answer a classic join the same; if not, move the group to the state it shows."""
    group, generation = ctx.group, event.generation_id
    if _has_ended(ctx, generation - 2):
        complete_join(ctx, Cause.GENERATION_ADVANCED)
    if generation == group.generation + 1:
        return True
    if generation == group.generation and group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        return _knows(ctx, event)
    catch_up(ctx, generation if generation <= group.generation else generation - 1)
    return False


def _has_ended(ctx: Context, generation: int) -> bool:
    """Return whether a join phase from this generation is running here and over according to a request."""
    return ctx.group.state is GroupState.PREPARING_REBALANCE and ctx.group.generation == generation


def _is_over(ctx: Context, event: Event) -> bool:
    """Return whether a heartbeat shows that no join phase runs: during one the answer is REBALANCE_IN_PROGRESS."""
    group = ctx.group
    beats = event.type is EventType.HEARTBEAT and event.error_code == ACCEPTED
    return (
        beats and group.state is GroupState.PREPARING_REBALANCE and ctx.now_ms - group.rebalance_started_ms > REORDER_MS
    )


def _holds_its_instance(ctx: Context, event: Event) -> bool:
    instance = event.group_instance_id
    return instance is None or ctx.roster.static_member_id(instance) == event.member_id


def _knows(ctx: Context, event: Event) -> bool:
    """Return whether the sender of a join is a known member; a static one is known by its instance id."""
    known_id = event.member_id or ctx.roster.static_member_id(event.group_instance_id or "")
    return known_id in ctx.group.members or event.assigned_member_id in ctx.group.members


def _note_join(ctx: Context, event: Event) -> None:
    """Update the sender of a join from its fields; its session begins with its next heartbeat.

    The join was parked for as long as the unseen join phase took, or was answered at once. Which of the two is unknown.
    """
    member_id = event.member_id or event.assigned_member_id or ""
    member = ctx.group.members.get(member_id)
    was_empty = ctx.group.state is GroupState.EMPTY
    if member is None:
        member = take_over(ctx, msgspec.structs.replace(event, member_id=member_id))
        ctx.timers.disarm(member)
    _describe(ctx, member, event)
    if was_empty:
        _report_shown(ctx)


def _report_shown(ctx: Context) -> None:
    group = ctx.group
    reason = messages.shown(group.group_id, group.generation)
    ctx.report(Kind.REBALANCE_COMPLETED, reason, Cause.GENERATION_ADVANCED, leader=group.leader)


def _describe(ctx: Context, member: Member, event: Event) -> None:
    ctx.roster.update_protocols(member, event.protocols)
    member.session_timeout_ms = ctx.session_timeout_ms(event)
    member.rebalance_timeout_ms = ctx.rebalance_timeout_ms(event)
    member.client_id, member.client_host = event.client_id, event.client_host
    member.fingerprint = 0
    ctx.group.protocol_type = ctx.group.protocol_type or event.protocol_type
