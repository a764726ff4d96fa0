"""Groups whose log begins in the middle of their life: heartwheel's own rules, as docs/groups.md states them.

The rules believe what such a group's members say about themselves, where Kafka, which has seen all of it, would refuse.
"""

from __future__ import annotations

from heartwheel.proof.audit.rules import members
from heartwheel.proof.audit.rules.context import Run
from heartwheel.proof.audit.rules.model import CLASSIC, EMPTY, LOADED, STABLE, AuditedGroup, AuditedMember
from heartwheel.proof.audit.rules.phases import write_record
from heartwheel.wire.events import Event


def take_over(run: Run, event: Event) -> AuditedMember:
    """Add a member that must have joined before the log begins, without a verdict."""
    group, instance = run.group, event.group_instance_id
    holder = group.static.get(instance) if instance is not None else None
    if holder is not None:
        member = members.replace_static(group, group.members[holder], event.member_id)
    else:
        member = AuditedMember(
            member_id=event.member_id,
            seq=members.take_seq(group),
            session_ms=run.session_of(event),
            rebalance_ms=run.rebalance_of(event),
            instance_id=instance,
            client_id=event.client_id,
            client_host=event.client_host,
        )
        members.put(group, member)
    member.seen_ms = group.now_ms
    run.reset(member)
    if group.kind == CLASSIC:
        _record(group, member)
    if group.state == EMPTY:
        group.came_from, group.state = EMPTY, STABLE
    return member


def _record(group: AuditedGroup, member: AuditedMember) -> None:
    recorded = group.record.members
    for other in list(recorded.values()):
        same = other.instance_id is not None and other.instance_id == member.instance_id
        if same or other.member_id == member.member_id:
            del recorded[other.member_id]
    recorded[member.member_id] = member


def is_ahead(group: AuditedGroup, event: Event) -> bool:
    """Return whether an event proves that a rebalance was missed; in a group whose generation is confirmed it does not.

    A generation is confirmed once a member has agreed with it, and after an outage once a member has done so again.
    """
    if event.generation_id <= group.generation or group.kind != CLASSIC or not group.confirmed:
        return event.generation_id > group.generation
    active = [one for one in group.members.values() if one.seen_ms > group.renewed_ms]
    return group.renewed_ms >= 0 and all(one.joining or one.member_id in group.unsynced for one in active)


def catch_up(run: Run, generation: int, *, quiet: bool = False) -> None:
    """Move a group to the generation in a member's request; it is a loaded group from then on.

    The generation may go back, if the coordinator's answer shows that. Then later generations may repeat former ones.
    """
    group, before = run.group, run.group.generation
    if group.kind == CLASSIC:
        _leave_phases(run)
    if generation <= before:
        group.note_read()
        group.rebalance_generation = -1
    unseen = group.state == EMPTY and not group.members
    group.kind, group.generation, group.unproven = LOADED, generation, False
    if unseen:
        return
    if generation > before and not quiet:
        words = f"Group {group.group_id} moved on from generation {before} to {generation}, "
        run.emit("rebalance_completed", words + "as a request at that generation shows.", "generation_advanced",
                leader=group.leader)  # fmt: skip
    if group.state != STABLE:
        group.came_from, group.state = group.state, STABLE


def _leave_phases(run: Run) -> None:
    """Restart the sessions of waiting members: the phase must be over."""
    group = run.group
    run.stop_phase_timers()
    group.unsynced, group.pending, group.leader = {}, {}, None
    for member in group.members.values():
        if member.joining or member.syncing or member.is_new:
            member.joining = member.syncing = member.is_new = False
            run.reset(member)


def become_classic(run: Run, event: Event) -> None:
    """Turn a group into a classic group at its first join; its members are kept as after a load."""
    group = run.group
    if group.kind == CLASSIC:
        return
    group.met_late = group.kind == LOADED
    group.unproven = group.met_late and event.error_code is not None
    wait_for_unheard(run)
    if group.rebalance_generation == group.generation and group.phase_ms == group.now_ms:
        group.note_read()  # a second rebalance in this generation and millisecond must have another id
    group.kind, group.confirmed = CLASSIC, False
    write_record(group)


def wait_for_unheard(run: Run) -> None:
    """Assume that unknown static members may exist for the longest session from now on."""
    if run.group.unproven:
        run.group.whole_ms = run.group.now_ms + run.config.group_max_session_timeout_ms
