"""One connection that speaks Produce and nothing else, for load generators."""

from __future__ import annotations

import collections
import socket
import struct
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError
from support.record_batch import produce_error, produce_request

_IN_FLIGHT_MAX: Final = 4
_RETRIES: Final = 200
_RETRY_MS: Final = 50
# Unknown topic, leader not available, not the leader: what a partition says for a moment after its topic was made.
_JUST_CREATED: Final = frozenset({3, 5, 6})
_TIMEOUT_S: Final = 30


class EncodedBatch(NamedTuple):
    """Hold one batch: where it goes, which members are in it, its bytes."""

    partition: int
    numbers: Sequence[int]
    data: bytes


class ProduceConnection:
    """Send batches over one connection, a few of them in flight.

    Args:
        bootstrap: `host:port` of a plaintext listener, of the node that leads all partitions.
        topic: name of the topic.

    Raises:
        KafkaUnreachableError: if nobody answers; later also if the connection is lost.
    """

    def __init__(self, bootstrap: str, topic: bytes) -> None:
        self.confirmed = 0
        """Records that the broker confirmed."""
        self._bootstrap, self._topic = bootstrap, topic
        host, _, port = bootstrap.rpartition(":")
        try:
            self._socket = socket.create_connection((host, int(port)), _TIMEOUT_S)
        except OSError as error:
            raise KafkaUnreachableError(f"no Kafka answers at {bootstrap}: {error}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb")
        self._flying: collections.deque[tuple[int, EncodedBatch]] = collections.deque()
        self._last_id = 0
        self._retries_left = _RETRIES

    def send(self, batch: EncodedBatch) -> None:
        """Send a batch, and wait for answers if too many are in flight.

        Raises:
            KafkaRefusedError: if the broker refused one.
        """
        self._write(batch)
        while len(self._flying) > _IN_FLIGHT_MAX:
            self._read_answer()

    def settle(self) -> None:
        """Wait for the answers to everything that was sent; as `send`."""
        while self._flying:
            self._read_answer()

    def close(self) -> None:
        """Close the connection."""
        self._answers.close()
        self._socket.close()

    def _write(self, batch: EncodedBatch) -> None:
        self._last_id = self._last_id + 1 & 0x7FFFFFFF
        head = produce_request(self._topic, batch.partition, self._last_id, len(batch.data))
        try:
            self._socket.sendall(head)
            self._socket.sendall(batch.data)
        except OSError as error:
            raise KafkaUnreachableError(f"Kafka at {self._bootstrap} is gone: {error}") from None
        self._flying.append((self._last_id, batch))

    def _read_answer(self) -> None:
        sent_id, batch = self._flying.popleft()
        (length,) = struct.unpack(">i", self._exactly(4))
        answered_id, error = produce_error(self._exactly(length), self._topic)
        if error in _JUST_CREATED and self._retries_left:
            self._retries_left -= 1
            time.sleep(_RETRY_MS / 1000)
            self._write(batch)
        elif error or answered_id != sent_id:
            raise KafkaRefusedError(f"Kafka at {self._bootstrap} refused a batch: error code {error}")
        else:
            self.confirmed += len(batch.numbers)

    def _exactly(self, count: int) -> bytes:
        try:
            data = self._answers.read(count)
        except OSError as error:
            raise KafkaUnreachableError(f"Kafka at {self._bootstrap} does not answer: {error}") from None
        if len(data) < count:
            raise KafkaUnreachableError(f"Kafka at {self._bootstrap} closed the connection")
        return data
