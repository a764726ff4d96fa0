"""What happened to a group, one line an event, from both topics in one order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from heartwheel.live.expiration import Expiration
from heartwheel.live.group_book import GroupEntry
from heartwheel.live.words import count, length
from heartwheel.wire.verdicts import TriggerRow

TIMELINE_MAX: Final = 200
"""Most lines of a timeline."""

_KIND_OF_TYPE: Final[Mapping[str, str]] = {
    "rebalance_triggered": "triggered",
    "rebalance_completed": "completed",
    "group_empty": "empty",
}


def timeline_of(entry: GroupEntry) -> list[dict[str, Any]]:
    """List what happened to a group, newest first: each row of the topics with `time_ms`, `kind` and `text` added.

    Args:
        entry: what is known of it.
    """
    # Of one moment the expiry comes before the rebalance that it triggers (promise P4), and sorting is stable.
    lines = [_expired(each) for each in entry.expirations] + [_changed(row) for row in entry.triggers]
    lines.sort(key=lambda line: line["time_ms"])
    return lines[-TIMELINE_MAX:][::-1]


def _expired(each: Expiration) -> dict[str, Any]:
    reason = each.reason.replace("_", " ")
    text = f"{each.member_id} expired: {reason}, silent for {length(each.silent_ms)}"
    return {**msgspec.structs.asdict(each), "time_ms": each.deadline_ms, "kind": "expired", "text": text}


def _changed(row: TriggerRow) -> dict[str, Any]:
    kind = _KIND_OF_TYPE.get(row.type, row.type)
    return {**msgspec.structs.asdict(row), "kind": kind, "text": _words(row)}


def _words(row: TriggerRow) -> str:
    cause = (row.cause or "unknown cause").replace("_", " ")
    if row.type == "rebalance_triggered":
        waiting = f", waiting for {count(row.awaiting_count, 'member')}" if row.awaiting_count else ""
        return f"Rebalance of generation {row.generation_id} begins: {cause}{waiting}"
    if row.type == "rebalance_completed":
        took = f" after {length(row.duration_ms)}" if row.duration_ms else ""
        return f"Generation {row.generation_id} begins with {count(row.member_count, 'member')}{took}: {cause}"
    return f"Nobody is left at generation {row.generation_id}: {cause}"
