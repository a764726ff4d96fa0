"""The steps of a group with member epochs: its epoch, its target assignment, and its members' partitions.

Facts of Kafka's `GroupMetadataManager` and `CurrentAssignmentBuilder`. The target itself is in no request, so a
member's partitions follow from its answers where they are known.
"""

from __future__ import annotations

from heartwheel.proof.audit.rules.epoch_model import CONSUMER, LOOKUP_MS, REVOCATION, SHARE, STREAMS, Parts, Person
from heartwheel.proof.audit.rules.epoch_run import EpochRun
from heartwheel.wire.group_heartbeats import GroupHeartbeat, HeartbeatType

_SINGLE_BUMPS_MAX = 100
"""Up to this many new epochs at once have one verdict each; more have a single verdict."""


def next_epoch(
    run: EpochRun, cause: str, *, joined: tuple[str, ...] = (), removed: tuple[str, ...] = (), sender: str = ""
) -> None:
    """Bump the group's epoch by one, because a member joined or left, or for another cause.

    A streams group's words name the sender of the request.
    """
    modern = run.modern
    modern.epoch += 1
    words = f"[GroupId {run.group.group_id}] Bumped group epoch to {modern.epoch}."
    if modern.kind == STREAMS:
        whose = f"[MemberId {sender}]" if sender else ""
        words = f"[GroupId {run.group.group_id}]{whose} Bumped streams group epoch to {modern.epoch}."
    run.emit_epoch("epoch_bumped", words, cause, joined=joined, removed=removed)


def follow_answer(run: EpochRun, answered: int, sender: str = "") -> None:
    """Bump the epoch to the one in an answer, for a cause that is in no request."""
    if answered > run.modern.epoch + _SINGLE_BUMPS_MAX:
        run.modern.epoch = answered - 1
    while answered > run.modern.epoch:
        next_epoch(run, "metadata_changed", sender=sender)


def compute_target(run: EpochRun) -> None:
    """Record a new target assignment for the group's epoch."""
    modern = run.modern
    modern.target, modern.target_ms, modern.first_target_ms = modern.epoch, run.group.now_ms, -1


def assign_if_due(run: EpochRun, shown: int | None) -> None:
    """Compute a target if the epoch has moved, but not twice in the interval; `shown` is the epoch of the answer."""
    modern, now_ms = run.modern, run.group.now_ms
    if modern.epoch <= modern.target or modern.first_target_ms >= 0:
        return
    pause_ms = run.set_for("assignment_interval")
    if shown == modern.epoch or modern.target_ms < 0 or now_ms - modern.target_ms >= pause_ms:
        compute_target(run)


def subscribe(run: EpochRun, person: Person, beat: GroupHeartbeat, *, came: bool) -> None:
    """Set a member's subscription; a changed one bumps the epoch, a new pattern only when its topics are known.

    A new member bumps it, too, if its subscription is unknown.
    """
    modern = run.modern
    cause = "member_updated" if person.topics or person.pattern else "member_joined"
    wanted = person.topics if beat.subscribed_topics is None else tuple(sorted(set(beat.subscribed_topics)))
    pattern = person.pattern if beat.subscribed_regex is None else beat.subscribed_regex
    moves = wanted != person.topics or (came and beat.subscribed_topics is None and beat.subscribed_regex is None)
    if pattern != person.pattern:
        shared = any(other is not person and other.pattern == pattern for other in modern.people.values())
        if pattern and (pattern in modern.lookups or not shared):
            if pattern not in modern.lookups:
                modern.lookups[pattern] = run.group.now_ms + LOOKUP_MS
                run.file_group(modern.lookups[pattern])
        else:
            moves = True
    person.topics, person.pattern = wanted, pattern
    if moves:
        next_epoch(run, cause, joined=(person.member_id,) if came else (), sender=person.member_id)


def learn_about(person: Person, beat: GroupHeartbeat) -> bool:
    """Keep what a streams member says of itself; return whether it said something else before.

    A static member may return from another client or with another rebalance timeout, which changes nothing.
    """
    if beat.type is not HeartbeatType.STREAMS:
        return False
    said = {
        "rack_id": beat.rack_id,
        "process_id": beat.process_id,
        "client_tags": beat.client_tags,
        "topology_epoch": beat.topology_epoch,
    }
    said = {name: value for name, value in said.items() if value is not None}
    before, person.about = person.about, person.about | said
    if not before:
        return False
    differs = any(before.get(name) != value for name, value in said.items())
    if person.instance_id is not None:
        return differs
    moved = beat.client_id not in (None, "", person.client_id) or beat.client_host not in (None, "", person.client_host)
    return differs or moved or (beat.rebalance_timeout_ms or -1) not in (-1, person.patience_ms)


def end_lookup(run: EpochRun, pattern: str) -> None:
    """Record that the topics of a pattern are known."""
    del run.modern.lookups[pattern]
    if any(person.pattern == pattern for person in run.modern.people.values()):
        next_epoch(run, "member_updated")


