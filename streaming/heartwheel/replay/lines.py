"""Lines of a log: each is read once, and each distinct request is decoded once.

A member's heartbeats differ in nothing but their time. A line is therefore looked up by what is left when its time is
cut out, and only what was never met before is decoded
(`test_log_lines.py::test_known_line_reads_as_a_new_one_does`).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from heartwheel.replay.recorded import Evidence, Recorded, decode_line
from heartwheel.wire.events import Event, EventType, RejectCause, RejectedError, encode_event, fingerprint

T_MS_MAX: Final = 253_402_300_799_999
"""The last millisecond of the year 9999: a later time was surely not meant as epoch milliseconds."""

_TIME: Final = re.compile(rb'"t_ms"[ \t]*:[ \t]*(0|[1-9][0-9]{0,14})(?=[ \t]*[,}])')


class Request:
    """One distinct request.

    Args:
        event: what was asked.

    Attributes:
        batch: the number of the batch that it was last put into, -1 if none.
        entry: its place in that batch.
    """

    __slots__ = ("_encoded", "batch", "entry", "event")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.batch = -1
        self.entry = -1
        self._encoded: tuple[int, bytes] | None = None

    def encoded(self) -> tuple[int, bytes]:
        """Encode it as a shard takes it: the fingerprint, 0 if it is no heartbeat, and the event."""
        if self._encoded is None:
            mark = fingerprint(self.event) if self.event.type is EventType.HEARTBEAT else 0
            self._encoded = mark, encode_event(self.event)
        return self._encoded


class Line(NamedTuple):
    """One line of a log.

    Args:
        t_ms: when the request arrived, epoch ms.
        request: what was asked.
        evidence: what a broker recorded beside it, `None` for a line without such fields.
    """

    t_ms: int
    request: Request
    evidence: Evidence | None

    def recorded(self) -> Recorded:
        """Return the line as the rules that weigh evidence need it."""
        return Recorded(self.request.event, self.evidence or Evidence(self.t_ms))


class _Time(msgspec.Struct):
    t_ms: int | None


_decode_time = msgspec.json.Decoder(_Time).decode


class LineReader:
    """A reader of a log's lines.

    Args:
        remembered_max: how many distinct requests are remembered.
    """

    def __init__(self, remembered_max: int = 500_000) -> None:
        self._known: dict[bytes, Request] = {}
        self._remembered_max = remembered_max

    def read(self, line: bytes, number: int) -> Line | None:
        """Read one line.

        Args:
            line: a JSON object: `t_ms`, the fields of an event, and what was recorded of the answer.
            number: which line of the log it is.

        Returns:
            The line, or `None` if a broker refused it because it is not a valid request.

        Raises:
            RejectedError: if it is no event and no broker has said so.
        """
        time = _TIME.search(line)
        if time is None:
            return self._decode(line, number)
        start, end = time.span(1)
        before, after = line[:start], line[end:]
        request = self._known.get(before + after)
        if request is not None:
            return _in_time(Line(int(time[1]), request, None))
        read = self._decode(line, number)
        # The time that was cut out may be one inside of another field; then the line has one of its own left.
        if read is not None and read.evidence is None and _decode_time(before + b"null" + after).t_ms is None:
            self._remember(before + after, read.request)
        return read

    def _remember(self, line: bytes, request: Request) -> None:
        if len(self._known) >= self._remembered_max:
            self._known.clear()  # it is a cache of a pure function, so all of it may be lost
        self._known[line] = request

    def _decode(self, line: bytes, number: int) -> Line | None:
        try:
            recorded = decode_line(line, number)
        except (UnicodeDecodeError, RecursionError) as error:
            raise RejectedError(RejectCause.NOT_JSON, str(error)) from None
        if recorded is None:
            return None
        evidence = recorded.evidence
        return _in_time(Line(evidence.t_ms, Request(recorded.event), None if evidence.error is None else evidence))


def _in_time(line: Line) -> Line:
    if not 0 <= line.t_ms <= T_MS_MAX:
        raise RejectedError(RejectCause.BAD_FIELD, f"`t_ms` is {line.t_ms}, no time in milliseconds since 1970")
    return line
