"""Encode record batches (magic 2) and Produce requests, just as much of Kafka's protocol as a load generator needs."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Final, Literal

import lz4.frame  # type: ignore[import-untyped]  # has no types
from crc32c import crc32c

Compression = Literal["none", "lz4"]
Headers = Sequence[tuple[bytes, bytes]]

_MAGIC: Final = 2
_PRODUCE: Final = 0
_PRODUCE_VERSION: Final = 7
_CLIENT_ID: Final = b"heartwheel-raw"
_TIMEOUT_MS: Final = 30_000
_CODECS: Final[dict[Compression, int]] = {"none": 0, "lz4": 3}


def varint(number: int) -> bytes:
    """Encode an integer as Kafka's zigzag varint."""
    if 0 <= number < len(_SMALL_VARINTS):
        return _SMALL_VARINTS[number]
    return _varint(number)


def _varint(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


# Lengths and offsets of a batch are small numbers, and a million members need five million of them.
_SMALL_VARINTS: Final = tuple(map(_varint, range(8192)))


def encode_batch(
    records: Sequence[tuple[bytes, bytes]],
    timestamp_ms: int,
    compression: Compression = "none",
    headers: Iterable[Headers] = repeat(()),
) -> bytes:
    """Encode keyed records as one batch.

    Args:
        records: keys and values, of any lengths.
        timestamp_ms: create time of all of them, epoch ms; a topic with append time replaces it.
        compression: codec of the batch.
        headers: those of each record; by default none.
    """
    body = b"".join(
        _record(delta, key, value, own) for delta, ((key, value), own) in enumerate(zip(records, headers, strict=False))
    )
    if compression == "lz4":
        # The broker refuses frames whose blocks refer to each other.
        body = lz4.frame.compress(body, block_linked=False)
    return frame_batch(body, len(records), timestamp_ms, _CODECS[compression])


def frame_batch(body: bytes, count: int, timestamp_ms: int, codec: int) -> bytes:
    """Put the header of a batch before its records.

    Args:
        body: the records, compressed if the codec says so.
        timestamp_ms: create time of all of them, epoch ms.
        codec: as the attributes of a batch number it; 0 is none.
    """
    covered = struct.pack(">hiqqqhii", codec, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count) + body
    return struct.pack(">qiibI", 0, len(covered) + 9, -1, _MAGIC, crc32c(covered)) + covered


def _record(offset_delta: int, key: bytes, value: bytes, headers: Headers) -> bytes:
    # Attributes and timestamp delta are zero.
    parts = [b"\0\0", varint(offset_delta), varint(len(key)), key, varint(len(value)), value, varint(len(headers))]
    for name, text in headers:
        parts += (varint(len(name)), name, varint(len(text)), text)
    tail = b"".join(parts)
    return varint(len(tail)) + tail


def produce_request(topic: bytes, partition: int, correlation_id: int, batch_bytes: int) -> bytes:
    """Encode a Produce request for one batch with `acks=1`, all but the batch itself, which follows it on the wire.

    Args:
        topic: name of the topic.
        partition: where the batch goes.
        correlation_id: comes back with the answer.
        batch_bytes: length of the batch.
    """
    header = struct.pack(">hhih", _PRODUCE, _PRODUCE_VERSION, correlation_id, len(_CLIENT_ID)) + _CLIENT_ID
    body = struct.pack(">hhiih", -1, 1, _TIMEOUT_MS, 1, len(topic)) + topic
    body += struct.pack(">iii", 1, partition, batch_bytes)
    return struct.pack(">i", len(header) + len(body) + batch_bytes) + header + body


def produce_error(answer: bytes, topic: bytes) -> tuple[int, int]:
    """Read the answer to a request of `produce_request`, without its length.

    Returns:
        Its correlation id and Kafka's error code; 0 is success.
    """
    (correlation_id,) = struct.unpack_from(">i", answer)
    # The error stands behind: correlation id, topics, length of the name, name, partitions, partition.
    (error,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(topic) + 4 + 4)
    return correlation_id, error