def reconcile(run: EpochRun, person: Person, beat: GroupHeartbeat) -> None:
    """Set a member's epoch and partitions from the answer, and start or stop its time to give partitions back."""
    was = (person.epoch, person.has, person.to_revoke, person.must_revoke)
    answered = beat.answer_member_epoch
    if person.must_revoke and (_gave_back(person, beat) or (answered is not None and answered > person.epoch > 0)):
        _settle(person)
    if not person.must_revoke:
        _take_over(run, person, beat)
    if (person.epoch, person.has, person.to_revoke, person.must_revoke) != was:
        person.earlier = was[0]


def _settle(person: Person) -> None:
    person.must_revoke, person.to_revoke = False, {}
    person.clocks.pop(REVOCATION, None)


def _gave_back(person: Person, beat: GroupHeartbeat) -> bool:
    if beat.revoking is not None:
        return not beat.revoking
    if beat.member_epoch == 0:
        return True
    return beat.owned is not None and bool(person.to_revoke) and not _overlap(beat.owned, person.to_revoke)


def _take_over(run: EpochRun, person: Person, beat: GroupHeartbeat) -> None:
    answered, epoch_before = beat.answer_member_epoch, person.epoch
    owned = {} if beat.member_epoch == 0 else beat.owned
    lost = _lost(person.has if person.has is not None else beat.owned, beat.assignment)
    if run.modern.kind == STREAMS:
        lost = _without_new_roles(lost, beat.assignment or {})
    if beat.assignment is not None:
        person.has = _sorted(beat.assignment)
    elif person.has is None and beat.owned is not None:
        person.has = _sorted(beat.owned)
    moved_on = answered is not None and beat.member_epoch > 0 and answered > max(epoch_before, beat.member_epoch)
    person.proven = answered is not None
    if answered is not None:
        person.epoch = answered
    elif beat.member_epoch == 0:
        person.epoch = run.modern.target
    if run.modern.kind == SHARE:
        return
    holds_on = bool(lost) and not moved_on and (owned is None or _overlap(owned, lost))
    if holds_on or (beat.revoking and not lost):
        person.must_revoke, person.to_revoke = True, lost
        run.start_revocation(person)
    else:
        person.clocks.pop(REVOCATION, None)


def _lost(had: Parts | None, assigned: Parts | None) -> Parts:
    if had is None or assigned is None:
        return {}
    found = {topic: tuple(part for part in had[topic] if part not in assigned.get(topic, ())) for topic in had}
    return {topic: parts for topic, parts in found.items() if parts}


def _without_new_roles(lost: Parts, assigned: Parts) -> Parts:
    """Leave out the standby and warm-up tasks that the member has as tasks of another kind from now on."""
    given = {
        (subtopology, part)
        for tasks, parts in assigned.items()
        for kind, _, subtopology in [tasks.partition("/")]
        for part in parts
        if kind in ("activeTasks", "standbyTasks", "warmupTasks")
    }
    kept = {}
    for tasks, parts in lost.items():
        kind, _, subtopology = tasks.partition("/")
        kept[tasks] = tuple(part for part in parts if kind == "activeTasks" or (subtopology, part) not in given)
    return {tasks: parts for tasks, parts in kept.items() if parts}


def _overlap(one: Parts, other: Parts) -> bool:
    return any(part in other.get(topic, ()) for topic, parts in one.items() for part in parts)


def _sorted(parts: Parts) -> Parts:
    return {topic: tuple(sorted(each)) for topic, each in parts.items()}


def fits_epoch(run: EpochRun, person: Person, beat: GroupHeartbeat) -> bool:
    """Return whether a request has its sender's epoch; a later or an older epoch is refused.

    The former epoch is accepted, too, while the sender may not know the present one. Except in share groups, the
    request must then name only partitions that the sender still has.
    """
    asked = beat.member_epoch
    if asked in (0, person.epoch):
        return True
    if asked > person.epoch:
        return not person.proven and person.epoch >= 0 and asked <= run.modern.epoch
    if asked != person.earlier:
        return False
    if run.modern.kind == SHARE:
        return True
    has = person.has or {}
    return beat.owned is not None and all(set(parts) <= set(has.get(topic, ())) for topic, parts in beat.owned.items())


def leaves_classic_members(run: EpochRun) -> bool:
    """Return whether all members use the classic protocol, so that the group returns to it."""
    people, config = run.modern.people, run.config
    allowed = config.group_consumer_migration_policy in ("bidirectional", "downgrade")
    if run.modern.kind != CONSUMER or not allowed or not 0 < len(people) <= config.group_max_size:
        return False
    return all(person.classic_ms for person in people.values())


def is_full(run: EpochRun, member_id: str, instance_id: str | None = None) -> bool:
    """Return whether a group of this kind is at its maximum size, so that it refuses this join.

    Kafka 4.3 refuses the return of a static member under another id, too, and any join to a full streams group.
    """
    modern = run.modern
    most: int = getattr(run.config, f"group_{modern.kind}_max_size")
    is_known = member_id in modern.people
    if run.config.kafka_version == "4.3":
        is_known = is_known and modern.kind != STREAMS
    else:
        is_known = is_known or run.holder(instance_id) is not None
    return len(modern.people) >= most and not is_known


def leave_no_target(run: EpochRun) -> None:
    """Note that a group without members computes its next target at once: since Kafka 4.4."""
    modern = run.modern
    if run.config.kafka_version != "4.3" and not modern.people:
        modern.target, modern.target_ms = modern.epoch, 0
