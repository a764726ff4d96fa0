"""The ticker: writes a tick to every partition of a topic, and says why where it cannot.

The job has one for the topic that it reads, and `heartwheel tick` for any other. It has a thread and a producer of its
own. kafka-python's defaults do not suit it: a tick that comes late is worth nothing, so there is no retry, one tick in
flight a partition, and time-outs of two seconds. `acks=all`: below `min.insync.replicas` no tick is written, and the
time of a partition in which nobody else writes stands still, for who writes with `acks=all` cannot write there either.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from kafka.errors import KafkaError, KafkaTimeoutError

from heartwheel.base.worker import Worker
from heartwheel.engine.runtime.driver.skew import BrokerClocks
from heartwheel.engine.runtime.driver.tick_errors import NO_ANSWER, NO_LEADER, reason_of
from heartwheel.kafka.client import close_producer, connect
from heartwheel.kafka.security import client_settings
from heartwheel.wire.job import SilentPartition, TickerState
from heartwheel.wire.tick import Tick, encode_tick
from kafka import KafkaProducer

LEAD_MS: Final = 20
"""How long before a multiple of the interval a tick is sent, ms: Spark starts its batches at multiples of theirs, by
the same clock, and reads what is in the topic by then."""

LAGS_MS: Final = 2_000
"""A partition without a tick for longer than this, or five intervals, is silent."""

_NAMED_MAX: Final = 10
_REQUEST_TIMEOUT_MS: Final = 2_000
_CONNECT_TIMEOUT_MS: Final = 2_000
_METADATA_AGE_MS: Final = 2_000
_POLL_S: Final = 0.02
_BACKOFF_S: Final = 0.2

THROTTLED: Final = "a quota of the cluster holds back the user that writes ticks"
CLIENT_ID: Final = "heartwheel-ticker"
"""By which quotas and the broker's figures know it, unless `client.id` of `[kafka.client]` says otherwise."""

_log = logging.getLogger(__name__)


def until_next_ms(wall_ms: float, interval_ms: int) -> float:
    """Return how long after a tick the next one is due: `LEAD_MS` before a multiple of the interval, ms.

    The clock decides nothing but when within the interval ticks are sent. One that is set costs half an interval.

    Args:
        wall_ms: the clock, epoch ms.
    """
    left_ms = interval_ms - (wall_ms + LEAD_MS) % interval_ms
    return left_ms if left_ms > interval_ms / 2 else left_ms + interval_ms


def new_run() -> str:
    """Make the id of a ticker's run."""
    return secrets.token_hex(8)


class _Partition:
    """What is known of one partition: its tick in flight, the last one that was written, and why the next was not."""

    def __init__(self, now_s: float) -> None:
        self.flying: Any = None
        self.sent_ms = 0
        self.written_s = now_s
        self.written = False
        self.reason = ""


