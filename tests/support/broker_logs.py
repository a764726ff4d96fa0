"""Logs of brokers for tests: one of a real broker with the truth about its clients, and a judge that knows it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from heartwheel.sources.explain.history import History
from heartwheel.sources.explain.layouts import Layout
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.explain.opened_log import decoded
from heartwheel.sources.explain.order import in_order
from heartwheel.sources.explain.scan import FactReader, Scanned, scan
from heartwheel.wire.explained import ExplainedEvent, Happened

REAL: Final = Path(__file__).parents[1] / "explain" / "logs" / "3.9.1"
"""A log of Kafka 3.9.1, what was done to its clients, and what must follow from that."""

OUT: Final = {
    Happened.EXPIRED,
    Happened.PENDING_EXPIRED,
    Happened.REMOVED_AT_REBALANCE,
    Happened.SYNC_TIMEOUT,
    Happened.REVOCATION_TIMEOUT,
    Happened.POLL_TIMEOUT,
    Happened.LEFT,
    Happened.TEMPORARILY_LEFT,
    Happened.REPLACED,
}
"""Kinds in which a membership ended."""


def explained(
    *logs: bytes | str, zone: LocalZone | None = None, scanned: Scanned | None = None
) -> list[ExplainedEvent]:
    """Explain logs that are given by their text; `log0`, `log1` and so on are their names."""
    names = [f"log{number}" for number in range(len(logs))]
    counts = scanned or Scanned()
    layout = Layout(zone)

    def facts() -> Iterable[Any]:
        for number, log in enumerate(logs):
            raw = io.BytesIO(log.encode() if isinstance(log, str) else log)
            yield from scan(decoded(raw, names[number]), FactReader(names[number], number, layout, counts), counts)

    return list(History(names).explain(in_order(facts())))


def expectations() -> list[dict[str, Any]]:
    """Read what must be found in the real log."""
    return [json.loads(line) for line in (REAL / "expected.jsonl").read_text().splitlines()]


def judge(events: Sequence[ExplainedEvent], expected: Sequence[dict[str, Any]], *, error_ms: int = 0) -> list[str]:
    """Hold events against what must be found: everything, in its window of time, and nothing else.

    Args:
        expected: rows of an `expected.jsonl`.
        error_ms: how far a time may be off, for layouts by the second.

    Returns:
        What is wrong, in words.
    """
    wrong: list[str] = []
    used: set[int] = set()
    for row in expected:
        found = [event for event in events if _is(event, row, error_ms)]
        used.update(map(id, found))
        if len(found) != 1:
            wrong.append(f"found {len(found)} times: {row}")
    extra = [event for event in events if event.kind in OUT and id(event) not in used]
    wrong += [f"invented: {event.kind} {event.group_id} {event.member_id} at {event.time_ms}" for event in extra]
    return wrong


def _is(event: ExplainedEvent, row: dict[str, Any], error_ms: int) -> bool:
    if (event.kind, event.group_id) != (row["kind"], row["group"]):
        return False
    if not row["from_ms"] - error_ms <= event.time_ms <= row["to_ms"] + error_ms:
        return False
    if row["kind"] == "rebalance":
        return (
            event.generation_id == row["generation"]
            and (event.duration_ms or 0) >= row.get("min_duration_ms", 0) - error_ms
            and set(row.get("blocked_by", ())) <= set(event.blocked_by)
        )
    return event.member_id == row["member_id"] and row.get("reason_has", "") in event.reason_text
