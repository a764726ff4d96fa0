"""Pace: the token bucket, the pauses, the outbox, and the dispatcher that rolls up what is held back."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.notify.delivery import DeliveryResult, DeliveryStatus, result_of
from heartwheel.readers.notify.dispatcher import Dispatcher
from heartwheel.readers.notify.message import Body, Message
from heartwheel.readers.notify.outbox import MESSAGES_MAX, PendingMessage
from heartwheel.readers.notify.pace import ASKED_PAUSE_MS_MAX, PAUSE_MS_MAX, RetryDelay, TokenBucket
from heartwheel.readers.notify.store import NotifierState
from heartwheel.settings import NotifySettings
from support.output_rows import T0, expired, joined, topic_rows

DELIVERED, FAILED, REFUSED = (
    DeliveryResult(fate, "fault") for fate in (DeliveryStatus.DELIVERED, DeliveryStatus.FAILED, DeliveryStatus.REFUSED)
)
S, MINUTE = 1_000, 60_000


class Receiver:
    """Take messages, or fail as it is set to."""

    def __init__(self) -> None:
        self.answer = DELIVERED
        self.tried: list[str] = []
        self.got: list[Body] = []

    def __call__(self, message: Message) -> DeliveryResult:
        """DeliveryResult one message."""
        self.tried.append(message.id)
        if self.answer.status is DeliveryStatus.DELIVERED:
            self.got.append(msgspec.json.decode(message.body, type=Body))
        return self.answer


class Scene:
    """A dispatcher, its receiver and a clock."""

    def __init__(self, **settings: Any) -> None:
        self.now_ms = T0
        self.receiver = Receiver()
        self.dead: list[PendingMessage] = []
        self.state = NotifierState()
        self.settings = NotifySettings(**settings)
        self.offset = 0
        self.open()

    def open(self) -> None:
        """Open the dispatcher, or open it again after a crash, with what was state."""
        state = msgspec.json.decode(msgspec.json.encode(self.state), type=NotifierState)
        rng = random.Random(1)
        self.dispatcher = Dispatcher(
            self.settings,
            state,
            canary_prefix="canary",
            on_dead_letter=self.dead.append,
            rng=rng,
            storm=StormRule(),
        )

    def expire(self, *groups: str, member: str = "m") -> None:
        """Expire a member of each group."""
        rows = [expired(group, member, self.now_ms) for group in groups]
        self.dispatcher.take(topic_rows(*rows, offset=self.offset), now_ms=self.now_ms)
        self.offset += len(rows)

    def run(self, for_ms: int) -> list[Body]:
        """Let seconds pass; give what came to the receiver meanwhile."""
        got = len(self.receiver.got)
        end_ms = self.now_ms + for_ms
        while self.now_ms < end_ms:
            self.now_ms += S
            self.dispatcher.compose(self.now_ms)
            self.state = self.dispatcher.state()
            while self.dispatcher.post(self.receiver, self.now_ms):
                self.state = self.dispatcher.state()
        return self.receiver.got[got:]


@given(st.lists(st.integers(0, 5_000), max_size=60), st.integers(1, 120), st.integers(1, 20))
def test_bucket_keeps_its_rate(steps: list[int], per_minute: int, burst: int) -> None:
    """Whatever the moments, no more goes through than the burst and the rate allow."""
    bucket, now_ms, taken = TokenBucket(per_minute=per_minute, burst=burst), T0, 0
    for step in steps:
        now_ms += step
        while bucket.take(now_ms):
            taken += 1
    assert taken <= burst + (now_ms - T0) * per_minute / MINUTE


def test_bucket_fills_up_to_its_burst() -> None:
    """A quiet hour is no licence for a flood, and a clock that goes back fills nothing."""
    bucket = TokenBucket(per_minute=6, burst=2)
    assert [bucket.take(T0) for _ in range(3)] == [True, True, False]
    assert bucket.tokens(T0 - MINUTE) == 0
    bucket = TokenBucket(per_minute=6, burst=2)
    bucket.take(T0)
    assert bucket.tokens(T0 + 60 * MINUTE) == 2


def test_pauses_grow_and_are_bounded() -> None:
    """Each failure may double the pause, with jitter over its upper half, up to five minutes."""
    pause = RetryDelay(random.Random(2))
    waits = [pause.fail(T0) - T0 for _ in range(12)]
    longest = [min(PAUSE_MS_MAX, 1_000 << failure) for failure in range(12)]
    assert all(most / 2 <= wait <= most for wait, most in zip(waits, longest, strict=True))
    pause.succeed()
    assert pause.fail(T0) - T0 <= 1_000


def test_a_receiver_that_asks_for_time_gets_it() -> None:
    """`Retry-After` is a lower bound of the pause, up to an hour."""
    pause = RetryDelay(random.Random(3))
    assert pause.fail(T0, asked_ms=90_000) == T0 + 90_000
    assert pause.fail(T0, asked_ms=10**9) == T0 + ASKED_PAUSE_MS_MAX


@pytest.mark.parametrize(
    ("status", "retry_after", "fate", "asked_ms"),
    [
        (200, None, DeliveryStatus.DELIVERED, 0),
        (204, None, DeliveryStatus.DELIVERED, 0),
        (301, None, DeliveryStatus.REFUSED, 0),
        (400, None, DeliveryStatus.REFUSED, 0),
        (401, "5", DeliveryStatus.REFUSED, 0),
        (408, None, DeliveryStatus.FAILED, 0),
        (410, None, DeliveryStatus.REFUSED, 0),
        (429, "7", DeliveryStatus.FAILED, 7_000),
        (500, None, DeliveryStatus.FAILED, 0),
        (503, "Sat, 18 Nov 2026 10:07:00 GMT", DeliveryStatus.FAILED, 420_000),
        (503, "Sat, 18 Nov 2006 10:07:00 GMT", DeliveryStatus.FAILED, 0),
        (503, "soon", DeliveryStatus.FAILED, 0),
        (503, "9" * 40, DeliveryStatus.FAILED, 0),
    ],
)
def test_answers_are_judged(status: int, retry_after: str | None, fate: DeliveryStatus, asked_ms: int) -> None:
    """What a receiver says decides whether a message is delivered, tried again, or a dead letter."""
    answer = result_of(status, retry_after, now_ms=1_794_996_000_000)  # 18 November 2026, 10:00 GMT
    assert (answer.status, answer.asked_ms) == (fate, asked_ms)


def test_few_incidents_have_a_message_each() -> None:
    """While the rate allows it, a message is about one group."""
    scene = Scene()
    scene.expire("a", "b", "c")
    assert [len(body.incidents) for body in scene.run(6 * S)] == [1, 1, 1]


def test_a_storm_is_rolled_up() -> None:
    """Many groups at once come in few messages, none is left out, and the rate is state."""
    scene = Scene(burst=4, per_minute=6)
    groups = [f"g{number}" for number in range(120)]
    scene.expire(*groups)
    bodies = scene.run(6 * S)
    assert [len(body.incidents) for body in bodies] == [30, 30, 30, 30]
    assert sorted(one.group_id or "" for body in bodies for one in body.incidents) == sorted(groups)


def test_what_the_rate_holds_back_says_how_long() -> None:
    """Without a token nothing is sent; the next message tells it all, and for how long it had to wait."""
    scene = Scene(burst=1, per_minute=1)
    scene.expire("a")
    scene.run(6 * S)
    scene.expire("b", "c")
    scene.expire("b", member="m2")
    (body,) = scene.run(MINUTE)
    assert [(one.group_id, one.expired, one.expired_new) for one in body.incidents] == [("b", 2, 2), ("c", 1, 1)]
    assert body.waited_ms > 40 * S


def test_a_receiver_that_is_down_loses_nothing() -> None:
    """While it is down news is rolled up, and not one expiration is missing when it is back."""
    scene = Scene(min_interval_ms=10_000)
    scene.receiver.answer = FAILED
    for minute in range(10):
        scene.expire(*(f"g{number}" for number in range(40)), member=f"m{minute}")
        assert scene.run(MINUTE) == []
        assert scene.dispatcher.waiting <= MESSAGES_MAX
    scene.receiver.answer = DELIVERED
    bodies = scene.run(30 * MINUTE)
    totals = {one.group_id: one.expired for body in bodies for one in body.incidents}
    assert totals == {f"g{number}": 10 for number in range(40)}
    assert sum(one.expired_new for body in bodies for one in body.incidents) == 400
    assert len(bodies) <= 2 * MESSAGES_MAX


def test_a_receiver_that_is_down_is_not_hammered() -> None:
    """In an hour of failures it is tried a few dozen times, whatever waits."""
    scene = Scene()
    scene.receiver.answer = FAILED
    scene.expire(*(f"g{number}" for number in range(40)))
    scene.run(60 * MINUTE)
    assert len(scene.receiver.tried) <= 30


def test_messages_of_an_incident_keep_their_order() -> None:
    """A second message about an incident is not made before the first one is delivered."""
    scene = Scene(min_interval_ms=1_000)
    scene.receiver.answer = FAILED
    scene.expire("a")
    scene.run(10 * S)
    scene.expire("a", member="m2")
    scene.run(10 * S)
    scene.receiver.answer = DELIVERED
    bodies = scene.run(10 * MINUTE)
    assert [(body.incidents[0].sequence, body.incidents[0].expired) for body in bodies] == [(1, 1), (2, 2)]


def test_what_is_refused_becomes_a_dead_letter() -> None:
    """A message that the receiver will never take is not repeated, counted and state; the next one goes out."""
    scene = Scene(min_interval_ms=1_000)
    scene.receiver.answer = REFUSED
    scene.expire("a")
    scene.run(MINUTE)
    assert (len(scene.receiver.tried), scene.dispatcher.counts.refused) == (1, 1)
    assert [(letter.fault, letter.attempts) for letter in scene.dead] == [("fault", 1)]
    scene.receiver.answer = DELIVERED
    scene.expire("a", member="m2")
    assert [body.incidents[0].sequence for body in scene.run(MINUTE)] == [2]


def test_what_fails_for_too_long_is_given_up() -> None:
    """After `give_up_after` a message is a dead letter."""
    scene = Scene(give_up_after_ms=MINUTE)
    scene.receiver.answer = FAILED
    scene.expire("a")
    scene.run(10 * MINUTE)
    assert (scene.dispatcher.counts.given_up, scene.dispatcher.waiting, len(scene.dead)) == (1, 0, 1)
    assert len(set(scene.receiver.tried)) == 1


def test_one_bad_message_holds_up_no_other() -> None:
    """A message that the receiver always fails on is tried after those that were not tried yet."""
    scene = Scene()
    bad: list[str] = []

    class Picky(Receiver):
        def __call__(self, message: Message) -> DeliveryResult:
            self.answer = FAILED if '"bad"' in message.body else DELIVERED
            bad.append(message.id) if self.answer is FAILED else None
            return super().__call__(message)

    scene.receiver = Picky()
    scene.expire("bad")
    scene.run(10 * S)
    scene.expire("good")
    bodies = scene.run(MINUTE)
    assert [body.incidents[0].group_id for body in bodies] == ["good"]
    assert bad


def test_a_crash_repeats_a_message_under_its_id() -> None:
    """Delivered, and the process died before it could note it: the same bytes come again under the same id."""
    scene = Scene()
    scene.expire("a")
    scene.now_ms += 5 * S
    scene.dispatcher.compose(scene.now_ms)
    scene.state = msgspec.json.decode(msgspec.json.encode(scene.dispatcher.state()), type=NotifierState)
    scene.dispatcher.post(scene.receiver, scene.now_ms)
    scene.open()
    scene.run(10 * S)
    first, second = scene.receiver.got
    assert first == second
    assert scene.receiver.tried[0] == scene.receiver.tried[1] == first.id


def test_nobody_is_told_of_the_canary() -> None:
    """Its members fall silent on purpose; they are read past, and their offsets count as read."""
    scene = Scene()
    scene.expire("canary-3")
    scene.dispatcher.take(topic_rows(joined("canary-3", "m"), offset=7), now_ms=T0)
    assert scene.run(MINUTE) == []
    assert scene.dispatcher.state().positions == {"expirations": {0: 1}, "triggers": {0: 8}}
