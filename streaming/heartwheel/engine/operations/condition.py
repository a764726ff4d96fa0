"""Conditions of operations: keys of their own, or the rules of delayed produce and fetch."""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.engine.operations.watermarks import Watermarks
from heartwheel.wire.operations import Needs, OperationEvent
from heartwheel.wire.outcomes import Ended, Ending
from timing_wheel import DelayedFetch, DelayedProduce, FetchFrom, Partitions, Position

_ANY_SIZE: Final = 2**62
"""A fetch of this stream takes all that is available: the broker decides how much of it is sent."""


class Watched(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One operation that waits.

    Args:
        condition: `keys`, `offsets` or `from_bytes`.
        lacking: the keys that are not completed yet; for `offsets` and `keys`.
        offsets: the required offset of each partition; for `offsets`.
        from_bytes: the position from which each partition is read, bytes; for `from_bytes`.
        bytes_min: the least number of bytes that completes a fetch.
    """

    operation_id: str
    condition: str
    keys: tuple[str, ...]
    lacking: tuple[str, ...]
    watched_ms: int
    timeout_ms: int
    needs_all: bool = False
    offsets: dict[str, int] = {}
    from_bytes: dict[str, int] = {}
    bytes_min: int = 1

    @property
    def deadline_ms(self) -> int:
        """When it expires, epoch ms."""
        return self.watched_ms + self.timeout_ms


def watched_of(event: OperationEvent, now_ms: int) -> Watched:
    """Return the operation that a watch starts.

    Args:
        now_ms: its effective time, epoch ms.
    """
    keys = event.watched_keys
    condition = next(name for name in ("keys", "offsets", "from_bytes") if getattr(event, name))
    return Watched(
        operation_id=event.operation_id,
        condition=condition,
        keys=keys,
        lacking=keys,
        watched_ms=now_ms,
        timeout_ms=event.timeout_ms or 0,
        needs_all=event.needs is Needs.ALL,
        offsets=event.offsets,
        from_bytes=event.from_bytes,
        bytes_min=event.bytes_min,
    )


def settle_key(operation: Watched, key: str) -> bool:
    """Remove a completed key; return whether that completes the operation. Keys of partitions are ignored."""
    if operation.condition != "keys" or key not in operation.lacking:
        return False
    operation.lacking = tuple(each for each in operation.lacking if each != key) if operation.needs_all else ()
    return not operation.lacking


def settle_watermarks(operation: Watched, watermarks: Watermarks) -> bool:
    """Return whether the operation is complete according to the high watermarks, and update its lacking keys.

    A partition that has reached its offset stays settled, as in `DelayedProduce`; the bytes that a fetch can read are
    counted again each time.
    """
    if operation.condition == "keys":
        return False
    partitions = watermarks.known_at(operation.keys, operation.watched_ms)
    if operation.condition == "from_bytes":
        fetch = _fetch(operation, partitions)
        satisfied = fetch.is_satisfied()
        operation.lacking = tuple(key for key, size in fetch.available().items() if not (size or satisfied))
        return satisfied
    required = {key: operation.offsets[key] for key in operation.lacking}
    produce = DelayedProduce(required, partitions, operation.timeout_ms)
    satisfied = produce.is_satisfied()
    operation.lacking = tuple(produce.lacking)
    return satisfied


def ended(
    operation: Watched, ending: Ending, now_ms: int, watermarks: Watermarks, *, completed_by: str | None = None
) -> Ended:
    """Return the outcome of an operation.

    Args:
        watermarks: the high watermarks at that time.
    """
    available = None
    if operation.condition == "from_bytes":
        partitions = watermarks.known_at(operation.keys, operation.watched_ms)
        available = sum(_fetch(operation, partitions).available().values())
    return Ended(
        operation_id=operation.operation_id,
        ending=ending,
        condition=operation.condition,
        keys=operation.keys,
        lacking=operation.lacking,
        watched_ms=operation.watched_ms,
        timeout_ms=operation.timeout_ms,
        time_ms=now_ms,
        completed_by=completed_by,
        bytes_available=available,
    )


def _fetch(operation: Watched, partitions: Partitions[str]) -> DelayedFetch[str]:
    wanted = {
        key: FetchFrom(Position(0, size_bytes), bytes_max=_ANY_SIZE) for key, size_bytes in operation.from_bytes.items()
    }
    return DelayedFetch(wanted, partitions, bytes_min=operation.bytes_min, wait_ms=operation.timeout_ms)
