"""Scan logs for the lines of the coordinator, at the speed of a search for one text.

A line that is not the coordinator's is never taken apart or decoded: blocks of some megabytes are searched for the
coordinator's prefix, and only the lines around what is found are cut out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from heartwheel.explain.facts import Fact, Said
from heartwheel.explain.layouts import NEEDLE, Layout
from heartwheel.explain.opened_log import BLOCK_BYTES, Log
from heartwheel.explain.texts import read

LINE_BYTES_MAX: Final = 64 << 20
"""Longest line that is read, bytes; a longer one is counted and left out."""

GROUPS_MAX: Final = 50_000
"""Most groups whose names are noted."""

UNKNOWN_MAX: Final = 1_000
"""Most different unknown texts that are kept."""

_NEEDLE: Final = NEEDLE.encode()
_AS_NUMBERS: Final = re.compile(", ?".join(str(byte) for byte in b"GroupCoordinator ").encode())
"""The prefix in a message that journald writes as numbers, for it holds colours or the like."""

_NEAR_BYTES: Final = 2_000
_DISORDER_MS: Final = 5_000
_CRI_PART: Final = re.compile(rb"^\S+ (?:stdout|stderr) P ")
_CRI_END: Final = re.compile(rb"^\S+ (?:stdout|stderr) [PF] ")
_VARIABLE: Final = re.compile(r"[\w.:/-]*\d[\w.:/-]*")


class Scanned:
    """Count what a scan has seen.

    Args:
        unknown: lines of the coordinator that no pattern knows, by their text without what varies: how often, and the
            first of them with its place.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self.lines = 0
        self.coordinator_lines = 0
        self.untimed = 0
        self.coarse = 0
        self.too_long = 0
        self.unknown: Counter[str] = Counter()
        self.unknown_example: dict[str, tuple[str, str, int]] = {}
        self.client_lines = 0
        """Lines of consumers, in logs without a line of a coordinator."""
        self.others: dict[str, str] = {}
        """What logs are, by name, that have no line of a coordinator."""
        self.groups: dict[str, None] = {}
        """The groups that lines of coordinators name, the first ones."""
        self.zone_assumed = False
        """Whether a line of a coordinator names no time zone, and nobody else has."""
        self.first_ms: int | None = None
        self.last_ms: int | None = None

    @property
    def unknown_lines(self) -> int:
        """Count the lines that no pattern knows."""
        return self.unknown.total()

    def note_unknown(self, text: str, file: str, line: int) -> None:
        """Count a text that no pattern knows."""
        shape = _VARIABLE.sub("#", text)[:200]
        if shape not in self.unknown and len(self.unknown) >= UNKNOWN_MAX:
            shape = "(others)"
        self.unknown[shape] += 1
        self.unknown_example.setdefault(shape, (text, file, line))

    def note_group(self, group_id: str) -> None:
        """Note that a line names a group."""
        if group_id and len(self.groups) < GROUPS_MAX:
            self.groups[group_id] = None

    def note_time(self, time_ms: int) -> None:
        """Widen the time that the coordinator's lines span."""
        self.first_ms = time_ms if self.first_ms is None else min(self.first_ms, time_ms)
        self.last_ms = time_ms if self.last_ms is None else max(self.last_ms, time_ms)


