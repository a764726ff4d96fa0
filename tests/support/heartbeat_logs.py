"""Hypothesis strategies for heartbeat logs: few groups and members, so that events meet, and times at the edges."""

from __future__ import annotations

import os

from hypothesis import strategies as st

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.proof.testing import LogBuilder
from heartwheel.wire.events import Event, EventType, Leaving, Protocol

EXAMPLES = int(os.environ.get("HEARTWHEEL_EXAMPLES", "20"))
"""How many random logs a property is tried on: other ones in each run. `make mutants` tries five times as many,
`make proof` ten times; set the variable for more."""

SEEDS = max(50, EXAMPLES)
"""How many logs a test makes from seeds. They are the same in each run, so that fewer would leave some out for ever."""

T0 = 1_795_239_789_000
"""When generated logs begin, epoch ms."""

SESSIONS_MS = (1_000, 1_500, 4_000)

CONFIG = CoordinatorConfig(
    group_min_session_timeout_ms=200,
    group_initial_rebalance_delay_ms=700,
    group_max_size=3,
    new_member_join_timeout_ms=2_500,
    default_session_timeout_ms=1_200,
    default_rebalance_timeout_ms=2_000,
    empty_group_retention_ms=5_000,
)
"""Small timeouts, so that a short log meets every timer."""

_members = st.sampled_from(["a", "b", "c", "d"])
_generations = st.sampled_from([-1, -1, 0, 1, 1, 2, 3, 7])
_versions = st.sampled_from([None, 0, 3, 5])
_incarnations = st.sampled_from([None, None, 1, 2, 3])
_steps = st.sampled_from([0, 0, 1, 50, 299, 300, 699, 700, 999, 1_000, 1_001, 1_500, 2_500, 6_000])


@st.composite
def _events(draw: st.DrawFn, kinds: tuple[EventType, ...]) -> Event:
    kind = draw(st.sampled_from(kinds))
    member = draw(_members)
    fields: dict[str, object] = {"type": kind, "group_id": draw(st.sampled_from(["g", "h"])), "member_id": member}
    if kind in {EventType.HEARTBEAT, EventType.SYNC, EventType.COMMIT}:
        fields["generation_id"] = draw(_generations)
    if kind is EventType.HEARTBEAT and draw(st.booleans()):
        fields["session_timeout_ms"] = draw(st.sampled_from(SESSIONS_MS))
    if kind is EventType.SYNC and draw(st.integers(0, 3)) == 0:
        fields |= {"protocol_type": "consumer", "protocol_name": "range", "api_version": draw(_versions)}
    if kind is EventType.JOIN:
        fields |= {
            "session_timeout_ms": draw(st.sampled_from(SESSIONS_MS)),
            "rebalance_timeout_ms": draw(st.sampled_from([1_000, 3_000])),
            "protocol_type": "consumer",
            "protocols": (Protocol("range", draw(st.sampled_from(["x", "y"]))),),
        }
        if draw(st.integers(0, 3)) == 0:
            fields |= {"member_id": "", "assigned_member_id": member, "api_version": draw(_versions)}
    if kind in {EventType.JOIN, EventType.HEARTBEAT, EventType.LEAVE} and draw(st.integers(0, 4)) == 0:
        fields["group_instance_id"] = draw(st.sampled_from(["i1", "i2"]))
    how = draw(st.integers(0, 2)) if kind is EventType.LEAVE else 0
    if kind in {EventType.HEARTBEAT, EventType.LEAVE} and how != 1:
        fields["incarnation"] = draw(_incarnations)
    if how == 2:
        fields |= {"failure": draw(st.sampled_from(["", "exit code 3"]))}
    elif how:
        fields |= {
            "member_id": "",
            "leaving": tuple(Leaving(m) for m in draw(st.lists(_members, min_size=1, max_size=3))),
        }
    return Event(**fields)  # type: ignore[arg-type]  # fields by name, checked by the decoder of every batch


@st.composite
def heartbeat_logs(draw: st.DrawFn, *, in_order: bool = False) -> LogBuilder:
    """Draw a log; append times may step back a little, as they do at a change of the partition's leader."""
    log, now = LogBuilder(), T0
    events = _events(tuple(EventType))
    for event, step, back in draw(st.lists(st.tuples(events, _steps, st.integers(0, 40)), max_size=40)):
        now += step
        log.add(now - (7 if back == 0 and not in_order else 0), event)
    return log


@st.composite
def beating_logs(draw: st.DrawFn) -> LogBuilder:
    """Draw a log that is nearly all heartbeats of steady members, which is what the fast path is for."""
    log, now = LogBuilder(), T0
    timeouts = draw(st.lists(st.sampled_from(SESSIONS_MS), min_size=1, max_size=4))
    disturbances = draw(st.dictionaries(st.integers(0, 60), _events(tuple(EventType)), max_size=2))
    silent = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60)), max_size=3))
    for beat in range(draw(st.integers(5, 60))):
        now += draw(st.sampled_from([0, 10, 200, 300, 900]))
        member = beat % len(timeouts)
        if not any(member == who and since <= beat for who, since in silent):
            log.beat(now, f"g{member % 2}", f"m{member}", session_timeout_ms=timeouts[member])
        if beat in disturbances:
            log.add(now, disturbances[beat])
    return log


def cuts_of(log: LogBuilder) -> st.SearchStrategy[list[int]]:
    """Draw where the log is cut into batches; empty batches too."""
    return st.lists(st.integers(0, len(log.records)), max_size=8)
