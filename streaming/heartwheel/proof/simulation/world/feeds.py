"""Feeds at work: what each of them writes into the heartbeat topic, and when.

A feed works in turns. In each turn it writes what it has received up to a time, and then a mark that says so. A request
that waits for its answer is not relayed yet, and its group is held back at it. A feed writes nothing that it could not
know, whatever its faults. But some feeds write an event after a mark that covers it, as when a broker logs late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Final, NamedTuple

import msgspec

from heartwheel.engine.rules.answer import Answer
from heartwheel.proof.simulation.plan.feeds import FeedFault, FeedFaultKind, SimulatedFeed
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.story import Story
from heartwheel.proof.simulation.world.feeder import SimulatedFeeder, Walk
from heartwheel.proof.simulation.world.tapped import ReceivedRequest
from heartwheel.wire.events import RejectCause
from heartwheel.wire.relayed import FEEDS_PARTITION, FeedFields, FeedWatermark, encode_mark
from heartwheel.wire.requests import encode_request

STRANGER: Final = "stranger"
"""The name of a feed that no job trusts."""

_IDLE_TURN_MS: Final = 1_500
_LONE_TURN_MS: Final = 3_000
_BUSY_MS: Final = 3_500
"""How long after the last request its answer and late events may still be relayed, ms."""

_ACCEPTED: Final = {Answer.NONE, Answer.PARKED, Answer.REBALANCE_IN_PROGRESS, Answer.MEMBER_ID_REQUIRED}
_encode: Final = msgspec.json.encode


class Write(NamedTuple):
    """A record that a feed writes.

    Args:
        true_ms: when it is written, true ms.
        cause: why the job must reject it, if so.
        idle: whether it only shows that time passes.
    """

    true_ms: int
    partition: int
    value: bytes
    cause: str = ""
    idle: bool = False


class _Feed:
    """One feed.

    Args:
        received: the requests that its broker receives, in the order of time.
    """

    def __init__(self, plan: Plan, number: int, received: list[ReceivedRequest], story: Story) -> None:
        self._plan = plan
        self._feed: SimulatedFeed = plan.relayed.feeds[number]
        self._dice = Random(f"feed {plan.seed} {self._feed.name}")
        self._story = story
        self._waiting = [one for one in received if one.true_ms >= self._feed.start_ms and self._relays(one)]
        self._written: list[ReceivedRequest] = []
        self._marked_ms = self._feed.start_ms
        self._since_ms = self._feed.clock.at(self._feed.start_ms)
        self._ids = {id(one): f"{one.at_ms}-{number}" for one, number in zip(self._waiting, count(), strict=False)}

    def writes(self) -> Iterator[Write]:
        """Yield what it writes, in the order of time."""
        feed = self._feed
        troubles = [trouble for trouble in feed.troubles if trouble.from_ms >= feed.start_ms]
        now_ms = feed.start_ms
        while now_ms < feed.until_ms:
            if troubles and troubles[0].from_ms <= now_ms:
                trouble = troubles.pop(0)
                yield from self._inject(trouble)
                if trouble.kind is FeedFaultKind.FALLS_SILENT:
                    return
                now_ms = max(now_ms, trouble.to_ms)
                continue
            yield from self._relay(now_ms)
            yield from self._mark(now_ms)
            now_ms += round(self._turn_ms(now_ms) * self._dice.uniform(0.8, 1.2))

    def _turn_ms(self, now_ms: int) -> int:
        if now_ms < self._plan.feed_ms:
            return self._feed.turn_ms
        return _IDLE_TURN_MS if now_ms < self._plan.feed_ms + _BUSY_MS else _LONE_TURN_MS

    def _relays(self, one: ReceivedRequest) -> bool:
        return self._feed.refused or one.answer in _ACCEPTED

    def _knows_until(self, now_ms: int) -> int:
        """Return the time up to which it has received everything, true ms."""
        return max(self._marked_ms, now_ms - self._feed.settle_ms)

    def _relay(self, now_ms: int) -> Iterator[Write]:
        """Write what it has received by a time."""
        known_ms, dice = self._knows_until(now_ms), self._dice
        ready = [one for one in self._waiting if one.true_ms < known_ms and one.answered_ms <= now_ms]
        late = [one for one in ready if dice.random() < self._feed.untimely]
        for _ in late:
            self._story.mark("fault feed breaks its word")
        ready = [one for one in ready if one not in late]
        self._waiting = [one for one in self._waiting if one not in ready]
        self._written += ready
        if self._feed.shuffles:
            dice.shuffle(ready)
        for one in ready:
            yield self._write_of(one, now_ms)
            if dice.random() < self._feed.repeats:
                self._story.mark("fault feed repeats an event")
                yield self._write_of(one, now_ms)

    def _write_of(self, one: ReceivedRequest, now_ms: int) -> Write:
        # A request that was in progress during a gap counts at its end, where sessions restart.
        fields = FeedFields(feed=self._feed.name, at_ms=max(one.at_ms, self._since_ms), id=self._ids[id(one)])
        value = encode_request(one.event)[:-1] + b"," + _encode(fields)[1:]
        self._story.mark("relayed")
        self._story.say(now_ms, "feed {} passes on {} of {}", self._feed.name, one.event, fields.at_ms)
        return Write(now_ms, FEEDS_PARTITION, value)

    def _mark(self, now_ms: int) -> Iterator[Write]:
        """Write a mark; it may be lost."""
        self._marked_ms = self._knows_until(now_ms)
        yield from self._mark_at(now_ms, self._feed.clock.at(self._marked_ms))

    def _mark_at(self, now_ms: int, passed_ms: int) -> Iterator[Write]:
        passed_ms, held = max(passed_ms, self._since_ms), self._held()
        if held:
            self._story.mark("feed holds a group back")
        if self._dice.random() < self._feed.lost_marks:
            self._story.mark("fault mark lost")
            return
        mark = FeedWatermark(
            feed=self._feed.name, passed_ms=passed_ms, since_ms=min(self._since_ms, passed_ms), held=held
        )
        self._story.say(now_ms, "{}", mark)
        yield Write(now_ms, FEEDS_PARTITION, encode_mark(mark), idle=now_ms > self._plan.feed_ms + _BUSY_MS)

    def _held(self) -> dict[str, int]:
        held: dict[str, int] = {}
        for one in self._waiting:
            if self._feed.holds and one.true_ms < self._marked_ms and one.answer is Answer.PARKED:
                at_ms = max(one.at_ms, self._since_ms)
                held[one.group_id] = min(at_ms, held.get(one.group_id, at_ms))
        return held

    # -- its faults

    def _inject(self, trouble: FeedFault) -> Iterator[Write]:
        self._story.mark(f"fault feed {trouble.kind}")
        self._story.say(trouble.from_ms, "feed {} {} until {}", self._feed.name, trouble.kind, trouble.to_ms)
        if trouble.kind is FeedFaultKind.LAGS:
            return
        if self._dice.random() < 0.5:
            # It dies after it has written events, and before the mark that covers them.
            yield from self._relay(trouble.from_ms)
        if trouble.kind is FeedFaultKind.MISSES:
            self._waiting = [one for one in self._waiting if max(one.true_ms, one.answered_ms) >= trouble.to_ms]
            self._since_ms, self._marked_ms = self._feed.clock.at(trouble.to_ms), trouble.to_ms
        elif trouble.kind is FeedFaultKind.REPEATS:
            from_ms = max(self._feed.start_ms, self._marked_ms - self._dice.choice((0, 0, 0, 600, 2_000)))
            again = [one for one in self._written if one.true_ms >= from_ms and one.at_ms >= self._since_ms]
            self._written = [one for one in self._written if one not in again]
            self._waiting = sorted(again + self._waiting, key=lambda one: one.true_ms)
            if from_ms < self._marked_ms:
                self._story.mark("fault marks go back")
                yield from self._mark_at(trouble.to_ms, self._feed.clock.at(from_ms))
            if again:
                self._story.mark("fault feed repeats what it wrote before")


def relayed_writes(plan: Plan, received: list[ReceivedRequest], story: Story) -> list[Write]:
    """Return what all feeds and forgers write, in the order of time.

    Args:
        received: the requests that brokers receive, in the order of time.
    """
    writes = [
        write
        for number in range(len(plan.relayed.feeds))
        for write in _Feed(plan, number, [one for one in received if one.feed == number], story).writes()
    ]
    return sorted([*writes, *_forgeries(plan, story)], key=lambda write: write.true_ms)


def _forgeries(plan: Plan, story: Story) -> Iterator[Write]:
    """Yield the records of a client that only claims to be a feed."""
    if not plan.relayed.groups:
        return
    dice, name = Random(f"forger {plan.seed}"), plan.relayed.names[0]
    # Its victims are relayed groups and groups that write to the topic themselves; some may not have begun yet.
    victims = [*(fed.group.group_id for fed in plan.relayed.groups), *(group.group_id for group in plan.groups)]
    forge: list[tuple[str, Callable[[int, str], bytes]]] = [
        ("", lambda at_ms, _: encode_mark(FeedWatermark(STRANGER, at_ms + 50_000, 0))),
        (RejectCause.UNTRUSTED_FEED, lambda at_ms, group_id: _event(group_id, feed=STRANGER, at_ms=at_ms)),
        (RejectCause.BAD_FIELD, lambda _, group_id: _event(group_id, feed=name)),
        (RejectCause.BAD_FIELD, lambda _, group_id: _event(group_id, feed=name, at_ms="soon")),
        (RejectCause.UNKNOWN_TYPE, lambda _, __: _encode({"type": "mark", "feed": name, "passed_ms": 2**60})),
    ]
    # Feeds write to the first partition only: elsewhere all that they seem to write is forged.
    partition = plan.partitions - 1
    if partition != FEEDS_PARTITION:
        forge.append((RejectCause.BAD_FIELD, lambda at_ms, group_id: _event(group_id, feed=name, at_ms=at_ms)))
        forge.append(("", lambda at_ms, _: encode_mark(FeedWatermark(name, at_ms + 50_000, 0))))
    if plan.relayed.usurped:
        partition = FEEDS_PARTITION
        forge = [("", lambda at_ms, _: encode_mark(FeedWatermark(name, at_ms * 2, 0)))]
    for _ in range(plan.relayed.forgeries):
        true_ms, group_id = dice.randrange(plan.feed_ms), dice.choice(victims)
        cause, value = dice.choice(forge)
        story.mark("fault usurped feed" if plan.relayed.usurped else "fault forged feed")
        at_ms = plan.brokers[0].at(true_ms)
        yield Write(true_ms, partition, value(at_ms, group_id), cause)


def _event(group_id: str, **fields: object) -> bytes:
    return _encode({"group_id": group_id, "member_id": "m0", **fields})


def append_writes(feeder: SimulatedFeeder, writes: list[Write]) -> Walk:
    """Walk as the feeds: append each record at its time."""
    now_ms = 0
    for write in writes:
        if write.true_ms > now_ms:
            yield write.true_ms - now_ms
            now_ms = write.true_ms
        feeder.topic.send(write.partition, write.value, write.true_ms, cause=write.cause, idle=write.idle)
