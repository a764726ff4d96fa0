"""Columns and wheels as sections of a state: Arrow IPC with zstd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heartwheel.shard.text import read_batch, write_batch
from timing_wheel import WheelSnapshot, WheelStats


def write_columns(columns: Mapping[str, NDArray[Any]]) -> bytes:
    """Write columns of one length."""
    return write_batch(pa.RecordBatch.from_pydict({name: pa.array(column) for name, column in columns.items()}))


def read_columns(data: bytes) -> dict[str, NDArray[Any]]:
    """Read what `write_columns` wrote."""
    batch = read_batch(data)
    return {name: column.to_numpy(zero_copy_only=False) for name, column in zip(batch.schema.names, batch, strict=True)}


def write_wheel(wheel: WheelSnapshot) -> bytes:
    """Write a wheel."""
    # Two columns of different lengths travel as one list row each.
    stats = wheel.stats
    return write_batch(
        pa.RecordBatch.from_pydict(
            {
                "geometry": [[wheel.tick_ms, wheel.wheel_size, wheel.clock_ms]],
                "stats": [[stats.moves, stats.fires, stats.flushes, stats.regressions]],
                **{
                    name: _one_row(column)
                    for name, column in (
                        ("handles", wheel.handles.astype(np.int32)),
                        ("deadlines_ms", wheel.deadlines_ms),
                        ("bucket_levels", wheel.bucket_levels),
                        ("bucket_virtual_ids", wheel.bucket_virtual_ids),
                        ("bucket_counts", wheel.bucket_counts),
                    )
                },
            }
        )
    )


def _one_row(column: NDArray[Any]) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array([0, len(column)], pa.int64()), pa.array(column))


def read_wheel(data: bytes) -> WheelSnapshot:
    """Read what `write_wheel` wrote."""
    batch = read_batch(data)
    column = {
        name: values.flatten().to_numpy(zero_copy_only=False)
        for name, values in zip(batch.schema.names, batch, strict=True)
    }
    tick_ms, wheel_size, clock_ms = column.pop("geometry").tolist()
    stats = WheelStats(*column.pop("stats").tolist())
    return WheelSnapshot(tick_ms=tick_ms, wheel_size=wheel_size, clock_ms=clock_ms, stats=stats, **column)
