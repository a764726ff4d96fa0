"""Histories from their seeds: every promise holds, and in a thousand of them everything that can happen did."""

from __future__ import annotations

import os
from typing import Final

import pytest

from heartwheel.simulation import Survey, simulate, survey
from heartwheel.simulation.faults import Step
from heartwheel.wire.events import RejectCause
from heartwheel.wire.verdicts import TRIGGER_TYPES, Cause, ExpiryReason

SEEDS: Final = 1_000
"""How many histories are proof; `make simulate` takes as many as are wanted."""

FEW: Final = 100
"""How many every test run takes."""

_SELDOM_TOLD: Final = {
    Cause.OVER_CAPACITY,
    Cause.MEMBER_REJOINED,
    Cause.METADATA_CHANGED,
    Cause.PROTOCOL_CHANGED,
}
"""Causes that need a smaller `group_max_size` at a restart, that no row of the triggers topic gives, or that only
groups of the newer protocols have."""

_NEVER_THERE: Final = {
    ExpiryReason.NEW_MEMBER_TIMEOUT,
    ExpiryReason.REVOCATION_TIMEOUT,
    ExpiryReason.POLL_TIMEOUT,
}
"""Reasons that need a longer history, or members that no simulation has: of newer groups, or that say why they go."""

_AT_LEAST: Final = {
    50: [
        *(f"group {kind}" for kind in ("presence", "loaded", "classic")),
        *(f"pause deadline {edge:+}" for edge in (-1, 0, 1)),
        *(f"member {deed}" for deed in ("busy", "die", "leave", "pause", "return", "return static", "rejoin", "stale")),
        *(f"expired {reason}" for reason in ExpiryReason if reason not in _NEVER_THERE),
        *TRIGGER_TYPES.values(),
        *(f"driver clock {how}" for how in ("right", "behind", "drifts", "steps back", "steps forward")),
        *(f"fault {what}" for what in ("duplicate record", "stall", "unload", "load", "task retried")),
        *(f"ticker {what}" for what in ("dead", "lags", "skips a partition")),
        *(f"outage {what}" for what in ("of a partition", "of all", "renews")),
        "fault outage with the job",
        "fault tick of somebody else",
        "group in two partitions",
        "leader with another clock",
        "member dies in an outage",
        "member stands still",
        "restart in the process",
        "restart of the process",
        "transaction open",
        "another wheel",
        "heartbeat without bytes",
        "map task done again",
        "append time steps back",
        "batch bounded",
        "batch done again",
        "downtime long",
        "downtime short",
        "written again",
        "topic grows",
    ],
    10: [
        *(f"crash {step}" for step in Step),
        *(f"cause {cause}" for cause in Cause if cause not in _SELDOM_TOLD),
        *(f"reject {cause}" for cause in RejectCause if cause is not RejectCause.DUPLICATE_OPERATION),
        *(f"broker clock {how}" for how in ("drifts", "jumps", "steps back", "steps forward")),
        "driver clock ahead",
        "expired new_member_timeout",
        "fault rebalance unseen",
        "group astray",
        "job starts at the end",
        "member batch leave",
    ],
}
"""What a thousand histories must have met, and how often at least: a simulator that never crashes proves nothing."""


@pytest.fixture(scope="module")
def histories() -> Survey:
    """Simulate all seeds once for this module, on every core."""
    return survey(range(SEEDS), workers=os.cpu_count() or 1)


def test_p1_to_p6_hold_in_a_hundred_histories() -> None:
    """P1-P6: what a hundred histories can show of them at every test run."""
    few = survey(range(FEW), workers=1)
    assert few.seeds == FEW
    assert [str(failure) for failure in few.failures] == []


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_p1_to_p6_hold_in_a_thousand_histories(histories: Survey) -> None:
    """P1-P6: whatever crashes, stalls, steps or comes late, the job tells what the rules say, once, in order."""
    assert histories.seeds == SEEDS
    assert [str(failure) for failure in histories.failures] == []


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_everything_that_can_happen_did(histories: Survey) -> None:
    """Every fault, crash step, clock, kind of group, cause of a reject and reason of an expiry came up, and often."""
    seen = histories.seen
    rare = {name: seen[name] for least, names in _AT_LEAST.items() for name in names if seen[name] < least}
    assert rare == {}


@pytest.mark.parametrize("seed", [3, 57])
def test_one_seed_is_one_history(seed: int) -> None:
    """A seed gives the same history to the letter each time, so a failure can be looked at again."""
    assert simulate(seed, keep_lines=True) == simulate(seed, keep_lines=True)
