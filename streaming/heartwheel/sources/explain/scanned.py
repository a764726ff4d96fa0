"""Counts of a scan of logs: lines, and lines that could not be used."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

import msgspec

from heartwheel.base.phrases import count

GROUPS_MAX: Final = 50_000
"""Most groups whose names are noted."""

UNKNOWN_MAX: Final = 1_000
"""Most different unknown texts that are kept."""

SUSPICIOUS_MAX: Final = 100
"""Most suspicious lines that are kept; all are counted."""

_WORD: Final = re.compile(r"[\w.:/-]+")
_DIGIT: Final = re.compile(r"\d")
_SHAPE_CHARS: Final = 200
_SHOWN_CHARS: Final = 2_000
_SUSPICIOUS_SHOWN: Final = 5
_SUSPICIOUS_CHARS: Final = 300


class Suspicious(NamedTuple):
    """A line that a client may have written.

    Args:
        file: as it was named.
        since: number of the line that the client's text begins on; the same line if it can be read in two ways.
        text: the line, from the coordinator's prefix on.
    """

    file: str
    line: int
    since: int
    text: str


class Unreadable(NamedTuple):
    """A line of a coordinator that could not be read.

    Args:
        file: as it was named.
    """

    file: str
    line: int
    why: str


class ScannedCounts(msgspec.Struct, kw_only=True):
    """The numbers of a scan, and the lines that its report names; the fields are those of `Scanned`."""

    bytes: int = 0
    lines: int = 0
    coordinator_lines: int = 0
    untimed: int = 0
    coarse: int = 0
    too_long: int = 0
    suspicious: int = 0
    suspicious_lines: list[Suspicious] = []
    unreadable: int = 0
    first_unreadable: Unreadable | None = None
    unknown_lines: int = 0
    zone_assumed: bool = False
    first_ms: int | None = None
    last_ms: int | None = None


class Scanned:
    """Counts of a scan.

    Args:
        suspicious: lines that a client may have written; they have no other effect.
        unreadable: lines of coordinators that could not be read.
        unknown: lines of the coordinator that no pattern knows, by their text without the variable parts: how often,
            and the first of them with its position.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self.lines = 0
        self.coordinator_lines = 0
        self.untimed = 0
        self.coarse = 0
        self.too_long = 0
        self.suspicious = 0
        self.suspicious_lines: list[Suspicious] = []
        self.unreadable = 0
        self.first_unreadable: Unreadable | None = None
        self._unknown_before = 0
        self.unknown: Counter[str] = Counter()
        self.unknown_example: dict[str, tuple[str, str, int]] = {}
        self.client_lines = 0
        """Lines of consumers, in logs without a line of a coordinator."""
        self.others: dict[str, str] = {}
        """Kinds of the logs without a line of a coordinator, by name."""
        self.groups: dict[str, None] = {}
        """The first groups that lines of coordinators name."""
        self.zone_assumed = False
        """Whether a line of a coordinator without a time zone was read, and the user named none."""
        self.first_ms: int | None = None
        self.last_ms: int | None = None

    @property
    def unknown_lines(self) -> int:
        """The number of lines that no pattern matches."""
        return self._unknown_before + self.unknown.total()

    def counts(self) -> ScannedCounts:
        """Return the numbers, and the lines that the report names."""
        values = {name: getattr(self, name) for name in ScannedCounts.__struct_fields__}
        return ScannedCounts(**values | {"suspicious_lines": self.suspicious_lines[:_SUSPICIOUS_SHOWN]})

    def restore(self, counts: ScannedCounts) -> None:
        """Continue an earlier scan, which has counted so much."""
        values = msgspec.structs.asdict(counts)
        self._unknown_before = values.pop("unknown_lines")
        for name, value in values.items():
            setattr(self, name, value)

    def note_unknown(self, text: str, file: str, line: int) -> None:
        """Count a text that no pattern matches."""
        begin = text[: 2 * _SHAPE_CHARS]
        shape = _WORD.sub(lambda word: "#" if _DIGIT.search(word[0]) else word[0], begin)[:_SHAPE_CHARS]
        if shape not in self.unknown and len(self.unknown) >= UNKNOWN_MAX:
            shape = "(others)"
        self.unknown[shape] += 1
        self.unknown_example.setdefault(shape, (text[:_SHOWN_CHARS], file, line))

    def doubts(self) -> list[str]:
        """Return sentences about the coordinators' lines that were ignored, and why; ids in them are not escaped."""
        sentences = []
        if self.first_unreadable is not None:
            file, line, why = self.first_unreadable
            sentences.append(
                f"{count(self.unreadable, 'line')} of coordinators could not be read, the first: {file}:{line}: {why}"
            )
        if self.suspicious:
            sentences.append(f"{count(self.suspicious, 'line')} may be forged by a client, and count for nothing:")
        for each in self.suspicious_lines[:_SUSPICIOUS_SHOWN]:
            why = "can be read in two ways" if each.since == each.line else f"may be forged, line {each.since}"
            sentences.append(f"{each.file}:{each.line} ({why}): {each.text[:_SUSPICIOUS_CHARS]}")
        return sentences

    def note_suspicious(self, line: Suspicious) -> None:
        """Count a line that a client may have written."""
        self.suspicious += 1
        if len(self.suspicious_lines) < SUSPICIOUS_MAX:
            self.suspicious_lines.append(line._replace(text=line.text[:_SHOWN_CHARS]))

    def note_unreadable(self, line: Unreadable) -> None:
        """Count a line that could not be read."""
        self.unreadable += 1
        self.first_unreadable = self.first_unreadable or line

    def note_group(self, group_id: str) -> None:
        """Note that a line names a group."""
        if group_id and len(self.groups) < GROUPS_MAX:
            self.groups[group_id] = None

    def note_time(self, time_ms: int) -> None:
        """Extend the time span of the coordinator's lines."""
        if self.first_ms is None or time_ms < self.first_ms:
            self.first_ms = time_ms
        if self.last_ms is None or time_ms > self.last_ms:
            self.last_ms = time_ms
