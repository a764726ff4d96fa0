"""Leaves and failures of members, and what follows for their group, by its kind.

Classic groups follow Kafka 4 (`classicGroupLeaveToClassicGroup`); loaded and presence groups follow docs/groups.md.
"""

from __future__ import annotations

import msgspec

from heartwheel.proof.audit.rules import members
from heartwheel.proof.audit.rules.context import Run
from heartwheel.proof.audit.rules.incarnations import is_older, is_over, note_over
from heartwheel.proof.audit.rules.model import EMPTY, LOADED, NEVER, NOBODY, PRESENCE
from heartwheel.proof.audit.rules.phases import become_empty, rebalance_or_complete
from heartwheel.proof.audit.rules.requests import next_generation, of_presence
from heartwheel.wire.events import UNCHECKED_GENERATION, Event, EventType, Leaving
from heartwheel.wire.verdicts import POLL_TIMEOUT_WORDS


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
        cause = of_presence(run, beat)
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
        next_generation(run, cause, removed=removed)
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
