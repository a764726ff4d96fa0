"""The kind of a file that has no line of a group coordinator."""

from __future__ import annotations

import re
from typing import Final

from heartwheel.sources.explain.client_log import ClientLog
from heartwheel.sources.explain.opened_log import OpenedLog
from heartwheel.sources.explain.scan import Scanned
from heartwheel.sources.explain.texts import PREFIX

HEAD_BYTES: Final = 262_144
"""How many bytes at a file's start are examined."""

_SEGMENT: Final = re.compile(r"(?:^|/)\d{20}\.(?:log|index|timeindex|snapshot)$")
_PREFIX: Final = re.compile(PREFIX.pattern.encode())
_TEXT_MIN: Final = 0.9

EMPTY: Final = "an empty file"
EVENTS: Final = "heartwheel's own events"
_TRUTH: Final = "heartwheel's own truth about simulated clients: what was done to each, and when"
_RECORDS: Final = "a file of a partition, with the records of its topic"
_BINARY: Final = "no text"
_GC: Final = "a log of the JVM's garbage collector"
_ZOOKEEPER: Final = "a log of ZooKeeper"
_OTHER: Final = "no log of Kafka's"
CERTAIN: Final = frozenset({EMPTY, EVENTS, _TRUTH})
"""Kinds that are certain, not only likely."""

NO_LOGS: Final = CERTAIN | frozenset({_RECORDS, _BINARY, _GC, _ZOOKEEPER, _OTHER})
"""Kinds of files that have no line of a broker or of a consumer."""

_KINDS: Final = (
    (rb'\A\{\s*"(?:type"\s*:\s*"life"|t_ms"\s*:\s*\d+\s*,\s*"action")', _TRUTH),
    (rb'\A\{\s*"t_ms"\s*:', EVENTS),
    (
        rb"groupId=|rdkafka#|\bkafka\.coordinator\b(?!\.(?:group|transaction|share)\b)|\bConsumer(?:Coordinator|Config)\b",
        "a consumer's log that says nothing of leaving its group",
    ),
    (rb"Completed request:", "a request log (kafka-request.log): heartwheel tap reads it"),
    (rb"state\.change\.logger", "a state-change log"),
    (rb"\(kafka\.authorizer\.logger\)", "an authorizer's log"),
    (rb"\(kafka\.log\.LogCleaner|\[kafka-log-cleaner", "a log of the log cleaner"),
    (rb"\(kafka\.controller\.|\[ControllerEventThread|\[Controller id=", "a controller's log"),
    (rb"\[gc[ ,\]]|\[GC \(|G1 Evacuation Pause", _GC),
    (rb"org\.apache\.zookeeper\.", _ZOOKEEPER),
)
_COORDINATES: Final = re.compile(rb"\bkafka\.coordinator\.(?:group|transaction|share)\.")
_BROKER: Final = re.compile(
    rb"\bkafka\.(?:server|log|network|cluster|utils|raft)\.|KafkaRaftServer|BrokerServer|\[SocketServer|\[broker-"
)

BROKER: Final = "broker"
"""The result of `kind_of` for a broker's own log."""

CONSUMER: Final = "consumer"
"""A consumer's log with lines about its group."""


class Sniffed:
    """A log that is read through: it keeps the first bytes and, until a broker's line appears, looks for a consumer's.

    Args:
        client: parses a consumer's lines.
        scanned: where to count.
    """

    def __init__(self, log: OpenedLog, client: ClientLog, scanned: Scanned) -> None:
        self._log, self._client, self._scanned = log, client, scanned
        self._before = scanned.coordinator_lines
        self._is_broker: bool | None = None
        self.head = b""

    def read(self, size: int = -1, /) -> bytes:
        """Read at most so many bytes."""
        block = self._log.read(size)
        if len(self.head) < HEAD_BYTES:
            self.head += block[: HEAD_BYTES - len(self.head)]
        if self._is_broker is None:
            # Only the first block is searched, so that no other block of a broker's log is searched twice.
            self._is_broker = _PREFIX.search(block) is not None or _BROKER.search(self.head) is not None
        if not self._is_broker and self._scanned.coordinator_lines == self._before:
            self._client.feed(block)
        return block

    def close(self) -> None:
        """Close it."""
        self._log.close()


def kind_of(name: str, head: bytes) -> str:
    """Return the likely kind of a file without a line of a group coordinator: `BROKER`, or a description."""
    if not head:
        return EMPTY
    if _SEGMENT.search(name):
        return _RECORDS
    printable = sum(byte >= 32 or byte in b"\t\r\n\x1b" for byte in head[:4096])
    if printable < _TEXT_MIN * len(head[:4096]):
        return _BINARY
    if _COORDINATES.search(head):
        return BROKER
    for pattern, words in _KINDS:
        if re.search(pattern, head):
            return words
    return BROKER if _BROKER.search(head) else _OTHER
