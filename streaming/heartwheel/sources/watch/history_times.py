"""Find the facts of a stretch of time in a history, by a binary search: those of each file are in the order of time.

So there is no column or index of times, which would make each history larger, and give older ones another format.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from heartwheel.sources.explain.causes.happening import HappeningKind

_FILES: Final = "SELECT id FROM files"
# One aggregate a query: then SQLite looks at one end of the index, and not at all of it.
_FIRST: Final = "SELECT MIN(id) FROM facts WHERE file = ?"
_LAST: Final = "SELECT MAX(id) FROM facts WHERE file = ?"
_AT: Final = "SELECT id, fact FROM facts WHERE file = ? AND id >= ? ORDER BY id LIMIT 1"
_UNTIL: Final = "SELECT fact FROM facts WHERE file = ? AND id <= ? ORDER BY id DESC LIMIT 1"
_WITHIN: Final = "FROM facts WHERE file = ? AND id >= ? AND id < ?"
_OF_GROUP: Final = "AND (instr(fact, ?) OR instr(fact, X'A0A0A090'))"
"""Facts that may be of a group: their bytes have its name, or neither group, member nor members, as those of brokers.

SQLite looks at a million a second without Python's lock, so a group has no index, and logs are followed meanwhile.
"""


class FactSlice(NamedTuple):
    """The facts of a file from one number on and before another, and how many there are."""

    file: int
    begin: int
    end: int
    size: int


class _Begin(msgspec.Struct, array_like=True):
    """The first field of a fact, which is its time: the others are not decoded."""

    order_ms: int = 0


_order_of = msgspec.msgpack.Decoder(_Begin).decode


class _When(msgspec.Struct):
    """The fields of a happening by which it is chosen."""

    kind: HappeningKind
    time_ms: int


_when_of = msgspec.msgpack.Decoder(_When).decode


def happened_between(from_ms: int, to_ms: int, happening: bytes) -> bool:
    """Return whether an encoded happening may explain a removal of a time: it is of that time, or says where a pod is.

    Args:
        from_ms: epoch ms.
        to_ms: the time after the last, epoch ms.
    """
    when = _when_of(happening)
    return when.kind is HappeningKind.POD or from_ms <= when.time_ms < to_ms


def newest_ms(db: sqlite3.Connection, until: int) -> int | None:
    """Return the newest time of a line among the facts up to a number, epoch ms; `None` if there are none."""
    files = db.execute(_FILES).fetchall() if until > 0 else []
    found = [db.execute(_UNTIL, (*file, until)).fetchone() for file in files]
    return max((_order_of(row[0]).order_ms for row in found if row is not None), default=None)


def oldest_ms(db: sqlite3.Connection) -> int:
    """Return the time of the oldest line among the facts, epoch ms; 0 if there are none."""
    firsts = [(file, db.execute(_FIRST, (file,)).fetchone()[0]) for (file,) in db.execute(_FILES).fetchall()]
    found = [db.execute(_AT, first).fetchone() for first in firsts if first[1] is not None]
    return min((_order_of(row[1]).order_ms for row in found), default=0)


def find_slices(db: sqlite3.Connection, from_ms: int, to_ms: int, group_id: str = "") -> list[FactSlice]:
    """Return where the facts of a time are, or those that may be of one group: from the first on, and before the last.

    Args:
        from_ms: epoch ms.
        to_ms: the time after the last, epoch ms.
    """
    found = [_slice(db, row[0], from_ms, to_ms, group_id) for row in db.execute(_FILES).fetchall()]
    return [each for each in found if each.size]


def encoded_facts(db: sqlite3.Connection, part: FactSlice, group_id: str = "") -> Iterator[bytes]:
    """Return the encoded facts of a slice, in the order of time, or those that may be of one group."""
    of_group, names = _filtered(group_id)
    wanted = f"SELECT fact {_WITHIN} {of_group} ORDER BY id"
    return (row[0] for row in db.execute(wanted, (part.file, part.begin, part.end, *names)))


def _filtered(group_id: str) -> tuple[str, Sequence[bytes]]:
    return (_OF_GROUP, [group_id.encode()]) if group_id else ("", [])


def _slice(db: sqlite3.Connection, file: int, from_ms: int, to_ms: int, group_id: str) -> FactSlice:
    first, last = (db.execute(end, (file,)).fetchone()[0] for end in (_FIRST, _LAST))
    if first is None:
        return FactSlice(file, 0, 0, 0)
    begin = _number_at(db, file, range(first, last + 1), from_ms)
    end = _number_at(db, file, range(begin, last + 1), to_ms)
    of_group, names = _filtered(group_id)
    counted = f"SELECT COUNT(*) {_WITHIN} {of_group}"
    return FactSlice(file, begin, end, db.execute(counted, (file, begin, end, *names)).fetchone()[0])


def _number_at(db: sqlite3.Connection, file: int, numbers: range, time_ms: int) -> int:
    """Return the number of the first fact of a file at or after a time, or one that is higher than all."""
    low, high = numbers.start, numbers.stop
    while low < high:
        middle = (low + high) // 2
        number, fact = db.execute(_AT, (file, middle)).fetchone() or (high, b"")
        if number >= high or _order_of(fact).order_ms >= time_ms:
            high = middle
        else:
            low = number + 1
    return low
