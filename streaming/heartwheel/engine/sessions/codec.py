"""The state of a shard as text: sections in the frame of `heartwheel.engine.shard.frame`.

| section   | what                                               | changes with            |
|-----------|----------------------------------------------------|-------------------------|
| `columns` | the table's columns but the hashes                 | every event             |
| `hashes`  | the hashes of the keys, and the order of them      | new and forgotten keys  |
| `keys`    | the key columns, Arrow                             | new and forgotten keys  |
| `carry`   | the carried columns, Arrow                         | other carried values    |
| `wheel`   | the timing wheel                                   | every event             |
| `clock`   | the clock, MessagePack                             | every batch             |
| `waiting` | events that wait for the clock, a pack             | seldom                  |

A section that did not change is written as the text that was read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from heartwheel.engine.sessions.clock import Clock
from heartwheel.engine.sessions.packer import EventPack, decode_pack, decode_rows, encode_pack, encode_rows
from heartwheel.engine.sessions.table import Ints, KeyTable, loaded
from heartwheel.engine.shard.arrays import read_columns, read_wheel, write_columns, write_wheel
from heartwheel.engine.shard.frame import (
    CorruptBlobError,
    decode_frame,
    decode_section,
    encode_frame,
    kept_section,
)
from timing_wheel import SnapshotError, TimingWheel

SESSIONS_VERSION: Final = 1
"""The version of the sections that is written and read."""

TICK_MS: Final = 1
"""The wheel fires to the millisecond, so that what is due does not depend on where a batch was cut."""


class _ClockSection(msgspec.Struct, array_like=True):
    clock: Clock
    shards: int
    shape: str


@dataclass
class SessionState:
    """All that a shard keeps from one batch to the next.

    Args:
        table: the keys.
        wheel: the timing wheel; its handles are the table's rows.
        clock: the clock.
        waiting: the events that wait for it; `None` if none does.
        shards: how many shards there were when the checkpoint was begun.
        shape: the columns that the query had then (`SessionsConfig.shape`).
        encoded: the sections from which the state was decoded, each as bytes and as text.
    """

    table: KeyTable
    wheel: TimingWheel
    clock: Clock
    waiting: EventPack | None
    shards: int
    shape: str
    encoded: dict[str, tuple[bytes, str]] = field(default_factory=dict)

    @property
    def encoded_bytes(self) -> int:
        """The length of the text that the state was decoded from, without the events that wait, bytes."""
        return sum(len(text) for name, (_, text) in self.encoded.items() if name != "waiting")

    def rewound(self, rows: int, deadlines_ms: Ints) -> TimingWheel:
        """File all timers again, in the order of rows, and return the wheel.

        Args:
            rows: how many there are.
            deadlines_ms: int64 (rows,), epoch ms.
        """
        self.wheel = TimingWheel(tick_ms=TICK_MS, start_ms=self.wheel.clock_ms, capacity=rows)
        self.wheel.file(np.arange(rows), deadlines_ms)
        return self.wheel


def new_state(shards: int, shape: str) -> SessionState:
    """Return the state of a new shard."""
    return SessionState(KeyTable(), TimingWheel(tick_ms=TICK_MS), Clock(), None, shards, shape)


def encode_sessions(state: SessionState) -> str:
    """Encode a shard's state as ASCII text."""
    columns = state.table.columns.dump()
    hashes = {"key": columns.pop("key"), "order": state.table.order}
    sections = {
        "columns": write_columns(columns),
        "hashes": write_columns(hashes),
        "keys": _rows(state.table.keys),
        "carry": _rows(state.table.carry),
        "wheel": write_wheel(state.wheel.snapshot()),
        "clock": msgspec.msgpack.encode(_ClockSection(state.clock, state.shards, state.shape)),
        "waiting": b"" if state.waiting is None else encode_pack(state.waiting),
    }
    texts = {
        name: kept_section(name, data, state.encoded, compressed=name != "hashes") for name, data in sections.items()
    }
    return encode_frame(SESSIONS_VERSION, texts)


def _rows(rows: pa.RecordBatch | None) -> bytes:
    return b"" if rows is None else encode_rows(rows)


def decode_sessions(blob: str) -> SessionState:
    """Decode a shard's state.

    Args:
        blob: the result of `encode_sessions`.

    Raises:
        CorruptBlobError: it is cut short, was changed, or contradicts itself.
        OldBlobVersionError: an older release wrote it.
        UnknownBlobVersionError: a newer release wrote it.
    """
    _, texts = decode_frame(blob, newest=SESSIONS_VERSION, oldest=SESSIONS_VERSION)
    try:
        encoded = {name: (decode_section(text), text) for name, text in texts.items()}
        hashes = read_columns(encoded["hashes"][0])
        columns = loaded({"key": hashes["key"], **read_columns(encoded["columns"][0])})
        keys, carry = (decode_rows(encoded[name][0]) if encoded[name][0] else None for name in ("keys", "carry"))
        wheel = TimingWheel.restore(read_wheel(encoded["wheel"][0]), capacity=columns.rows)
        clock = msgspec.msgpack.decode(encoded["clock"][0], type=_ClockSection)
        waiting = decode_pack(encoded["waiting"][0]) if encoded["waiting"][0] else None
    except (KeyError, ValueError, OSError, SnapshotError, msgspec.MsgspecError, pa.ArrowException) as error:
        raise CorruptBlobError(f"the state blob's checksum is right, but not its content: {error}") from error
    table = KeyTable(columns, hashes["order"], keys, carry)
    return SessionState(table, wheel, clock.clock, waiting, clock.shards, clock.shape, encoded)
