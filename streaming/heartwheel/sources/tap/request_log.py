"""Lines of a broker's request log: `kafka.request.logger` at DEBUG, in JSON since Kafka 2.8 (KIP-673).

A line is written when a request is answered, and contains how long that took, which gives the time of arrival. The
fields of a request and of its answer are those of Kafka's message schemas; unknown ones are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from heartwheel.base.wall_clock import wall_ms
from heartwheel.sources.explain.layouts import Layout, LoggedMessage
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.explain.log_tail import TailedLine

AHEAD_MS_MAX: Final = 60_000
"""How far a line's time may be ahead of this machine's clock, ms."""

NEEDLE: Final = "Completed request:"
"""The text before the JSON in every line of the request logger."""

_NEEDLE: Final = NEEDLE.encode()

GROUP_REQUESTS: Final = {
    8: "OFFSET_COMMIT",
    11: "JOIN_GROUP",
    12: "HEARTBEAT",
    13: "LEAVE_GROUP",
    14: "SYNC_GROUP",
    68: "CONSUMER_GROUP_HEARTBEAT",
    76: "SHARE_GROUP_HEARTBEAT",
    88: "STREAMS_GROUP_HEARTBEAT",
}
"""The requests that a tap relays, by their numbers in Kafka's protocol."""

_RESPONSE: Final = b'"response":'
"""The end of the client's part of a line; within a client's text the quotes are escaped."""

_NAMES: Final = tuple(f'"{name}"'.encode() for name in GROUP_REQUESTS.values())
_QUOTED_NAMES: Final = tuple(f'"{name}\\'.encode() for name in GROUP_REQUESTS.values())


_TEXT_KEYS: Final = ("log", "message", "MESSAGE", "msg")
_NESTED_MAX: Final = 3
_JSON_BEGINS: Final = (b"{", b"[{", b'"')
_HEAD_CHARS_MAX: Final = 1_024
_LEVEL: Final = re.compile(r"\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b|(?<=level=)\"?[a-z]{4,5}\b")
_VERBOSE: Final = frozenset({"TRACE", "DEBUG"})
_TIME: Final = re.compile(r"\d\d:\d\d\S*")
_SENTENCE: Final = re.compile(r"[a-z]{2,20} [a-z]{2,20} [a-z]{2,20}")

# Atomic and possessive, so that matching takes time linear in the length of the head.
_BESIDE: Final = re.compile(
    r"(?>\[[^\s\[\]]{1,200}\]|(?:[\w$]{1,40}\.){0,6}logger(?::\d{1,9})?|(?:thread|logger|msg|message)="
    r"|data-plane-[\w()-]{1,200}|control-plane-[\w()-]{1,200}|[DT]\b|[\s\[\](){}<>|:;,=\"-])*+"
)


class _Header(msgspec.Struct, rename="camel"):
    request_api_key: int
    request_api_version: int = 0
    client_id: str | None = None


class _Logged(msgspec.Struct, rename="camel"):
    request_header: _Header
    request: dict[str, Any]
    response: dict[str, Any]
    total_time_ms: float = 0.0
    connection: str = ""


_TOOK_MS_MAX: Final = 86_400_000
"""Longest time that a request takes, ms: a join waits for as long as the longest rebalance timeout."""

_decode: Final = msgspec.json.Decoder(_Logged).decode


class Answered(NamedTuple):
    """One request to a group coordinator, and its answer.

    Args:
        api: the request's number in Kafka's protocol.
        logged_ms: when it was logged, right after the answer was sent, epoch ms.
        id: of its position: the same whenever the line is read again.
    """

    api: int
    version: int
    request: dict[str, Any]
    answer: dict[str, Any]
    client_id: str | None
    client_host: str | None
    arrived_ms: int
    logged_ms: int
    id: str


