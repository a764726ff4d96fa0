"""Signs that a client has broken a message of another logger into lines, where the request logger shares its stream.

A line of the broker has a head, and most layouts name the logger at its end. The lines of the request logger, which
encodes line breaks, show what head and end look like. A line that lacks one of them is a part of a message.
"""

from __future__ import annotations

import re
from typing import Final

from heartwheel.sources.explain.broken_lines import quotes_a_stranger
from heartwheel.sources.explain.facts import FactKind
from heartwheel.sources.explain.layouts import NEEDLE as OWN
from heartwheel.sources.explain.layouts import Layout
from heartwheel.sources.explain.texts import is_cut, read
from heartwheel.sources.tap.request_log import NEEDLE, level_in, raw_of

_REQUEST: Final = NEEDLE.encode()
_OWN: Final = OWN.encode()
_END_BYTES: Final = 700
_FORM_BYTES_MAX: Final = 4_096
_LOGGER: Final = re.compile(rb"(?:[\w$]{1,40}\.){0,6}logger\b")
_PARTIAL: Final = re.compile(rb"\d[\w:.+-]{10,40} std(?:out|err) P ")
_DOCKER_END: Final = re.compile(rb'(\\n)?",\s*"stream"')
_DIGITS: Final = re.compile(rb"\d+")


class BrokenMessage:
    """A detector of broken messages.

    Args:
        layout: finds the coordinator's messages.
        form: a line of the request logger without its content, as kept from before a restart; empty if none is known.

    Attributes:
        form: the newest line of the request logger without its content.
    """

    def __init__(self, layout: Layout, form: str = "") -> None:
        self._layout = layout
        self.form = ""
        self._head: re.Pattern[bytes] | None = None
        self._end: re.Pattern[bytes] | None = None
        self._request = form.encode("latin-1", "replace")
        self._learn()

    def note_request(self, line: bytes) -> None:
        """Note a line of the request logger."""
        if not is_partial(line):
            self._request = line

    def sign(self, line: bytes) -> str:
        """Return, in words, what shows that a line is not a whole message; empty if nothing does.

        Args:
            line: of another logger.
        """
        self._learn()
        if is_partial(line):
            return "a line was cut by the carrier"
        raw = raw_of(line)
        if self._head is None or not raw:
            return "" if self._head is None else "a line is empty"
        if quotes_a_stranger(raw):
            return "a message quotes a client that has not logged in"
        if self._head.match(raw) is None:
            return "a line does not begin as those of the request logger do"
        if self._end is not None and self._end.search(raw[-_END_BYTES:]) is None:
            return "a line does not end with a logger, as those of the request logger do"
        return "a message of the coordinator breaks off" if _OWN in raw and self._breaks_off(raw) else ""

    def _breaks_off(self, raw: bytes) -> bool:
        try:
            for message in self._layout.read(raw):
                fact = read(message.text)
                if (fact is None and is_cut(message.text)) or (fact is not None and fact.kind is FactKind.SUSPICIOUS):
                    return True
        except Exception:  # noqa: BLE001 - no text of a client ends the tap; this is no whole message
            return True
        return False

    def _learn(self) -> None:
        """Note head and end of the request logger's newest line; lines in JSON have no breaks, so they are skipped."""
        line, self._request = self._request, b""
        if not line:
            return
        raw = raw_of(line)
        at = raw.find(_REQUEST)
        head, tail = raw[: max(0, at)], raw[raw.rfind(b"}") + 1 :]
        form = head + _REQUEST + b"{}" + tail
        if not head or len(form) > _FORM_BYTES_MAX:
            self._head = self._end = None
            return
        self.form = form.decode("latin-1")
        begin, end = level_in(head.decode("latin-1"))
        level = rb"\"?[A-Za-z]{4,5}\b" if begin < end else b""
        self._head = re.compile(_DIGITS.sub(rb"\\d+", re.escape(head[:begin])) + level)
        logger = _LOGGER.search(tail)
        self._end = None
        if logger is not None:
            closing, _, more = tail[logger.end() :].strip().partition(b" ")
            names = rb"[\w.$]{1,200}" + re.escape(closing) + (rb" .*" if more else rb"\s*") + rb"\Z"
            self._end = re.compile(re.escape(tail[: logger.start()]) + names)


def is_partial(line: bytes) -> bool:
    """Return whether a container's runtime continues this line in its next one: it cuts lines at 16 KiB."""
    if line.startswith(b'{"log":'):
        ends = _DOCKER_END.search(line[-_END_BYTES:])
        return ends is not None and not ends[1]
    return _PARTIAL.match(line) is not None
