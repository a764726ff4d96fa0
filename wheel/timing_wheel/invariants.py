"""The invariants of a wheel, and of a purgatory, between any two calls, each as its own assert."""
# ruff: noqa: S101 - this module consists of assertions

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from timing_wheel.bucket import Bucket
from timing_wheel.columns import NEVER
from timing_wheel.delayed_operation import DelayedOperation
from timing_wheel.filing import Filing
from timing_wheel.geometry import NOT_FILED, OVERDUE_SLOT

if TYPE_CHECKING:
    from timing_wheel.wheel import TimingWheel


def check(filing: Filing, clock_ms: int) -> None:
    """Assert the invariants of Kafka's wheel, and those of the lazy re-arm.

    Args:
        filing: the handles in their buckets.
        clock_ms: the clock of the wheel, milliseconds.

    Raises:
        AssertionError: the wheel is broken.
    """
    now = clock_ms // filing.geometry.tick_ms
    _check_columns(filing)
    _check_queue(filing, now)
    for slot, bucket in filing.buckets.items():
        _check_members(filing, slot, bucket)
        if slot != OVERDUE_SLOT:
            _check_place(filing, slot, bucket, now)


def _check_columns(filing: Filing) -> None:
    filed = filing.where != NOT_FILED
    assert len(filing.deadline) == len(filing.floor) == len(filing.where), "the columns have one length"
    assert np.count_nonzero(filed) == filing.filed, "the count of filed handles is exact"
    assert (filing.deadline[~filed] == NEVER).all(), "a handle that is not filed has no deadline"
    assert (filing.floor[~filed] == NEVER).all(), "a handle that is not filed has no floor"
    assert (filing.deadline[filed] > filing.floor[filed]).all(), "no bucket begins after the deadline of its handle"
    assert set(np.unique(filing.where[filed]).tolist()) <= filing.buckets.keys(), "a slot in use has a bucket"


def _check_queue(filing: Filing, now: int) -> None:
    queued = sorted(slot for _, slot in filing.queue)
    assert queued == sorted(filing.buckets.keys() - {OVERDUE_SLOT}), "each bucket is queued exactly once"
    assert all(filing.buckets[slot].tick == tick for tick, slot in filing.queue), "it is queued for its first tick"
    assert all(tick > now for tick, _ in filing.queue), "a bucket that has begun was flushed before the clock moved"


def _check_members(filing: Filing, slot: int, bucket: Bucket) -> None:
    here = np.flatnonzero(filing.where == slot)
    assert len(here) == bucket.live, "the live count of a bucket is exact"
    assert np.isin(here, bucket.entries).all(), "a handle has an entry in its slot"
    assert (filing.floor[here] == filing.floor_of(bucket)).all(), "the floor of a handle is that of its bucket"


def _check_place(filing: Filing, slot: int, bucket: Bucket, now: int) -> None:
    span = filing.geometry.spans[bucket.level]
    turns = bucket.virtual_id - now // span
    assert filing.geometry.level_of(slot) == bucket.level, "a slot belongs to the level of its bucket"
    assert bucket.virtual_id % filing.geometry.wheel_size == (slot - 1) % filing.geometry.wheel_size, "and to its id"
    assert bucket.tick == bucket.virtual_id * span, "a bucket begins at a multiple of its span"
    assert 1 <= turns < filing.geometry.wheel_size, "no slot holds a bucket of another turn of the wheel"


def check_purgatory(
    wheel: TimingWheel,
    waiting: Mapping[int, DelayedOperation],
    watchers: Iterable[Sequence[DelayedOperation]],
    expiring: int,
) -> None:
    """Assert the invariants of a purgatory.

    Args:
        wheel: its timer.
        waiting: the waiting operations by handle.
        watchers: the watch lists.
        expiring: the number of operations that are due, and left the wheel, but did not end.

    Raises:
        AssertionError: the purgatory is broken.
    """
    wheel.check()
    watched = {id(operation) for operations in watchers for operation in operations}
    assert all(watchers), "no watch list is empty"
    assert not any(operation.ended for operation in waiting.values()), "an ended operation does not wait"
    assert {id(operation) for operation in waiting.values()} <= watched, "a waiting operation is watched"
    assert len(wheel) <= len(waiting) <= len(wheel) + expiring, "a waiting operation is in the wheel, or expires next"
    for handle, operation in waiting.items():
        assert wheel.deadline_of(handle) in {operation.deadline_ms, NEVER}, "an operation is filed under its deadline"
