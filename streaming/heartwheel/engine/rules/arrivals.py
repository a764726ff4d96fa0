"""The rules for many new members at once, each of which arrives by a plain heartbeat.

A plain heartbeat names no instance id. In a loaded or presence group, the first one of a new member has the same effect
whoever else arrives, so the other members need not be read. `loaded.request` and `presence.request` are the rules;
`test_shard_crowds.py` checks that this gives the same verdicts and the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from heartwheel.engine.rules import messages
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.incarnations import has_ended
from heartwheel.engine.rules.java_map import grown_table_size
from heartwheel.engine.rules.model import NEVER, Group, GroupKind, GroupState, Member, TimerKind
from heartwheel.wire.events import UNCHECKED_GENERATION, Event, EventType
from heartwheel.wire.verdicts import Cause, Kind, Verdict

KINDS: Final = (GroupKind.NEW, GroupKind.LOADED, GroupKind.PRESENCE)
STATES: Final = (GroupState.EMPTY, GroupState.STABLE)
"""The kinds and states of groups whose members may arrive at once."""

_LONG_AGO: Final = 0
"""A time before the end of every incarnation: even one that ended long ago must be checked here."""


Arrival = tuple[Event, int, int]
"""The first heartbeat of a member, its effective time in epoch ms, and its fingerprint."""


def may_arrive_at_once(group: Group, size: int, events: Sequence[Event], config: CoordinatorConfig) -> bool:
    """Return whether the rules accept all of these members and do nothing else.

    Args:
        group: the group without its members.
        events: the first heartbeat of each new member, in the order in which they count.
    """
    if group.unloaded or group.kind not in KINDS or group.state not in STATES:
        return False
    if min(group.join_deadline_ms, group.sync_deadline_ms, group.store_deadline_ms) != NEVER:
        return False
    if size + len(events) > config.group_max_size or not all(map(_is_plain, events)):
        return False
    if _kind_of(group, events[0]) is GroupKind.LOADED:
        generation = _generation_of(group, events[0])
        return all(event.generation_id in (UNCHECKED_GENERATION, generation) for event in events)
    if any(has_ended(group, event.member_id, event.incarnation, _LONG_AGO) for event in events):
        return False
    return all(
        event.generation_id == UNCHECKED_GENERATION
        and (event.session_timeout_ms is None or config.accepts_presence_session(event.session_timeout_ms))
        for event in events
    )


def _is_plain(event: Event) -> bool:
    return event.type is EventType.HEARTBEAT and event.group_instance_id is None and event.error_code is None


def _kind_of(group: Group, first: Event) -> GroupKind:
    if group.kind is not GroupKind.NEW:
        return group.kind
    return GroupKind.PRESENCE if first.generation_id == UNCHECKED_GENERATION else GroupKind.LOADED


def _generation_of(group: Group, first: Event) -> int:
    return first.generation_id if group.kind is GroupKind.NEW else group.generation


def arrive_at_once(
    group: Group, size: int, arrivals: Sequence[Arrival], config: CoordinatorConfig, emit: Callable[[Verdict], None]
) -> list[Member]:
    """Add members that arrive together.

    Args:
        group: the group without its members; the rest of it is changed in place.
        arrivals: arrivals that `may_arrive_at_once` accepted, in the order in which they count.

    Returns:
        The members, whose sessions the caller starts.
    """
    first, _, _ = arrivals[0]
    kind, generation = _kind_of(group, first), _generation_of(group, first)
    if kind is GroupKind.PRESENCE:
        _report_arrivals(group, size, arrivals, emit)
        _, group.rebalance_started_ms, _ = arrivals[-1]
        generation = group.generation + len(arrivals)
    if group.state is GroupState.EMPTY:
        group.previous_state, group.state = group.state, GroupState.STABLE
    if not size:
        group.protocol_type = None
    group.kind, group.generation, group.forget_deadline_ms = kind, generation, NEVER
    group.table_size = grown_table_size(size + len(arrivals), group.table_size)
    seq = group.next_seq
    group.next_seq += len(arrivals)
    return [_member(event, fingerprint, at, kind, config) for at, (event, _, fingerprint) in enumerate(arrivals, seq)]


def _member(event: Event, fingerprint: int, seq: int, kind: GroupKind, config: CoordinatorConfig) -> Member:
    asked = event.session_timeout_ms
    timeout_ms = config.default_session_timeout_ms if asked is None else asked
    return Member(
        member_id=event.member_id,
        seq=seq,
        client_id=event.client_id,
        client_host=event.client_host,
        session_timeout_ms=timeout_ms,
        rebalance_timeout_ms=config.default_rebalance_timeout_ms,
        timer=TimerKind.SESSION,
        timer_ms=timeout_ms,
        fingerprint=fingerprint,
        fingerprint_generation=event.generation_id,
        incarnation=event.incarnation if kind is GroupKind.PRESENCE else None,
    )


def _report_arrivals(group: Group, size: int, arrivals: Sequence[Arrival], emit: Callable[[Verdict], None]) -> None:
    """Emit the two verdicts of each arrival, which starts a new generation: `presence.request`."""
    group_id, state, kind = group.group_id, group.state.value, GroupKind.PRESENCE.value
    stable = GroupState.STABLE.value
    for place, (event, time_ms, _) in enumerate(arrivals):
        generation = group.generation + place
        emit(
            Verdict(
                kind=Kind.REBALANCE_STARTED,
                group_id=group_id,
                time_ms=time_ms,
                generation_id=generation,
                reason=messages.adding(event.member_id, None, event.reason),
                cause=Cause.MEMBER_JOINED,
                group_state=stable if place else state,
                group_kind=kind,
                deadline_ms=time_ms,
                member_count=size + place,
            )
        )
        emit(
            Verdict(
                kind=Kind.REBALANCE_COMPLETED,
                group_id=group_id,
                time_ms=time_ms,
                generation_id=generation + 1,
                reason=messages.stabilized(group_id, generation + 1, size + place + 1),
                cause=Cause.MEMBER_JOINED,
                group_state=stable,
                group_kind=kind,
                member_count=size + place + 1,
                joined=(event.member_id,),
                duration_ms=0,
            )
        )
