"""Reading of files of JSON lines, as `heartwheel replay` takes them and Kafka's console consumer writes them.

A line is a value alone, or a value after what the console consumer prints of its record, separated by tabs:

    LogAppendTime:1795239789984 <tab> Partition:3 <tab> Offset:17 <tab> {"group_id": ...}

A line without a time takes the time in its value: `t_ms` of a heartbeat, `detected_ms` of a verdict, `batch_ms` of a
status row, `append_ms` of a reject. If it has none of these, it takes the time of the line before. A line without a
partition is in partition 0. Without an offset, its offset is its number in the file, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.proof.audit.audit import Audit
from heartwheel.proof.audit.feed import AuditedRecord, AuditedTopic
from heartwheel.proof.audit.order import in_log_order

_PRINTED: Final = re.compile(
    rb"(?:(?P<type>LogAppendTime|CreateTime):(?P<time>\d{1,15})\t)?"
    rb"(?:Partition:(?P<partition>\d{1,9})\t)?"
    rb"(?:Offset:(?P<offset>\d{1,18})\t)?"
)


_NO_TIME: Final = -1
"""The append time of a record that carries its producer's time."""

_LINES: Final = -1
"""The stream number of a file; no partition has it."""


class _Times(msgspec.Struct):
    t_ms: int | None = None
    detected_ms: int | None = None
    batch_ms: int | None = None
    append_ms: int | None = None


_times = msgspec.json.Decoder(_Times).decode


class FileLog:
    """Files to audit, each read from the line at which the audit stopped before.

    Args:
        files: the file of each topic; topics without a file are skipped.
        audit: has the number of lines that it has read.

    Raises:
        HeartwheelError: a file cannot be read.
    """

    name = ""

    def __init__(self, files: Mapping[AuditedTopic, Path], audit: Audit) -> None:
        self._files = files
        self._done = {source: audit.positions.get(source.value, {}).get(_LINES, 0) for source in files}
        self._lines = dict(self._done)

    def newest_status(self) -> Iterator[AuditedRecord]:
        """Read all status rows; unlike a topic, a file does not have them for days."""
        return self._read(AuditedTopic.STATUS, 0)

    def rejects(self) -> Iterator[AuditedRecord]:
        """Read the rejects."""
        return self._read(AuditedTopic.REJECTS, self._done.get(AuditedTopic.REJECTS, 0))

    def entries(self) -> Iterator[AuditedRecord]:
        """Read everything, merged by append time; each file keeps its order."""
        return in_log_order([self._read(source, self._done[source]) for source in self._files])

    def ends(self) -> dict[AuditedTopic, dict[int, int]]:
        """Return how many lines of each file have been read."""
        return {source: {_LINES: lines} for source, lines in self._lines.items()}

    def _read(self, source: AuditedTopic, skip: int) -> Iterator[AuditedRecord]:
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


def _entry(source: AuditedTopic, number: int, line: bytes, before_ms: int) -> AuditedRecord:
    printed = _PRINTED.match(line)
    assert printed is not None, "every part of the pattern is optional"  # noqa: S101 - the pattern matches any text
    value = line[printed.end() :]
    append_ms = int(printed["time"]) if printed["time"] else _time_in(value)
    if source is AuditedTopic.HEARTBEATS and printed["type"] == b"CreateTime":
        append_ms = _NO_TIME
    return AuditedRecord(
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