class RequestLog:
    """A parser of the lines of a request log.

    Args:
        zone: the zone of times that name none; UTC if absent.

    Attributes:
        newest_ms: when the newest line was logged, epoch ms; -1 before the first one.
        lines: how many lines of the logger were read.
        unreadable: how many lines of group requests could not be read.
        ahead_ms: the time of the newest line that is ahead of the clock and therefore ignored, epoch ms; -1 if none
            was.
    """

    def __init__(self, zone: LocalZone | None = None) -> None:
        self._layout = Layout(zone, needle=NEEDLE, is_json=True, is_head=is_head)
        self.newest_ms = -1
        self.lines = 0
        self.unreadable = 0
        self.ahead_ms = -1

    def time_of(self, line: bytes) -> int | None:
        """Return when a line was logged, epoch ms; `None` for one that is not of the logger."""
        if _NEEDLE not in line:
            return None
        message = self._message(line)
        return None if message is None else message.time_ms

    def is_request(self, line: bytes) -> bool:
        """Return whether a line is one of the request logger, by its form."""
        at = line.find(_NEEDLE)
        if at < 0:
            return False
        if at <= _HEAD_CHARS_MAX and is_head(line[:at].decode("latin-1")):
            return True
        if not line.lstrip().startswith(_JSON_BEGINS):
            return False
        try:
            return next(self._layout.read(line), None) is not None
        except Exception:  # noqa: BLE001 - no line ends a tap
            return False

    def _message(self, line: bytes) -> LoggedMessage | None:
        """Return the message of a logger's line; `None` if it cannot be read, whatever a client has written into it."""
        try:
            message = next(self._layout.read(line), None)
        except Exception:  # noqa: BLE001 - no line ends a tap: it is counted by `read`
            return None
        if message is not None and message.time_ms is not None and message.time_ms > wall_ms() + AHEAD_MS_MAX:
            self.ahead_ms = message.time_ms
            return None
        return message

    def first_time(self, lines: Sequence[TailedLine]) -> int | None:
        """Return when the first line of the request logger was logged, epoch ms; `None` if no line is of the logger."""
        return next((at_ms for line in lines if (at_ms := self.time_of(line.text)) is not None), None)

    def runs(self, lines: list[TailedLine], gap_ms: int) -> list[list[TailedLine]]:
        """Split lines where nothing was logged for long, without parsing the time of each.

        Args:
            lines: in the order of the log.
            gap_ms: shortest time that splits, ms.
        """
        first_ms, last_ms = self.first_time(lines), self.first_time(lines[::-1])
        if first_ms is None or last_ms is None or last_ms - first_ms <= gap_ms or len(lines) < 2:
            return [lines] if lines else []
        half = len(lines) // 2
        left, right = self.runs(lines[:half], gap_ms), self.runs(lines[half:], gap_ms)
        ended_ms, begun_ms = self.first_time(left[-1][::-1]), self.first_time(right[0])
        if ended_ms is not None and begun_ms is not None and begun_ms - ended_ms > gap_ms:
            return [*left, *right]
        return [*left[:-1], [*left[-1], *right[0]], *right[1:]]

    def read(self, line: bytes, offset: int) -> Answered | None:
        """Parse one line; `None` for a line about no group."""
        if _NEEDLE not in line:
            return None
        self.lines += 1
        if not any(name in line for name in _NAMES) and not any(name in line for name in _QUOTED_NAMES):
            return None
        message = self._message(line)
        logged = None if message is None or message.time_ms is None else _logged(message.text)
        if message is None or message.time_ms is None or logged is None:
            self.unreadable += 1
            return None
        header = logged.request_header
        if header.request_api_key not in GROUP_REQUESTS:
            return None
        return Answered(
            header.request_api_key,
            header.request_api_version,
            logged.request,
            logged.response,
            header.client_id,
            _host_of(logged.connection),
            int(message.time_ms - logged.total_time_ms),
            message.time_ms,
            f"{message.time_ms}-{offset}",
        )


def is_head(text: str) -> bool:
    """Return whether a text may stand before the message in a line of the request logger.

    A message of another logger may quote a client whose id looks like a request. Then words stand before it, or a level
    or logger that is not the request logger's.

    Args:
        text: the text before the message; empty where a layout has a field for the message.
    """
    if len(text) > _HEAD_CHARS_MAX or "\n" in text or _SENTENCE.search(text):
        return False
    begin, end = level_in(text)
    if begin < end and text[begin:end].strip('"').upper() not in _VERBOSE:
        return False
    return _BESIDE.fullmatch(text, end) is not None


def level_in(head: str) -> tuple[int, int]:
    """Return where the level stands before a message; where its time ends, twice, if there is no level.

    Args:
        head: what stands before the message.
    """
    level = _LEVEL.search(head)
    if level is not None:
        return level.span()
    end = max((time.end() for time in _TIME.finditer(head)), default=0)
    return end, end


def breaks_lines(line: bytes) -> bool:
    """Return whether any text of a request has a line break, in any field and any kind of request.

    Args:
        line: of the request logger.
    """
    if _NEEDLE not in line or (b"\\n" not in line and b"\\r" not in line):
        return False
    asked = (raw_of(line) or line).partition(_RESPONSE)[0]
    return b"\\n" in asked or b"\\r" in asked


def raw_of(line: bytes) -> bytes:
    """Return the raw text in a line that is JSON: a carrier's field, or a message; empty if it has none.

    Args:
        line: if it is not JSON, it is returned unchanged.
    """
    for _ in range(_NESTED_MAX):
        if not line.startswith(b"{"):
            break
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            break
        texts = [value.get(key) for key in _TEXT_KEYS] if isinstance(value, dict) else []
        text = next((each for each in texts if isinstance(each, str)), "")
        line = text.rstrip("\r\n").encode("utf-8", "replace")
    return line


def _logged(text: str) -> _Logged | None:
    """Decode a request and its answer; `None` if the text is none."""
    try:
        logged = _decode(text[text.index("{") :])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return logged if 0 <= logged.total_time_ms <= _TOOK_MS_MAX else None


def _host_of(connection: str) -> str | None:
    """Return the client's host in `broker:port-client:port-listener-number`."""
    parts = connection.split("-")
    ends = [part for part in parts if ":" in part]
    return ends[1].rpartition(":")[0] if len(ends) > 1 else None
