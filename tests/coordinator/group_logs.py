"""Hypothesis-made logs of one group: requests of every type, at times that fall on, before and after the deadlines."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from hypothesis import strategies as st

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group
from heartwheel.wire.events import Event, EventType, Leaving, Protocol

CONFIG = CoordinatorConfig(
    group_min_session_timeout_ms=10,
    group_initial_rebalance_delay_ms=300,
    group_max_size=4,
    new_member_join_timeout_ms=4_000,
    default_session_timeout_ms=1_000,
    default_rebalance_timeout_ms=2_000,
    empty_group_retention_ms=5_000,
)
"""Timeouts that meet each other: many deadlines fall on the same millisecond."""

_MEMBERS = st.sampled_from(["a", "b", "c", "d", "e"])
_INSTANCES = st.sampled_from([None, None, None, "x", "y"])
_CURRENT = 1_000_000
_GENERATIONS = st.one_of(st.just(_CURRENT), st.just(_CURRENT), st.integers(-1, 6))
_WAITS = st.sampled_from([0, 0, 0, 1, 100, 299, 300, 301, 999, 1_000, 1_001, 2_000, 4_000, 6_000])
_PROTOCOLS = st.sampled_from(
    [(Protocol("range"),), (Protocol("range"), Protocol("sticky")), (Protocol("range", "v2"),)]
)
_VERSIONS = st.sampled_from([None, None, None, 0, 3, 4])
_NAMED = st.sampled_from(
    [
        {},
        {},
        {"api_version": 4},
        {"api_version": 5},
        {"api_version": 5, "protocol_type": "consumer", "protocol_name": "range"},
        {"protocol_type": "consumer", "protocol_name": "sticky"},
    ]
)
"""What a sync may say of itself."""
_TIMEOUTS = st.sampled_from([500, 1_000, 2_000])
_INCARNATIONS = st.sampled_from([None, None, 1, 2, 3])


@st.composite
def _joins(draw: st.DrawFn) -> Event:
    who, first = draw(_MEMBERS), draw(st.booleans())
    return Event(
        type=EventType.JOIN,
        group_id="g",
        member_id="" if first else who,
        assigned_member_id=who if first else None,
        group_instance_id=draw(_INSTANCES),
        session_timeout_ms=draw(_TIMEOUTS),
        rebalance_timeout_ms=draw(_TIMEOUTS),
        protocol_type="consumer",
        protocols=draw(_PROTOCOLS),
        api_version=draw(_VERSIONS),
    )


@st.composite
def _requests(draw: st.DrawFn) -> Event:
    kind = draw(st.sampled_from([EventType.HEARTBEAT] * 3 + [EventType.SYNC] * 2 + [EventType.COMMIT]))
    return Event(
        type=kind,
        group_id="g",
        member_id=draw(_MEMBERS),
        group_instance_id=draw(_INSTANCES),
        generation_id=draw(_GENERATIONS),
        session_timeout_ms=draw(st.sampled_from([None, None, 500, 2_000])),
        incarnation=draw(_INCARNATIONS),
        **cast("dict[str, Any]", draw(_NAMED) if kind is EventType.SYNC else {}),
    )


_leaves = st.builds(
    Event,
    type=st.just(EventType.LEAVE),
    group_id=st.just("g"),
    member_id=_MEMBERS,
    leaving=st.lists(st.builds(Leaving, _MEMBERS, _INSTANCES), max_size=2).map(tuple),
)
_own_leaves = st.builds(
    Event,
    type=st.just(EventType.LEAVE),
    group_id=st.just("g"),
    member_id=_MEMBERS,
    group_instance_id=_INSTANCES,
    incarnation=_INCARNATIONS,
)
_failures = st.builds(
    Event,
    type=st.just(EventType.LEAVE),
    group_id=st.just("g"),
    member_id=_MEMBERS,
    group_instance_id=_INSTANCES,
    session_timeout_ms=st.sampled_from([None, None, 500, 1]),
    incarnation=_INCARNATIONS,
    failure=st.sampled_from(["", "exit code 3"]),
)
_moves = st.sampled_from([EventType.UNLOAD, EventType.LOAD]).map(lambda kind: Event(type=kind, group_id="g"))


def events(*, moves: bool = True) -> st.SearchStrategy[Event]:
    """Make one event; `moves` are those of the source's coordinator."""
    usual = st.one_of(
        _joins(), _joins(), _requests(), _requests(), _requests(), st.one_of(_leaves, _own_leaves, _failures)
    )
    return st.one_of(usual, usual, _moves) if moves else usual


def logs(*, moves: bool = True) -> st.SearchStrategy[list[tuple[int, Event]]]:
    """Make a log: what happens after how many ms, in the order of the partition."""
    return st.lists(st.tuples(_WAITS, events(moves=moves)), max_size=40).map(_informed)


def _informed(log: list[tuple[int, Event]]) -> list[tuple[int, Event]]:
    """Let well-informed members name the generation that the group has by then; guesses would hardly ever be right."""
    machine = GroupMachine(Group("g"), CONFIG, lambda _: None)
    now = 0
    logged = []
    for wait, event in log:
        now += wait
        machine.advance(now)
        if event.generation_id == _CURRENT:
            event = msgspec.structs.replace(event, generation_id=machine.group.generation)  # noqa: PLW2901
        logged.append((wait, event))
        machine.apply(event, now)
    return logged
