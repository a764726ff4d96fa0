"""What feeds pass on in a history: which groups they have, how they lag, die, come back, forget and repeat themselves.

Drawn from dice of its own, for some of the seeds: a history without feeds is what it was before there were any.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from heartwheel.proof.simulation.plan.clocks import HostClock
from heartwheel.proof.simulation.plan.groups import GroupPlan

SILENCE_MS: Final = 62_000
"""How long a history goes on after the last mark of a feed that died for good, ms: until nobody waits for it."""

_LAST_TIMERS_MS: Final = 7_500
_NAMES: Final = ("one", "two")
_KINDS: Final = (*("classic", "consumer") * 2, "classic", "share", "streams", "mixed", "presence", "loaded")
_SESSIONS_MS: Final = {"consumer": 1_200, "mixed": 1_200, "share": 1_500, "streams": 1_000}


class FeedFaultKind(enum.StrEnum):
    """A fault of a feed."""

    LAGS = "lags"
    """It passes on nothing for a while, and then all that it heard meanwhile: slow, or dead, and missed nothing."""
    MISSES = "misses"
    """It is dead for a while, and what it heard meanwhile is gone; its next mark says so."""
    REPEATS = "repeats"
    """It dies, begins again from an older position, and passes on again what it had passed on since then."""
    FALLS_SILENT = "falls silent"
    """It dies for good."""


@dataclass(frozen=True)
class FeedFault:
    """A fault of a feed, and when it happens, true ms."""

    from_ms: int
    to_ms: int
    kind: FeedFaultKind


@dataclass(frozen=True, kw_only=True)
class SimulatedFeed:
    """One feed.

    Args:
        name: its name.
        clock: of the broker that it hears, by which it says when something happened.
        start_ms: when it begins, true ms.
        until_ms: until when it goes on, true ms.
        turn_ms: from one mark to the next.
        settle_ms: how far its marks stay behind what it has heard.
        troubles: what befalls it, in order.
        lost_marks: how likely a mark is lost, a partition.
        repeats: how likely an event is written twice.
        untimely: how likely an event is written after the mark that promised it.
        shuffles: whether what it heard between two marks is passed on in any order.
        holds: whether its marks hold back groups of which a join or sync waits for its answer.
        refused: whether it passes on what the coordinator has refused.
        metadata_age_ms: how long it takes to hear that the topic has grown.
    """

    name: str
    clock: HostClock
    start_ms: int
    until_ms: int
    turn_ms: int
    settle_ms: int
    troubles: tuple[FeedFault, ...]
    lost_marks: float
    repeats: float
    untimely: float
    shuffles: bool
    holds: bool
    refused: bool
    metadata_age_ms: int = 0


@dataclass(frozen=True, kw_only=True)
class FedGroup:
    """A group that feeds pass on.

    Args:
        group: who is in it, and how they behave.
        moves: (from when on, true ms, which feed hears it), in order; the first from 0 on.
        told: whether the feeds tell of its moves, as those do that read the coordinator's own log, too.
    """

    group: GroupPlan
    moves: tuple[tuple[int, int], ...]
    told: bool

    def feed_at(self, true_ms: int) -> int:
        """Return the number of the feed that hears the group at a moment."""
        return [feed for from_ms, feed in self.moves if from_ms <= true_ms][-1]


@dataclass(frozen=True, kw_only=True)
class FeedsPlan:
    """All feeds of a history.

    Args:
        feeds: those that the job trusts; none in most histories.
        groups: those that they pass on.
        forgeries: how many records somebody else writes in the name of a feed, or of one that nobody trusts.
        usurped: whether marks from the far future in the name of a trusted feed are among them.
    """

    feeds: tuple[SimulatedFeed, ...] = ()
    groups: tuple[FedGroup, ...] = ()
    forgeries: int = 0
    usurped: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the feeds."""
        return tuple(feed.name for feed in self.feeds)

    @property
    def until_ms(self) -> int:
        """Until when any of them goes on, true ms; 0 if there are none."""
        return max((feed.until_ms for feed in self.feeds), default=0)


