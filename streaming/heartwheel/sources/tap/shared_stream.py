"""A stream that the request logger shares with the broker's other loggers, such as the output of a container.

Other loggers write the texts of clients unchanged, line breaks included. So a client may write whole lines there,
including requests of other clients' members. All of them are within one message, which is written in one piece. So
lines that follow a line of another logger are relayed only once it is known how that message continued: up to the
second line that contains the tap's own token, which no client can write beforehand. The message may reach as far as the
first such line. By the second one the client's own request has most likely been logged, and it shows the client's line
breaks. If there was a sign of a broken message, the doubtful lines are left out and count as missed.

Where the log does not contain the tap's own requests, nothing waits. After a line that shows a broken message, as many
lines are left out as such a message may have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import msgspec

from heartwheel.sources.explain.log_tail import TailedLine
from heartwheel.sources.explain.rotated_log import TailPosition
from heartwheel.sources.tap.broken_message import BrokenMessage, is_partial
from heartwheel.sources.tap.request_log import RequestLog, breaks_lines

MESSAGE_BYTES_MAX: Final = 1 << 20
"""Most bytes of a stream that one message takes: Kafka accepts texts of 32 KiB, and a message quotes a few of them."""

WAITING_BYTES_MAX: Final = 64 << 20
"""Most bytes that are kept until the tap's own token comes."""

CARRIER_BYTES: Final = 160
"""Bytes of each line that are not its message's: what a container's runtime adds around it."""

_TOKEN_S_MAX: Final = 10.0


class Part(NamedTuple):
    """Lines of the request logger that may be relayed.

    Args:
        lines: lines that are beyond doubt.
        missed: whether lines before them were left out.
    """

    lines: list[TailedLine]
    missed: bool


class _Stretch(msgspec.Struct):
    """Lines in doubt, from a line of another logger or from a token on."""

    begin: TailPosition
    lines: list[TailedLine] = []
    has_others: bool = False
    size: int = 0


class SharedStream:
    """The lines of the request logger in a stream, without those that a client may have written.

    Args:
        requests: knows its lines.
        token: a word in the tap's own requests; empty if it sends none.
        report: called with a message for a person, and the position of a line.
        clock: seconds.

    Attributes:
        left_out: how many lines were left out.
    """

    def __init__(
        self,
        requests: RequestLog,
        signs: BrokenMessage,
        token: bytes,
        report: Callable[[TailedLine, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._requests, self._signs, self._token, self._report, self._clock = requests, signs, token, report, clock
        self._token_s: float | None = None
        self._waits: list[_Stretch] = []
        self._is_broken = self._missed = self._goes_on = False
        self._parts: list[Part] = []
        self._begin: TailPosition | None = None
        self.left_out = 0

    @property
    def begin(self) -> TailPosition | None:
        """Where to continue after a restart: at the first line in doubt; `None` if there is none."""
        return self._begin

    @property
    def form(self) -> str:
        """The form of the request logger's lines, to be used after a restart."""
        return self._signs.form

    def forget(self) -> None:
        """Start again: lines are missing, and with them those in doubt."""
        self._waits, self._begin = [], None
        self._is_broken = self._missed = self._goes_on = False

    def sift(self, lines: Iterable[TailedLine], position: TailPosition) -> list[Part]:
        """Return the lines that are beyond doubt by now; one part at least.

        Args:
            lines: the next ones, all of one file.
        """
        self._parts = [Part([], missed=False)]
        if self._token_s is not None and self._clock() - self._token_s > _TOKEN_S_MAX:
            self._token_s = None
            if not self._is_broken:
                self._release(len(self._waits))
        for line in lines:
            self._take(line, position)
        return self._parts

    def _take(self, line: TailedLine, position: TailPosition) -> None:
        if self._goes_on:
            self._goes_on = is_partial(line.text)
            return
        is_request = self._requests.is_request(line.text)
        sign = ""
        if is_request:
            self._goes_on = is_partial(line.text)
            if self._waits and breaks_lines(line.text):
                sign = "a request has a text with a line break"
        else:
            sign = self._signs.sign(line.text)
            self._doubt(line, position, sign)
        has_token = is_request and bool(self._token) and self._token in line.text
        if has_token:
            self._token_s = self._clock()
        if not self._waits:
            if is_request:
                self._relay([line])
            return
        self._note(line, is_request=is_request, sign=sign)
        if has_token or self._waits[-1].size > (WAITING_BYTES_MAX if self._token_s is not None else MESSAGE_BYTES_MAX):
            self._turn(line, position, has_token=has_token)

    def _doubt(self, line: TailedLine, position: TailPosition, sign: str) -> None:
        """Start to doubt at a line of another logger, if the doubt can be settled or if there is a sign already."""
        if not self._waits and (sign or self._token_s is not None):
            begin = TailPosition(position.inode, line.offset, position.head)
            self._begin = self._begin or begin
            self._waits = [_Stretch(begin)]

    def _note(self, line: TailedLine, *, is_request: bool, sign: str) -> None:
        now = self._waits[-1]
        now.size += max(1, len(line.text) + 1 - CARRIER_BYTES)
        if sign and not self._is_broken:
            self._is_broken = True
            self.left_out += sum(len(each.lines) for each in self._waits)
            for each in self._waits:
                each.lines = []
            self._report(line, sign)
        if sign:
            now.size = 0
        if not is_request:
            now.has_others = True
        elif self._is_broken:
            self.left_out += 1
        else:
            now.lines.append(line)

    def _turn(self, line: TailedLine, position: TailPosition, *, has_token: bool) -> None:
        """Settle what can be settled: no message of the earlier stretches continues after this line."""
        if self._is_broken:
            self._waits, self._is_broken, self._missed = [], False, True
            if has_token:
                self.left_out -= 1
                self._relay([line])
            return
        begin = TailPosition(position.inode, line.offset + len(line.text) + 1, position.head)
        self._waits.append(_Stretch(begin))
        self._release(len(self._waits) - 2)
        if not any(each.has_others for each in self._waits):
            self._release(len(self._waits))

    def _release(self, count: int) -> None:
        for each in self._waits[:count]:
            self._relay(each.lines)
        del self._waits[:count]
        if not self._missed:
            self._begin = self._waits[0].begin if self._waits else None

    def _relay(self, lines: list[TailedLine]) -> None:
        if lines:
            self._signs.note_request(lines[-1].text)
        if self._missed and lines:
            self._parts.append(Part([], missed=True))
            self._missed, self._begin = False, self._waits[0].begin if self._waits else None
        self._parts[-1].lines.extend(lines)