class FactReader:
    """Read the facts of one log.

    Args:
        name: of the file, for evidence.
        number: of the file, for the order of facts at one time.
        layout: finds message and time.
        scanned: where to count.
    """

    def __init__(self, name: str, number: int, layout: Layout, scanned: Scanned) -> None:
        self.name, self.number = name, number
        self._layout, self._scanned = layout, scanned
        self._last_ms: int | None = None
        self._zone_assumed = False
        self._risen: dict[int, int] = {}

    def facts(self, line: bytes, number: int, before: bytes = b"", after: bytes = b"") -> Iterator[Fact]:
        """Read the facts of one line that has the coordinator's prefix in it.

        Args:
            line: without its end.
            number: from 1.
            before: what is before it.
            after: what is after it.
        """
        scanned, zone = self._scanned, self._layout.zone
        unzoned = zone.used
        for message in self._layout.read(line, before, after):
            scanned.coordinator_lines += 1
            fact = read(message.text)
            if fact is None:
                if not message.verbose:
                    scanned.note_unknown(message.text, self.name, number)
                continue
            time_ms = message.time_ms
            if time_ms is None:
                scanned.untimed += 1
                if self._last_ms is None:
                    continue
                time_ms = self._last_ms
            else:
                self._zone_assumed = zone.is_assumed and zone.used > unzoned
            unzoned = zone.used
            self._last_ms = time_ms
            scanned.note_time(time_ms)
            scanned.note_group(fact.group_id)
            if fact.said is Said.NOTHING:
                continue
            scanned.coarse += message.coarse
            fact.file, fact.line, fact.time_ms, fact.coarse = self.number, number, time_ms, message.coarse
            fact.zone_assumed = self._zone_assumed
            scanned.zone_assumed = scanned.zone_assumed or self._zone_assumed
            fact.order_ms = self._order(fact.broker_id, time_ms)
            yield fact

    def _order(self, broker_id: int, time_ms: int) -> int:
        """Let the lines of one broker keep their order where a clock was set back a little.

        A step back by more is no clock: files were joined in another order than that of time.
        """
        before_ms = self._risen.get(broker_id, time_ms)
        order_ms = before_ms if 0 < before_ms - time_ms <= _DISORDER_MS else time_ms
        self._risen[broker_id] = order_ms
        return order_ms


def scan(
    stream: Log,
    reader: FactReader,
    scanned: Scanned,
    progress: Callable[[int], None] | None = None,
    *,
    first_line: int = 1,
) -> Iterator[Fact]:
    """Read the facts of a log, from where it stands to its end.

    Args:
        stream: the log.
        reader: takes its lines.
        scanned: where to count.
        progress: called with how many bytes were read.
        first_line: the number of the line it stands at.
    """
    rest = b""
    while True:
        block = stream.read(BLOCK_BYTES)
        scanned.bytes += len(block)
        if progress is not None:
            progress(len(block))
        if not block:
            if rest:
                scanned.lines += 1
                yield from _facts_of(rest, first_line, reader)
            return
        end = block.rfind(b"\n") + 1
        if not end:
            rest += block
            if len(rest) > LINE_BYTES_MAX:
                rest, scanned.too_long = b"", scanned.too_long + 1
            continue
        whole, rest = (rest + block[:end] if rest else block[:end]), block[end:]
        yield from _facts_of(whole, first_line, reader)
        lines = whole.count(b"\n")
        scanned.lines += lines
        first_line += lines


def _facts_of(block: bytes, first_line: int, reader: FactReader) -> Iterator[Fact]:
    """Read the facts of a block of whole lines."""
    at, counted, number = 0, 0, first_line
    as_numbers = b'"MESSAGE"' in block and _AS_NUMBERS.search(block) is not None
    while True:
        found = _found(block, at, as_numbers=as_numbers)
        if found < 0:
            return
        start = block.rfind(b"\n", 0, found) + 1
        end = block.find(b"\n", found)
        end = len(block) if end < 0 else end
        number += block.count(b"\n", counted, start)
        counted = start
        line, at = block[start:end], end + 1
        if _CRI_PART.match(line):
            line, at = _joined(block, line, at)
        yield from reader.facts(
            line, number, block[max(0, start - _NEAR_BYTES) : start], block[end : end + _NEAR_BYTES]
        )


def _found(block: bytes, at: int, *, as_numbers: bool) -> int:
    """Find the next line of a coordinator; -1 if there is none."""
    found = block.find(_NEEDLE, at)
    if as_numbers:
        match = _AS_NUMBERS.search(block, at, len(block) if found < 0 else found)
        return match.start() if match else found
    return found


def _joined(block: bytes, line: bytes, at: int) -> tuple[bytes, int]:
    """Join a line that a container runtime cut into parts, which it marks with P."""
    while at < len(block):
        end = block.find(b"\n", at)
        end = len(block) if end < 0 else end
        part = block[at:end]
        head = _CRI_END.match(part)
        if head is None:
            break
        line, at = line + part[head.end() :], end + 1
        if head[0].endswith(b" F "):
            break
    return line, at
