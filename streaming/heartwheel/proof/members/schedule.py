"""Plan the lives of simulated members: who beats, falls silent, pauses, leaves and returns, and when.

The plan knows no clock and no Kafka: one seed gives one schedule, on every machine.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterable, Iterator
from random import Random
from typing import Final, Literal, NamedTuple

import msgspec

_MINUTE_MS: Final = 60_000


class Action(enum.IntEnum):
    """What a member does at one moment.

    Who stalls goes on beating and does not join again while its group rebalances, until it resumes: its application
    does not poll. At a poll timeout (`max.poll.interval.ms`) Kafka's consumer leaves by itself, and says so.
    """

    START = 0
    BEAT = 1
    KILL = 2
    PAUSE = 3
    RESUME = 4
    LEAVE = 5
    RETURN = 6
    GARBAGE = 7
    STALL = 8
    POLL_TIMEOUT = 9


class MemberStep(NamedTuple):
    """One action of one member.

    Args:
        at_ms: when, ms since the start of the feed.
        member: the member's number, from 0.
        draw: a random number in [0, 1), for what the action leaves open.
    """

    at_ms: float
    member: int
    action: Action
    draw: float = 0.0


class FeedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to simulate. Rates are probabilities a member and minute; shares are probabilities.

    Args:
        heartbeat_interval_ms: time between two beats of a member, ms.
        jitter: how far each interval may differ from that, as a share of it.
        duration_ms: length of the feed, ms; endless if absent.
        kill_rate: how often a member falls silent for good, or until it returns.
        return_share: how many of those who were killed, or left, come back, after 1.5 to 4 session timeouts.
        pause_rate: how often a member pauses.
        long_pause_share: how many pauses last longer than a session (1.3 to 2.5 of it), so that the member must be
            expired; the others last 0.3 to 0.8 of it, and it must not be.
        leave_rate: how often a member leaves and says so.
        leave_at_end: whether the members alive at the end say goodbye; else they fall silent.
        garbage_share: bad records a heartbeat.
        protocol: `presence` sends bare heartbeats; `classic` joins, syncs and beats with a generation; `mix` has groups
            of both, and some to which something happens by a script (`heartwheel.proof.members.mix`).
        group_prefix: what group ids start with, to keep several feeds of one topic apart.
    """

    groups: int = 10
    members_per_group: int = 10
    heartbeat_interval_ms: int = 3000
    jitter: float = 0.1
    session_timeout_ms: int = 10_000
    duration_ms: int | None = None
    kill_rate: float = 0.05
    return_share: float = 0.5
    pause_rate: float = 0.05
    long_pause_share: float = 0.5
    leave_rate: float = 0.01
    leave_at_end: bool = False
    garbage_share: float = 0.0
    protocol: Literal["presence", "classic", "mix"] = "presence"
    group_prefix: str = ""
    seed: int = 1

    @property
    def members(self) -> int:
        """Count the members of all groups."""
        return self.groups * self.members_per_group

    @property
    def beats_per_s(self) -> float:
        """Return how many heartbeats a second the members send while all are alive."""
        return self.members * 1000 / self.heartbeat_interval_ms

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ValueError: naming every one that makes no sense.
        """
        shares = ("jitter", "return_share", "long_pause_share", "garbage_share")
        positive = ("groups", "members_per_group", "heartbeat_interval_ms", "session_timeout_ms")
        faults = [
            f"{name} is {getattr(self, name)}, not in 0..1" for name in shares if not 0 <= getattr(self, name) <= 1
        ]
        faults += [f"{name} is {getattr(self, name)}, not positive" for name in positive if getattr(self, name) <= 0]
        rates = {name: getattr(self, name) for name in ("kill_rate", "pause_rate", "leave_rate")}
        faults += [f"{name} is {rate}, not in 0..60" for name, rate in rates.items() if not 0 <= rate <= 60]
        if self.heartbeat_interval_ms * (1 + self.jitter) >= self.session_timeout_ms:
            faults.append(
                f"an interval of {self.heartbeat_interval_ms} ms with jitter {self.jitter} is not shorter than"
                f" the session timeout of {self.session_timeout_ms} ms"
            )
        if faults:
            raise ValueError("; ".join(faults))


def steps(plan: FeedPlan) -> Iterator[MemberStep]:
    """List what all members do, in order of time; endless if the plan is.

    Members start within the first interval, spread evenly, so that the load is level from the start.
    """
    return merged(plan, (life(plan, member) for member in range(plan.members)))


def merged(plan: FeedPlan, lives: Iterable[Iterator[MemberStep]]) -> Iterator[MemberStep]:
    """Bring the steps of many members into the order of time, up to the end of the plan."""
    end_ms = plan.duration_ms
    for step in heapq.merge(*lives):
        if end_ms is not None and step.at_ms >= end_ms:
            return
        yield step


def life(plan: FeedPlan, member: int) -> Iterator[MemberStep]:
    """List what one member does by the rates of a plan; endless, unless it dies for good."""
    random = random_of(plan, member)
    at_ms = first_ms(plan, member)
    action = Action.START
    while True:
        yield MemberStep(at_ms, member, action)
        if plan.garbage_share and random.random() < plan.garbage_share:
            yield MemberStep(at_ms, member, Action.GARBAGE, random.random())
        event = _event(plan, random)
        if event is None:
            action, at_ms = Action.BEAT, at_ms + interval_ms(plan, random)
        elif event is Action.PAUSE:
            yield MemberStep(at_ms, member, Action.PAUSE)
            action, at_ms = Action.RESUME, at_ms + _pause_ms(plan, random)
        else:
            # A leave comes some time after the last beat, a kill at once: nobody notices either before that.
            at_ms += interval_ms(plan, random) / 2 if event is Action.LEAVE else 0
            yield MemberStep(at_ms, member, event)
            if random.random() >= plan.return_share:
                return
            action, at_ms = Action.RETURN, at_ms + random.uniform(1.5, 4) * plan.session_timeout_ms


def random_of(plan: FeedPlan, member: int) -> Random:
    """Make the random numbers of one member: a stream of its own, whatever the others do."""
    return Random(f"{plan.seed}/{member}")  # noqa: S311 - a simulation


def first_ms(plan: FeedPlan, member: int) -> float:
    """Return when a member starts, ms since the start of the feed."""
    return plan.heartbeat_interval_ms * member / plan.members


def _event(plan: FeedPlan, random: Random) -> Action | None:
    minutes = plan.heartbeat_interval_ms / _MINUTE_MS
    draw = random.random()
    for rate, action in (
        (plan.kill_rate, Action.KILL),
        (plan.pause_rate, Action.PAUSE),
        (plan.leave_rate, Action.LEAVE),
    ):
        if draw < rate * minutes:
            return action
        draw -= rate * minutes
    return None


def interval_ms(plan: FeedPlan, random: Random) -> float:
    """Draw the time to a member's next heartbeat, ms."""
    return plan.heartbeat_interval_ms * (1 + plan.jitter * random.uniform(-1, 1))


def _pause_ms(plan: FeedPlan, random: Random) -> float:
    low, high = (1.3, 2.5) if random.random() < plan.long_pause_share else (0.3, 0.8)
    return random.uniform(low, high) * plan.session_timeout_ms
