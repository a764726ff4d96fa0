"""Presence groups: workers that use no protocol and only report that they are alive.

A first heartbeat is an arrival; silence, a leave or a failure is a departure. Each changes the generation at once, as
in the epochs of KIP-848: there is no join phase to wait for.
"""

from __future__ import annotations

from heartwheel.engine.rules import messages
from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.classic.leave import find_leaver, remove_leavers
from heartwheel.engine.rules.classic.rebalance import become_empty, report_expired
from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.incarnations import has_ended, is_earlier, remember_end, take_incarnation
from heartwheel.engine.rules.loaded import request as loaded_request
from heartwheel.engine.rules.model import NEVER, GroupKind, Member
from heartwheel.engine.rules.takeover import is_behind, remember_heartbeat, take_over
from heartwheel.wire.events import Event, EventType, Leaving
from heartwheel.wire.verdicts import Cause, ExpiryReason, Kind


def request(ctx: Context, event: Event, fingerprint: int) -> Answer:
    """Handle a heartbeat, sync or commit of a worker; only a heartbeat is an arrival.

    A heartbeat with a later generation than this group has ever had comes from a member of the real protocol: the group
    becomes a loaded one. An earlier one is ignored.
    """
    group = ctx.group
    if is_behind(group, event):
        return loaded_request(ctx, event, fingerprint)
    refusal = _refuse(ctx, event)
    if refusal is not Answer.NONE:
        return refusal
    member = group.members.get(event.member_id) or _arrive(ctx, event)
    refusal = ctx.roster.validate_member(event.member_id, event.group_instance_id)
    if refusal is Answer.FENCED_INSTANCE_ID:
        return refusal
    _keep_alive(ctx, event, member, fingerprint)
    return Answer.NONE


def _refuse(ctx: Context, event: Event) -> Answer:
    """Return why a request neither keeps a member alive nor adds one; NONE if it may."""
    group, asked, beats = ctx.group, event.session_timeout_ms, event.type is EventType.HEARTBEAT
    if asked is not None and not ctx.config.accepts_presence_session(asked):
        return Answer.INVALID_SESSION_TIMEOUT
    if beats and has_ended(group, event.member_id, event.incarnation, ctx.now_ms):
        return Answer.FENCED_MEMBER_EPOCH
    if event.member_id in group.members:
        return Answer.NONE
    if not beats:
        return Answer.UNKNOWN_MEMBER_ID
    holder = group.members.get(_holder_id(ctx, event))
    if holder is not None and is_earlier(event, holder):
        return Answer.FENCED_INSTANCE_ID
    return Answer.GROUP_MAX_SIZE_REACHED if len(group.members) >= ctx.config.group_max_size else Answer.NONE


def _keep_alive(ctx: Context, event: Event, member: Member, fingerprint: int) -> None:
    """Start a whole session; a session timeout in the heartbeat holds at once and until another one is named.

    A heartbeat of an earlier incarnation only restarts the session that the member has, and every such heartbeat is
    read.
    """
    is_heartbeat = event.type is EventType.HEARTBEAT
    is_own = not is_heartbeat or take_incarnation(ctx, event, member)
    if is_own:
        if event.session_timeout_ms is not None:
            member.session_timeout_ms = event.session_timeout_ms
        member.client_id = event.client_id or member.client_id
        member.client_host = event.client_host or member.client_host
    member.last_seen_ms = ctx.now_ms
    ctx.reset_session(member)
    if not is_own:
        member.fingerprint = 0
    elif is_heartbeat:
        remember_heartbeat(ctx, event, member, fingerprint)


def _arrive(ctx: Context, event: Event) -> Member:
    instance = event.group_instance_id
    old = ctx.group.members.get(_holder_id(ctx, event))
    if old is not None:
        # A static worker came back under another id. The group is the same, so its generation is too.
        reason = messages.static_replaced(ctx.group.group_id, ctx.group.state.value, instance, old.member_id)
        ctx.report_member(old, Kind.STATIC_REPLACED, reason, Cause.MEMBER_REJOINED)
        return take_over(ctx, event)
    reason = messages.adding(event.member_id, instance, event.reason)
    # The first arrival makes it a presence group.
    kind = GroupKind.PRESENCE.value
    ctx.report(Kind.REBALANCE_STARTED, reason, Cause.MEMBER_JOINED, deadline_ms=ctx.now_ms, group_kind=kind)
    member = take_over(ctx, event)
    _next_generation(ctx, Cause.MEMBER_JOINED, joined=(member.member_id,))
    return member


