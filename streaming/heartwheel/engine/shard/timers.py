"""The timers of a shard as columns of differences, which every batch of heartbeats changes.

A member's session mostly ends `timeout_ms` after the member was seen. So of deadline and seen time one is written, and
for the other the difference, which is zero. The wheel's bucket of a timer is one more small number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.shard.arrays import read_columns, write_columns
from heartwheel.engine.shard.handles import group_handle, handles_max, member_handle
from heartwheel.engine.shard.tables import FREE
from timing_wheel import TimingWheel, WheelSnapshot, WheelStats

Ints = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]

_NOT_FILED = 0


def write_timers(wheel: TimingWheel, members: Columns, groups: Columns) -> bytes:
    """Encode the timers of all members and groups, and when the members were seen.

    Args:
        members: the columns of the member table; `seen_ms` is removed from it.
    """
    taken = wheel.snapshot()
    seen = members.pop("seen_ms")
    rows, of_groups = len(seen), len(next(iter(groups.values())))
    bucket = np.zeros(handles_max(rows, of_groups), np.int16)
    bucket[taken.handles] = np.repeat(np.arange(1, len(taken.bucket_counts) + 1, dtype=np.int16), taken.bucket_counts)
    filed = bucket[0::2][:rows] != _NOT_FILED
    deadlines = wheel.deadlines()[0::2][:rows]
    slack = np.zeros(rows, np.int64)
    if filed.all():
        slack = deadlines - members["timeout_ms"] - seen
        asleep = np.empty(0, np.int64)
    else:
        # A row without a timer gets the deadline of another one, so that the differences stay small.
        deadlines = np.where(filed, _padded(deadlines, rows), deadlines[filed[: len(deadlines)]].min(initial=0))
        slack[filed] = (deadlines - members["timeout_ms"] - seen)[filed]
        asleep = seen[~filed & (members["group"] != FREE)]
    group_bucket = bucket[1::2][:of_groups]
    stats = taken.stats
    return write_columns(
        {
            "deadline_ms": deadlines,
            "slack_ms": slack,
            "bucket": bucket[0::2][:rows],
            "asleep_seen_ms": asleep,
            "group_bucket": group_bucket,
            "group_deadline_ms": wheel.deadlines()[group_handle(np.flatnonzero(group_bucket))],
            "wheel": np.array([taken.tick_ms, taken.wheel_size, taken.clock_ms, *_counters(stats)], np.int64),
            "bucket_levels": taken.bucket_levels,
            "bucket_virtual_ids": taken.bucket_virtual_ids,
        }
    )


def _counters(stats: WheelStats) -> tuple[int, ...]:
    return stats.moves, stats.fires, stats.flushes, stats.regressions


def _padded(deadlines: Ints, rows: int) -> Ints:
    # The wheel knows handles only up to the largest one that was ever filed.
    return deadlines if len(deadlines) == rows else np.append(deadlines, np.zeros(rows - len(deadlines), np.int64))


def read_timers(data: bytes, members: Columns) -> TimingWheel:
    """Decode what `write_timers` returned, and return the wheel.

    Args:
        members: the other columns of the member table; `seen_ms` is added to it.

    Raises:
        KeyError: if a column is missing.
        ValueError: if the columns contradict each other.
    """
    column = read_columns(data)
    deadlines, bucket, group_bucket = column["deadline_ms"], column["bucket"], column["group_bucket"]
    members["seen_ms"] = _seen(column, members)
    at, at_groups = np.flatnonzero(bucket), np.flatnonzero(group_bucket)
    handles = np.concatenate((member_handle(at), group_handle(at_groups)))
    buckets = np.concatenate((bucket[at], group_bucket[at_groups]))
    order = np.argsort(buckets, kind="stable")
    tick_ms, wheel_size, clock_ms, *counters = column["wheel"].tolist()
    snapshot = WheelSnapshot(
        tick_ms=tick_ms,
        wheel_size=wheel_size,
        clock_ms=clock_ms,
        handles=handles[order].astype(np.int32),
        deadlines_ms=np.concatenate((deadlines[at], column["group_deadline_ms"]))[order],
        bucket_levels=column["bucket_levels"],
        bucket_virtual_ids=column["bucket_virtual_ids"],
        bucket_counts=np.bincount(buckets, minlength=len(column["bucket_levels"]) + 1)[1:],
        stats=WheelStats(*counters),
    )
    return TimingWheel.restore(snapshot, capacity=handles_max(len(bucket), len(group_bucket)))


def _seen(column: Columns, members: Columns) -> Ints:
    seen: Ints = column["deadline_ms"] - members["timeout_ms"] - column["slack_ms"]
    idle = column["bucket"] == _NOT_FILED
    if idle.any():
        seen[idle] = 0
        seen[idle & (members["group"] != FREE)] = column["asleep_seen_ms"]
    return seen
