"""The records of the delayed-operations topic, and their decoder.

| `type`           | fields                                       | meaning                                         |
|------------------|----------------------------------------------|-------------------------------------------------|
| `watch`          | `operation_id`, `timeout_ms`, one condition  | an operation begins; it completes or expires    |
| `complete`       | `key` or `operation_id`                      | a key is completed, or one operation itself     |
| `high_watermark` | `key`, `offset`, for fetches `size_bytes`    | how far a partition is replicated; it is stored |

A watch has exactly one condition:

| condition                 | the operation completes when                                                           |
|---------------------------|----------------------------------------------------------------------------------------|
| `keys`, `needs`           | one of the keys was completed after the watch; all of them, with `needs` `all`         |
| `offsets`                 | every partition's high watermark has reached its offset (Kafka's `DelayedProduce`)     |
| `from_bytes`, `bytes_min` | the high watermarks give so many bytes to read (Kafka's `DelayedFetch`, of a consumer) |

Time is the record's append time, as it is for heartbeats.
"""

from __future__ import annotations

import enum
from typing import Annotated, Final

import msgspec

from heartwheel.wire.event_codec import decode_value
from heartwheel.wire.events import ID_BYTES_MAX, TIMEOUT_MS_MAX, RejectCause, RejectedError

KEYS_MAX: Final = 1_000
"""Most keys that one operation may watch."""

KEYS_BYTES_MAX: Final = 64 * 1024
"""Most UTF-8 bytes of all keys of one operation together. Its outcome names them twice, and JSON may write a byte as
six. So the longest row stays below the megabyte that a Kafka producer sends (`test_hostile_operations.py`)."""


class OperationEventType(enum.StrEnum):
    """The types of record."""

    WATCH = "watch"
    COMPLETE = "complete"
    HIGH_WATERMARK = "high_watermark"


class Needs(enum.StrEnum):
    """How many of its keys an operation needs."""

    ANY = "any"
    ALL = "all"


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
_Timeout = Annotated[int, msgspec.Meta(ge=1, le=TIMEOUT_MS_MAX)]


class OperationEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One decoded record of the delayed-operations topic.

    Args:
        type: the type of record.
        operation_id: the operation that a watch begins, or a complete ends.
        timeout_ms: how long a watched operation may take, milliseconds.
        keys: the keys that complete a watched operation.
        needs: whether any of the keys completes it, or only all of them.
        offsets: the offset that the high watermark of each partition must reach: the last one written plus one.
        from_bytes: the position in bytes from which each partition is read.
        bytes_min: number of bytes to wait for, of all partitions together.
        key: the key that a complete or a high watermark is about; for a partition usually `topic-0`.
        offset: the high watermark.
        size_bytes: bytes before the high watermark, from the beginning of the partition; if omitted, as before.
    """

    type: OperationEventType
    operation_id: str = ""
    timeout_ms: _Timeout | None = None
    keys: tuple[str, ...] = ()
    needs: Needs = Needs.ANY
    offsets: dict[str, _Count] = {}
    from_bytes: dict[str, _Count] = {}
    bytes_min: _Count = 1
    key: str = ""
    offset: _Count | None = None
    size_bytes: _Count | None = None

    @property
    def watched_keys(self) -> tuple[str, ...]:
        """The keys that a watch names, each once, in the order given."""
        return tuple(dict.fromkeys((*self.keys, *self.offsets, *self.from_bytes)))


_decode = msgspec.json.Decoder(OperationEvent).decode
_encode = msgspec.json.Encoder().encode


def decode_operation(
    value: bytes | None, *, size_max: int = 1 << 20, timeout_ms_max: int = 2**31 - 1
) -> OperationEvent:
    """Decode one record's value.

    Args:
        value: the record's value; `None` is a tombstone.
        size_max: longest accepted value, bytes.
        timeout_ms_max: longest accepted timeout, milliseconds.

    Raises:
        RejectedError: it cannot be used; the error has the cause that is counted and words for people.
    """
    event = decode_value(value, _decode, size_max=size_max)
    _CHECKS[event.type](event)
    _check_sizes(event)
    if (event.timeout_ms or 0) > timeout_ms_max:
        raise _bad(f"`timeout_ms` is {event.timeout_ms}, at most {timeout_ms_max} are accepted")
    return event


def encode_operation(event: OperationEvent) -> bytes:
    """Encode an event as the JSON that `decode_operation` reads, without fields at their default."""
    return _encode(event)


def _bad(words: str) -> RejectedError:
    return RejectedError(RejectCause.BAD_FIELD, words)


def _missing(words: str) -> RejectedError:
    return RejectedError(RejectCause.MISSING_FIELD, words)


def _check_watch(event: OperationEvent) -> None:
    if not event.operation_id:
        raise _missing("a watch needs an `operation_id`")
    if event.timeout_ms is None:
        raise _missing("a watch needs a `timeout_ms`")
    conditions = [name for name in ("keys", "offsets", "from_bytes") if getattr(event, name)]
    if not conditions:
        raise _missing("a watch needs `keys`, `offsets` or `from_bytes`: without one it could only expire")
    if len(conditions) > 1:
        raise _bad(f"a watch has one condition, not {' and '.join(f'`{name}`' for name in conditions)}")


def _check_complete(event: OperationEvent) -> None:
    if not event.key and not event.operation_id:
        raise _missing("a complete needs a `key` or an `operation_id`")
    if event.key and event.operation_id:
        raise _bad("a complete is about a `key` or about an `operation_id`, not both")


def _check_high_watermark(event: OperationEvent) -> None:
    if not event.key:
        raise _missing("a high_watermark needs a `key`")
    if event.offset is None:
        raise _missing("a high_watermark needs an `offset`")


_CHECKS: Final = {
    OperationEventType.WATCH: _check_watch,
    OperationEventType.COMPLETE: _check_complete,
    OperationEventType.HIGH_WATERMARK: _check_high_watermark,
}


def _check_sizes(event: OperationEvent) -> None:
    keys = event.watched_keys
    if len(keys) > KEYS_MAX:
        raise _bad(f"{len(keys)} keys, at most {KEYS_MAX}")
    for text in (event.operation_id, event.key, *keys):
        # A character is at most 4 bytes of UTF-8, so most ids pass without being encoded.
        if len(text) * 4 > ID_BYTES_MAX and len(text.encode()) > ID_BYTES_MAX:
            raise RejectedError(
                RejectCause.ID_TOO_LONG, f"an id of {len(text)} characters, at most {ID_BYTES_MAX} bytes"
            )
    key_bytes = sum(len(key.encode()) for key in keys)
    if key_bytes > KEYS_BYTES_MAX:
        raise RejectedError(RejectCause.ID_TOO_LONG, f"keys of {key_bytes} bytes together, at most {KEYS_BYTES_MAX}")
