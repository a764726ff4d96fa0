"""Heartbeats, syncs and commits, and their effects on groups of each kind.

Classic groups follow Kafka 4 (`classicGroupHeartbeatToClassicGroup`, `classicGroupSyncToClassicGroup`,
`validateOffsetCommit`); loaded and presence groups follow docs/groups.md.
"""

from __future__ import annotations

from heartwheel.proof.audit.rules import members
from heartwheel.proof.audit.rules.answers import follow
from heartwheel.proof.audit.rules.context import Run
from heartwheel.proof.audit.rules.incarnations import hold, is_outlived, is_over
from heartwheel.proof.audit.rules.joins import FULL, adding
from heartwheel.proof.audit.rules.late import catch_up, is_ahead, take_over
from heartwheel.proof.audit.rules.model import (
    COMPLETING,
    EMPTY,
    LOADED,
    NEVER,
    NOBODY,
    PREPARING,
    PRESENCE,
    AuditedGroup,
    AuditedMember,
)
from heartwheel.proof.audit.rules.phases import (
    assign,
    stabilized,
)
from heartwheel.wire.events import FROM_MEMBERS, UNCHECKED_GENERATION, Event, EventType

_NAMES_PROTOCOL = 5
"""The first version of SyncGroup that must name the protocol and its type (KIP-559)."""

BAD_TIMEOUT = "invalid_session_timeout"
"""The cause of the reject of an event that asks for a session timeout out of bounds."""


def request(run: Run, event: Event) -> str:
    """Apply a heartbeat, sync or commit; return the cause if it must be on the rejects topic."""
    group = run.group
    if event.type is EventType.SYNC and _names_no_protocol(event):
        return ""
    if event.error_code in FROM_MEMBERS and event.generation_id != UNCHECKED_GENERATION:
        follow(run, event)
    if group.kind == PRESENCE:
        return of_presence(run, event)
    if group.kind == LOADED:
        return _of_loaded(run, event)
    if group.kind == NOBODY:
        return _first(run, event)
    if is_ahead(group, event):
        catch_up(run, event.generation_id)
        return _of_loaded(run, event)
    _of_classic(run, event)
    return ""


def _names_no_protocol(event: Event) -> bool:
    """Return whether the broker refuses a sync before its coordinator sees it: `KafkaApis.handleSyncGroupRequest`."""
    return (event.api_version or 0) >= _NAMES_PROTOCOL and None in (event.protocol_type, event.protocol_name)


def _first(run: Run, event: Event) -> str:
    """Apply the first event of a group, which decides its kind."""
    group = run.group
    if event.generation_id != UNCHECKED_GENERATION:
        group.kind, group.generation = LOADED, event.generation_id
        return _of_loaded(run, event)
    if event.type is not EventType.HEARTBEAT:
        return ""
    group.kind = PRESENCE
    cause = of_presence(run, event)
    if cause:
        group.kind = NOBODY
    return cause


# Classic


def _of_classic(run: Run, event: Event) -> None:
    group, member_id = run.group, event.member_id
    unknown = member_id not in group.members and member_id not in group.pending
    if not group.confirmed and group.met_late and unknown and event.generation_id == group.generation:
        take_over(run, event)
    agreed = _is_accepted(group, event) and _apply(run, event, group.members[member_id])
    if not group.confirmed:
        group.confirmed = agreed and event.generation_id != UNCHECKED_GENERATION


def _is_accepted(group: AuditedGroup, event: Event) -> bool:
    if group.state == EMPTY or members.refusal(group, event.member_id, event.group_instance_id):
        return False
    return event.generation_id in (UNCHECKED_GENERATION, group.generation)


def _apply(run: Run, event: Event, member: AuditedMember) -> bool:
    """Apply a request of a member; return whether Kafka's answer shows that it is in the generation."""
    group = run.group
    if event.type is EventType.SYNC:
        return _sync(run, event, member)
    if event.type is EventType.COMMIT and group.state == COMPLETING:
        return True
    member.seen_ms = group.now_ms
    run.reset(member)
    return True