def draw_feeds(seed: int, feed_ms: int) -> FeedsPlan:
    """Draw the feeds of a history; nearly a quarter of the seeds have some.

    Args:
        seed: of the history.
        feed_ms: until when members send, true ms.
    """
    # The seeds that tests name for what they have without feeds are among the others.
    if seed % 13 not in (4, 8, 9):
        return FeedsPlan()
    dice = Random(f"feeds {seed}")
    count = dice.choice((1, 2, 2))
    troubles = [_draw_troubles(dice, feed_ms, can_end=number > 0) for number in range(count)]
    silent_ms = max(
        (one.to_ms for each in troubles for one in each if one.kind is FeedFaultKind.FALLS_SILENT), default=0
    )
    until_ms = max(feed_ms + _LAST_TIMERS_MS, silent_ms + SILENCE_MS if silent_ms else 0)
    ahead_ms = dice.choice((0, 0, 0, -2_500, 400, 40_000))
    # Dice of their own, so that histories in which the topic does not grow are what they were.
    ages_ms = Random(f"feeds of a topic that grows {seed}").choices((0, 60, 400, 1_500), k=count)
    feeds = tuple(
        replace(
            _draw_feed(dice, number, feed_ms, until_ms, ahead_ms, troubles[number]), metadata_age_ms=ages_ms[number]
        )
        for number in range(count)
    )
    # Of the second group nobody moves, so that often one waits for a feed that none of its members is heard by.
    groups = tuple(_draw_group(dice, feed_ms, count, moves=not number) for number in range(dice.choice((1, 1, 2))))
    return FeedsPlan(
        feeds=feeds,
        groups=groups if len({fed.group.group_id for fed in groups}) == len(groups) else groups[:1],
        forgeries=dice.choice((0, 0, 4)),
        usurped=dice.random() < 0.2,
    )


def _draw_troubles(dice: Random, feed_ms: int, *, can_end: bool) -> tuple[FeedFault, ...]:
    troubles: list[FeedFault] = []
    at_ms = dice.randrange(500, 2 * feed_ms)
    while at_ms < feed_ms + 2_000:
        to_ms = at_ms + dice.choice((300, 900, 2_500, 5_000))
        kind = dice.choice(
            (FeedFaultKind.LAGS, FeedFaultKind.LAGS, FeedFaultKind.MISSES, FeedFaultKind.MISSES, FeedFaultKind.REPEATS)
        )
        if can_end and dice.random() < 0.06:
            return (*troubles, FeedFault(at_ms, at_ms, FeedFaultKind.FALLS_SILENT))
        troubles.append(FeedFault(at_ms, to_ms, kind))
        at_ms = to_ms + dice.choice((700, 2_000, 6_000))
    return tuple(troubles)


def _draw_feed(
    dice: Random, number: int, feed_ms: int, until_ms: int, ahead_ms: int, troubles: tuple[FeedFault, ...]
) -> SimulatedFeed:
    other_ms = dice.choice((0, 0, 0, 0, -40, 300)) if number else 0
    return SimulatedFeed(
        name=_NAMES[number],
        clock=HostClock(ahead_ms=ahead_ms + other_ms, drift_ppm=dice.choice((0, 0, 500))),
        start_ms=dice.choice((0, 0, 0, dice.randrange(feed_ms // 2))),
        until_ms=until_ms,
        turn_ms=dice.choice((300, 400, 600, 1_000)),
        settle_ms=dice.choice((0, 50, 200, 700)),
        troubles=troubles,
        lost_marks=dice.choice((0.0, 0.0, 0.1, 0.4)),
        repeats=dice.choice((0.0, 0.0, 0.05)),
        untimely=dice.choice((0.0, 0.0, 0.0, 0.0, 0.05)),
        shuffles=dice.random() < 0.5,
        holds=dice.random() < 0.9,
        refused=dice.random() < 0.3,
    )


def _draw_group(dice: Random, feed_ms: int, feeds: int, *, moves: bool) -> FedGroup:
    kind = dice.choice(_KINDS)
    session_ms = _SESSIONS_MS.get(kind) or dice.choice((800, 1_500, 3_000))
    at = dice.randrange(feeds)
    heard_by = [(0, at)]
    if moves and feeds > 1:
        for from_ms in sorted(dice.sample(range(300, feed_ms), k=dice.choice((0, 1, 1, 2)))):
            at = 1 - at
            heard_by.append((from_ms, at))
    group = GroupPlan(
        group_id=f"fed-{dice.randrange(100)}",
        kind=kind,
        members=dice.randint(1, 3),
        session_ms=session_ms,
        beat_ms=round(session_ms * dice.choice((0.35, 0.6, 0.9))),
        rebalance_ms=dice.choice((400, 1_000, 3_000)),
        static=dice.random() < 0.3,
        answers=dice.random() < 0.6,
        reloads=dice.random() < 0.1,
    )
    return FedGroup(group=group, moves=tuple(heard_by), told=dice.random() < 0.4)
