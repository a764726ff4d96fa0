"""A stream that the request logger shares with the broker's other loggers, such as the output of a container.

Other loggers write the texts of clients as they are, line breaks included. So a client may write whole lines there,
requests of other people's members among them. All of that is within one message, which is written in one piece. So what
follows a line of another logger is passed on once it is known how that message went on: up to the second line that no
client could write beforehand, as it has the tap's own token. Up to the first one the message may reach; up to the
second one the client's own request has most likely been logged, which shows its line breaks. What was in doubt
meanwhile is left out if there was a sign of a broken message, and counts as missed.

Where the tap's own requests are not in the log, nothing waits. Behind a line that shows a broken message as much is
left out as such a message may have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import msgspec

from heartwheel.tap.broken_message import BrokenMessage, is_partial
from heartwheel.tap.log_tail import Line, Position
from heartwheel.tap.request_log import RequestLog, breaks_lines

MESSAGE_BYTES_MAX: Final = 1 << 20
"""How much of a stream one message may take, bytes: Kafka takes texts of 32 KiB, and a message quotes a few of them."""

WAITING_BYTES_MAX: Final = 64 << 20
"""How much is kept until the tap's own token comes, bytes."""

CARRIER_BYTES: Final = 160
"""How much of each line is not its message's, bytes: what a container's runtime puts around it."""

_TOKEN_S_MAX: Final = 10.0


class Part(NamedTuple):
    """Lines of the request logger that are passed on.

    Args:
        lines: without a doubt.
        missed: whether lines before them were left out.
    """

    lines: list[Line]
    missed: bool


class _Stretch(msgspec.Struct):
    """What is in doubt, from a line of another logger or from a token on."""

    begin: Position
    lines: list[Line] = []
    has_others: bool = False
    size: int = 0


class SharedStream:
    """The lines of the request logger in a stream, without those that a client may have written.

    Args:
        requests: knows its lines.
        signs: finds broken messages.
        token: what the tap's own requests have in them; empty if it sends none.
        said: called with words that a person should know, and the place of a line.
        clock: seconds.

    Attributes:
        left_out: how many lines were.
    """

    def __init__(
        self,
        requests: RequestLog,
        signs: BrokenMessage,
        token: bytes,
        said: Callable[[Line, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._requests, self._signs, self._token, self._said, self._clock = requests, signs, token, said, clock
        self._heard_s: float | None = None
        self._waits: list[_Stretch] = []
        self._is_broken = self._missed = self._goes_on = False
        self._parts: list[Part] = []
        self._begin: Position | None = None
        self.left_out = 0

    @property
    def begin(self) -> Position | None:
        """Where to read on: at the first line that is in doubt; `None` if none is."""
        return self._begin

    @property
    def form(self) -> str:
        """What the lines of the request logger look like, for after a restart."""
        return self._signs.form

    def forget(self) -> None:
        """Begin anew: lines are missing, and with them whatever was in doubt."""
        self._waits, self._begin = [], None
        self._is_broken = self._missed = self._goes_on = False

    def sift(self, lines: Iterable[Line], position: Position) -> list[Part]:
        """Return what is certain by now; one part at least.

        Args:
            lines: the next ones, all of one file.
            position: in that file.
        """
        self._parts = [Part([], missed=False)]
        if self._heard_s is not None and self._clock() - self._heard_s > _TOKEN_S_MAX:
            self._heard_s = None
            if not self._is_broken:
                self._release(len(self._waits))
        for line in lines:
            self._take(line, position)
        return self._parts

    def _take(self, line: Line, position: Position) -> None:
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
            self._heard_s = self._clock()
        if not self._waits:
            if is_request:
                self._pass_on([line])
            return
        self._note(line, is_request=is_request, sign=sign)
        if has_token or self._waits[-1].size > (WAITING_BYTES_MAX if self._heard_s is not None else MESSAGE_BYTES_MAX):
            self._turn(line, position, has_token=has_token)

    def _doubt(self, line: Line, position: Position, sign: str) -> None:
        """Begin to doubt at a line of another logger, where it can be settled or where there is a sign already."""
        if not self._waits and (sign or self._heard_s is not None):
            begin = Position(position.inode, line.offset, position.head)
            self._begin = self._begin or begin
            self._waits = [_Stretch(begin)]

    def _note(self, line: Line, *, is_request: bool, sign: str) -> None:
        now = self._waits[-1]
        now.size += max(1, len(line.text) + 1 - CARRIER_BYTES)
        if sign and not self._is_broken:
            self._is_broken = True
            self.left_out += sum(len(each.lines) for each in self._waits)
            for each in self._waits:
                each.lines = []
            self._said(line, sign)
        if sign:
            now.size = 0
        if not is_request:
            now.has_others = True
        elif self._is_broken:
            self.left_out += 1
        else:
            now.lines.append(line)

    def _turn(self, line: Line, position: Position, *, has_token: bool) -> None:
        """Settle what can be: no message of the stretches before goes on behind this line."""
        if self._is_broken:
            self._waits, self._is_broken, self._missed = [], False, True
            if has_token:
                self.left_out -= 1
                self._pass_on([line])
            return
        begin = Position(position.inode, line.offset + len(line.text) + 1, position.head)
        self._waits.append(_Stretch(begin))
        self._release(len(self._waits) - 2)
        if not any(each.has_others for each in self._waits):
            self._release(len(self._waits))

    def _release(self, count: int) -> None:
        for each in self._waits[:count]:
            self._pass_on(each.lines)
        del self._waits[:count]
        if not self._missed:
            self._begin = self._waits[0].begin if self._waits else None

    def _pass_on(self, lines: list[Line]) -> None:
        if lines:
            self._signs.note_request(lines[-1].text)
        if self._missed and lines:
            self._parts.append(Part([], missed=True))
            self._missed, self._begin = False, self._waits[0].begin if self._waits else None
        self._parts[-1].lines.extend(lines)
