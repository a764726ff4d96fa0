"""One readable line for what the engine decided: who, of which group, why, and how late it was known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.text import Text

from heartwheel.base.phrases import count
from heartwheel.base.plain import plain
from heartwheel.base.wall_clock import time_of_day
from heartwheel.proof.audit.match.pairs import Removal
from heartwheel.readers.live.changes import cause_words
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow
from heartwheel.wire.verdicts import EPOCH_KINDS

_GROUP_WIDTH: Final = 12
_COMPLETED: Final = "rebalance_completed"
_EMPTY: Final = "group_empty"

Known = tuple[TriggerRow, int]
"""A row of the triggers topic, and when it was appended, epoch ms."""


def expiration_line(row: ExpirationRow, known_ms: int) -> Text:
    """Return the line about an expired member.

    Args:
        known_ms: when it was appended there, epoch ms.
    """
    place = f" at {plain(row.client_host)}" if row.client_host else ""
    return Text.assemble(
        _clock(known_ms),
        ("expired    ", "bold red"),
        (f"{plain(row.group_id):<{_GROUP_WIDTH}} ", "bold"),
        f"{plain(row.member_id)}{place}  {_words(row.reason)}, silent for {_seconds(known_ms - row.last_seen_ms)}",
        (f", known {_seconds(known_ms - row.deadline_ms)} late", "dim"),
    )


def removal_line(kafka: Removal, heartwheel: Removal) -> Text:
    """Return the line of a removal that both Kafka's coordinator and the engine have reported."""
    same = heartwheel.reason in kafka.agrees_with
    reasons = _words(kafka.reason) if same else f"{_words(kafka.reason)} / {_words(heartwheel.reason)}"
    return Text.assemble(
        _clock(kafka.time_ms),
        ("removed    ", "bold red" if same else "bold yellow"),
        (f"{plain(kafka.group_id):<{_GROUP_WIDTH}} ", "bold"),
        f"{plain(kafka.member_id)}  {reasons}",
        f"  Kafka {_clock(kafka.time_ms).strip()}.{kafka.time_ms % 1000:03d}",
        f"  heartwheel {heartwheel.time_ms - kafka.time_ms:+d} ms",
        (f", known {_seconds((heartwheel.known_ms or 0) - kafka.time_ms)} after", "dim"),
    )


class RollUp:
    """A filter that makes one line a group of its triggers, however many came at once.

    Rows are held back for one poll: topics are read one by one, so a rebalance may be seen before the expiration that
    caused it, and a trigger before its completion.
    """

    def __init__(self) -> None:
        self._delayed: dict[str, list[Known]] = {}

    def add(self, rows: Iterable[Known]) -> Iterator[Text]:
        """Take what a poll has brought, and return what the one before has.

        Args:
            rows: of the triggers topic, those of a group in order, each with when it was appended, epoch ms.
        """
        ready, self._delayed = self._delayed, {}
        for row in rows:
            group_id = row[0].group_id
            (ready if group_id in ready else self._delayed).setdefault(group_id, []).append(row)
        for group_id in sorted(ready):
            triggers, known = zip(*ready[group_id], strict=True)
            yield _group_line(triggers, known[-1])


def _group_line(rows: Sequence[TriggerRow], known_ms: int) -> Text:
    last = rows[-1]
    word, style = _kind(last)
    return Text.assemble(
        _clock(known_ms),
        (f"{word:<11}", style),
        (f"{plain(last.group_id):<{_GROUP_WIDTH}} ", "bold"),
        f"{_generations(rows)}  {_causes(rows)}",
        (_outlook(last), "dim"),
    )


def _kind(row: TriggerRow) -> tuple[str, str]:
    if row.type == _EMPTY:
        return "empty", "yellow"
    if row.group_kind in EPOCH_KINDS:
        return "epoch", "cyan"
    return ("rebalance", "cyan") if row.is_rebalance else ("presence", "green")


def _generations(rows: Sequence[TriggerRow]) -> str:
    first, last = rows[0], rows[-1]
    if last.group_kind in EPOCH_KINDS:
        return f"epoch {last.generation_id}"
    # A trigger carries the generation that it ends, a completion the one that it begins.
    before = first.generation_id - (first.type != "rebalance_triggered")
    return f"generation {before}" + (f" -> {last.generation_id}" if last.generation_id > before else " ends")


def _causes(rows: Sequence[TriggerRow]) -> str:
    begun = [row for row in rows if row.type != _COMPLETED] or rows
    counts = Counter(map(cause_words, begun))
    return ", ".join(f"{count} x {words}" if count > 1 else words for words, count in counts.items())


def _outlook(row: TriggerRow) -> str:
    if not row.member_count:
        return ""
    if row.awaiting_count:
        return f", waiting for {row.awaiting_count} of {count(row.member_count, 'member')}"
    members = f", {count(row.member_count, 'member')}"
    return members if row.leader is None else f"{members}, leader {plain(row.leader)}"


def _clock(time_ms: int) -> str:
    return f"{time_of_day(time_ms)}  "


def _words(name: str | None) -> str:
    return plain(name or "unknown").replace("_", " ")


def _seconds(duration_ms: int) -> str:
    return f"{duration_ms / 1000:.1f} s"
