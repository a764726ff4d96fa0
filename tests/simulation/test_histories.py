"""Histories from their seeds: every promise holds, and in some hundreds of them everything that can happen did."""

from __future__ import annotations

from typing import Final

import pytest

from heartwheel.proof.simulation import simulate, survey
from heartwheel.proof.simulation.checkers.fed_log import Aside
from heartwheel.proof.simulation.checkers.strays import UnorderedReason
from heartwheel.proof.simulation.plan.feeds import FeedFaultKind
from heartwheel.proof.simulation.world.faults import JobStep
from heartwheel.wire.events import RejectCause
from heartwheel.wire.verdicts import ENGINE_REASONS, TRIGGER_TYPES, Cause, ExpiryReason

OF_EVERY_RUN: Final = range(60)
"""The histories of every test run; `make simulate` takes as many as are wanted."""

COUNTED: Final = range(250)
"""The histories of `make proof` of which is counted what they meet."""

MORE: Final = (COUNTED, *(range(first, first + 250) for first in (250, 500, 750)))
"""Those of `make proof`; conftest.py lets whichever worker is free take the next of these ranges."""

_SELDOM_TOLD: Final = {
    Cause.OVER_CAPACITY,
    Cause.MEMBER_REJOINED,
    Cause.METADATA_CHANGED,
}
"""Causes that need a smaller `group_max_size` at a restart, that no row of the triggers topic gives, or that come of
answers which show an epoch that nobody has seen."""

_NEVER_THERE: Final = {
    ExpiryReason.NEW_MEMBER_TIMEOUT,
    ExpiryReason.POLL_TIMEOUT,
}
"""Reasons that need a longer history, or members that say why they go, which no simulation has."""

_NEVER_REJECTED: Final = {RejectCause.DUPLICATE_OPERATION}
"""Causes that need operations, which no simulated job has."""

_CONVERSIONS: Final = ("group_upgraded", "group_downgraded")
"""Rarer than other rows of the triggers topic: only a group with members of both protocols has them."""

_AT_LEAST: Final = {
    12: [
        *(f"group {kind}" for kind in ("presence", "loaded", "classic", "consumer", "mixed", "share", "streams")),
        *(f"epoch member {deed}" for deed in ("away", "die", "edge", "keep", "leave", "pause", "rejoin", "stale")),
        *(f"epochs answered {answer}" for answer in ("NONE", "FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID")),
        *(f"pause deadline {edge:+}" for edge in (-1, 0, 1)),
        *(
            f"member {deed}"
            for deed in (
                "busy",
                "die",
                "leave",
                "pause",
                "return",
                "return static",
                "rejoin",
                "stale",
            )
        ),
        *(f"expired {reason}" for reason in ENGINE_REASONS if reason not in _NEVER_THERE),
        *(name for name in TRIGGER_TYPES.values() if name not in _CONVERSIONS),
        *(f"driver clock {how}" for how in ("right", "behind", "drifts", "steps back", "steps forward")),
        *(f"fault {what}" for what in ("duplicate record", "stall", "unload", "load", "task retried")),
        *(f"ticker {what}" for what in ("dead", "lags", "skips a partition")),
        *(f"outage {what}" for what in ("of a partition", "of all", "renews")),
        "fault outage with the job",
        "fault tick of somebody else",
        "fault tick with a false interval",
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
        *(f"fault feed {kind}" for kind in (FeedFaultKind.LAGS, FeedFaultKind.MISSES)),
        *(f"fault {what}" for what in ("forged feed", "mark lost")),
        *(f"fed group {what}" for what in ("heard by two feeds", "judged")),
        *(f"feed {what}" for what in ("hears of a parked join or sync", "holds a group back", "tells of a move")),
        "fed verdicts",
        "group moves to another feed",
        "relayed",
    ],
    2: [
        *(f"crash {step}" for step in JobStep),
        *(f"cause {cause}" for cause in Cause if cause not in _SELDOM_TOLD),
        *(f"reject {cause}" for cause in RejectCause if cause not in _NEVER_REJECTED),
        *(f"broker clock {how}" for how in ("drifts", "jumps", "steps back", "steps forward")),
        *_CONVERSIONS,
        "driver clock ahead",
        "expired new_member_timeout",
        "fault rebalance unseen",
        *(f"group stray, {why}" for why in UnorderedReason if why is not UnorderedReason.KNOWN_LATE),
        "job starts at the end",
        *(f"late leave answered {answer}" for answer in ("NONE", "FENCED_MEMBER_EPOCH")),
        *(f"late heartbeat answered {answer}" for answer in ("NONE", "FENCED_MEMBER_EPOCH")),
        "worker clock set back",
        "member batch leave",
        "member fail",
        "member fail unheard",
        *(
            f"fault feed {what}"
            for what in ("breaks its word", "repeats", "repeats an event", "repeats what it wrote before")
        ),
        "fault usurped feed",
        f"fed group put aside, {Aside.LATE}",
    ],
    1: [
        "epochs answered GROUP_MAX_SIZE_REACHED",
        f"fault feed {FeedFaultKind.FALLS_SILENT}",
        "fault marks go back",
        "fed group judged in a topic that grows",
        "fed group put aside, by the audit",
    ],
}
"""What `COUNTED` must have met, and how often: a simulator that never crashes proves nothing. The histories of every
run have met each thing of the first list at least once."""


@pytest.mark.parametrize(
    "seeds",
    [OF_EVERY_RUN, *(pytest.param(seeds, marks=pytest.mark.proof) for seeds in MORE)],
    ids=lambda seeds: f"{seeds.start}..{seeds.stop}",
)
@pytest.mark.timeout(900)
def test_p1_to_p6_hold_in_hundreds_of_histories(seeds: range) -> None:
    """P1-P6: whatever crashes, stalls, steps or comes late, the job writes what the rules say, once, in order."""
    histories = survey(seeds, workers=0)
    assert histories.seeds == len(seeds)
    assert [str(failure) for failure in histories.failures] == []
    seen = histories.seen
    if seeds == OF_EVERY_RUN:
        assert {name for name in _AT_LEAST[12] if not seen[name]} == set()
    if seeds == COUNTED:
        # Every fault, crash step, clock, kind of group, cause of a reject and reason of an expiry came up, and often.
        assert {name: seen[name] for least, names in _AT_LEAST.items() for name in names if seen[name] < least} == {}


@pytest.mark.parametrize("seed", [3, 57])
def test_one_seed_is_one_history(seed: int) -> None:
    """A seed gives the same history to the letter each time, so a failure can be looked at again."""
    assert simulate(seed, keep_lines=True) == simulate(seed, keep_lines=True)


@pytest.mark.parametrize("seed", [419, 94_474, 97_464], ids=["presence", "full consumer group", "another partitioner"])
def test_a_group_whose_growth_is_heard_of_too_late_is_named(seed: int) -> None:
    """A new partition whose leader's clock is behind: a group is not held to an order that the job could not know."""
    history = simulate(seed)
    assert history.problems == []
    assert history.seen[f"group stray, {UnorderedReason.KNOWN_LATE}"] > 0


def test_a_group_of_a_new_partition_is_not_late_by_the_clock_of_the_others() -> None:
    """A group that is first read of in a new partition, behind the clock that its shard has by the old one."""
    assert simulate(90_687).problems == []


def test_a_growth_that_no_checkpoint_knows_of_is_named() -> None:
    """A backlog in which the topic grew before the first start is held to no order that the job could not know."""
    history = simulate(13_666)
    assert history.problems == []
    assert history.seen[f"group stray, {UnorderedReason.GREW_BEFORE}"] > 0
