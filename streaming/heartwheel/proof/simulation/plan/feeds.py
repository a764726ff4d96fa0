"""The feeds of a history: which groups they relay, and how they lag, die, return, lose events and repeat them.

Some of the seeds have feeds. They are drawn with separate dice, so the other histories are the same as without feeds.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from random import Random
from typing import Final

from heartwheel.proof.simulation.plan.clocks import HostClock
from heartwheel.proof.simulation.plan.groups import GroupPlan

SILENCE_MS: Final = 62_000
"""How long a history goes on after the last mark of a feed that died for good, ms: until no group waits for it."""

_LAST_TIMERS_MS: Final = 7_500
_NAMES: Final = ("one", "two")
_KINDS: Final = (*("classic", "consumer") * 2, "classic", "share", "streams", "mixed", "presence", "loaded")
_SESSIONS_MS: Final = {"consumer": 1_200, "mixed": 1_200, "share": 1_500, "streams": 1_000}


class FeedFaultKind(enum.StrEnum):
    """A fault of a feed."""

    LAGS = "lags"
    """It relays nothing for a while, and then everything that it received in that time."""
    MISSES = "misses"
    """It is dead for a while and loses what its broker received in that time; its next mark says so."""
    REPEATS = "repeats"
    """It dies, starts again from an older position, and relays again what it had relayed since then."""
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
        clock: the clock of its broker, which dates the events.
        start_ms: when it begins, true ms.
        until_ms: when it ends, true ms.
        turn_ms: time from one mark to the next.
        settle_ms: how far its marks stay behind what it has received.
        troubles: its faults, in order.
        repeats: probability that an event is written twice.
        untimely: probability that an event is written after a mark that says it was written.
        shuffles: whether the events between two marks are relayed in random order.
        holds: whether its marks hold back groups with a join or sync that waits for its answer.
        refused: whether it relays requests that the coordinator has refused.
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


@dataclass(frozen=True, kw_only=True)
class FedGroup:
    """A group that feeds relay.

    Args:
        group: its members, and how they behave.
        moves: (from when on, true ms, which feed relays it), in order; the first from 0 on.
        reports_moves: whether the feeds report its moves, like feeds that also read the coordinator's own log.
    """

    group: GroupPlan
    moves: tuple[tuple[int, int], ...]
    reports_moves: bool

    def feed_at(self, true_ms: int) -> int:
        """Return the number of the feed that relays the group at a time."""
        return [feed for from_ms, feed in self.moves if from_ms <= true_ms][-1]


@dataclass(frozen=True, kw_only=True)
class FeedsPlan:
    """All feeds of a history.

    Args:
        feeds: the feeds that the job trusts; none in most histories.
        forgeries: the number of records that another client writes under the name of a feed or of an untrusted feed.
        usurped: whether these include marks from the far future under the name of a trusted feed.
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
        """When the last of them ends, true ms; 0 if there are none."""
        return max((feed.until_ms for feed in self.feeds), default=0)


def draw_feeds(seed: int, feed_ms: int) -> FeedsPlan:
    """Draw the feeds of a history; nearly a quarter of the seeds have some.

    Args:
        feed_ms: when members stop sending, true ms.
    """
    # The seeds that tests name for their history without feeds are not among these.
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
    feeds = tuple(_draw_feed(dice, number, feed_ms, until_ms, ahead_ms, troubles[number]) for number in range(count))
    # The second group does not move, so often a group waits for a feed that relays none of its members.
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
    moved = [(0, at)]
    if moves and feeds > 1:
        for from_ms in sorted(dice.sample(range(300, feed_ms), k=dice.choice((0, 1, 1, 2)))):
            at = 1 - at
            moved.append((from_ms, at))
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
    return FedGroup(group=group, moves=tuple(moved), reports_moves=dice.random() < 0.4)
