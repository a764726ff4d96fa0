"""The loop of one group: every timer that is due fires before the next event, then the event is applied."""

from __future__ import annotations

import heapq
from typing import Final

from heartwheel.proof.audit.config import AuditConfig
from heartwheel.proof.audit.derived import Derived
from heartwheel.proof.audit.rules import members
from heartwheel.proof.audit.rules.answers import follow_join
from heartwheel.proof.audit.rules.context import Run
from heartwheel.proof.audit.rules.epoch_groups import fire_due, first_heartbeat, take
from heartwheel.proof.audit.rules.epoch_model import CONSUMER
from heartwheel.proof.audit.rules.joins import join
from heartwheel.proof.audit.rules.late import become_classic
from heartwheel.proof.audit.rules.leaves import depart, leave
from heartwheel.proof.audit.rules.loads import load, unload
from heartwheel.proof.audit.rules.model import (
    CLASSIC,
    COMPLETING,
    EMPTY,
    JOIN,
    LOADED,
    MEMBER,
    NEVER,
    NOBODY,
    PREPARING,
    PRESENCE,
    STABLE,
    SYNC,
    AuditedGroup,
    AuditedMember,
)
from heartwheel.proof.audit.rules.phases import (
    ABOUT_MS,
    complete_if_all_joined,
    join_timer_fires,
    rebalance_or_complete,
    sync_timer_fires,
)
from heartwheel.proof.audit.rules.requests import BAD_TIMEOUT, request
from heartwheel.proof.audit.rules.ties import Entry, place, running
from heartwheel.wire.events import ACCEPTED, UNCHECKED_GENERATION, Event, EventType
from heartwheel.wire.group_heartbeats import GroupHeartbeat

_FIELDS: Final = tuple(AuditedGroup.__struct_fields__)


def apply(
    group: AuditedGroup, event: Event | GroupHeartbeat, append_ms: int, config: AuditConfig, verdicts: list[Derived]
) -> str:
    """Apply one request at its append time, or at the group's time if that is later.

    Args:
        group: changed in place.

    Returns:
        The cause if the record must be on the rejects topic, else an empty text.
    """
    now_ms = max(append_ms, group.now_ms)
    if group.heap and group.heap[0][0] <= now_ms:
        advance(group, now_ms, config, verdicts)
    group.now_ms = now_ms
    run = Run(group, config, verdicts)
    if isinstance(event, GroupHeartbeat):
        cause = first_heartbeat(run, event) if group.modern is None else take(run, event)
    elif group.modern is None:
        cause = _handle(run, event)
    else:
        cause = _begin_anew(run, event) if _may_begin(group, event) else take(run, event)
    if group.modern is not None:
        return cause
    if group.state == EMPTY or group.away or group.forget_ms != NEVER:
        _keep_or_forget(run)
        if is_forgotten(group):
            group.now_ms = 0
    return cause


def advance(group: AuditedGroup, clock_ms: int, config: AuditConfig, verdicts: list[Derived]) -> None:
    """Fire every timer of a group with a deadline at or before the clock, in order."""
    run = Run(group, config, verdicts)
    while group.heap and group.heap[0][0] <= clock_ms:
        if group.modern is None:
            _tick(run, group.heap[0][0])
        else:
            fire_due(run)


def _may_begin(group: AuditedGroup, event: Event) -> bool:
    """Return whether an event may turn an empty group with member epochs into a classic or a presence group."""
    if group.away or group.modern is None or group.modern.people:
        return False
    if event.type is EventType.JOIN:
        return True
    if event.generation_id == UNCHECKED_GENERATION:
        return event.type is EventType.HEARTBEAT
    # In a former consumer group, the sender of a classic request may be a member from before the log begins.
    unseen = group.modern.kind == CONSUMER and group.modern.met_late and event.member_id not in group.modern.past
    return unseen and event.type in (EventType.HEARTBEAT, EventType.SYNC)


def _begin_anew(run: Run, event: Event) -> str:
    """Turn the group into another kind by an event; if the event has no effect, the group stays what it is."""
    group = run.group
    trial = AuditedGroup(group.group_id, verdicts=group.verdicts, now_ms=group.now_ms, renewed_ms=group.renewed_ms)
    attempt = Run(trial, run.config, [])
    cause = _handle(attempt, event)
    _keep_or_forget(attempt)
    if not is_forgotten(trial):
        for name in _FIELDS:
            setattr(group, name, getattr(trial, name))
        run.verdicts.extend(attempt.verdicts)
    return cause


def _tick(run: Run, now_ms: int) -> None:
    """Fire the timers that end in one millisecond, in the order of their starts; one may stop or start another."""
    group = run.group
    due: list[tuple[tuple[int, int, int, int], Entry]] = []
    while True:
        while group.heap and group.heap[0][0] <= now_ms:
            entry = heapq.heappop(group.heap)
            if _is_on_time(group, entry):
                heapq.heappush(due, (place(group, entry), entry))
        if not due:
            return
        _, entry = heapq.heappop(due)
        timer = running(group, entry)
        if timer is not None:
            _fire(run, timer, now_ms)