def _holder_id(ctx: Context, event: Event) -> str:
    """Return the id of the member with the instance id of a request; empty if there is none."""
    instance = event.group_instance_id
    return (ctx.roster.static_member_id(instance) if instance is not None else None) or ""


def leave(ctx: Context, event: Event) -> Answer:
    """Handle a leave or a failure; one that names an ended incarnation is refused and ends no later one.

    The member id decides whose incarnation it is, whatever instance id the record names too.
    """
    if event.incarnation is None:
        return _leave(ctx, event)
    group, member_id = ctx.group, event.member_id or _holder_id(ctx, event)
    if has_ended(group, member_id, event.incarnation, ctx.now_ms):
        return Answer.FENCED_MEMBER_EPOCH
    member = group.members.get(member_id)
    is_late = member is not None and is_earlier(event, member)
    answer = Answer.FENCED_MEMBER_EPOCH if is_late else _leave(ctx, event)
    # A refusal takes no end back: of a worker that is not there, as the group was full or another member has its
    # instance id, a heartbeat may arrive later, when nothing refuses it. An unknown group stays unknown.
    if group.kind is GroupKind.PRESENCE and (is_late or (member_id and member_id not in group.members)):
        remember_end(group, member_id, event.incarnation, ctx.now_ms)
    return answer


def _leave(ctx: Context, event: Event) -> Answer:
    """Remove one worker or many; all of them together make one new generation."""
    if event.failure is not None:
        return _fail(ctx, event, event.failure)
    departures = remove_leavers(ctx, event)
    if departures.members:
        gone = tuple(member.member_id for member in departures.members)
        _depart(ctx, messages.leaving(departures.named), Cause.MEMBER_LEFT, gone)
    return departures.answer


def _fail(ctx: Context, event: Event, failure: str) -> Answer:
    """Remove a worker that failed; one that failed before its first heartbeat arrives first."""
    member = find_leaver(ctx, Leaving(event.member_id, event.group_instance_id))
    if member is Answer.UNKNOWN_MEMBER_ID and event.member_id:
        answer = request(ctx, _first_beat(event), 0)
        if answer is not Answer.NONE:
            return answer
        ctx.group.kind, ctx.group.forget_deadline_ms = GroupKind.PRESENCE, NEVER  # it never was empty
        member = ctx.group.members[event.member_id]
    if isinstance(member, Answer):
        return member
    ctx.roster.remove(member.member_id)
    words = messages.worker_failed(member.member_id, failure)
    ctx.report_expired(
        member,
        Kind.MEMBER_FAILED,
        words,
        Cause.MEMBER_EXPIRED,
        expiry_reason=ExpiryReason.WORKER_FAILED,
        failure=failure,
        session_timeout_ms=member.session_timeout_ms,
    )
    _depart(ctx, words, Cause.MEMBER_EXPIRED, (member.member_id,))
    return Answer.NONE


def _first_beat(event: Event) -> Event:
    """Return the heartbeat that a worker would have sent before it failed."""
    return Event(
        group_id=event.group_id,
        member_id=event.member_id,
        group_instance_id=event.group_instance_id,
        session_timeout_ms=event.session_timeout_ms,
        client_id=event.client_id,
        client_host=event.client_host,
        incarnation=event.incarnation,
    )


def fire_member(ctx: Context, member: Member) -> None:
    """Handle the silence of a worker as its departure."""
    ctx.roster.remove(member.member_id)
    report_expired(ctx, member)
    _depart(ctx, messages.removing_failed(member.member_id), Cause.MEMBER_EXPIRED, (member.member_id,))


def _depart(ctx: Context, reason: str, cause: Cause, gone: tuple[str, ...]) -> None:
    group = ctx.group
    if group.members:
        ctx.report(Kind.REBALANCE_STARTED, reason, cause, deadline_ms=ctx.now_ms)
        _next_generation(ctx, cause, gone=gone)
    else:
        group.generation += 1
        group.rebalance_started_ms = ctx.now_ms
        become_empty(ctx, gone)


def _next_generation(ctx: Context, cause: Cause, *, gone: tuple[str, ...] = (), joined: tuple[str, ...] = ()) -> None:
    group = ctx.group
    group.generation += 1
    group.rebalance_started_ms = ctx.now_ms
    ctx.report(
        Kind.REBALANCE_COMPLETED,
        messages.stabilized(group.group_id, group.generation, len(group.members)),
        cause,
        removed=gone,
        joined=joined,
        duration_ms=0,
        group_kind=GroupKind.PRESENCE.value,
    )
