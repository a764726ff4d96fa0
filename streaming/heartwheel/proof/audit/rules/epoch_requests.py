"""Heartbeats with a member epoch: joining, staying, leaving. Facts of Kafka's `GroupMetadataManager`."""

from __future__ import annotations

from heartwheel.proof.audit.rules.epoch_late import enter_late, may_have_been_there, note_age
from heartwheel.proof.audit.rules.epoch_model import (
    AWAY,
    LEAVERS_MAX,
    REJOIN,
    RESYNC,
    SHARE,
    STREAMS,
    Person,
    stage_of,
)
from heartwheel.proof.audit.rules.epoch_run import EpochRun
from heartwheel.proof.audit.rules.epoch_steps import (
    assign_if_due,
    fits_epoch,
    follow_answer,
    is_full,
    learn_about,
    leave_no_target,
    leaves_classic_members,
    next_epoch,
    reconcile,
    subscribe,
)
from heartwheel.proof.audit.rules.joins import FULL
from heartwheel.wire.group_heartbeats import GroupHeartbeat

REFUSED = "refused"
"""The result of a request that has no effect and is no reject."""

BACK = "back"
"""The result of a request after which only classic members remain, so that the group returns to their protocol."""


def heartbeat(run: EpochRun, beat: GroupHeartbeat) -> str:
    """Apply a heartbeat; return the cause of its reject, `REFUSED`, `BACK`, or an empty text."""
    modern = run.modern
    kind = beat.type.value.removesuffix("_heartbeat")
    if kind == STREAMS and beat.group_instance_id is not None and not _has_static_streams(run, beat):
        return REFUSED
    if modern.kind != kind:
        if modern.people or beat.member_epoch != 0:
            return REFUSED
        modern.kind = kind
    if beat.member_epoch < 0:
        return _leave(run, beat)
    accepted = beat.answer_member_epoch is not None
    if beat.member_epoch == 0 and not accepted and is_full(run, beat.sender, beat.group_instance_id):
        return FULL
    note_age(run, beat)
    by_instance = beat.group_instance_id is not None and modern.kind != SHARE
    if by_instance:
        _forget_fenced(run, beat)
    before, at_first = len(modern.people), stage_of(modern) if beat.sender in modern.leavers else ""
    person = _by_instance(run, beat, accepted=accepted) if by_instance else _by_id(run, beat, accepted=accepted)
    if isinstance(person, str):
        return person
    if beat.member_epoch == 0 and beat.sender in modern.leavers:
        _note_return(run, person, beat, at_first)
    _stay(run, person, beat, came=beat.member_epoch == 0 and len(modern.people) > before)
    return ""


def _has_static_streams(run: EpochRun, beat: GroupHeartbeat) -> bool:
    """Return whether a static member of a streams group is possible: since Kafka 4.4, or because it was accepted."""
    return run.config.kafka_version != "4.3" or beat.answer_member_epoch is not None


def _note_return(run: EpochRun, person: Person, beat: GroupHeartbeat, at_first: str) -> None:
    """Add the verdict that a member which left and returns was late to poll: only the same process has its id."""
    left_ms, how = run.modern.leavers.pop(beat.sender)
    limit_ms = max(_patience_ms(person, beat), 0)
    run.emit_late_poll(person, beat, left_ms=left_ms, how=how, limit_ms=limit_ms, stage=at_first)


def _patience_ms(person: Person, beat: GroupHeartbeat) -> int:
    """Return a member's rebalance timeout after a heartbeat, ms; -1 or no value keep the former one."""
    asked_ms = beat.rebalance_timeout_ms
    return person.patience_ms if asked_ms is None or asked_ms < 0 else asked_ms


def _stay(run: EpochRun, person: Person, beat: GroupHeartbeat, *, came: bool) -> None:
    answered = beat.answer_member_epoch
    if person.classic_ms:
        person.classic_ms, person.offers = 0, ()
        for what in (REJOIN, RESYNC):
            person.clocks.pop(what, None)
    if beat.member_epoch > person.epoch and not person.proven and beat.member_epoch > 0:
        person.earlier, person.epoch = person.epoch, beat.member_epoch
    is_other = learn_about(person, beat) and not came
    person.client_id = beat.client_id or person.client_id
    person.client_host = beat.client_host or person.client_host
    person.patience_ms = _patience_ms(person, beat)
    subscribe(run, person, beat, came=came)
    if is_other:
        next_epoch(run, "member_updated", sender=person.member_id)
    if answered is not None:
        follow_answer(run, answered, person.member_id)
    assign_if_due(run, answered)
    reconcile(run, person, beat)
    run.doubt(person, run.modern.target)
    run.start_session(person)


