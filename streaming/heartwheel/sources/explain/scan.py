"""Scan logs for the lines of the coordinator, at the speed of a search for one text.

Other lines are never parsed or decoded: blocks of some megabytes are searched for the coordinator's prefix, and only
the lines around each hit are cut out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from typing import Final

from heartwheel.sources.explain.broken_lines import WINDOW_BYTES, end_of_line, end_of_stranger, next_stranger
from heartwheel.sources.explain.fact_reader import FactReader
from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.layouts import NEEDLE
from heartwheel.sources.explain.opened_log import BLOCK_BYTES, OpenedLog
from heartwheel.sources.explain.scanned import Scanned
from heartwheel.sources.explain.whole_lines import WholeLines

__all__ = ["FactReader", "HeldLines", "Scanned", "scan"]

_NEEDLE: Final = NEEDLE.encode()
_AS_NUMBERS: Final = re.compile(", ?".join(str(byte) for byte in b"GroupCoordinator ").encode())
"""The prefix in a message that journald writes as numbers, because it contains colours or the like."""

NEAR_BYTES: Final = 2_000
"""How much text before and after a line is at hand for it: JSON over several lines has the time there."""

_CRI_PART: Final = re.compile(rb"^\S++ (?:stdout|stderr) P ")
_CRI_END: Final = re.compile(rb"^\S+ (?:stdout|stderr) [PF] ")


def scan(
    stream: OpenedLog, reader: FactReader, scanned: Scanned, progress: Callable[[int], None] | None = None
) -> Iterator[Fact]:
    """Yield the facts of a log, from its current position to its end.

    Args:
        scanned: where to count.
        progress: called with the number of bytes read.
    """
    lines, held = WholeLines(), HeldLines(reader, scanned)
    while True:
        data = stream.read(BLOCK_BYTES)
        scanned.bytes += len(data)
        if progress is not None:
            progress(len(data))
        held.add(lines.add(data) if data else lines.end())
        yield from held.facts(len(held) - WINDOW_BYTES if data else len(held))
        if not data:
            scanned.too_long += lines.too_long
            return


class HeldLines:
    """Whole lines that wait for the text after them, which matters: a client may have broken a line.

    Args:
        reader: parses the lines.
        scanned: where to count.
        first_line: the number of the next line.
        before: the text before that line, in the same file.

    Attributes:
        line: the number of the first line that waits.
    """

    def __init__(self, reader: FactReader, scanned: Scanned, *, first_line: int = 1, before: bytes = b"") -> None:
        self._reader, self._scanned = reader, scanned
        self._block, self._at = before, len(before)
        self.line = first_line

    def __len__(self) -> int:
        return len(self._block) - self._at

    def add(self, lines: bytes) -> None:
        """Add the lines that follow; only the last line of a log has no end."""
        since = max(0, self._at - NEAR_BYTES)
        self._block, self._at = self._block[since:] + lines, self._at - since

    def facts(self, size: int) -> Iterator[Fact]:
        """Yield the facts of the lines that begin in the first bytes of those that wait, and drop these lines."""
        block, at = self._block, self._at
        self._at = yield from _facts_of(block, at, self.line, self._reader, at + max(0, size))
        is_cut = at < self._at == len(block) and not block.endswith(b"\n")
        count = block.count(b"\n", at, self._at) + is_cut
        self.line, self._scanned.lines = self.line + count, self._scanned.lines + count


def _facts_of(block: bytes, at: int, first_line: int, reader: FactReader, until: int) -> Generator[Fact, None, int]:
    """Yield the facts of a block's lines that begin between two positions; return where the next line begins."""
    counted, number = at, first_line
    as_numbers = b'"MESSAGE"' in block and _AS_NUMBERS.search(block) is not None
    until = max(at, block.rfind(b"\n", at, until) + 1) if until < len(block) else until
    stranger = next_stranger(block, at)
    while True:
        found = _found(block, at) if as_numbers else block.find(_NEEDLE, at)
        if 0 <= stranger < at:  # it is in a line of the coordinator, which is read as such
            stranger = next_stranger(block, at)
        if 0 <= stranger < min(found if found >= 0 else until, until):
            number, counted, at = _pass_stranger(reader, block, stranger, number, counted)
            stranger = next_stranger(block, at)
            continue
        if not 0 <= found < until:
            return max(at, until)
        start = block.rfind(b"\n", 0, found) + 1
        end = end_of_line(block, found)
        number += block.count(b"\n", counted, start)
        counted = start
        line, at = block[start:end], end + 1
        if _CRI_PART.match(line):
            line, at = _joined(block, line, at)
        facts = reader.facts(line, number, block[max(0, start - NEAR_BYTES) : start], block[end : end + NEAR_BYTES])
        broken = reader.clients_text(number, block, at) if reader.unended else 0
        if broken:
            reader.note_suspicious(line, number, number)
            _note_suspicious(reader, block[at : at + broken], number + 1, number)
            at += broken + 1
        else:
            yield from facts
        at = min(at, len(block))


def _pass_stranger(reader: FactReader, block: bytes, found: int, number: int, counted: int) -> tuple[int, int, int]:
    """Note what may be the text of a client that has not logged in; return the line's number, its begin, and its end.

    Args:
        found: where a line quotes such a client.
        number: of the line that begins at `counted`.
        counted: where that line begins.
    """
    start = block.rfind(b"\n", 0, found) + 1
    number += block.count(b"\n", counted, start)
    until = end_of_stranger(block, start, end_of_line(block, found))
    _note_suspicious(reader, block[start:until], number, number)
    return number, start, min(until + 1, len(block))


def _note_suspicious(reader: FactReader, lines: bytes, number: int, since: int) -> None:
    """Note the lines of a coordinator that a client may have written.

    Args:
        lines: what the client may have written.
        since: number of the line that the client's text begins on.
    """
    for count, each in enumerate(lines.split(b"\n")):
        if _NEEDLE in each:
            reader.note_suspicious(each, number + count, since)


def _found(block: bytes, at: int) -> int:
    """Return the position of the next coordinator's prefix, as text or as numbers; -1 if there is none."""
    found = block.find(_NEEDLE, at)
    match = _AS_NUMBERS.search(block, at, len(block) if found < 0 else found)
    return match.start() if match else found


def _joined(block: bytes, line: bytes, at: int) -> tuple[bytes, int]:
    """Return a line joined with its other parts, where a container runtime has cut it and marked the parts with P."""
    parts = [line]
    while at < len(block):
        end = end_of_line(block, at)
        part = block[at:end]
        head = _CRI_END.match(part)
        if head is None:
            break
        parts.append(part[head.end() :])
        at = end + 1
        if head[0].endswith(b" F "):
            break
    return b"".join(parts), at
