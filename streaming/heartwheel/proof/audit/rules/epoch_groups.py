"""The loop of a group with member epochs: due timers, then the request; loads, unloads, outages, forgetting."""

from __future__ import annotations

import heapq

import msgspec

from heartwheel.proof.audit.rules.context import Run
from heartwheel.proof.audit.rules.epoch_classic import classic_request
from heartwheel.proof.audit.rules.epoch_conversion import (
    continue_upgraded,
    downgrade,
    emit_upgraded,
    forget_classic,
    takes,
    upgraded,
)
from heartwheel.proof.audit.rules.epoch_model import REVOCATION, SESSION, Modern, Person
from heartwheel.proof.audit.rules.epoch_requests import BACK, REFUSED, fence, heartbeat
from heartwheel.proof.audit.rules.epoch_run import PERSON, EpochRun
from heartwheel.proof.audit.rules.epoch_steps import compute_target, end_lookup
from heartwheel.proof.audit.rules.model import FORGET, NEVER, NOBODY, AuditedGroup
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.group_heartbeats import GroupHeartbeat

_Due = tuple[int, int, int, int, str, str]
"""End (epoch ms), start, the member's place, the timer's place, the member's id, the timer's purpose."""


def take(run: Run, request: Event | GroupHeartbeat) -> str:
    """Apply a request to a group with member epochs; return the cause if it must be on the rejects topic."""
    group, epochs = run.group, EpochRun(run.group, run.config, run.verdicts)
    if isinstance(request, Event) and request.type in (EventType.LOAD, EventType.UNLOAD):
        _load(epochs) if request.type is EventType.LOAD else _unload(epochs)
        answer = ""
    elif group.away:
        answer = REFUSED
    elif isinstance(request, Event):
        answer = classic_request(epochs, request)
    else:
        answer = heartbeat(epochs, request)
    return _follow(run, answer)


def _follow(run: Run, answer: str) -> str:
    """Turn a group back to the classic protocol if a request or a timer had that result."""
    if answer.startswith(BACK):
        downgrade(run, rebalances=answer == BACK)
    else:
        _keep_or_forget(run)
    return "" if answer == REFUSED or answer.startswith(BACK) else answer


def first_heartbeat(run: Run, beat: GroupHeartbeat) -> str:
    """Apply a heartbeat to a group without member epochs; it has them from now on, if the heartbeat is accepted."""
    group, kind = run.group, beat.type.value.removesuffix("_heartbeat")
    accepted = beat.answer_member_epoch is not None
    policy = run.config.group_consumer_migration_policy
    if group.away or not takes(group, kind, epoch=beat.member_epoch, accepted=accepted, policy=policy):
        return ""
    trial = AuditedGroup(group.group_id, verdicts=group.verdicts, now_ms=group.now_ms)
    trial.modern = upgraded(group) if group.members else Modern(kind=kind)
    epochs = EpochRun(trial, run.config, [])
    if group.members and (beat.member_epoch == 0 or group.confirmed):
        emit_upgraded(epochs)
    elif group.members:
        continue_upgraded(epochs, group, max(beat.member_epoch, beat.answer_member_epoch or 0))
    answer = heartbeat(epochs, beat)
    if answer:
        return "" if answer == REFUSED else answer
    forget_classic(group)
    group.modern, group.heap, group.verdicts = trial.modern, trial.heap, trial.verdicts
    group.kind = trial.modern.kind
    run.verdicts.extend(epochs.verdicts)
    _keep_or_forget(run)
    return ""


