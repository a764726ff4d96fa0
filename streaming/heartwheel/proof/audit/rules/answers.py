"""Answers of a coordinator that a source knows: an accepted sender is a member, and the answer has the generation.

These are heartwheel's own rules, as docs/groups.md states them. An answer overrides what was assumed of a group: the
log may begin in the middle of the group's life, or the broker may have settings that are unknown here.
"""

from __future__ import annotations

import msgspec

from heartwheel.proof.audit.rules import members
from heartwheel.proof.audit.rules.context import Run
from heartwheel.proof.audit.rules.late import catch_up, take_over
from heartwheel.proof.audit.rules.model import (
    CLASSIC,
    COMPLETING,
    EMPTY,
    LOADED,
    NEVER,
    NOBODY,
    PREPARING,
    PRESENCE,
    STABLE,
    AuditedGroup,
)
from heartwheel.proof.audit.rules.phases import SHOWN, complete
from heartwheel.wire.events import ACCEPTED, Event, EventType

_OUT_OF_ORDER_MS = 1_000
"""A broker may handle a heartbeat this much earlier than a join that had arrived before it, ms."""


def follow(run: Run, event: Event) -> None:
    """Move a group to the generation at which the coordinator accepted a member's heartbeat, sync or commit."""
    group, shown = run.group, event.generation_id
    if group.kind == LOADED and shown < group.generation:
        catch_up(run, shown, quiet=True)
        _emit_moved(run)
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
        _emit_moved(run)
        return
    elif member is None or _instance_is_elsewhere(group, event):
        members.remove(group, event.member_id)
        take_over(run, event)
    if event.type is EventType.SYNC:
        group.protocol = event.protocol_name or group.protocol
        group.protocol_type = event.protocol_type or group.protocol_type


def _runs_from(group: AuditedGroup, generation: int) -> bool:
    return group.state == PREPARING and group.generation == generation


def _cannot_be_joining(group: AuditedGroup, event: Event) -> bool:
    """Return whether an answer shows that no join phase runs: during one, heartbeats are answered with an error."""
    if group.state != PREPARING or event.type is not EventType.HEARTBEAT or event.error_code != ACCEPTED:
        return False
    return group.now_ms > group.phase_ms + _OUT_OF_ORDER_MS


def _instance_is_elsewhere(group: AuditedGroup, event: Event) -> bool:
    instance = event.group_instance_id
    return instance is not None and group.static.get(instance) != event.member_id


def follow_join(run: Run, event: Event) -> bool:
    """Move a group to the generation in a join's answer; return whether the join is done, as it begins no other."""
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
    """Return whether the rules explain an answered join to a classic group; if they do not, it moves the group."""
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
    """Copy a join's fields to its sender; how long it waited for the answer is unknown, and so is its session's end."""
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
        _emit_moved(run)


def _emit_moved(run: Run) -> None:
    group = run.group
    words = f"Group {group.group_id} is at generation {group.generation}, "
    run.emit("rebalance_completed", words + "as a request that its coordinator accepted shows.", SHOWN,
            leader=group.leader)  # fmt: skip
