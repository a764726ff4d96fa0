"""Layouts: where in a line, whatever carried it, the coordinator's message and its time are.

The message is found anywhere in a line by the prefix that every line of a group coordinator has, so that the order of
the fields does not matter. In JSON, the object nearest to the root that has a time gives the time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from heartwheel.base.wall_clock import wall_ms
from heartwheel.sources.explain.json_lines import bytes_text, json_objects, json_of
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.explain.times import LoggedTime, choose, number_ms, stamps_in, usable

NEEDLE: Final = "[GroupCoordinator "
"""The text that every line of a group coordinator contains: the prefix of its log context."""

MESSAGE_CHARS_MAX: Final = 256 << 10
"""Longest message that is read, characters. Ids are short; but a broker lists the members of a large group in one."""

_HEAD_CHARS: Final = 4_096
_TAIL_CHARS: Final = 512
_VALUE_CHARS: Final = 100
_TIME_KEYS: Final = (
    "__REALTIME_TIMESTAMP", "timestamp", "@timestamp", "time", "ts", "timeMillis", "epochMillis", "datetime", "date",
    "eventTime", "_time", "asctime", "_SOURCE_REALTIME_TIMESTAMP",
)  # fmt: skip
_CLASSES: Final = (
    r"(?:GroupCoordinator|GroupMetadataManager|GroupMetadata|ClassicGroup|ConsumerGroup|ShareGroup|StreamsGroup"
    r"|GroupCoordinatorService|GroupCoordinatorShard|OffsetMetadataManager|CoordinatorRuntime)\$?"
)
# Both are searched for only in the last characters of a line, and repeat nothing without a bound: a client may put 32
# KiB of anything before them.
_LOGGER: Final = re.compile(
    r"[ \t]{1,8}(?:-[ \t]{1,8}|\|[ \t]{0,8})?"
    rf"(?:[(\[{{<](?:[\w$]{{1,80}}\.){{0,12}}{_CLASSES}(?::[\w.]{{1,40}}){{0,3}}[)\]}}>]"
    rf"|(?:[\w$]{{1,80}}\.){{1,12}}{_CLASSES}(?::\d{{1,9}})?)(?![\w.])"
)
_THREAD: Final = re.compile(
    r"[ \t]{0,8}(?:[ \t][\[(<]|\|[ \t]{0,8}|[ \t]-[ \t])"
    r"(?>data-plane-|control-plane-|group-coordinator-|group-metadata-|executor-|kafka-|broker-|"
    r"metadata-|main\b|pool-|TxnMarker|Thread-|SIGTERM|EventHandler|"
    r"[\w.-]{0,80}?(?:thread|Thread|handler|processor|reaper|Reaper))"
    r"[^\[\]()<>|]{0,200}+[\])>]?\s{0,8}$"
)
_LEADS: Final = " \t-|"
"""Characters that may precede a logger."""

_SENTENCE: Final = re.compile(r"[a-z]{2,20} [a-z]{2,20} [a-z]{2,20}|generation \d")
"""Text that never follows a logger; if it follows, an id only looked like a logger."""

_ANSI: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_KEYED: Final = re.compile(r'^\s*"[^"\\]{1,40}"\s*:\s*"')
_NEAR_TIME: Final = re.compile(r'"(?:@?timestamp|time)"\s*:\s*"?(?P<value>[^",\n}]+)')
_DEBUG: Final = re.compile(r"\b(?:DEBUG|TRACE)\b")
_TIME_LIKE: Final = re.compile(r"time|date|stamp|^@?ts?$", re.IGNORECASE)
_TIME_OF_ANOTHER: Final = re.compile(r"ingest|receive|observed|uptime|elapsed|update", re.IGNORECASE)
_LOGGER_KEYS: Final = ("loggerName", "logger_name", "logger", "log.logger")
_NESTED_MAX: Final = 10


class LoggedMessage(msgspec.Struct, gc=False):
    """A coordinator's message and its time.

    Args:
        time_ms: epoch ms; `None` if the line has no time.
        coarse: whether the time has no fraction of a second.
        text: from the coordinator's prefix on, without logger and thread.
        verbose: whether it was logged at DEBUG or TRACE.
        ended: whether a logger or a thread follows it, so that it ends on its line.
        unreadable: why it was not read; empty if it was.
        forgeable: whether it is inside another message, so that a client may have written it.
    """

    time_ms: int | None
    coarse: bool
    text: str
    verbose: bool = False
    ended: bool = False
    unreadable: str = ""
    forgeable: bool = False


class Layout:
    """Finds messages and times in lines.

    Args:
        zone: the zone of times that name none.
        now_ms: epoch ms, to guess the year where a layout leaves it out; the present if absent.
        needle: the text that every message begins with.
        is_json: whether a message is JSON after its needle, which ends with the last brace of its line, however long.
            Then it comes from a logger of its own, and is read only where it is the whole message, not inside others.
        is_head: returns whether a text may precede the message in a line of such a logger.
    """

    def __init__(
        self,
        zone: LocalZone | None = None,
        *,
        now_ms: int | None = None,
        needle: str = NEEDLE,
        is_json: bool = False,
        is_head: Callable[[str], bool] | None = None,
    ) -> None:
        self._needle, self._is_json, self._is_head = needle, is_json, is_head
        self.zone = zone or LocalZone()
        self._now_ms = wall_ms() if now_ms is None else now_ms

    def read(self, line: bytes, before: bytes = b"", after: bytes = b"") -> Iterator[LoggedMessage]:
        """Return the coordinator's messages in a line; several if it is JSON with several log events.

        Args:
            line: without its end.
            before: the text before it in its file, as far as it is at hand: JSON over several lines has the time there.
            after: the text after it.
        """
        text = line.decode("utf-8", "replace").strip("\ufeff\r\n \0")
        if text.startswith(("{", "[{")) or ('"' in text and _KEYED.match(text)):
            return self._json(text, before, after)
        message = self._text(text, None)
        return iter(() if message is None else (message,))

    def _json(self, text: str, before: bytes, after: bytes) -> Iterator[LoggedMessage]:
        if text.startswith(("{", "[{")):
            whole = json_of(text.removesuffix(","))
            if whole is not None:
                yield from self._walk(whole, None, 0)
                return
            at = 0
            for each, at in json_objects(text):  # noqa: B007 - where they end is needed below
                yield from self._walk(each, None, 0)
            text = text[at:]
        if _KEYED.match(text):
            keyed = json_of("{" + text.rstrip(",").rstrip() + "}")
            if keyed is not None:
                yield from self._walk(keyed, self._near(before, after), 0)
                return
        message = self._text(text, None)
        if message is not None:
            yield message

    def _walk(self, value: Any, outer: tuple[int, bool] | None, depth: int) -> Iterator[LoggedMessage]:  # noqa: C901 - a walk
        if depth > _NESTED_MAX:
            return
        if isinstance(value, list):
            for each in value:
                yield from self._walk(each, outer, depth + 1)
            return
        if not isinstance(value, dict):
            return
        if self._is_json and not self._is_of_its_logger(value):
            return
        outer = outer or self._time_of(value)
        yielded: set[str] = set()
        for key, each in value.items():
            if key == "MESSAGE" and isinstance(each, list):  # journald writes a message that is not plain text as bytes
                each = bytes_text(each)  # noqa: PLW2901 - the same message, read
            if isinstance(each, str):
                if self._needle in each:
                    for message in self._inside(each, outer, depth):
                        if message.text not in yielded:
                            yielded.add(message.text)
                            yield message
            else:
                yield from self._walk(each, outer, depth + 1)

    def _is_of_its_logger(self, value: dict[str, Any]) -> bool:
        names = [name for key in _LOGGER_KEYS if isinstance(name := value.get(key), str)]
        return self._is_head is None or all(map(self._is_head, names))

    def _inside(self, text: str, outer: tuple[int, bool] | None, depth: int) -> Iterator[LoggedMessage]:
        text = text.strip()
        if text.startswith("{"):
            nested = json_of(text)
            if nested is not None:
                yield from self._walk(nested, outer, depth + 1)
                return
        parts = [] if self._is_json else [part for part in text.split("\n") if self._needle in part]
        # A carrier may have joined several lines into one.
        is_joined = len(parts) > 1 and all(self._ends(part) for part in parts)
        for part in parts if is_joined else [text, *parts[1:]]:
            message = self._text(part, outer)
            if message is not None:
                message.forgeable = not is_joined and part is not text
                yield message

    def _ends(self, part: str) -> bool:
        message = self._text(part, None)
        return message is None or message.ended

    def _text(self, text: str, outer: tuple[int, bool] | None) -> LoggedMessage | None:
        if "\x1b" in text:
            text = _ANSI.sub("", text)
        at = text.find(self._needle)
        if at < 0:
            return None
        head, message = text[:at], text[at:]
        if self._is_head is not None and not self._is_head(head):
            return None
        if head.endswith(('="', ':"')):  # logfmt: msg="..."
            end = re.search(r'(?<!\\)"', message)
            tail = message[end.start() :] if end else ""
            message = (message[: end.start()] if end else message).replace('\\"', '"')
        elif self._is_json:
            end_of_json = message.rfind("}") + 1
            message, tail = message[:end_of_json], message[end_of_json:]
        else:
            message, tail = _cut(message)
        if head.count('"') % 2 and '""' in message:  # CSV doubles the quotes of a quoted field
            message = message.replace('""', '"')
        if len(message) > MESSAGE_CHARS_MAX and not self._is_json:
            why = f"{len(message):,} characters, at most {MESSAGE_CHARS_MAX:,}"
            return LoggedMessage(None, False, message[:_HEAD_CHARS], unreadable=why)
        if len(head) > _HEAD_CHARS:
            head = head[: _HEAD_CHARS // 2] + head[-_HEAD_CHARS // 2 :]
        time_ms, coarse = self._time(head, tail[:_HEAD_CHARS], outer) or (None, False)
        if time_ms is not None and not usable(time_ms):
            time_ms, coarse = None, False
        verbose = ("DEBUG" in head or "TRACE" in head) and _DEBUG.search(head) is not None
        return LoggedMessage(time_ms, coarse, message.rstrip(), verbose, bool(tail.strip()))

    def _time(self, head: str, tail: str, outer: tuple[int, bool] | None) -> tuple[int, bool] | None:
        if outer is not None and not outer[1]:
            return outer
        stamps = stamps_in(head) or stamps_in(tail)
        if outer is None:
            return choose(stamps, self.zone, now_ms=self._now_ms)
        return choose([LoggedTime(outer[0], zoned=True, coarse=True, at=-1), *stamps], self.zone, now_ms=self._now_ms)

    def _time_of(self, value: dict[str, Any]) -> tuple[int, bool] | None:
        instant = value.get("instant")
        if isinstance(instant, dict) and isinstance(instant.get("epochSecond"), int):
            nanos = instant.get("nanoOfSecond", 0)
            return instant["epochSecond"] * 1_000 + (nanos // 1_000_000 if isinstance(nanos, int) else 0), False
        for key in _TIME_KEYS:
            found = self._value_ms(value.get(key))
            if found is not None:
                return found
        for key, each in value.items():
            if _TIME_LIKE.search(key) and not _TIME_OF_ANOTHER.search(key) and not isinstance(each, dict | list):
                found = self._value_ms(each)
                if found is not None:
                    return found
        return None

    def _value_ms(self, value: Any) -> tuple[int, bool] | None:
        if isinstance(value, str):
            value = value[:_VALUE_CHARS]
            stamps = stamps_in(value)
            if stamps:
                return choose(stamps, self.zone, now_ms=self._now_ms)
            try:
                value = float(value) if "." in value else int(value)
            except ValueError:
                return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        time_ms = number_ms(value)
        return None if time_ms is None else (time_ms, value < 1e11 and value == int(value))

    def _near(self, before: bytes, after: bytes) -> tuple[int, bool] | None:
        """Return the time of a message in JSON that is spread over lines, from the same object."""
        near = before.rpartition(b"{")[2].decode("utf-8", "replace")
        near += after.partition(b"}")[0].decode("utf-8", "replace")
        match = _NEAR_TIME.search(near)
        return self._value_ms(match["value"].strip()) if match else None


def has_logger(text: str) -> bool:
    """Return whether a text names a logger of the coordinator, as at the end of a line."""
    return _LOGGER.search(text) is not None


def _cut(message: str) -> tuple[str, str]:
    """Split off logger and thread after a message; the client's own words may come last in it."""
    end = len(message)
    since = max(1, end - _TAIL_CHARS)
    at = message.rfind(" (", since) if message.endswith(")") else -1
    if at > 0 and message[at - 1] not in _LEADS and _is_logger(message[at:]):
        return message[:at], message[at:]  # what the search below finds last, too
    for match in _LOGGER.finditer(message, since):
        if match.end() == len(message) or _SENTENCE.search(message, match.end()) is None:
            end = match.start()
    if end == len(message):
        thread = _THREAD.search(message, since)
        end = thread.start() if thread else end
    return message[:end], message[end:]


@lru_cache(maxsize=16)
def _is_logger(tail: str) -> bool:
    """Return whether a text is a logger; a log has few, so the newest ones are remembered."""
    last = _LOGGER.match(tail)
    return last is not None and last.end() == len(tail)
