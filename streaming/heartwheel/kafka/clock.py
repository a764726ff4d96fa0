"""Compare the broker's clock with ours."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

import msgspec

from heartwheel.kafka.client import CONNECT_TIMEOUT_MS, KafkaRefusedError, connect, plain_errors
from heartwheel.kafka.security import client_settings
from kafka import KafkaProducer

CLOCK_PROBE_KEY: Final = b"heartwheel-clock-probe"
"""Key of the records that measure the clock; they are tombstones, so a compacted topic forgets them."""

_PROBES: Final = 5
_SEND_TIMEOUT_MS: Final = 5_000


class ClockOffset(msgspec.Struct, frozen=True):
    """How far the broker's clock is ahead of this machine's, ms, and by how much that may be wrong, ms."""

    offset_ms: float
    error_ms: float


def broker_clock_offset_ms(bootstrap: str, topic: str, *, properties: Mapping[str, str] | None = None) -> ClockOffset:
    """Measure how far the broker's clock is ahead of this machine's.

    A broker tells its time only by stamping a record, so a few tombstones are written; each was stamped at some moment
    between its sending and its answer, and the quickest says it best.

    Args:
        topic: takes the tombstones: one with append time, best a compacted one, such as the status topic.
        properties: Kafka client properties in dotted style.

    Raises:
        KafkaUnreachableError: if nobody answers.
        KafkaRefusedError: if the topic is missing or keeps create time.
    """
    with plain_errors(bootstrap, f"write a clock probe to topic {topic}"):
        producer = connect(
            KafkaProducer,
            bootstrap,
            timeout_ms=CONNECT_TIMEOUT_MS,
            max_block_ms=_SEND_TIMEOUT_MS,
            enable_idempotence=False,  # writing at all is what is asked for here, not writing once
            acks=1,
            **client_settings(properties or {}),
        )
        try:
            producer.partitions_for(topic)
            return min((_probe(producer, topic) for _ in range(_PROBES)), key=lambda offset: offset.error_ms)
        finally:
            producer.close(timeout=1)


def _probe(producer: KafkaProducer, topic: str) -> ClockOffset:
    # The create time is a day wrong on purpose: if it comes back, the topic does not keep append time.
    before_ms = time.time() * 1000
    wrong_ms = round(before_ms) - 86_400_000
    future = producer.send(topic, None, CLOCK_PROBE_KEY, timestamp_ms=wrong_ms)
    stamped_ms = future.get(_SEND_TIMEOUT_MS / 1000).timestamp
    after_ms = time.time() * 1000
    if stamped_ms == wrong_ms:
        raise KafkaRefusedError(f"topic {topic} keeps create time", hint="set its message.timestamp.type=LogAppendTime")
    # Stamps are whole milliseconds, cut off: half of one is added back, and counts as error.
    middle_ms = (before_ms + after_ms) / 2
    return ClockOffset(stamped_ms + 0.5 - middle_ms, (after_ms - before_ms) / 2 + 0.5)
