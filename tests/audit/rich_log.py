"""One log with groups of all kinds, every reason of expiry and every type of trigger, and some garbage."""

from __future__ import annotations

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.proof.testing import LogBuilder
from heartwheel.wire.events import Event, EventType, Protocol

T0 = 1_795_239_789_000

CONFIG = CoordinatorConfig(
    group_min_session_timeout_ms=500,
    group_initial_rebalance_delay_ms=1_000,
    new_member_join_timeout_ms=4_000,
    default_session_timeout_ms=5_000,
    default_rebalance_timeout_ms=6_000,
)


def _join(
    group: str, member: str, *, first: bool = False, session_ms: int = 10_000, rebalance_ms: int = 3_000
) -> Event:
    return Event(
        type=EventType.JOIN,
        group_id=group,
        member_id="" if first else member,
        assigned_member_id=member if first else None,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        protocol_type="consumer",
        protocols=(Protocol("range"),),
        client_host="/10.0.0.1",
    )


def _in(group: str, member: str, kind: EventType, generation: int) -> Event:
    return Event(type=kind, group_id=group, member_id=member, generation_id=generation)


def rich_log() -> LogBuilder:
    """Build it; a heartbeat of a member that stays alive closes it."""
    events = [*_workers(), *_met(), *_classic(), *_slow(), (30_000, Event(group_id="late", member_id="z"))]
    events += [(20_100, b"{"), (20_200, None)]
    events += [(20_300, Event(group_id="workers", member_id="w9", session_timeout_ms=1))]
    log = LogBuilder()
    for t, event in sorted(events, key=lambda one: one[0]):
        log.add(T0 + t, event)
    return log


Events = list[tuple[int, Event | bytes | None]]


def _workers() -> Events:
    """Three workers; two fall silent, and come back."""
    silent = {0: (99_000, 0), 1: (3_000, 15_000), 2: (6_000, 15_000)}
    return [
        (t, Event(group_id="workers", member_id=f"w{i}", session_timeout_ms=1_500))
        for t in range(0, 20_000, 500)
        for i, (dies, returns) in silent.items()
        if t <= dies or t >= returns
    ]


def _met() -> Events:
    """Two members of a group that was met in mid-life; one dies."""
    return [
        (t, Event(group_id="met", member_id=member, generation_id=7))
        for t in range(1, 20_000, 500)
        for member in ("x", "y")
        if member == "x" or t < 2_000
    ]


def _classic() -> Events:
    """Members that never join, never sync, and never join again."""
    events: Events = []
    for member in ("a", "b", "c"):
        events += [(10, _join("classic", member, first=True)), (20, _join("classic", member))]
    events += [(30, _join("classic", "never", first=True, session_ms=2_500))]
    events += [(5_000, _in("classic", member, EventType.SYNC, 1)) for member in ("a", "b")]
    for t in range(5_500, 7_000, 500):
        events += [(t, _in("classic", member, EventType.HEARTBEAT, 1)) for member in ("a", "b")]
    return [*events, (7_500, _join("classic", "a"))]


def _slow() -> Events:
    """A new member that waits too long for another that beats on and does not join again."""
    patient = 9_000
    events: Events = [
        (10, _join("slow", "p", first=True, rebalance_ms=patient)),
        (20, _join("slow", "p", rebalance_ms=patient)),
        (1_500, _in("slow", "p", EventType.SYNC, 1)),
        (2_000, _join("slow", "q", first=True)),
        (2_010, _join("slow", "q")),
    ]
    return events + [(t, _in("slow", "p", EventType.HEARTBEAT, 1)) for t in range(2_500, 9_000, 500)]