def fire_due(run: Run) -> None:
    """Fire the timers that end first, in the order of their starts; members break ties in the order of joining."""
    group = run.group
    now_ms = group.heap[0][0]
    due: list[_Due] = []
    forget = False
    looked_at: set[str] = set()
    while group.heap and group.heap[0][0] == now_ms:
        _, whose, place, member_id = heapq.heappop(group.heap)
        forget = forget or (whose == FORGET and group.forget_ms == now_ms)
        person = group.modern.people.get(member_id) if group.modern is not None and whose == PERSON else None
        if person is None or person.place != place or member_id in looked_at:
            continue
        looked_at.add(member_id)
        due += _due_of(person, now_ms)
    epochs = EpochRun(group, run.config, run.verdicts)
    for one in sorted(due):
        if group.modern is None:
            return
        _fire(epochs, one)
    for member_id in looked_at:
        person = group.modern.people.get(member_id) if group.modern is not None else None
        if person is not None and group.modern is not None:
            person.filed_ms = NEVER
            epochs.file(person)
    if group.modern is not None:
        _fire_group(epochs, now_ms)
    if forget and group.forget_ms == now_ms:
        _forget(run)


def _due_of(person: Person, now_ms: int) -> list[_Due]:
    return [
        (clock.end_ms, clock.end_ms - clock.length_ms, person.place, clock.place, person.member_id, what)
        for what, clock in person.clocks.items()
        if clock.end_ms <= now_ms
    ]


def _fire(run: EpochRun, one: _Due) -> None:
    end_ms, _, _, place, member_id, what = one
    person = run.modern.people.get(member_id)
    clock = person.clocks.get(what) if person is not None else None
    if person is None or clock is None or (clock.end_ms, clock.place) != (end_ms, place):
        return
    run.group.now_ms = max(run.group.now_ms, end_ms)
    del person.clocks[what]
    if what == REVOCATION and person.epoch != clock.epoch:
        return
    # A member that must revoke partitions that were revoked before the log began has been removed by now. A timer that
    # is not known may have removed it long before.
    in_doubt = what == SESSION and person.must_revoke and run.is_guess(person)
    if not in_doubt:
        run.emit_fenced(person, what, clock)
    run.modern.leavers.pop(member_id, None)
    _follow(run, fence(run, person, "" if in_doubt else "member_expired"))


def _fire_group(run: EpochRun, now_ms: int) -> None:
    modern, group = run.modern, run.group
    if modern.first_target_ms == now_ms and not group.away:
        group.now_ms = max(group.now_ms, now_ms)
        if modern.people:
            compute_target(run)
        modern.first_target_ms = -1
    for pattern in [name for name, at_ms in modern.lookups.items() if at_ms == now_ms and not group.away]:
        group.now_ms = max(group.now_ms, now_ms)
        end_lookup(run, pattern)


def _keep_or_forget(run: Run) -> None:
    group = run.group
    if group.modern is None:
        return
    if group.modern.people and not group.away:
        group.forget_ms = NEVER
    elif group.forget_ms == NEVER:
        run.start_forgetting()


def _forget(run: Run) -> None:
    group = run.group
    group.modern, group.kind, group.away, group.heap, group.forget_ms = None, NOBODY, False, [], NEVER
    group.now_ms, group.renewed_ms = 0, -1


def _load(run: EpochRun) -> None:
    """Restart all sessions with the group's session timeout, and the revocation time of members that owe partitions."""
    run.group.away = False
    for person in run.modern.people.values():
        person.clocks = {}
        run.start(person, SESSION, run.set_for("session_timeout"))
        if person.must_revoke:
            run.start_revocation(person)
    modern = run.modern
    for at_ms in (*modern.lookups.values(), *((modern.first_target_ms,) if modern.first_target_ms >= 0 else ())):
        run.file_group(at_ms)


def _unload(run: EpochRun) -> None:
    run.group.away = True
    for person in run.modern.people.values():
        person.clocks = {}


def renew_people(group: AuditedGroup, from_ms: int) -> None:
    """Restart all timers of members at the end of an outage, epoch ms; a timer that ends later is not changed."""
    modern = group.modern
    for person in modern.people.values() if modern is not None else ():
        for what, clock in person.clocks.items():
            end_ms = from_ms + clock.length_ms
            if clock.end_ms < end_ms:
                person.clocks[what] = msgspec.structs.replace(clock, end_ms=end_ms)
        first = min((clock.end_ms for clock in person.clocks.values()), default=NEVER)
        if first < person.filed_ms:
            person.filed_ms = first
            heapq.heappush(group.heap, (first, PERSON, person.place, person.member_id))
