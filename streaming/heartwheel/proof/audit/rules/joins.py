"""JoinGroup of a classic group: new, pending, static and repeated joins.

Facts of Kafka 4's `classicGroupJoinToClassicGroup` and the methods that it calls.
"""

from __future__ import annotations

from copy import copy

from heartwheel.proof.audit.rules import members
from heartwheel.proof.audit.rules.context import Run
from heartwheel.proof.audit.rules.late import take_over
from heartwheel.proof.audit.rules.model import COMPLETING, EMPTY, PREPARING, STABLE, AuditedMember
from heartwheel.proof.audit.rules.phases import SHOWN, begin, rebalance_or_complete, write_record
from heartwheel.wire.events import ACCEPTED, Event

FULL = "group_full"
"""The cause of the reject of an event for which a group has no room."""

_LAST_AT_ONCE = 3
"""The last version of JoinGroup whose sender is a member before it knows its id (KIP-394)."""


def join(run: Run, event: Event) -> str:
    """Apply a join of a classic group; return `group_full` if there was no room, else an empty text."""
    group, member_id = run.group, event.member_id
    believed = group.met_late or event.error_code == ACCEPTED
    if believed and member_id and member_id not in group.members and member_id not in group.pending:
        take_over(run, event)
    if not _has_room(run, group.members.get(member_id)):
        members.remove(group, member_id)  # silently: no verdict, and no check of the join phase
        return FULL
    if members.shares_protocol(group, event):
        if member_id:
            _known(run, event)
        else:
            _new(run, event)
    return ""


def _has_room(run: Run, member: AuditedMember | None) -> bool:
    group, most = run.group, run.config.group_max_size
    if group.state == EMPTY:
        return True
    if group.state == PREPARING:
        waiting = sum(other.joining for other in group.members.values())
        return (member is not None and member.joining) or waiting < most
    return member is not None or len(group.members) < most


def _new(run: Run, event: Event) -> None:
    group, new_id, instance = run.group, event.assigned_member_id or "", event.group_instance_id
    if new_id in group.members or new_id in group.pending:
        return  # each id is assigned once, so this is the same join again
    if instance is None and (event.api_version is None or event.api_version > _LAST_AT_ONCE):
        member = _member(run, event, new_id)
        group.pending[new_id] = member
        run.arm(member, member.session_ms, "pending_timeout")
    elif instance is not None and instance in group.static:
        _replace(run, event, group.members[group.static[instance]], new_id)
    else:
        _add(run, event, new_id)


def _member(run: Run, event: Event, member_id: str) -> AuditedMember:
    return AuditedMember(
        member_id=member_id,
        seq=members.take_seq(run.group),
        session_ms=run.session_of(event),
        rebalance_ms=run.rebalance_of(event),
        instance_id=event.group_instance_id,
        client_id=event.client_id,
        client_host=event.client_host,
        protocols=_protocols(event),
        seen_ms=run.group.now_ms,
    )


def _protocols(event: Event) -> tuple[tuple[str, str], ...]:
    return tuple((protocol.name, protocol.metadata_sha1) for protocol in event.protocols)


def _add(run: Run, event: Event, member_id: str) -> None:
    """Add a new member: waiting in its join it sends no heartbeat, so it has a timeout of its own (KAFKA-7610)."""
    group = run.group
    member = _member(run, event, member_id)
    member.is_new = member.joining = True
    if group.state == PREPARING and group.came_from == EMPTY:
        group.more_came = True
    if not group.members or group.protocol_type is None:
        group.protocol_type = event.protocol_type
    group.leader = group.leader or member_id
    members.put(group, member)
    if not group.unproven:  # the session of an answered join began with the answer, at an unknown time
        run.arm(member, run.config.new_member_join_timeout_ms, "new_member_timeout")
    rebalance_or_complete(run, adding(event, member_id), "member_joined")


def adding(event: Event, member_id: str) -> str:
    """Return Kafka's reason for a rebalance because of a new member."""
    instance = event.group_instance_id
    name = "null" if instance is None else instance
    return f"Adding new member {member_id} with group instance id {name}; {_client_reason(event)}"


def _client_reason(event: Event) -> str:
    return f"client reason: {event.reason or 'not provided'}"


def _known(run: Run, event: Event) -> None:
    group, member_id = run.group, event.member_id
    if member_id in group.pending:
        if event.group_instance_id is None:
            _add(run, event, member_id)
    elif not members.refusal(group, member_id, event.group_instance_id):
        _again(run, event, group.members[member_id])


def _again(run: Run, event: Event, member: AuditedMember) -> None:
    state, leads = run.group.state, run.group.leader == member.member_id
    written = f"{member.member_id} {{}} {state}; {_client_reason(event)}"
    if state == PREPARING:
        _update(run, event, member)
        rebalance_or_complete(run, "Member " + written.format("is joining group during"), "member_rejoined")
    elif state == STABLE and leads:
        _update(run, event, member)
        rebalance_or_complete(run, "Leader " + written.format("re-joining group during"), "leader_rejoined")
    elif _leads_on(run, event) and not _changes(event, member):
        _update(run, event, member)
        words = f"Member {member.member_id} was let into generation {event.generation_id}; "
        rebalance_or_complete(run, words + "why the group rebalanced is in no request.", SHOWN)
    elif _changes(event, member):
        _update(run, event, member)
        rebalance_or_complete(run, "Updating metadata for member " + written.format("during"), "member_updated")


def _leads_on(run: Run, event: Event) -> bool:
    """Return whether the answer shows a rebalance without a request: the coordinator removed an unknown member."""
    return event.error_code == ACCEPTED and event.generation_id == run.group.generation + 1


def _changes(event: Event, member: AuditedMember) -> bool:
    silent = event.protocol_type is None and not event.protocols
    return not silent and _protocols(event) != member.protocols


def _update(run: Run, event: Event, member: AuditedMember) -> None:
    """Copy a join's fields to its member, which then waits; the running timer and the record are not changed."""
    group = run.group
    if group.record.members.get(member.member_id) is member:
        group.record.members[member.member_id] = copy(member)
    member.protocols = _protocols(event) or member.protocols
    member.session_ms = event.session_timeout_ms or member.session_ms
    # The first version of JoinGroup had no rebalance timeout: the session timeout serves as both.
    asked = event.session_timeout_ms if event.api_version == 0 else event.rebalance_timeout_ms
    member.rebalance_ms = asked or (run.rebalance_of(event) if event.api_version == 0 else member.rebalance_ms)
    member.seen_ms = group.now_ms
    member.joining = True


def _replace(run: Run, event: Event, old: AuditedMember, new_id: str) -> None:
    """Replace a returning static member: its new id's timer has the old session timeout (KIP-345)."""
    group, instance = run.group, event.group_instance_id
    member = members.replace_static(group, old, new_id)
    run.reset(member)
    _update(run, event, member)
    if group.state == COMPLETING:
        words = f"Updating metadata for static member {new_id} with instance id {instance}; {_client_reason(event)}"
        begin(run, words, "static_member_updated")
    elif group.state != STABLE:
        rebalance_or_complete(run, "", "")
    elif members.vote(group) == group.protocol:
        member.joining = False
        write_record(group)
    else:
        words = (
            f"Group's selectedProtocol will change because static member {new_id} with instance id {instance} "
            f"joined with change of protocol; {_client_reason(event)}"
        )
        begin(run, words, "static_member_updated")
