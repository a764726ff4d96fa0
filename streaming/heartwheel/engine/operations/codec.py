"""The state of a shard of operations as text: sections in the same frame as every shard's state.

| section       | what                                                                             |
|---------------|----------------------------------------------------------------------------------|
| `operations`  | the table's columns                                                              |
| `ids`         | ids, in blocks                                                                   |
| `details`     | what each operation waits for, likewise                                          |
| `watches`     | hashes of watched keys, and the rows that watch them                             |
| `wheel`       | handles and deadlines, bucket after bucket, and the buckets                      |
| `watermarks`  | high watermarks by key, MessagePack                                              |
| `log`         | waiting records, and the newest time of each partition, likewise                   |
| `counts`      | counters since the shard was made, JSON                                          |

Version history: 1, the first; 2, ASCII of seven bits, times as differences.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
import numpy as np

from heartwheel.engine.operations.index import Ints
from heartwheel.engine.operations.log import OperationEntry
from heartwheel.engine.operations.table import operation_table
from heartwheel.engine.shard.arrays import read_columns, read_wheel, write_columns, write_wheel
from heartwheel.engine.shard.frame import CorruptBlobError, decode_frame, decode_section, encode_frame, encode_section
from heartwheel.engine.shard.tables import Table
from heartwheel.engine.shard.text import TextTable
from timing_wheel import SnapshotError, TimingWheel

OPERATIONS_VERSION: Final = 2
"""The version that is written; others are refused by name."""


class OperationState(NamedTuple):
    """All that a shard of operations keeps from one batch to the next.

    Args:
        key_hashes: int64 (watches,), hashes of watched keys.
        key_rows: int64 (watches,), the rows that watch them.
        watermarks: the result of `Watermarks.encode`.
        waiting: records whose place in the order is not certain yet.
        newest_ms: effective time of each partition's newest record, epoch ms.
    """

    table: Table
    wheel: TimingWheel
    key_hashes: Ints
    key_rows: Ints
    watermarks: bytes
    waiting: list[OperationEntry]
    newest_ms: dict[int, int]
    counts: dict[str, int]
    partitions: int = 0


class _LogSection(msgspec.Struct, array_like=True):
    waiting: list[OperationEntry]
    newest_ms: dict[int, int]
    partitions: int = 0


def new_state() -> OperationState:
    """Return the state of a new shard."""
    nothing = np.empty(0, np.int64)
    return OperationState(operation_table(), TimingWheel(tick_ms=1), nothing, nothing, b"", [], {}, {})


def encode_operations(state: OperationState) -> str:
    """Encode a shard's state as ASCII text."""
    ids, details = state.table.text.encode()
    sections = {
        "operations": write_columns(state.table.dump()),
        "watches": write_columns({"key_hash": state.key_hashes, "row": state.key_rows}),
        "wheel": write_wheel(state.wheel.snapshot()),
        "watermarks": state.watermarks,
        "log": msgspec.msgpack.encode(_LogSection(state.waiting, state.newest_ms, state.partitions)),
        "counts": msgspec.json.encode(state.counts),
    }
    texts = {name: encode_section(data) for name, data in sections.items()}
    return encode_frame(OPERATIONS_VERSION, {**texts, "ids": ids, "details": details})


def decode_operations(blob: str) -> OperationState:
    """Decode a shard's state.

    Raises:
        CorruptBlobError: it is cut short, was changed, or contradicts itself.
        OldBlobVersionError: an older release wrote it.
        UnknownBlobVersionError: a newer release wrote it.
    """
    _, texts = decode_frame(blob, newest=OPERATIONS_VERSION)
    try:
        table = operation_table()
        text = TextTable(texts.pop("ids"), texts.pop("details"))
        sections = {name: decode_section(section) for name, section in texts.items()}
        table.load(read_columns(sections["operations"]), text)
        watches = read_columns(sections["watches"])
        log = msgspec.msgpack.decode(sections["log"], type=_LogSection)
        return OperationState(
            table=table,
            wheel=TimingWheel.restore(read_wheel(sections["wheel"]), capacity=table.rows),
            key_hashes=watches["key_hash"],
            key_rows=watches["row"],
            watermarks=sections["watermarks"],
            waiting=log.waiting,
            newest_ms=log.newest_ms,
            counts=msgspec.json.decode(sections["counts"], type=dict[str, int]),
            partitions=log.partitions,
        )
    except (KeyError, ValueError, OSError, SnapshotError, msgspec.MsgspecError) as error:
        raise CorruptBlobError(f"the state blob's checksum is right, but not its content: {error}") from error
