"""Answers of a coordinator that a source knows: who was accepted is a member, and the group is where it says.

Heartwheel's own rules, as docs/groups.md states them. What a group was taken for does not count against an answer: it
may have been met late, or the broker may have settings that are not known here.
"""

from __future__ import annotations

import msgspec

from heartwheel.audit.rules import members as who
from heartwheel.audit.rules.context import Run
from heartwheel.audit.rules.late import catch_up, take_over
from heartwheel.audit.rules.model import (
    CLASSIC,
    COMPLETING,
    EMPTY,
    LOADED,
    NEVER,
    NOBODY,
    PREPARING,
    PRESENCE,
    STABLE,
    Group,
)
from heartwheel.audit.rules.phases import SHOWN, complete
from heartwheel.wire.events import ACCEPTED, Event, EventType

_OUT_OF_ORDER_MS = 1_000
"""A broker may handle a heartbeat so much earlier than a join that had arrived before it, ms."""


def follow(run: Run, event: Event) -> None:
    """Move a group to where the coordinator took a heartbeat, sync or commit for that of a member."""
    group, shown = run.group, event.generation_id
    if group.kind == LOADED and shown < group.generation:
        catch_up(run, shown, quiet=True)
        _say_moved(run)
        return
    if group.kind != CLASSIC:
        return
    member = group.members.get(event.member_id)
    if member is not None and member.joining and _runs_from(group, shown - 1):
        complete(run, SHOWN)
    elif shown != group.generation or group.state == EMPTY or _cannot_be_joining(group, event):
        catch_up(run, shown, quiet=True)
        if member is None:
            take_over(run, event)
        _say_moved(run)
        return
    elif member is None or _instance_is_elsewhere(group, event):
        who.remove(group, event.member_id)
        take_over(run, event)
    if event.type is EventType.SYNC:
        group.protocol = event.protocol_name or group.protocol
        group.protocol_type = event.protocol_type or group.protocol_type


def _runs_from(group: Group, generation: int) -> bool:
    return group.state == PREPARING and group.generation == generation


def _cannot_be_joining(group: Group, event: Event) -> bool:
    """While members join, each heartbeat is answered with that; one that is not shows that nobody joins."""
    if group.state != PREPARING or event.type is not EventType.HEARTBEAT or event.error_code != ACCEPTED:
        return False
    return group.now_ms > group.phase_ms + _OUT_OF_ORDER_MS


def _instance_is_elsewhere(group: Group, event: Event) -> bool:
    instance = event.group_instance_id
    return instance is not None and group.static.get(instance) != event.member_id


def follow_join(run: Run, event: Event) -> bool:
    """Let a group be where a join was answered; tell whether that is all, as the join leads to no other generation."""
    group, shown = run.group, event.generation_id
    if group.kind == PRESENCE:
        return False
    if group.kind == NOBODY:
        if shown == 1 and not event.member_id:
            return False
        group.kind, group.generation = LOADED, shown
    if group.kind == CLASSIC and _leads_on(run, event):
        return False
    if group.kind == LOADED and shown < group.generation:
        catch_up(run, shown)
    elif shown > group.generation + 1:
        catch_up(run, shown - 1)
    if shown == group.generation:
        _learn(run, event)
    return shown == group.generation


def _leads_on(run: Run, event: Event) -> bool:
    """Tell whether a join to a classic group may be left to the rules; one that they cannot explain moves the group."""
    group, shown = run.group, event.generation_id
    if _runs_from(group, shown - 2):
        complete(run, SHOWN)
    if shown == group.generation + 1:
        return True
    if shown == group.generation and group.state in (STABLE, COMPLETING):
        known = event.member_id or group.static.get(event.group_instance_id or "")
        return known in group.members or event.assigned_member_id in group.members
    catch_up(run, shown if shown <= group.generation else shown - 1)
    return False


def _learn(run: Run, event: Event) -> None:
    """Take over what a join says of its sender; how long it waited for the answer, and so its session, is not known."""
    group, member_id = run.group, event.member_id or event.assigned_member_id or ""
    nobody_there = group.state == EMPTY
    if member_id not in group.members:
        take_over(run, msgspec.structs.replace(event, member_id=member_id)).deadline_ms = NEVER
    member = group.members[member_id]
    member.session_ms, member.rebalance_ms = run.session_of(event), run.rebalance_of(event)
    member.client_id, member.client_host = event.client_id, event.client_host
    member.protocols = tuple((protocol.name, protocol.metadata_sha1) for protocol in event.protocols)
    group.protocol_type = group.protocol_type or event.protocol_type
    if nobody_there:
        _say_moved(run)


def _say_moved(run: Run) -> None:
    group = run.group
    words = f"Group {group.group_id} is at generation {group.generation}, "
    run.say("rebalance_completed", words + "as a request that its coordinator accepted shows.", SHOWN,
            leader=group.leader)  # fmt: skip