def _sync(run: Run, event: Event, member: AuditedMember) -> bool:
    group = run.group
    if event.protocol_type is not None and group.protocol_type not in (None, event.protocol_type):
        return False
    if event.protocol_name is not None and group.protocol not in (None, event.protocol_name):
        return False
    if group.state == PREPARING:
        return True
    group.unsynced.pop(member.member_id, None)
    if not group.unsynced:
        group.sync_ms = NEVER
    if group.state == COMPLETING:
        member.seen_ms = group.now_ms
        member.syncing = True
        if group.leader == member.member_id:
            assign(run)
    return True


# Loaded


def _of_loaded(run: Run, event: Event) -> str:
    group = run.group
    if event.generation_id not in (UNCHECKED_GENERATION, group.generation):
        if not is_ahead(group, event):
            return ""
        catch_up(run, event.generation_id)
    if event.member_id not in group.members:
        if len(group.members) >= run.config.group_max_size:
            return FULL
        take_over(run, event)
    if _is_fenced(group, event):
        return ""
    member = group.members[event.member_id]
    if event.type is not EventType.SYNC:
        _keep_alive(run, event, member)
    elif event.error_code is not None:
        member.deadline_ms = NEVER  # how long it waited for the leader's sync is unknown, and so is its session's end
    return ""


def _is_fenced(group: AuditedGroup, event: Event) -> bool:
    return members.refusal(group, event.member_id, event.group_instance_id) == "FENCED_INSTANCE_ID"


def _keep_alive(run: Run, event: Event, member: AuditedMember) -> None:
    group, instance = run.group, event.group_instance_id
    member.seen_ms = group.now_ms
    run.reset(member)
    if event.type is EventType.HEARTBEAT and instance is not None and member.instance_id is None:
        member.instance_id = instance
        group.static[instance] = member.member_id


# Presence


def of_presence(run: Run, event: Event) -> str:
    """Apply a heartbeat to a presence group; return the cause if it must be on the rejects topic."""
    group, asked = run.group, event.session_timeout_ms
    if is_ahead(group, event):
        return _of_loaded(run, event)
    if asked is not None and not run.allows_presence(asked):
        return BAD_TIMEOUT
    if _has_no_effect(group, event):
        return ""
    if event.member_id not in group.members:
        if len(group.members) >= run.config.group_max_size:
            return FULL
        _arrive(run, event)
    if not _is_fenced(group, event):
        _handle_heartbeat(run, event, group.members[event.member_id])
    return ""


def _has_no_effect(group: AuditedGroup, event: Event) -> bool:
    known = event.member_id in group.members
    if event.type is not EventType.HEARTBEAT:
        return not known
    start = event.incarnation
    return is_over(group, event.member_id, start) or (not known and is_outlived(group, event.group_instance_id, start))


def _handle_heartbeat(run: Run, event: Event, member: AuditedMember) -> None:
    """Restart a worker's session; the other fields of its heartbeat count only if its start holds the member."""
    if event.type is EventType.HEARTBEAT and not hold(run.group, member, event.incarnation):
        member.seen_ms = run.group.now_ms
        run.reset(member)
        return
    member.session_ms = event.session_timeout_ms or member.session_ms
    member.client_id = event.client_id or member.client_id
    member.client_host = event.client_host or member.client_host
    _keep_alive(run, event, member)


def _arrive(run: Run, event: Event) -> None:
    group, instance = run.group, event.group_instance_id
    if instance is not None and instance in group.static:
        take_over(run, event)  # the same worker under another id: the group has not changed
        return
    run.emit("rebalance_triggered", adding(event, event.member_id), "member_joined", deadline_ms=group.now_ms)
    take_over(run, event)
    next_generation(run, "member_joined", joined=(event.member_id,))


def next_generation(run: Run, cause: str, *, removed: tuple[str, ...] = (), joined: tuple[str, ...] = ()) -> None:
    """Begin a presence group's next generation, and add the verdict of it."""
    group = run.group
    group.generation += 1
    group.phase_ms = group.now_ms
    run.emit("rebalance_completed", stabilized(group), cause, removed=removed, joined=joined, duration_ms=0)
