"""Send many records through librdkafka, whose producer costs a tenth of kafka-python's for each."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from heartwheel.kafka.client import WATCHED_TIMEOUT_MS
from heartwheel.kafka.security import librdkafka_properties
from heartwheel.kafka.topics import count_partitions

Delivered = Callable[[KafkaError | None, Message | None], None]
"""Called by a later `poll` or `close` when a record's fate is known: with `None` first if Kafka has acknowledged it."""

_QUEUED_KBYTES_MAX: Final = 256 << 10
_CLOSE_S: Final = 10.0
_QUEUE_FULL: Final = KafkaError(KafkaError._QUEUE_FULL)  # noqa: SLF001 - its public name: librdkafka begins its own codes so

_log = logging.getLogger(__name__)


class BulkSender:
    """A producer of librdkafka that keeps the order of a group's records and says of each what became of it.

    Retries cannot turn records round or write one twice (`enable.idempotence`). A record that Kafka has not
    acknowledged in time fails, and is not sent later.

    Args:
        topic: where all records go, by Kafka's murmur2 of their keys.
        properties: Kafka client properties in dotted style.
        linger_ms: how long a record may wait for company, ms.
        timeout_ms: how long a record may take until it is acknowledged, ms.
        records_max: most records that may be on their way.

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
        linger_ms: int,
        timeout_ms: int,
        records_max: int,
    ) -> None:
        # librdkafka looks for a broker in the background for ever, whatever is wrong; kafka-python says what it is.
        count_partitions(bootstrap, topic, properties=properties, connect_timeout_ms=WATCHED_TIMEOUT_MS)
        settings = librdkafka_properties(properties or {}) | {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
            "linger.ms": linger_ms,
            "message.timeout.ms": timeout_ms,
            "queue.buffering.max.messages": records_max,
            "queue.buffering.max.kbytes": _QUEUED_KBYTES_MAX,
            "allow.auto.create.topics": False,
            "log.connection.close": False,
        }
        self._topic = topic
        self._producer = Producer(settings, logger=_log)

    def send(self, key: bytes, value: bytes, delivered: Delivered) -> None:
        """Hand one record over; it is sent in the background.

        Args:
            key: decides the partition.
            delivered: called by a later `poll` or `close`, or at once if there is no room.
        """
        try:
            self._producer.produce(self._topic, value, key, on_delivery=delivered)
        except BufferError:
            delivered(_QUEUE_FULL, None)
        except KafkaException as error:
            delivered(error.args[0], None)

    def poll(self) -> None:
        """Look at the answers that have come."""
        self._producer.poll(0)

    def close(self) -> None:
        """Wait for the records on their way; those without an answer fail."""
        with contextlib.suppress(KafkaException):
            if self._producer.flush(_CLOSE_S):
                self._producer.purge()
                self._producer.flush(_CLOSE_S)
