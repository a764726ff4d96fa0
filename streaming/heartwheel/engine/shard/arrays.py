"""Columns of integers as bytes: the difference to the least value, in as few bytes as needed.

Times that lie within an hour of each other take four bytes or less, and a column of one value takes none. The frame
compresses the result as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from timing_wheel import WheelSnapshot, WheelStats

_WIDTHS: Final = (1, 2, 4)
_WHOLE: Final = 8


class _Head(msgspec.Struct, array_like=True):
    """The encoding of one column: `width` bytes a value above `base`; 0 for equal values, 8 for whole ones."""

    name: str
    dtype: str
    length: int
    base: int
    width: int


_encode_heads = msgspec.msgpack.Encoder().encode
_decode_heads = msgspec.msgpack.Decoder(list[_Head]).decode


def write_columns(columns: Mapping[str, NDArray[Any]]) -> bytes:
    """Encode columns of integers, each of a length of its own."""
    heads, parts = [], []
    for name, column in columns.items():
        head = _head_of(name, column)
        heads.append(head)
        if head.width == _WHOLE:
            parts.append(column.astype("<i8").tobytes())
        elif head.width:
            parts.append((column - column.dtype.type(head.base)).astype(f"<u{head.width}").tobytes())
    index = _encode_heads(heads)
    return b"".join((len(index).to_bytes(4, "little"), index, *parts))


def _head_of(name: str, column: NDArray[Any]) -> _Head:
    least, most = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    span, dtype = most - least, column.dtype.str
    # The difference to the least must fit the column's own type, or it would wrap around.
    if span == 0:
        return _Head(name, dtype, len(column), least, 0)
    if span <= np.iinfo(column.dtype).max:
        for width in _WIDTHS:
            if span < 1 << 8 * width:
                return _Head(name, dtype, len(column), least, width)
    return _Head(name, dtype, len(column), 0, _WHOLE)


def read_columns(data: bytes) -> dict[str, NDArray[Any]]:
    """Decode what `write_columns` returned.

    Raises:
        msgspec.MsgspecError: if the bytes are not such columns.
        ValueError: if the bytes are not such columns.
    """
    at = 4 + int.from_bytes(data[:4], "little")
    columns: dict[str, NDArray[Any]] = {}
    for head in _decode_heads(data[4:at]):
        dtype = np.dtype(head.dtype)
        if not head.width:
            columns[head.name] = np.full(head.length, head.base, dtype)
            continue
        written = "<i8" if head.width == _WHOLE else f"<u{head.width}"
        column = np.frombuffer(data, written, head.length, at).astype(dtype)
        column += dtype.type(head.base)
        columns[head.name] = column
        at += head.length * head.width
    return columns


def write_wheel(wheel: WheelSnapshot) -> bytes:
    """Encode a wheel."""
    return write_columns(
        {
            "geometry": np.array([wheel.tick_ms, wheel.wheel_size, wheel.clock_ms]),
            "stats": np.array(
                [wheel.stats.moves, wheel.stats.fires, wheel.stats.flushes, wheel.stats.regressions], np.int64
            ),
            "handles": wheel.handles.astype(np.int32),
            "deadlines_ms": wheel.deadlines_ms,
            "bucket_levels": wheel.bucket_levels,
            "bucket_virtual_ids": wheel.bucket_virtual_ids,
            "bucket_counts": wheel.bucket_counts,
        }
    )


def read_wheel(data: bytes) -> WheelSnapshot:
    """Decode what `write_wheel` returned."""
    column = read_columns(data)
    tick_ms, wheel_size, clock_ms = column.pop("geometry").tolist()
    stats = WheelStats(*column.pop("stats").tolist())
    return WheelSnapshot(tick_ms=tick_ms, wheel_size=wheel_size, clock_ms=clock_ms, stats=stats, **column)
