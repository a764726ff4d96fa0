"""Lines of a log: each is read once, and each distinct request is decoded once.

A member's heartbeats differ in nothing but their time. So a line is looked up by its text without the time, and only a
text that was never seen before is decoded (`test_log_lines.py::test_known_line_reads_as_a_new_one_does`).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from heartwheel.engine.replay.recorded import Recorded, RecordedAnswer, decode_line
from heartwheel.wire.events import Event, RejectCause, RejectedError

T_MS_MAX: Final = 253_402_300_799_999
"""The last millisecond of the year 9999: a later time was surely not meant as epoch milliseconds."""

_TIME: Final = re.compile(rb'"t_ms"[ \t]*:[ \t]*(0|[1-9][0-9]{0,14})(?=[ \t]*[,}])')


class ReplayedLine(NamedTuple):
    """One line of a log.

    Args:
        evidence: what a broker recorded with it; `None` for a line without such fields.
    """

    t_ms: int
    event: Event
    evidence: RecordedAnswer | None

    def recorded(self) -> Recorded:
        """Return the line in the form that lanes with evidence take."""
        return Recorded(self.event, self.evidence or RecordedAnswer(self.t_ms))


class _Time(msgspec.Struct):
    t_ms: int | None


_decode_time = msgspec.json.Decoder(_Time).decode


class LineReader:
    """A reader of a log's lines.

    Args:
        remembered_max: how many distinct requests are remembered.
    """

    def __init__(self, remembered_max: int = 500_000) -> None:
        self._known: dict[bytes, Event] = {}
        self._remembered_max = remembered_max

    def read(self, line: bytes, number: int) -> ReplayedLine | None:
        """Parse one line.

        Args:
            line: a JSON object: `t_ms`, the fields of an event, and what was recorded of the answer.
            number: which line of the log it is.

        Returns:
            The line, or `None` if a broker refused the request as invalid.

        Raises:
            RejectedError: it is no event, and no broker has refused it.
        """
        time = _TIME.search(line)
        if time is None:
            return self._decode(line, number)
        start, end = time.span(1)
        before, after = line[:start], line[end:]
        event = self._known.get(before + after)
        if event is not None:
            return _in_time(ReplayedLine(int(time[1]), event, None))
        read = self._decode(line, number)
        # The time that was cut out may be inside another field; then the line still contains its own.
        if read is not None and read.evidence is None and _decode_time(before + b"null" + after).t_ms is None:
            self._remember(before + after, read.event)
        return read

    def _remember(self, line: bytes, event: Event) -> None:
        if len(self._known) >= self._remembered_max:
            self._known.clear()  # a cache of a pure function, which may lose everything
        self._known[line] = event

    def _decode(self, line: bytes, number: int) -> ReplayedLine | None:
        try:
            recorded = decode_line(line, number)
        except (UnicodeDecodeError, RecursionError) as error:
            raise RejectedError(RejectCause.NOT_JSON, str(error)) from None
        if recorded is None:
            return None
        evidence = recorded.evidence
        answer = None if evidence.error is None else evidence
        return _in_time(ReplayedLine(evidence.t_ms, recorded.event, answer))


def _in_time(line: ReplayedLine) -> ReplayedLine:
    if not 0 <= line.t_ms <= T_MS_MAX:
        raise RejectedError(RejectCause.BAD_FIELD, f"`t_ms` is {line.t_ms}, no time in milliseconds since 1970")
    return line
