"""Read files of JSON lines, as `heartwheel replay` takes them and Kafka's console consumer writes them.

A line is a value alone, or a value behind what the console consumer prints of its record, with tabs between:

    LogAppendTime:1795239789984 <tab> Partition:3 <tab> Offset:17 <tab> {"group_id": ...}

A line without a time has that of its content: `t_ms` of a heartbeat, `detected_ms` of a verdict, `batch_ms` of a status
row, `append_ms` of a reject; and if it has none of those, that of the line before. A line without a partition is in
partition 0, and its offset is its number in the file, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from heartwheel.audit.audit import Audit
from heartwheel.audit.feed import Entry, Source
from heartwheel.audit.order import in_log_order
from heartwheel.errors import HeartwheelError

_PRINTED: Final = re.compile(
    rb"(?:(?P<type>LogAppendTime|CreateTime):(?P<time>\d{1,15})\t)?"
    rb"(?:Partition:(?P<partition>\d{1,9})\t)?"
    rb"(?:Offset:(?P<offset>\d{1,18})\t)?"
)


_NO_TIME: Final = -1
"""The append time of a record that carries its producer's."""

_LINES: Final = -1
"""The stream that a file is; no partition has this number."""


class _Times(msgspec.Struct):
    t_ms: int | None = None
    detected_ms: int | None = None
    batch_ms: int | None = None
    append_ms: int | None = None


_times = msgspec.json.Decoder(_Times).decode


class FileLog:
    """Read files, each from the line on that an audit has come to.

    Args:
        files: the file of each source; what has none is not there.
        audit: knows how far it has come.

    Raises:
        HeartwheelError: a file cannot be read.
    """

    name = ""

    def __init__(self, files: Mapping[Source, Path], audit: Audit) -> None:
        self._files = files
        self._done = {source: audit.positions.get(source.value, {}).get(_LINES, 0) for source in files}
        self._lines = dict(self._done)

    def newest_status(self) -> Iterator[Entry]:
        """Read all status rows: a file is no topic that has them for days."""
        return self._read(Source.STATUS, 0)

    def rejects(self) -> Iterator[Entry]:
        """Read the rejects."""
        return self._read(Source.REJECTS, self._done.get(Source.REJECTS, 0))

    def entries(self) -> Iterator[Entry]:
        """Read everything, merged by append time; each file keeps its order."""
        return in_log_order([self._read(source, self._done[source]) for source in self._files])

    def ends(self) -> dict[Source, dict[int, int]]:
        """Tell how many lines of each file have been read."""
        return {source: {_LINES: lines} for source, lines in self._lines.items()}

    def _read(self, source: Source, skip: int) -> Iterator[Entry]:
        path = self._files.get(source)
        if path is None:
            return
        try:
            with path.open("rb") as file:
                before_ms = 0
                for number, line in enumerate(islice(file, skip, None), start=skip):
                    entry = _entry(source, number, line.rstrip(b"\r\n"), before_ms)
                    before_ms = entry.append_ms if entry.append_ms != _NO_TIME else before_ms
                    self._lines[source] = number + 1
                    yield entry
        except OSError as error:
            hint = "name a file of JSON lines"
            raise HeartwheelError(f"{path} cannot be read: {error.strerror}", hint=hint) from error


def _entry(source: Source, number: int, line: bytes, before_ms: int) -> Entry:
    printed = _PRINTED.match(line)
    assert printed is not None, "every part of the pattern may be missing"  # noqa: S101 - how it is written
    value = line[printed.end() :]
    append_ms = int(printed["time"]) if printed["time"] else _time_in(value)
    if source is Source.HEARTBEATS and printed["type"] == b"CreateTime":
        append_ms = _NO_TIME
    return Entry(
        before_ms if append_ms is None else append_ms,
        source,
        int(printed["partition"] or 0),
        int(printed["offset"] or number),
        None if value == b"null" else value,
        _LINES,
        number,
    )


def _time_in(value: bytes) -> int | None:
    try:
        times = _times(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    known = (times.t_ms, times.detected_ms, times.batch_ms, times.append_ms)
    return next((time for time in known if time is not None), None)
