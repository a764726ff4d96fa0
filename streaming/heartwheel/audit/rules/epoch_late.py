"""Groups that go by epochs and were met in the middle of their life: heartwheel's own rules (docs/groups.md).

Who joined before the log begins is believed to be a member by what it sends, whichever protocol it speaks.
"""

from __future__ import annotations

from heartwheel.audit.rules.epoch_model import PAST_MAX, RESYNC, Person
from heartwheel.audit.rules.epoch_run import EpochRun
from heartwheel.audit.rules.epoch_steps import assign_if_due, follow_answer, is_full
from heartwheel.audit.rules.joins import FULL
from heartwheel.wire.events import UNCHECKED_GENERATION, Event
from heartwheel.wire.group_heartbeats import GroupHeartbeat

_NEW_GROUPS_ANSWER = 2
"""The latest epoch that the first join of a new group is answered with."""


def _is_blank(run: EpochRun) -> bool:
    modern = run.modern
    return not (modern.people or modern.past) and modern.target_ms < 0


def may_have_been_there(run: EpochRun, member_id: str) -> bool:
    """Tell whether a stranger may have joined before the log begins."""
    return member_id not in run.modern.past and (run.modern.met_late or _is_blank(run))


def note_age(run: EpochRun, beat: GroupHeartbeat) -> None:
    """Note that a group is older than its first join in the log, as the answer to that shows."""
    told = beat.answer_member_epoch
    if beat.member_epoch == 0 and told is not None and told > _NEW_GROUPS_ANSWER and _is_blank(run):
        run.modern.met_late = True
        run.modern.epoch = run.modern.target = told - 1


def note_stranger(run: EpochRun, member_id: str) -> None:
    """Note that an id was only just handed out, so nobody was a member by it."""
    if run.modern.met_late:
        run.modern.past = [*run.modern.past, member_id][-PAST_MAX:]


def enter_late(run: EpochRun, person: Person, shown: int) -> Person:
    """Let somebody be a member who was one before; the group is at least at the epoch that is shown."""
    modern = run.modern
    modern.met_late = modern.met_late or not modern.people
    if modern.met_late:
        for other in modern.people.values() if shown > modern.target else ():
            run.doubt(other, shown)
        modern.epoch, modern.target = max(modern.epoch, shown), max(modern.target, shown)
    return run.enter(person)


def meet_classic(run: EpochRun, event: Event) -> Person | str:
    """Believe the sender of a classic heartbeat or sync; returns the cause of a reject, or nothing, if it is not.

    How long its session is, is assumed; how long it may take to join again is not, so that nobody who beats is ended.
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
    """Tell whether a classic join may be that of a member which was there before the log begins.

    A dynamic one then has an id already, of which it is not known that nobody has it; a static one need not have.
    """
    id_ = event.member_id
    if not id_ and event.group_instance_id is not None:
        id_ = event.assigned_member_id or ""
    return run.modern.met_late and id_ != "" and id_ not in run.modern.past


def believe(run: EpochRun, person: Person, generation: int) -> bool:
    """Tell whether a classic member may be at a generation, and take it over.

    The answer to a join is in no event. So what a member says after it tells its epoch: that of the target, or as long
    as it has partitions to give back, the one that it had. In a group met late, and up to the group's epoch in any, a
    later one comes of a join that was not seen.
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
    person.owes = generation < was and RESYNC in person.clocks
    person.epoch, person.proven = generation, True
    follow_answer(run, generation)
    if generation == modern.epoch:
        assign_if_due(run, generation)
    return True
