"""Heartbeats, syncs, commits and leaves, and their effects on groups of each kind.

Classic groups follow Kafka 4 (`classicGroupHeartbeatToClassicGroup`, `classicGroupSyncToClassicGroup`,
`validateOffsetCommit`, `classicGroupLeaveToClassicGroup`); loaded and presence groups follow docs/groups.md.
"""

from __future__ import annotations

import msgspec

from heartwheel.proof.audit.rules import members
from heartwheel.proof.audit.rules.answers import follow
from heartwheel.proof.audit.rules.context import Run
from heartwheel.proof.audit.rules.incarnations import hold, is_older, is_outlived, is_over, note_over
from heartwheel.proof.audit.rules.joins import FULL, adding
from heartwheel.proof.audit.rules.late import catch_up, is_ahead, take_over
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
    AuditedMember,
)
from heartwheel.proof.audit.rules.phases import (
    assign,
    become_empty,
    rebalance_or_complete,
    stabilized,
)
from heartwheel.wire.events import FROM_MEMBERS, UNCHECKED_GENERATION, Event, EventType, Leaving
from heartwheel.wire.verdicts import POLL_TIMEOUT_WORDS

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
        return _of_presence(run, event)
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
    cause = _of_presence(run, event)
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


def _of_presence(run: Run, event: Event) -> str:
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
    _next_generation(run, "member_joined", joined=(event.member_id,))


def _next_generation(run: Run, cause: str, *, removed: tuple[str, ...] = (), joined: tuple[str, ...] = ()) -> None:
    group = run.group
    group.generation += 1
    group.phase_ms = group.now_ms
    run.emit("rebalance_completed", stabilized(group), cause, removed=removed, joined=joined, duration_ms=0)


# Departures


def leave(run: Run, event: Event) -> str:
    """Apply a leave, of one member or of several; return the cause if it must be on the rejects topic."""
    group, start = run.group, event.incarnation
    if start is None or group.kind not in (NOBODY, PRESENCE):
        return _leave(run, event)
    member_id = event.member_id or group.static.get(event.group_instance_id or "", "")
    if is_over(group, member_id, start):
        return ""
    if member_id in group.members and is_older(group.members[member_id], start):
        note_over(group, member_id, start)
        return ""
    cause = _leave(run, event)
    if member_id and member_id not in group.members and group.kind == PRESENCE:
        note_over(group, member_id, start)
    return cause


def _leave(run: Run, event: Event) -> str:
    group = run.group
    if event.failure is not None and group.kind in (NOBODY, PRESENCE):
        return _worker_failed(run, event, event.failure)
    named, removed = _remove_leavers(run, event)
    if not named:
        return ""
    reason = f"explicit `LeaveGroup` request for ({', '.join(named)}) members."
    if group.kind in (LOADED, PRESENCE):
        depart(run, reason, "member_left", tuple(removed))
    elif group.state != EMPTY:
        rebalance_or_complete(run, reason, "member_left")
    return ""


def _worker_failed(run: Run, event: Event, failure: str) -> str:
    """Remove a failed worker; an unknown one is handled as if it had sent a heartbeat just before."""
    group, member_id, instance = run.group, event.member_id, event.group_instance_id
    if not member_id:
        member_id = group.static.get(instance or "", "")
        if not member_id:
            return ""
    elif (wrong := members.refusal(group, member_id, instance)) == "FENCED_INSTANCE_ID":
        return ""
    elif wrong:
        kind, group.kind = group.kind, PRESENCE
        beat = msgspec.structs.replace(event, type=EventType.HEARTBEAT, generation_id=UNCHECKED_GENERATION, reason=None)
        cause = _of_presence(run, beat)
        if cause:
            group.kind = kind
            return cause
        group.forget_ms = NEVER  # the group had a member, if only for a moment: its retention starts again
    member = group.members[member_id]
    members.remove(group, member_id)
    run.emit_expired(member, "worker_failed", member.session_ms, failure)
    words = f"Worker {member_id} failed"
    depart(run, f"{words}: {failure}" if failure else words, "member_expired", (member_id,))
    return ""


def _remove_leavers(run: Run, event: Event) -> tuple[list[str], list[str]]:
    group = run.group
    named, removed = [], []
    for leaver in event.leaving or (Leaving(event.member_id, event.group_instance_id, event.reason),):
        member_id, instance = leaver.member_id, leaver.group_instance_id
        if not member_id and instance:
            member_id = group.static.get(instance, "")
        elif member_id not in group.pending and members.refusal(group, member_id, instance):
            member_id = ""
        if member_id:
            joined = member_id in group.members
            member = members.remove(group, member_id)
            if member is not None and joined and group.kind != PRESENCE and _says_poll_timeout(leaver.reason):
                run.emit_expired(member, "poll_timeout", member.rebalance_ms)
            named.append(leaver.member_id)
            removed.append(member_id)
    return named, removed


def _says_poll_timeout(reason: str | None) -> bool:
    return reason is not None and POLL_TIMEOUT_WORDS in reason.lower()


def depart(run: Run, reason: str, cause: str, removed: tuple[str, ...]) -> None:
    """Add the verdicts after members of a loaded or presence group were removed."""
    if run.group.kind == PRESENCE:
        _depart_from_presence(run, reason, cause, removed)
    else:
        _depart_from_loaded(run, reason, cause)


def _depart_from_presence(run: Run, reason: str, cause: str, removed: tuple[str, ...]) -> None:
    group = run.group
    if group.members:
        run.emit("rebalance_triggered", reason, cause, deadline_ms=group.now_ms)
        _next_generation(run, cause, removed=removed)
    else:
        group.generation += 1
        group.phase_ms = group.now_ms
        become_empty(run, removed)


def _depart_from_loaded(run: Run, reason: str, cause: str) -> None:
    """Trigger a rebalance once per generation: the log lacks the joins that follow, so the members stay as they are."""
    group = run.group
    first = group.rebalance_generation != group.generation
    if first:
        group.rebalance_generation = group.generation
        group.phase_ms = group.now_ms
    if not group.members:
        group.generation += 1
        become_empty(run)
    elif first:
        patience = members.patience_ms(group)
        run.emit(
            "rebalance_triggered", reason, cause, deadline_ms=None if patience is None else group.now_ms + patience
        )


__all__ = ["CLASSIC", "STABLE", "depart", "leave", "request"]
