"""Parse the lines of one log into facts, whatever a client has written into them."""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.sources.explain.broken_lines import WINDOW_BYTES, end_by_logger, end_by_sentence
from heartwheel.sources.explain.facts import Fact, FactKind
from heartwheel.sources.explain.layouts import NEEDLE, Layout, LoggedMessage
from heartwheel.sources.explain.scanned import Scanned, Suspicious, Unreadable
from heartwheel.sources.explain.texts import PREFIX, is_cut, read
from heartwheel.wire.events import ID_BYTES_MAX

_NEEDLE: Final = NEEDLE.encode()
_DISORDER_MS: Final = 5_000
_BROKERS_MAX: Final = 10_000
_SHOWN_BYTES: Final = 8_000
_NEAR_BYTES: Final = 4_096


class ReaderState(msgspec.Struct, frozen=True):
    """What the lines of a log have shown that those after them need; the fields are those of `FactReader`."""

    last_ms: int | None
    zone_assumed: bool
    risen: dict[int, int]
    ended: int
    read: int
    searched_until: int


class FactReader:
    """A parser of one log's facts.

    Args:
        number: of the file, for the order of facts at one time.
        layout: finds message and time.
        scanned: where to count.

    Attributes:
        unended: the message of the line that was read last, if it may continue after that line; otherwise empty.
        doubtful: whether a client may have broken a message of that line.
        last_ms: the time that was read last, epoch ms.
    """

    def __init__(self, name: str, number: int, layout: Layout, scanned: Scanned) -> None:
        self.name, self.number = name, number
        self._layout, self._scanned = layout, scanned
        self.last_ms: int | None = None
        self._zone_assumed = False
        self._unzoned = 0
        self._risen: dict[int, int] = {}
        self._ended = self._read = 0
        self._searched_until = 0
        self.unended = ""
        self.doubtful = False

    def state(self) -> ReaderState:
        """Return what another reader needs to continue after the lines that this one has read."""
        risen = dict(self._risen)
        return ReaderState(self.last_ms, self._zone_assumed, risen, self._ended, self._read, self._searched_until)

    def restore(self, state: ReaderState) -> None:
        """Continue after the lines that another reader has read."""
        self.last_ms, self._zone_assumed, self._risen = state.last_ms, state.zone_assumed, dict(state.risen)
        self._ended, self._read, self._searched_until = state.ended, state.read, state.searched_until

    def facts(self, line: bytes, number: int, before: bytes = b"", after: bytes = b"") -> list[Fact]:
        """Return the facts of one line that contains the coordinator's prefix.

        No text of a line ends a scan: a line that cannot be read is counted.

        Args:
            line: without its end.
            number: from 1.
            before: the text before it.
            after: the text after it.
        """
        self.unended, self.doubtful = "", False
        self._unzoned = self._layout.zone.used
        facts = []
        try:
            for message in self._layout.read(line, before, after):
                fact = self._fact(message, number)
                if fact is not None:
                    facts.append(fact)
        except Exception as error:  # noqa: BLE001 - no text of a client keeps the next line from being read
            self._note_unreadable(number, f"{type(error).__name__}: {error}")
        return facts

    def clients_text(self, number: int, block: bytes, at: int) -> int:
        """Return how many bytes after the line that was read last belong to it, because a client has broken it.

        Args:
            at: where in the block the next line begins.
        """
        is_new = number >= self._searched_until
        if not self.unended or not (is_new or self._names_loggers):
            return 0
        text, window = self.unended, block[at : at + WINDOW_BYTES]
        end = end_by_logger(window) if self._names_loggers else 0
        if is_new and (not end or read(f"{text}\n{window[:end].decode('latin-1')}") is None):
            near = window[:_NEAR_BYTES]
            by_sentence = end_by_sentence(text, near, _NEEDLE) or end_by_sentence(text, window, _NEEDLE)
            if not by_sentence:
                self._searched_until = number + window.count(b"\n")
            end = max(end, by_sentence)
        return end

    def note_suspicious(self, line: bytes, number: int, since: int) -> None:
        """Count a line that a client may have written."""
        text = line[max(0, line.find(_NEEDLE)) :][:_SHOWN_BYTES].decode("utf-8", "replace")
        self._scanned.note_suspicious(Suspicious(self.name, number, since, text))

    @property
    def _names_loggers(self) -> bool:
        """Return whether the coordinator's lines in this log end with its logger, or with a thread."""
        return 2 * self._ended >= max(1, self._read)

    def _fact(self, message: LoggedMessage, number: int) -> Fact | None:
        scanned = self._scanned
        fact = None if message.unreadable else read(message.text)
        is_timed = message.time_ms is not None or self.last_ms is not None
        if fact is None and not message.unreadable and not (is_timed and PREFIX.match(message.text)):
            return None  # a text about coordinators
        scanned.coordinator_lines += 1
        self._note_end(message, is_known=fact is not None)
        if message.unreadable:
            self._note_unreadable(number, message.unreadable)
        elif message.forgeable or (fact is not None and fact.kind is FactKind.SUSPICIOUS):
            self.doubtful = True
            scanned.note_suspicious(Suspicious(self.name, number, number, message.text))
        elif fact is None:
            self.doubtful = self.doubtful or is_cut(message.text)
            if not message.verbose:
                scanned.note_unknown(message.text, self.name, number)
        elif 4 * len(message.text) > ID_BYTES_MAX and (longest := _longest_id(fact)) > ID_BYTES_MAX:
            self._note_unreadable(number, f"an id of {longest:,} bytes, at most {ID_BYTES_MAX:,}")
        elif self._note_time(message) and fact.kind is not FactKind.NOTHING:
            scanned.note_group(fact.group_id)
            return self._placed(fact, message, number)
        return None

    def _note_time(self, message: LoggedMessage) -> bool:
        """Note a message's time; return whether it has one, or one before it had."""
        zone = self._layout.zone
        if message.time_ms is not None:
            self.last_ms = message.time_ms
            self._zone_assumed = zone.is_assumed and zone.used > self._unzoned
        else:
            self._scanned.untimed += 1
        self._unzoned = zone.used
        if self.last_ms is None:
            return False
        self._scanned.note_time(self.last_ms)
        return True

    def _placed(self, fact: Fact, message: LoggedMessage, number: int) -> Fact:
        scanned, time_ms = self._scanned, self.last_ms or 0
        scanned.coarse += message.coarse
        scanned.zone_assumed = scanned.zone_assumed or self._zone_assumed
        fact.file, fact.line, fact.time_ms, fact.coarse = self.number, number, time_ms, message.coarse
        fact.zone_assumed = self._zone_assumed
        fact.order_ms = self._order(fact.broker_id, time_ms)
        return fact

    def _note_end(self, message: LoggedMessage, *, is_known: bool) -> None:
        """Note whether a message ends on its line, as far as this log shows that."""
        self._read += 1
        if message.ended:
            self._ended += 1
        elif self._names_loggers or not (is_known or message.verbose):
            self.unended = message.text
            self.doubtful = self.doubtful or self._names_loggers

    def _note_unreadable(self, number: int, why: str) -> None:
        self._scanned.note_unreadable(Unreadable(self.name, number, why))

    def _order(self, broker_id: int, time_ms: int) -> int:
        """Return the time to sort by, which keeps a broker's lines in order where its clock was set back a little.

        A larger step back is not the clock's: files were joined in another order than that of time.
        """
        before_ms = self._risen.get(broker_id, time_ms)
        order_ms = before_ms if 0 < before_ms - time_ms <= _DISORDER_MS else time_ms
        if broker_id not in self._risen and len(self._risen) >= _BROKERS_MAX:
            self._risen.clear()
        self._risen[broker_id] = order_ms
        return order_ms


def _longest_id(fact: Fact) -> int:
    """Return the length of the longest id in a fact, bytes."""
    ids = (fact.group_id, fact.member_id, fact.new_member_id, fact.group_instance_id, fact.client_id, *fact.members)
    longest = max(ids, key=len)
    return len(longest.encode())
