"""Groups that were met in the middle of their life: heartwheel's own rules, as docs/groups.md states them.

What such a group's members say about themselves is believed where Kafka, which has seen everything, would refuse it.
"""

from __future__ import annotations

from heartwheel.audit.rules import members as who
from heartwheel.audit.rules.context import Run
from heartwheel.audit.rules.model import CLASSIC, EMPTY, LOADED, STABLE, Group, Member
from heartwheel.audit.rules.phases import write_record
from heartwheel.wire.events import Event


def take_over(run: Run, event: Event) -> Member:
    """Let somebody be a member, in silence, who must have joined before the group was seen."""
    group, instance = run.group, event.group_instance_id
    holder = group.static.get(instance) if instance is not None else None
    if holder is not None:
        member = who.replace_static(group, group.members[holder], event.member_id)
    else:
        member = Member(
            member_id=event.member_id,
            seq=who.take_seq(group),
            session_ms=run.session_of(event),
            rebalance_ms=run.rebalance_of(event),
            instance_id=instance,
            client_id=event.client_id,
            client_host=event.client_host,
        )
        who.put(group, member)
    member.seen_ms = group.now_ms
    run.reset(member)
    if group.kind == CLASSIC:
        _record(group, member)
    if group.state == EMPTY:
        group.came_from, group.state = EMPTY, STABLE
    return member


def _record(group: Group, member: Member) -> None:
    recorded = group.record.members
    for other in list(recorded.values()):
        same = other.instance_id is not None and other.instance_id == member.instance_id
        if same or other.member_id == member.member_id:
            del recorded[other.member_id]
    recorded[member.member_id] = member


def is_ahead(group: Group, event: Event) -> bool:
    """Tell whether an event proves that a rebalance was missed; of a group that is followed closely it does not.

    A group is not followed closely before somebody has agreed with its generation, nor since an outage before somebody
    has done so again.
    """
    if event.generation_id <= group.generation or group.kind != CLASSIC or not group.confirmed:
        return event.generation_id > group.generation
    heard = [one for one in group.members.values() if one.seen_ms > group.renewed_ms]
    return group.renewed_ms >= 0 and all(one.joining or one.member_id in group.unsynced for one in heard)


def catch_up(run: Run, generation: int, *, quiet: bool = False) -> None:
    """Move a group to the generation that a member speaks of; it is a loaded group from then on.

    It may go back, if the coordinator's answer shows that: then what it comes to later may have been there before.
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
        run.say("rebalance_completed", words + "as a request at that generation shows.", "generation_advanced",
                leader=group.leader)  # fmt: skip
    if group.state != STABLE:
        group.came_from, group.state = group.state, STABLE


def _leave_phases(run: Run) -> None:
    """Give whoever was parked a whole session: the phase must be over."""
    group = run.group
    run.stop_phase_timers()
    group.unsynced, group.pending, group.leader = {}, {}, None
    for member in group.members.values():
        if member.joining or member.syncing or member.is_new:
            member.joining = member.syncing = member.is_new = False
            run.reset(member)


def become_classic(run: Run, event: Event) -> None:
    """Hold a group to the classic protocol from its first join on; who is there stands as after a load."""
    group = run.group
    if group.kind == CLASSIC:
        return
    group.met_late = group.kind == LOADED
    group.unproven = group.met_late and event.error_code is not None
    wait_for_unheard(run)
    if group.rebalance_generation == group.generation and group.phase_ms == group.now_ms:
        group.note_read()  # a second rebalance of this generation and millisecond is another one
    group.kind, group.confirmed = CLASSIC, False
    write_record(group)


def wait_for_unheard(run: Run) -> None:
    """Reckon with static members that were never heard: from now on each may be there for the longest session."""
    if run.group.unproven:
        run.group.whole_ms = run.group.now_ms + run.config.group_max_session_timeout_ms
