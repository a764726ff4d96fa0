"""Members of the classic protocol inside a consumer group, and groups that change their protocol.

Facts of Kafka's `classicGroupJoinToConsumerGroup`, `classicGroupSyncToConsumerGroup`,
`classicGroupHeartbeatToConsumerGroup`, `classicGroupLeaveToConsumerGroup`, `convertToConsumerGroup`,
`convertToClassicGroup`.
"""

from __future__ import annotations

from heartwheel.proof.audit.rules.epoch_late import add_late_classic, believe, joins_again, note_assigned_id
from heartwheel.proof.audit.rules.epoch_model import CONSUMER, REJOIN, RESYNC, REVOCATION, Person
from heartwheel.proof.audit.rules.epoch_requests import BACK, REFUSED, replace_static
from heartwheel.proof.audit.rules.epoch_run import EpochRun
from heartwheel.proof.audit.rules.epoch_steps import (
    assign_if_due,
    is_full,
    leave_no_target,
    leaves_classic_members,
    next_epoch,
)
from heartwheel.proof.audit.rules.joins import FULL
from heartwheel.proof.audit.rules.requests import BAD_TIMEOUT
from heartwheel.wire.events import Event, EventType, Leaving

_ASKS_FOR_ID = 4
"""The first version of JoinGroup whose sender must join with its id (KIP-394)."""

_HAS_TO_NAME = 5
"""The first version of SyncGroup that must name the protocol and its type (KIP-559)."""


def classic_request(run: EpochRun, event: Event) -> str:
    """Apply a request of the classic protocol; the result is like that of `epoch_requests.heartbeat`."""
    if run.modern.kind != CONSUMER:
        return REFUSED
    if event.type is EventType.JOIN:
        return _join(run, event)
    if event.type is EventType.LEAVE:
        return _leave(run, event)
    if event.type in (EventType.COMMIT, EventType.EXPIRED) or (
        event.type is EventType.SYNC and not _keeps_to_protocol(run, event)
    ):
        return REFUSED
    person = _sender(run, event)
    if isinstance(person, str):
        return person or REFUSED
    _keep_alive(run, event, person)
    return ""


def _keep_alive(run: EpochRun, event: Event, person: Person) -> None:
    """Apply a heartbeat or a sync; a member behind the group's epoch is asked to join again."""
    behind = person.epoch < run.modern.epoch
    if event.type is EventType.SYNC:
        if behind and not person.must_revoke:
            _ask_to_rejoin(run, person)
        else:
            person.clocks.pop(RESYNC, None)
            run.start_session(person)
        return
    run.start_session(person)
    if behind or person.must_revoke:
        _ask_to_rejoin(run, person)


def _sender(run: EpochRun, event: Event) -> Person | str:
    instance_id, people = event.group_instance_id, run.modern.people
    person = people.get(event.member_id) if instance_id is None else run.holder(instance_id)
    if person is None and event.member_id not in people:
        return add_late_classic(run, event)
    if person is None or person.member_id != event.member_id or not person.classic_ms:
        return ""
    return person if believe(run, person, event.generation_id) else ""


def _ask_to_rejoin(run: EpochRun, person: Person) -> None:
    """Start a member's time to join again, once; it is unknown for a member whose join is not in the log."""
    if REJOIN not in person.clocks and person.patience_ms >= 0:
        run.start(person, REJOIN, person.patience_ms)


def _session_of(run: EpochRun, event: Event) -> int:
    return event.session_timeout_ms or run.config.default_session_timeout_ms


def _why_not(run: EpochRun, event: Event) -> str:
    if not run.allows_session(_session_of(run, event)):
        return BAD_TIMEOUT
    if is_full(run, event.member_id, event.group_instance_id):
        return FULL
    if not _has_common_protocol(run, event):
        return REFUSED
    asks_for_id = event.api_version is None or event.api_version >= _ASKS_FOR_ID
    if not event.member_id and event.group_instance_id is None and asks_for_id:
        note_assigned_id(run, event.assigned_member_id or "")
        return REFUSED
    return ""


def _has_common_protocol(run: EpochRun, event: Event) -> bool:
    """Return whether all classic members share a protocol; those that list none do not count, heartwheel's own rule."""
    if not event.protocols and event.protocol_type is None:
        return True
    if event.protocol_type != CONSUMER:
        return False
    spoken = [dict(person.offers) for person in run.modern.people.values() if person.classic_ms and person.offers]
    return any(all(protocol.name in offers for offers in spoken) for protocol in event.protocols)


def _keeps_to_protocol(run: EpochRun, event: Event) -> bool:
    """Return whether a sync names the protocol selected by its sender's join: the first one that it offered."""
    has_to_name = event.api_version is not None and event.api_version >= _HAS_TO_NAME
    if has_to_name and (event.protocol_type is None or event.protocol_name is None):
        return False
    if event.protocol_type is not None and event.protocol_type != CONSUMER:
        return False
    sender = run.modern.people.get(event.member_id)
    if event.protocol_name is None or sender is None or not sender.classic_ms or not sender.offers:
        return True
    return event.protocol_name == sender.offers[0][0]


def _joining(run: EpochRun, event: Event, old: Person | None, member_id: str) -> Person | None:
    """Return the joining member, a new one if needed; `None` if an id does not match."""
    instance_id = event.group_instance_id
    if old is None:
        unknown = instance_id is not None and event.member_id and not joins_again(run, event)
        return None if unknown else run.enter(Person(member_id, instance_id=instance_id))
    if instance_id is not None and not event.member_id:
        return replace_static(run, old, member_id)
    return old if old.member_id == member_id else None


def _join(run: EpochRun, event: Event) -> str:
    modern, instance_id = run.modern, event.group_instance_id
    if refusal := _why_not(run, event):
        return refusal
    member_id = event.member_id or event.assigned_member_id or ""
    old = modern.people.get(member_id) if instance_id is None else run.holder(instance_id)
    is_new = old is None and member_id not in modern.people and not joins_again(run, event)
    was_modern = instance_id is not None and old is not None and not old.classic_ms
    person = _joining(run, event, old, member_id)
    if person is None:
        return REFUSED
    person.classic_ms = _session_of(run, event)
    person.offers = tuple((protocol.name, protocol.metadata_sha1) for protocol in event.protocols)
    person.patience_ms = event.rebalance_timeout_ms or run.config.default_rebalance_timeout_ms
    person.client_id, person.client_host = event.client_id, event.client_host
    if is_new:
        next_epoch(run, "member_joined", joined=(member_id,))
    assign_if_due(run, None)
    person.earlier, person.epoch, person.proven = person.epoch, modern.target, False
    person.must_revoke, person.to_revoke = False, {}
    for what in (REJOIN, REVOCATION):
        person.clocks.pop(what, None)
    if was_modern and leaves_classic_members(run):
        return f"{BACK} at once"
    run.start_session(person)
    run.start(person, RESYNC, person.patience_ms)
    return ""


def _leave(run: EpochRun, event: Event) -> str:
    """Remove the members that a LeaveGroup names, of either protocol: administrators remove members with it."""
    removed: list[str] = []
    for leaver in event.leaving or (Leaving(event.member_id, event.group_instance_id),):
        instance_id = leaver.group_instance_id
        person = run.modern.people.get(leaver.member_id) if instance_id is None else run.holder(instance_id)
        if person is not None and leaver.member_id in ("", person.member_id):
            run.drop(person)
            removed.append(person.member_id)
    if not removed:
        return REFUSED
    if leaves_classic_members(run):
        return BACK
    next_epoch(run, "member_left", removed=tuple(removed))
    leave_no_target(run)
    return ""