def _is_on_time(group: AuditedGroup, entry: Entry) -> bool:
    """Return whether an entry's timer ends now; a member's timer that ends later is filed again."""
    _, whose, seq, member_id = entry
    if whose == MEMBER:
        member = group.members.get(member_id) or group.pending.get(member_id)
        if member is None or member.seq != seq or member.filed_ms != entry[0]:
            return False
        member.filed_ms = NEVER
        if entry[0] < member.deadline_ms < NEVER:
            member.filed_ms = member.deadline_ms
            heapq.heappush(group.heap, (member.deadline_ms, MEMBER, seq, member_id))
    return running(group, entry) is not None


def next_deadline_ms(group: AuditedGroup) -> int:
    """Return a moment before which no timer of a group fires, epoch ms."""
    return group.heap[0][0] if group.heap else NEVER


def is_forgotten(group: AuditedGroup) -> bool:
    """Return whether a group is like one that was never seen."""
    return group.kind == NOBODY and not group.away


def _fire(run: Run, timer: AuditedMember | int, now_ms: int) -> None:
    group = run.group
    group.now_ms = max(group.now_ms, now_ms)
    if isinstance(timer, AuditedMember):
        timer.deadline_ms = NEVER
        if not _may_be_out(group, timer):
            _expire(run, timer)
    elif timer == JOIN:
        group.join_ms = NEVER
        join_timer_fires(run)
    elif timer == SYNC:
        group.sync_ms = NEVER
        sync_timer_fires(run)
    else:
        _forget(group)
    _keep_or_forget(run)


def _expire(run: Run, member: AuditedMember) -> None:
    """Expire a member whose timer ended, unless it only waits for the others: `hasSatisfiedHeartbeat`."""
    group, member_id = run.group, member.member_id
    waits = (member.joining or member.syncing) and not member.is_new
    if waits and group.kind == CLASSIC:
        return
    pending = member_id in group.pending
    members.remove(group, member_id)
    run.emit_expired(member, member.expiry, member.timer_ms)
    reason = f"removing member {member_id} on heartbeat expiration."
    if group.kind in (LOADED, PRESENCE):
        depart(run, reason, "member_expired", (member_id,))
    elif not pending and group.state in (STABLE, COMPLETING):
        rebalance_or_complete(run, reason, "member_expired")
    else:
        complete_if_all_joined(run)  # an expiry also ends the initial phase early, which a leave does not


def _may_be_out(group: AuditedGroup, member: AuditedMember) -> bool:
    """Return whether an unknown timer may have removed a member because its join or sync was late."""
    if not group.unproven or member.member_id in group.pending:
        return False
    lowest_ms = max((each.rebalance_ms for each in group.members.values()), default=0)
    if member.member_id in group.unsynced:
        return group.now_ms >= group.sync_from_ms + lowest_ms
    waits_for_it = group.state == PREPARING and member.instance_id is None
    return waits_for_it and group.now_ms >= group.phase_ms + lowest_ms


def _keep_or_forget(run: Run) -> None:
    """Start or stop the timer that forgets an idle group."""
    group = run.group
    idle = group.away or (group.state == EMPTY and group.kind != NOBODY and not group.members and not group.pending)
    if not idle:
        group.forget_ms = NEVER
    elif group.forget_ms == NEVER:
        run.start_forgetting()


def _forget(group: AuditedGroup) -> None:
    fresh = AuditedGroup(group.group_id)
    for name in _FIELDS:
        if name != "verdicts":
            setattr(group, name, getattr(fresh, name))


def _handle(run: Run, event: Event) -> str:
    group, kind = run.group, event.type
    if kind is EventType.HEARTBEAT:
        return "" if group.away else request(run, event)
    if kind is EventType.LOAD:
        load(run)
    elif kind is EventType.UNLOAD:
        unload(run)
    elif group.away:
        return ""
    elif kind is EventType.JOIN:
        return _join(run, event)
    elif kind is EventType.LEAVE:
        return leave(run, event)
    elif kind is EventType.EXPIRED:
        _expired_elsewhere(run, event)
    else:
        return request(run, event)
    return ""


def _join(run: Run, event: Event) -> str:
    group, accepted = run.group, event.error_code == ACCEPTED
    if not accepted and not run.allows_session(run.session_of(event)):
        return BAD_TIMEOUT
    if accepted and event.generation_id > 0 and follow_join(run, event):
        return ""
    if group.kind == NOBODY and event.member_id:
        return ""  # a join does not show its group's generation; later requests do
    become_classic(run, event)
    cause = join(run, event)
    if accepted and event.leader and group.state == PREPARING:
        group.leader = event.leader
    return cause


def _expired_elsewhere(run: Run, event: Event) -> None:
    """Expire a member as the coordinator's own log says, whose end only the coordinator knew, or knew better."""
    group = run.group
    member = group.members.get(event.member_id) if group.kind in (CLASSIC, LOADED) else None
    if member is None or member.joining or member.syncing:
        return
    if member.deadline_ms == NEVER:
        member.expiry, member.timer_ms = "session_timeout", group.now_ms - member.seen_ms
        _expire(run, member)
    elif member.seen_ms + member.session_ms - ABOUT_MS <= group.now_ms:
        _expire(run, member)
