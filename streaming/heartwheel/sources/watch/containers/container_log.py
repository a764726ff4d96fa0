"""The log of one container by name, through broken connections, restarts and replacements, with its position."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Final, NamedTuple

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.rare_log import RareLog
from heartwheel.base.worker import Worker
from heartwheel.sources.explain.rotated_log import READ_BYTES, StampPosition, TailPosition
from heartwheel.sources.explain.scan import NEAR_BYTES
from heartwheel.sources.watch.containers.followed import Containers
from heartwheel.sources.watch.containers.http_api import ApiError
from heartwheel.sources.watch.containers.stamps import StampedEntries

_WAITING_BYTES_MAX: Final = 8 << 20
_PAUSE_S: Final = 0.25
_PAUSE_S_MAX: Final = 10.0
_CLOSE_S: Final = 5.0
_WARN_EVERY_S: Final = 60.0
_NOT_FOUND: Final = 404

_log = logging.getLogger(__name__)


class _Mark(NamedTuple):
    """The position behind an entry."""

    end: int
    newest_ns: int
    entries: int


class _Piece(NamedTuple):
    """Text of one container that was received, and whether lines may be missing before it."""

    container: str
    text: bytearray
    marks: list[_Mark]
    lost: bool


class ContainerLog:
    """The bytes of a container's log, received by a thread of its own; used as a `RotatedLog` is.

    A container that is started again begins another file of the log. What the one before it wrote is read to its end,
    as long as the runtime has it.

    Args:
        name: of the log.
        containers: where it is read.
        position: where to continue; `None` for the begin.

    Attributes:
        at: where in its file the next byte is.
        head: the id of the container; empty before there is one.
        is_next: whether the bytes that were read last are the first of another container.
        lost: whether lines may be missing before them.
    """

    def __init__(self, name: str, containers: Containers, position: TailPosition | None) -> None:
        self._name, self._containers = name, containers
        self.lost = self.is_next = False
        self.at, self.head = (position.offset, position.head) if position else (0, "")
        stamps = position.stamps if position else None
        self._mark = _Mark(self.at, stamps.newest_ns if stamps else 0, stamps.entries if stamps else 0)
        self._marks: deque[_Mark] = deque()
        self._recent = stamps.before if stamps else b""  # the text that ends at `at`
        self._change = threading.Condition()
        self._pieces: deque[_Piece] = deque()
        self._receiver = _Receiver(self, containers, StampedEntries(stamps))
        self._receiver.start()

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def is_caught_up(self) -> bool:
        """Whether what there was at first is read, or cannot be read now."""
        return self._receiver.is_caught_up and not self._pieces

    @property
    def is_cut(self) -> bool:
        """Whether only the next answer can show what is behind the bytes that came."""
        return self._receiver.is_cut

    def read(self) -> bytes:
        """Return the new bytes; none if there are none.

        Raises:
            HeartwheelError: the thread has ended by an error.
        """
        self.lost = self.is_next = False
        if self._receiver.failure is not None:
            hint = "the lines above may tell why"
            raise HeartwheelError(f"{self._name} is read no more: {self._receiver.failure!r}", hint=hint)
        with self._change:
            if not self._pieces:
                return b""
            piece = self._pieces.popleft()
            self._change.notify_all()
        if self.head and piece.container != self.head:
            self.is_next, self.at, self._recent = True, 0, b""
            self._mark = _Mark(0, 0, 0)
            self._marks.clear()
        self.head, self.lost = piece.container, piece.lost
        text = bytes(piece.text)
        self._marks.extend(mark._replace(end=self.at + mark.end) for mark in piece.marks)
        self.at += len(text)
        self._recent += text
        return text

    def before(self, size: int) -> bytes:
        """Return the text before the next byte, at most so much."""
        return self._recent[-size:]

    def position(self, offset: int) -> TailPosition:
        """Return a position behind those that were asked for before."""
        while self._marks and self._marks[0].end <= offset:
            self._mark = self._marks.popleft()
        keep = len(self._recent) - (self.at - offset)  # what is before the position
        self._recent = self._recent[max(0, keep - NEAR_BYTES) :]
        before = self._recent[: min(keep, NEAR_BYTES)]
        return TailPosition(0, offset, self.head, StampPosition(self._mark.newest_ns, self._mark.entries, before))

    def behind(self) -> int:
        """Return how many bytes are received and not read; what the server still has is not known."""
        with self._change:
            return sum(len(piece.text) for piece in self._pieces)

    def close(self) -> None:
        """End the thread; its connection is closed with the containers."""
        self._receiver.end()
        with self._change:
            self._change.notify_all()
        self._receiver.join()

    def put(self, container: str, *, lost: bool = False) -> None:
        """Begin with the text of a container; for the thread."""
        with self._change:
            self._pieces.append(_Piece(container, bytearray(), [], lost))

    def add(self, entries: list[tuple[bytes, int, int]], *, lost: bool) -> None:
        """Add texts with the positions behind them, and wait while too much is not read; for the thread."""
        with self._change:
            last = self._pieces[-1] if self._pieces else None
            if last is None or last.container != self._receiver.container or lost or len(last.text) > READ_BYTES:
                last = _Piece(self._receiver.container, bytearray(), [], lost)
                self._pieces.append(last)
            for text, newest_ns, count in entries:
                last.text.extend(text)
                last.marks.append(_Mark(len(last.text), newest_ns, count))
            while sum(len(piece.text) for piece in self._pieces) > _WAITING_BYTES_MAX and not self._receiver.stopping:
                self._change.wait(1)


class _Receiver(Worker):
    """The thread of a log: receives what there is, and begins again when a connection ends.

    Attributes:
        container: the id of the container whose log it reads; empty before there is one.
        is_caught_up: whether what there was at first was received, or could not be.
        is_cut: whether its last answer broke, or ended behind something new of a container that runs.
    """

    def __init__(self, log: ContainerLog, containers: Containers, read: StampedEntries) -> None:
        super().__init__(self._work, f"heartwheel-log-{log.name}", close_s=_CLOSE_S)
        self._log, self._containers, self._read = log, containers, read
        self.container, self.is_caught_up, self.is_cut = log.head, False, False
        self._is_whole = self._is_over = False
        """Whether the last answer ended as it should, and whether it had nothing new of a container that had ended."""
        self._pause_s = _PAUSE_S
        self._rare = RareLog(_log, _WARN_EVERY_S)

    def _work(self) -> None:
        while not self.stopping:
            try:
                self._pause_s = max(self._pause_s, _PAUSE_S)
                self._turn()
            except ApiError as error:
                # A pod that is gone just after its log has ended as it should: that end was the last.
                self._is_whole = self._is_whole and error.status == _NOT_FOUND
                self.is_cut = error.status != _NOT_FOUND
                if not self.stopping and not error.is_idle:
                    self._rare.warning("%s: %s; it is read on when that is over (%d times)", self._log.name, error)
                    self._pause_s = min(2 * self._pause_s, _PAUSE_S_MAX)
                self.is_caught_up = True
            self.wait(self._pause_s)

    def _turn(self) -> None:
        """Receive what one answer has."""
        present = self._containers.present(self._log.name)
        if present is None or not present.id:
            self.is_caught_up, self.is_cut = True, False
            return
        if self.container == present.id:
            self._receive(is_running=present.is_running, previous=False)
        elif self.container and self.container == present.previous_id and not self._is_over:
            self._receive(is_running=False, previous=True)
        elif self.container and present.previous_id not in {"", self.container}:
            self._begin(present.previous_id, lost=True)  # started again more than once while nobody saw it
        else:
            self._begin(present.id, lost=bool(self.container) and not (self._is_whole or self._is_over))

    def _begin(self, container: str, *, lost: bool) -> None:
        """Begin with the log of another container."""
        self._log.put(container, lost=lost)
        self.container, self._read = container, StampedEntries()
        self._is_whole = self._is_over = False
        self._pause_s = 0

    def _receive(self, *, is_running: bool, previous: bool) -> None:
        if self._is_over and not is_running:
            return
        self._is_over = False
        follow = is_running and self.is_caught_up
        self._read.begin()
        before = self._read.newest_ns, self._read.entries
        wanted = self._log.name, self.container, self._read.since_s
        with self._containers.entries(*wanted, previous=previous, follow=follow) as parts:
            self._is_whole = self.is_cut = False
            for part in parts:
                self._take(part)
                if self.stopping:
                    return
        is_new = (self._read.newest_ns, self._read.entries) != before
        self._is_whole, self._is_over, self.is_cut = True, not is_running and not is_new, is_running and is_new
        self._pause_s = _PAUSE_S
        self.is_caught_up = self.is_caught_up or not previous

    def _take(self, part: list[bytes]) -> None:
        texts, lost = [], False
        for entry in part:
            text = self._read.take(entry)
            if text is not None:
                texts.append((text, self._read.newest_ns, self._read.entries))
                lost = lost or self._read.gap
        if texts:
            self._pause_s = _PAUSE_S / 2  # it works: a server that ends each answer is asked again at once
            self._log.add(texts, lost=lost)
