"""What a coordinator's answers prove: who is a member of a group, and at which generation the group is.

A source that reads a broker's request log knows what each request was answered (`Event.error_code`). A request that was
accepted, or answered REBALANCE_IN_PROGRESS, is a fact: its sender is a member, and the group is at its generation. So
where the rules believe otherwise, because the log was read from the middle of a group's life or a setting differs from
the broker's, the group is moved to where the request shows it to be. From there until the end of its next join phase,
in which every member is seen to join, nothing is concluded from who is missing (`Group.awaits_proof`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.coordinator import messages
from heartwheel.coordinator.classic_rebalance import complete_join
from heartwheel.coordinator.context import Context
from heartwheel.coordinator.model import GroupKind, GroupState, Member
from heartwheel.coordinator.takeover import catch_up, take_over
from heartwheel.wire.events import ACCEPTED, Event, EventType
from heartwheel.wire.verdicts import Cause, Kind

REORDER_MS: Final = 1_000
"""How long after the begin of a join phase a heartbeat may still be answered as before it, ms: a busy broker handles
requests in another order than they arrive in."""


def heed_request(ctx: Context, event: Event) -> None:
    """Bring a group to where a heartbeat, sync or commit of a member (`FROM_MEMBERS`) shows it to be."""
    group = ctx.group
    if group.kind is GroupKind.LOADED and event.generation_id < group.generation:
        catch_up(ctx, event.generation_id, in_silence=True)
        _say_shown(ctx)
    if group.kind is not GroupKind.CLASSIC:
        return
    member = group.members.get(event.member_id)
    if _has_ended(ctx, event.generation_id - 1) and member is not None and member.awaiting_join:
        complete_join(ctx, Cause.GENERATION_ADVANCED)
    elif event.generation_id != group.generation or group.state is GroupState.EMPTY or _is_over(ctx, event):
        catch_up(ctx, event.generation_id, in_silence=True)
        if member is None:
            take_over(ctx, event)
        _say_shown(ctx)
        return
    elif member is None or not _holds_its_instance(ctx, event):
        ctx.roster.remove(event.member_id)
        take_over(ctx, event)
    if event.type is EventType.SYNC:
        group.protocol_type = event.protocol_type or group.protocol_type
        group.protocol_name = event.protocol_name or group.protocol_name


def heed_join(ctx: Context, event: Event) -> bool:
    """Bring a group to where an accepted join shows it to be: it is answered with the generation that it leads to.

    Returns:
        Whether no join phase follows from it, so that nothing is left to do.
    """
    group, generation = ctx.group, event.generation_id
    if group.kind is GroupKind.NEW:
        if not event.member_id and generation == 1:
            return False  # the group begins
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
    """Return whether a join of a classic group was answered as the rules would; else move the group if it is wrong."""
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
    """Return whether a join phase runs from this generation, which a request shows to be over."""
    return ctx.group.state is GroupState.PREPARING_REBALANCE and ctx.group.generation == generation


def _is_over(ctx: Context, event: Event) -> bool:
    """Return whether a heartbeat shows that no join phase runs: in one it is answered REBALANCE_IN_PROGRESS."""
    group = ctx.group
    beats = event.type is EventType.HEARTBEAT and event.error_code == ACCEPTED
    return (
        beats and group.state is GroupState.PREPARING_REBALANCE and ctx.now_ms - group.rebalance_started_ms > REORDER_MS
    )


def _holds_its_instance(ctx: Context, event: Event) -> bool:
    instance = event.group_instance_id
    return instance is None or ctx.roster.static_member_id(instance) == event.member_id


def _knows(ctx: Context, event: Event) -> bool:
    """Return whether the sender of a join is known as a member, a static one by its instance id."""
    known_id = event.member_id or ctx.roster.static_member_id(event.group_instance_id or "")
    return known_id in ctx.group.members or event.assigned_member_id in ctx.group.members


def _note_join(ctx: Context, event: Event) -> None:
    """Note what a join tells of its sender, whose session begins with its next heartbeat.

    It was parked for as long as the join phase took that was not seen, or was answered at once: nobody knows.
    """
    member_id = event.member_id or event.assigned_member_id or ""
    member = ctx.group.members.get(member_id)
    was_empty = ctx.group.state is GroupState.EMPTY
    if member is None:
        member = take_over(ctx, msgspec.structs.replace(event, member_id=member_id))
        ctx.timers.disarm(member)
    _describe(ctx, member, event)
    if was_empty:
        _say_shown(ctx)


def _say_shown(ctx: Context) -> None:
    group = ctx.group
    reason = messages.shown(group.group_id, group.generation)
    ctx.say(Kind.REBALANCE_COMPLETED, reason, Cause.GENERATION_ADVANCED, leader=group.leader)


def _describe(ctx: Context, member: Member, event: Event) -> None:
    ctx.roster.update_protocols(member, event.protocols)
    member.session_timeout_ms = ctx.session_timeout_ms(event)
    member.rebalance_timeout_ms = ctx.rebalance_timeout_ms(event)
    member.client_id, member.client_host = event.client_id, event.client_host
    member.fingerprint = 0
    ctx.group.protocol_type = ctx.group.protocol_type or event.protocol_type
