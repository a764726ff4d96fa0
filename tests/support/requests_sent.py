"""Requests to a broker as bytes, many one after the other on one connection: for what a broker spends on each."""

from __future__ import annotations

import base64
import socket
import struct
import uuid
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from kafka.protocol.consumer.fetch import FetchRequest
from kafka.protocol.consumer.group import HeartbeatRequest

CLIENT: Final = "consumer-orders-1"
_CONSUMER_GROUP_HEARTBEAT: Final = 68
_TIMEOUT_S: Final = 60
_IN_FLIGHT: Final = 64


class Connection:
    """One connection to a broker, for the length of a `with` block.

    Args:
        host: where it listens, a plaintext listener.
        port: likewise.
    """

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), _TIMEOUT_S)
        self._answers = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._answers.close()
        self._socket.close()

    def ask(self, request: bytes) -> bytes:
        """Send one request; return its answer, without its length."""
        self._socket.sendall(request)
        return self._answer()

    def repeat(self, request: bytes, times: int) -> bytes:
        """Send a request again and again, some of them ahead of their answers; return the last answer."""
        answer = b""
        for begin in range(0, times, _IN_FLIGHT):
            count = min(_IN_FLIGHT, times - begin)
            self._socket.sendall(request * count)
            for _ in range(count):
                answer = self._answer()
        return answer

    def _answer(self) -> bytes:
        (length,) = struct.unpack(">i", self._answers.read(4))
        return self._answers.read(length)


def classic_heartbeat(group: str, generation: int, member_id: str) -> bytes:
    """Encode a heartbeat of a classic member, as clients of now send it."""
    request = HeartbeatRequest[4](group_id=group, generation_id=generation, member_id=member_id, group_instance_id=None)
    return _framed(request)


def fetch(topic: str, partitions: int) -> bytes:
    """Encode a fetch, without a session and answered at once, of the first partitions of a topic."""
    kind = FetchRequest.FetchTopic
    wanted = [
        kind.FetchPartition(
            partition=number,
            current_leader_epoch=-1,
            fetch_offset=0,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=1 << 20,
        )
        for number in range(partitions)
    ]
    request = FetchRequest[12](
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=50 << 20,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[kind(topic=topic, partitions=wanted)],
        forgotten_topics_data=[],
        rack_id="",
    )
    return _framed(request)


def _framed(request: FetchRequest | HeartbeatRequest) -> bytes:
    request.with_header(client_id=CLIENT)
    return bytes(request.encode(header=True, framed=True))


def new_member_id() -> str:
    """Make an id as members of KIP-848 make theirs."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def consumer_heartbeat(group: str, member_id: str, epoch: int, *, topics: Sequence[str] | None = None) -> bytes:
    """Encode a heartbeat of KIP-848, version 1: that of a member that joins if it names topics, else one without news.

    Args:
        member_id: its own id.
        epoch: 0 if it joins.
        topics: what it subscribes to.
    """
    names = b"\0" if topics is None else _length(len(topics)) + b"".join(map(_text, topics))
    timeout_ms, owned = (-1, b"\0") if topics is None else (300_000, _length(0))
    body = _text(group) + _text(member_id) + struct.pack(">i", epoch) + b"\0\0" + struct.pack(">i", timeout_ms)
    body += names + b"\0\0" + owned + b"\0"
    header = struct.pack(">hhih", _CONSUMER_GROUP_HEARTBEAT, 1, 0, len(CLIENT)) + CLIENT.encode() + b"\0"
    return struct.pack(">i", len(header + body)) + header + body


def answered_epoch(answer: bytes) -> int:
    """Read a member's epoch from the answer to a heartbeat of KIP-848.

    Raises:
        ValueError: the answer is an error.
    """
    error, at = struct.unpack_from(">h", answer, 9)[0], 11  # behind correlation id, tags and throttle time
    if error:
        raise ValueError(f"a heartbeat was answered with error {error}")
    for _ in range(2):  # no error message, the member id
        at += max(answer[at], 1)
    return int(struct.unpack_from(">i", answer, at)[0])


def _text(text: str) -> bytes:
    return _length(len(text)) + text.encode()


def _length(length: int) -> bytes:
    if length >= 0x7F:
        raise ValueError(f"{length} needs a varint of more than a byte")
    return bytes([length + 1])
