"""Groups with member epochs whose log begins in the middle of their life: heartwheel's own rules (docs/groups.md).

A client that joined before the log begins counts as a member because of its requests, whichever protocol they use.
"""

from __future__ import annotations

from heartwheel.proof.audit.rules.epoch_model import PAST_MAX, RESYNC, Person
from heartwheel.proof.audit.rules.epoch_run import EpochRun
from heartwheel.proof.audit.rules.epoch_steps import assign_if_due, follow_answer, is_full
from heartwheel.proof.audit.rules.joins import FULL
from heartwheel.wire.events import UNCHECKED_GENERATION, Event
from heartwheel.wire.group_heartbeats import GroupHeartbeat

_NEW_GROUPS_ANSWER = 2
"""The highest epoch in the answer to the first join of a new group."""


def _is_blank(run: EpochRun) -> bool:
    modern = run.modern
    return not (modern.people or modern.past) and modern.target_ms < 0


def may_have_been_there(run: EpochRun, member_id: str) -> bool:
    """Return whether an unknown sender may have joined before the log begins."""
    return member_id not in run.modern.past and (run.modern.met_late or _is_blank(run))


def note_age(run: EpochRun, beat: GroupHeartbeat) -> None:
    """Record that a group is older than its first join in the log, if the answer to that join shows it."""
    answered = beat.answer_member_epoch
    if beat.member_epoch == 0 and answered is not None and answered > _NEW_GROUPS_ANSWER and _is_blank(run):
        run.modern.met_late = True
        run.modern.epoch = run.modern.target = answered - 1


def note_assigned_id(run: EpochRun, member_id: str) -> None:
    """Record that an id was only just assigned, so no member had it before."""
    if run.modern.met_late:
        run.modern.past = [*run.modern.past, member_id][-PAST_MAX:]


def enter_late(run: EpochRun, person: Person, shown: int) -> Person:
    """Add a member that joined before the log begins; the group is at least at the epoch in its request."""
    modern = run.modern
    modern.met_late = modern.met_late or not modern.people
    if modern.met_late:
        for other in modern.people.values() if shown > modern.target else ():
            run.doubt(other, shown)
        modern.epoch, modern.target = max(modern.epoch, shown), max(modern.target, shown)
    return run.enter(person)


def add_late_classic(run: EpochRun, event: Event) -> Person | str:
    """Add the unknown sender of a classic heartbeat or sync; return a reject's cause or "" if it is not added.

    The length of its session is assumed. Its time to join again is not, so that no member that sends heartbeats is
    removed.
    """
    if event.generation_id == UNCHECKED_GENERATION or not may_have_been_there(run, event.member_id):
        return ""
    if is_full(run, event.member_id):
        return FULL
    unseen = Person(
        event.member_id,
        instance_id=event.group_instance_id,
        client_id=event.client_id,
        client_host=event.client_host,
        epoch=event.generation_id,
        earlier=event.generation_id,
        proven=True,
        classic_ms=run.session_of(event) or -1,
    )
    return enter_late(run, unseen, event.generation_id)


def joins_again(run: EpochRun, event: Event) -> bool:
    """Return whether a classic join may be that of a member which joined before the log begins.

    Such a dynamic member already has an id, and the id is not known to be free. A static member need not have one.
    """
    id_ = event.member_id
    if not id_ and event.group_instance_id is not None:
        id_ = event.assigned_member_id or ""
    return run.modern.met_late and id_ != "" and id_ not in run.modern.past


def believe(run: EpochRun, person: Person, generation: int) -> bool:
    """Return whether a classic member may be at a generation; if so, the generation becomes its epoch.

    No event has the answer to a join. So the member's next request shows its epoch: the target's, or its former one as
    long as it has partitions to give back. A later generation comes from a join before the log begins: possible in a
    group met late, and up to the group's epoch in any group.
    """
    modern, was = run.modern, person.epoch
    if generation == UNCHECKED_GENERATION:
        return True
    if generation == was:
        person.proven = True
        return True
    if person.proven:
        believable = generation > was and (modern.met_late or generation <= modern.epoch)
    else:
        believable = generation >= min(person.earlier, was)
    if not believable:
        return False
    person.must_revoke = generation < was and RESYNC in person.clocks
    person.epoch, person.proven = generation, True
    follow_answer(run, generation)
    if generation == modern.epoch:
        assign_if_due(run, generation)
    return True