class Ticker:
    """Write ticks until the end of a `with` block.

    Args:
        topic: whose time it carries.
        interval_ms: from one tick to the next, ms; if that of the batches is a multiple, each has one right before it.
        properties: Kafka client properties in dotted style.
        now_s: reads the monotonic clock, seconds.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        run: str,
        interval_ms: int,
        properties: Mapping[str, str] | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.run = run
        self._bootstrap = bootstrap
        self._topic = topic
        self._interval_ms = interval_ms
        self._settings = client_settings(properties or {})
        self._now_s = now_s
        self._partitions: dict[int, _Partition] = {}
        self._written = self._failed = 0
        self._clocks = BrokerClocks()
        self._trouble = ""
        self._beat_s = now_s()
        self._producer: Any = None
        self._next: Any = None
        self._connecting: Worker | None = None
        self._worker = Worker(self._run, "ticker", close_s=5)

    def __enter__(self) -> Self:
        self._worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.stop()

    def count_partitions(self, timeout_s: float) -> int:
        """Count the partitions of the topic, as the newest metadata has them.

        Args:
            timeout_s: how long to wait for the first metadata, seconds.

        Returns:
            How many; 0 if nobody has answered.
        """
        give_up_s = self._now_s() + timeout_s
        while not self._partitions and self._now_s() < give_up_s and not self._worker.stopping:
            time.sleep(_POLL_S)
        return len(self._partitions)

    def state(self) -> TickerState:
        """Return the state of the ticker."""
        now_s = self._now_s()
        bound_s = max(LAGS_MS, 5 * self._interval_ms) / 1000
        known = sorted(self._partitions.items())
        silent = [
            SilentPartition(number, round((now_s - part.written_s) * 1000), self._why(number, part))
            for number, part in known
            if now_s - part.written_s > bound_s
        ]
        reason = ""
        if not self._worker.alive and not self._worker.stopping:
            reason = "the ticker's thread has ended"
        elif not known or now_s - self._beat_s > bound_s:
            reason = self._trouble or "the ticker does not come to write"
        elif self.throttled_ms() > bound_s * 1000:
            reason = THROTTLED
        return TickerState(
            run=self.run,
            partitions=len(known),
            written=self._written,
            failed=self._failed,
            lag_ms=round(max((now_s - part.written_s for _, part in known), default=now_s - self._beat_s) * 1000),
            silent_count=len(silent),
            silent=tuple(silent[:_NAMED_MAX]),
            reason=reason,
            skew_ms=self._clocks.skew_ms(),
        )

    def without_tick(self) -> list[SilentPartition]:
        """List the partitions that have not got one tick yet."""
        now_s = self._now_s()
        return [
            SilentPartition(number, round((now_s - part.written_s) * 1000), self._why(number, part))
            for number, part in sorted(self._partitions.items())
            if not part.written
        ]

    def _why(self, number: int, part: _Partition) -> str:
        return part.reason or self._trouble or self._why_late(number)

    def _why_late(self, number: int) -> str:
        """Return why no answer has come for a partition."""
        producer = self._producer
        if producer is None:
            return "no connection yet"
        led = producer._metadata.available_partitions_for_topic(self._topic)  # noqa: SLF001 - there is no public way
        if led is not None and number not in led:
            return NO_LEADER
        return THROTTLED if self.throttled_ms() else NO_ANSWER

    def throttled_ms(self) -> float:
        """Return for how long the brokers have throttled this client lately, as a quota is exceeded, ms."""
        producer = self._producer
        groups = producer.metrics().values() if producer is not None else ()
        return max((float(group.get("throttle-time-max", 0)) for group in groups), default=0.0)

    def _run(self) -> None:
        due_s = self._now_s()
        while not self._worker.stopping:
            try:
                due_s = self._turn(due_s)
            except Exception as error:  # noqa: BLE001 - whatever it is, ticks must go on, and it is said in the state
                self._trouble = reason_of(error)
                _log.debug("the ticker stumbled", exc_info=True)
                self._worker.wait(_BACKOFF_S)
            self._worker.wait(max(0.005, min(_POLL_S, due_s - self._now_s())))
        self._close(self._producer)
        self._close(self._next)

    def _turn(self, due_s: float) -> float:
        """Read the answers, and send the next ticks if they are due; return when the next ones are."""
        now_s = self._now_s()
        self._beat_s = now_s
        self._swap()
        if self._look(now_s) or self._producer is None:
            self._connect()
        if now_s < due_s or self._producer is None:
            return due_s
        self._send(now_s)
        return now_s + until_next_ms(time.time() * 1000, self._interval_ms) / 1000

    def _send(self, now_s: float) -> None:
        found: set[int] = self._producer.partitions_for(self._topic) or set()
        for number in found:
            self._partitions.setdefault(number, _Partition(now_s))
        tick = encode_tick(Tick(self.run, round(now_s * 1000), len(self._partitions), self._interval_ms))
        for number, part in self._partitions.items():
            if part.flying is None:
                part.flying = self._producer.send(self._topic, value=tick, partition=number)
                part.sent_ms = round(now_s * 1000)

    def _look(self, now_s: float) -> bool:
        """Read the answers that have come; return whether the producer is stuck."""
        stuck = False
        for number, part in self._partitions.items():
            if part.flying is None or not part.flying.is_done:
                continue
            error, written, part.flying = part.flying.exception, part.flying.value, None
            if error is None:
                self._clocks.note(number, part.sent_ms, written.timestamp)
                self._written += 1
                part.written_s, part.reason = now_s, ""
                part.written = True
                self._trouble = ""
            else:
                self._failed += 1
                self._clocks.forget(number)
                late = isinstance(error, KafkaTimeoutError)
                part.reason = self._why_late(number) if late else reason_of(error)
                stuck |= late
        return stuck

    def _connect(self) -> None:
        """Connect a new producer in a thread: partitions that the old one still serves must not wait for it."""
        if self._connecting is None or not self._connecting.alive:
            self._connecting = Worker(self._make, "ticker-connect")
            self._connecting.start()

    def _make(self) -> None:
        try:
            made = connect(
                KafkaProducer,
                self._bootstrap,
                timeout_ms=_CONNECT_TIMEOUT_MS,
                acks="all",
                retries=0,
                enable_idempotence=False,
                linger_ms=0,
                request_timeout_ms=_REQUEST_TIMEOUT_MS,
                delivery_timeout_ms=_REQUEST_TIMEOUT_MS + 100,
                max_block_ms=_REQUEST_TIMEOUT_MS,
                metadata_max_age_ms=_METADATA_AGE_MS,
                reconnect_backoff_max_ms=500,
                allow_auto_create_topics=False,
                **({"client_id": CLIENT_ID} | self._settings),
            )
            made.partitions_for(self._topic)
        except Exception as error:  # noqa: BLE001 - said in the state; the next turn tries again
            self._trouble = reason_of(error)
            self._worker.wait(_BACKOFF_S)
        else:
            self._next = made

    def _swap(self) -> None:
        """Replace the old producer by the new one; ticks in flight on the old one count as failed."""
        if self._next is None:
            return
        old, self._producer, self._next = self._producer, self._next, None
        for part in self._partitions.values():
            if part.flying is not None and not part.flying.is_done:
                part.flying = None
                self._failed += 1
        if old is not None:
            Worker(lambda: self._close(old), "ticker-close").start()

    @staticmethod
    def _close(producer: Any) -> None:
        if producer is None:
            return
        with contextlib.suppress(KafkaError, OSError):
            close_producer(producer, timeout_s=0.5)
