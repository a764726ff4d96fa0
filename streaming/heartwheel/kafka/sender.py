"""Send records through kafka-python and look at every answer."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from kafka.errors import KafkaError, KafkaTimeoutError

from heartwheel.kafka.client import CONNECT_TIMEOUT_MS, close_producer, connect, plain_errors
from heartwheel.kafka.security import client_settings
from kafka import KafkaProducer

Acknowledged = Callable[["Stamp | None"], None]
"""Called once a record's fate is known: with where and when it was appended, or with `None` if that is unknown."""

_DELIVERY_TIMEOUT_MS: Final = 10_000
_REQUEST_TIMEOUT_MS: Final = 5_000
_RECONNECT_TIMEOUT_MS: Final = 1_000
_BLOCK_MS_MAX: Final = 5_000
_BATCH_BYTES: Final = 128 << 10
_LINGER_MS: Final = 20


class Stamp(tuple[int, int, int]):
    """Where and when a record was appended: partition, offset, broker's time in epoch ms."""

    __slots__ = ()

    @property
    def append_ms(self) -> int:
        """Return the broker's append time, epoch ms."""
        return self[2]


class Sender:
    """A producer that sends records in order and counts what became of each.

    A send of kafka-python fails without a sound unless its future is looked at, so all are, in `poll`. And its
    idempotent producer never sends again after a batch has expired on a broker that hung, so a time-out costs the
    producer: a new one takes over, and the records in flight count as `unknown`, for a time-out does not mean that they
    were lost. `test_sender_survives_a_hung_broker` holds both.

    Args:
        topic: where all records go.
        properties: Kafka client properties in dotted style.
        linger_ms: how long a record may wait for company, ms.

    Raises:
        KafkaUnreachableError: if nobody answers.
        KafkaRefusedError: if the cluster refuses the login or knows no such topic.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        properties: Mapping[str, str] | None = None,
        linger_ms: int = _LINGER_MS,
    ) -> None:
        self.sent = 0
        self.acknowledged = 0
        self.unknown = 0
        self._closed = False
        self.errors: collections.Counter[str] = collections.Counter()
        self._topic = topic
        self._bootstrap = bootstrap
        self._settings = client_settings(properties or {}) | {"linger_ms": linger_ms}
        self._flying: collections.deque[tuple[Any, Acknowledged | None]] = collections.deque()
        with plain_errors(bootstrap, f"write to topic {topic}"):
            self._producer: Any = self._connect(CONNECT_TIMEOUT_MS)
            self._producer.partitions_for(topic)

    def send(self, key: bytes, value: bytes | None, acknowledged: Acknowledged | None = None) -> None:
        """Hand one record over; it is sent in the background.

        Args:
            key: decides the partition, by Kafka's murmur2.
            value: `None` is a tombstone.
            acknowledged: called by a later `poll` or `close`.
        """
        self.sent += 1
        if self._producer is None:
            self._fail(KafkaTimeoutError(), acknowledged)
            return
        try:
            future = self._producer.send(self._topic, value, key)
        except KafkaError as error:
            self._fail(error, acknowledged)
        else:
            self._flying.append((future, acknowledged))

    def poll(self) -> None:
        """Look at the answers that have come, oldest first, and replace the producer if it timed out."""
        stuck = False
        while self._flying and self._flying[0][0].is_done:
            future, acknowledged = self._flying.popleft()
            if future.exception is None:
                self._succeed(future.value, acknowledged)
            else:
                stuck |= isinstance(future.exception, KafkaTimeoutError)
                self._fail(future.exception, acknowledged)
        if stuck or self._producer is None:
            self._replace()

    def flush(self, timeout_ms: int = _DELIVERY_TIMEOUT_MS) -> None:
        """Wait until the fate of every record is known, or the time is up."""
        if self._producer is not None:
            with contextlib.suppress(KafkaTimeoutError):
                self._producer.flush(timeout_ms / 1000)
        self.poll()

    def close(self) -> None:
        """Wait for the records in flight and close the producer; records without an answer count as unknown."""
        if self._closed:
            return
        self._closed = True
        self.flush()
        self._give_up_flying()
        self._discard()

    def _succeed(self, metadata: Any, acknowledged: Acknowledged | None) -> None:
        self.acknowledged += 1
        if acknowledged:
            acknowledged(Stamp((metadata.partition, metadata.offset, metadata.timestamp)))

    def _fail(self, error: BaseException, acknowledged: Acknowledged | None) -> None:
        self.unknown += 1
        self.errors[type(error).__name__] += 1
        if acknowledged:
            acknowledged(None)

    def _give_up_flying(self) -> None:
        while self._flying:
            _, acknowledged = self._flying.popleft()
            self._fail(KafkaTimeoutError(), acknowledged)

    def _replace(self) -> None:
        self._give_up_flying()
        self._discard()
        # While nobody answers, records are counted as unknown at once, and every poll asks again.
        with contextlib.suppress(KafkaError):
            self._producer = self._connect(_RECONNECT_TIMEOUT_MS)

    def _discard(self) -> None:
        producer, self._producer = self._producer, None
        if producer is None:
            return
        close_producer(producer, timeout_s=1)

    def _connect(self, timeout_ms: int) -> Any:
        return connect(
            KafkaProducer,
            self._bootstrap,
            timeout_ms=timeout_ms,
            max_block_ms=_BLOCK_MS_MAX,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
            delivery_timeout_ms=_DELIVERY_TIMEOUT_MS,
            batch_size=_BATCH_BYTES,
            allow_auto_create_topics=False,
            **self._settings,
        )
