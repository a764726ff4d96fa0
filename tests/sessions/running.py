"""Shards without Spark: events in batches, with the state written and read between any two of them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from heartwheel.engine.runtime.map.slots import slots_of
from heartwheel.engine.runtime.state.schema import NEW_STATE, StateRow
from heartwheel.engine.sessions.advance import advance_sessions
from heartwheel.engine.sessions.config import SessionsConfig
from heartwheel.engine.sessions.packer import UNTIMED_MS, RowKind, decode_rows, pack_frame, stamps
from sessions.oracle import Seen

COLUMNS = ("key", "event", "at", "first", "last", "deadline", "silent", "times", "reason", "carry", "id")


def hash_of(*parts: object) -> int:
    """Return a hash of 64 bits, as the JVM makes one of a row's columns."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), signed=True)


def config_of(shards: int = 1, **changes: Any) -> SessionsConfig:
    """Return the configuration of a query with one key column and one carried one."""
    given: dict[str, Any] = {
        "shape": "key string, carry bigint",
        "keys": 1,
        "carry": 1,
        "event_time": True,
        "timeout_ms": None,
        "forget_ms": 10**12,
    }
    return SessionsConfig(slots=slots_of(shards, shards), **{**given, **changes})


def frame_of(events: Sequence[Seen], *, kinds: Sequence[int] | None = None) -> pa.RecordBatch:
    """Return events as the JVM gives them to the packer; one at `UNTIMED_MS` has no time."""
    found = [RowKind.UNTIMED if each.time_ms == UNTIMED_MS else RowKind.EVENT for each in events]
    hashes = [hash_of(each.key, each.ends, each.carry, each.timeout_ms) for each in events]
    return pa.RecordBatch.from_pydict(
        {
            "at": pa.array(stamps(np.array([each.time_ms for each in events], np.int64), kinds or found)),
            "row": pa.array(hashes, pa.int64()),
            "key": pa.array([hash_of(each.key) for each in events], pa.int64()),
            "part": pa.array([each.partition for each in events], pa.int64()),
            "timeout": pa.array([each.timeout_ms for each in events], pa.int64()),
            "reason": pa.array([each.ends for each in events], pa.string()),
            "k0": pa.array([each.key for each in events], pa.string()),
            "c0": pa.array([each.carry for each in events], pa.int64()),
        }
    )


class Shards:
    """All shards of a query.

    Args:
        shuffle: orders the packs of each batch at random, as a shuffle may.
    """

    def __init__(self, config: SessionsConfig, shuffle: random.Random | None = None) -> None:
        self.config = config
        self.states: dict[int, StateRow] = dict.fromkeys(range(config.shards), NEW_STATE)
        self.figures: list[dict[str, int]] = []
        self.now_ms: int | None = None
        self._shuffle = shuffle

    def batch(self, frames: Iterable[pa.RecordBatch], batch_ms: int) -> list[dict[str, Any]]:
        """Advance all shards by one batch, and return its rows."""
        packed = [row for frame in frames for row in pack_frame(frame, self.config.shards, self.config.outage_ms)]
        if self._shuffle is not None:
            self._shuffle.shuffle(packed)
        rows: list[dict[str, Any]] = []
        figures: dict[str, int] = {}
        for shard, before in self.states.items():
            mine = [(kind, payload) for owner, kind, payload in packed if owner == shard]
            frame = pd.DataFrame(mine, columns=["kind", "payload"])
            self.states[shard], output = advance_sessions(self.config, shard, before, [frame], batch_ms=batch_ms)
            for name, number in output.figures.items():
                figures[name] = figures.get(name, 0) + number
            self.now_ms = output.now_ms
            if output.rows is not None:
                rows += (dict(zip(COLUMNS, row.values(), strict=True)) for row in decode_rows(output.rows).to_pylist())
        self.figures.append(figures)
        return rows


def plain(rows: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return rows as the oracle has them, sorted."""
    names = ("key", "event", "at", "first", "last", "deadline", "times", "reason", "carry")
    made = [tuple(_ms(row[name]) for name in names) for row in rows]
    return sorted(made, key=repr)


def _ms(value: Any) -> Any:
    return round(value.timestamp() * 1000) if hasattr(value, "timestamp") else value
