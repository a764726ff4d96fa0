"""What kind of file a log is that has no line of a group coordinator."""

from __future__ import annotations

import re
from typing import Final

from heartwheel.explain.client_log import ClientLog
from heartwheel.explain.layouts import NEEDLE
from heartwheel.explain.opened_log import Log
from heartwheel.explain.scan import Scanned

HEAD_BYTES: Final = 262_144
"""How much of a file's begin is looked at, bytes."""

_SEGMENT: Final = re.compile(r"(?:^|/)\d{20}\.(?:log|index|timeindex|snapshot)$")
_NEEDLE: Final = NEEDLE.encode()
_TEXT_MIN: Final = 0.9

EMPTY: Final = "an empty file"
EVENTS: Final = "heartwheel's own events"
_RECORDS: Final = "a file of a partition, with the records of its topic"
_BINARY: Final = "no text"
_GC: Final = "a log of the JVM's garbage collector"
_ZOOKEEPER: Final = "a log of ZooKeeper"
_OTHER: Final = "no log of Kafka's"
NO_LOGS: Final = frozenset({EMPTY, EVENTS, _RECORDS, _BINARY, _GC, _ZOOKEEPER, _OTHER})
"""What files are that have no line of a broker or of a consumer."""

_KINDS: Final = (
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
"""What `kind_of` returns for a broker's own log."""

CONSUMER: Final = "consumer"
"""A consumer's log with something to say."""


class Sniffed:
    """A log that is read through: its first bytes are kept, and as long as no broker speaks, a consumer may.

    Args:
        log: the log.
        client: reads what a consumer says.
        scanned: what is counted.
    """

    def __init__(self, log: Log, client: ClientLog, scanned: Scanned) -> None:
        self._log, self._client, self._scanned = log, client, scanned
        self._before = scanned.coordinator_lines
        self._is_broker: bool | None = None
        self.head = b""

    def read(self, size: int = -1, /) -> bytes:
        """Read so many bytes at most."""
        block = self._log.read(size)
        if len(self.head) < HEAD_BYTES:
            self.head += block[: HEAD_BYTES - len(self.head)]
        if self._is_broker is None:
            # A look at the first block, so that no other block of a broker's log is searched twice.
            self._is_broker = _NEEDLE in block or _BROKER.search(self.head) is not None
        if not self._is_broker and self._scanned.coordinator_lines == self._before:
            self._client.feed(block)
        return block

    def close(self) -> None:
        """Close it."""
        self._log.close()


def kind_of(name: str, head: bytes) -> str:
    """Return what a file seems to be that has no line of a group coordinator: `BROKER`, or what it is in words.

    Args:
        name: of the file.
        head: its first bytes.
    """
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