def _by_id(run: EpochRun, beat: GroupHeartbeat, *, accepted: bool) -> Person | str:
    person = run.modern.people.get(beat.sender)
    if person is None:
        return _new(run, beat) if beat.member_epoch == 0 else _unseen(run, beat, accepted=accepted)
    return person if accepted or fits_epoch(run, person, beat) else REFUSED


def _by_instance(run: EpochRun, beat: GroupHeartbeat, *, accepted: bool) -> Person | str:
    holder = run.holder(beat.group_instance_id)
    if beat.member_epoch == 0:
        if holder is None:
            return _new(run, beat)
        if not accepted and not holder.classic_ms and holder.epoch != AWAY:
            return REFUSED
        return replace_static(run, holder, beat.sender)
    if holder is None:
        return _unseen(run, beat, accepted=accepted)
    if holder.member_id != beat.sender or not (accepted or fits_epoch(run, holder, beat)):
        return REFUSED
    return holder


def _forget_fenced(run: EpochRun, beat: GroupHeartbeat) -> None:
    """Remove a static member that joins again without having left: a broker accepts that only after it fenced it.

    The fence itself is in no request. An epoch in the answer that is beyond the group's shows it.
    """
    own = run.holder(beat.group_instance_id)
    answered = beat.answer_member_epoch or 0
    if own is None or own.member_id != beat.sender or own.classic_ms or own.epoch == AWAY:
        return
    if beat.member_epoch == 0 and answered > run.modern.epoch:
        run.drop(own)


def _new(run: EpochRun, beat: GroupHeartbeat) -> Person:
    modern = run.modern
    if modern.kind == STREAMS and not modern.people:
        delay_ms = run.set_for("initial_rebalance_delay")
        if delay_ms and modern.first_target_ms < 0:
            modern.first_target_ms = run.group.now_ms + delay_ms
            run.file_group(modern.first_target_ms)
    instance_id = None if modern.kind == SHARE else beat.group_instance_id
    return run.enter(Person(beat.sender, instance_id=instance_id, has={}))


def replace_static(run: EpochRun, old: Person, new_id: str) -> Person:
    """Replace a static member by its successor, which keeps its partitions but has its own epochs and timers."""
    run.drop(old)
    if new_id != old.member_id:
        run.modern.leavers.pop(old.member_id, None)
    return run.enter(
        Person(
            new_id,
            instance_id=old.instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            patience_ms=old.patience_ms,
            topics=old.topics,
            pattern=old.pattern,
            about=old.about,
            has=old.has,
        )
    )


def _unseen(run: EpochRun, beat: GroupHeartbeat, *, accepted: bool) -> Person | str:
    if not accepted and not may_have_been_there(run, beat.sender):
        return REFUSED
    if not accepted and is_full(run, beat.sender):
        return FULL
    unseen = Person(
        beat.sender,
        instance_id=beat.group_instance_id,
        epoch=beat.member_epoch,
        earlier=beat.member_epoch,
        topics=tuple(sorted(set(beat.subscribed_topics or ()))),
        pattern=beat.subscribed_regex or "",
    )
    return enter_late(run, unseen, max(beat.member_epoch, beat.answer_member_epoch or 0))


def _leave(run: EpochRun, beat: GroupHeartbeat) -> str:
    accepted = beat.answer_member_epoch is not None
    if beat.group_instance_id is None or run.modern.kind == SHARE:
        if beat.member_epoch == AWAY:
            return REFUSED
        person = run.modern.people.get(beat.sender)
        if person is None and accepted:
            person = run.enter(Person(beat.sender))
        return REFUSED if person is None else _remove_leaver(run, person)
    holder = run.holder(beat.group_instance_id)
    if holder is None or holder.member_id != beat.sender:
        return REFUSED
    if beat.member_epoch != AWAY:
        return _remove_leaver(run, holder)
    if holder.epoch != AWAY:
        _note_leaver(run, holder.member_id, AWAY)
    holder.epoch, holder.proven = AWAY, True
    holder.must_revoke, holder.to_revoke = False, {}
    return ""


def _remove_leaver(run: EpochRun, person: Person) -> str:
    _note_leaver(run, person.member_id, -1)
    return fence(run, person, "member_left")


def _note_leaver(run: EpochRun, member_id: str, epoch: int) -> None:
    leavers = {name: how for name, how in run.modern.leavers.items() if name != member_id}
    kept = [*leavers.items(), (member_id, (run.group.now_ms, epoch))][-LEAVERS_MAX:]
    run.modern.leavers = dict(kept)


def fence(run: EpochRun, person: Person, cause: str) -> str:
    """Remove a member and bump the epoch; return `BACK` instead if only classic members remain.

    Without a cause the epoch is not bumped: answers will show when it was.
    """
    run.drop(person)
    if leaves_classic_members(run):
        return BACK
    if not cause:
        return ""
    next_epoch(run, cause, removed=(person.member_id,))
    leave_no_target(run)
    return ""
