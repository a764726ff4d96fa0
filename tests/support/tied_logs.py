"""Logs in which several timers of a group end in one millisecond, and what Kafka decides on them.

Times are ms after `START_MS`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from heartwheel.proof.audit.derived import Derived
from heartwheel.wire.event_codec import encode_event
from heartwheel.wire.events import Event, EventType, Protocol
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow, row_of
from heartwheel.wire.verdicts import Verdict, topic_of

START_MS: Final = 1_800_000_000_000

Decided = tuple[int, str, str]
"""When, what, and about whom or in which words."""

_FOLDER: Final = Path(__file__).parents[1] / "answered_logs"


def lines_of(name: str) -> list[bytes]:
    """Read one of the small logs by the beginning of its name."""
    (path,) = _FOLDER.glob(f"{name}-*.jsonl")
    return path.read_bytes().splitlines()


def line(t_ms: int, event: Event) -> bytes:
    """Write an event as a line of a log."""
    return msgspec.json.encode({"t_ms": START_MS + t_ms} | json.loads(encode_event(event)))


def join(group: str, who: str, session_ms: int, rebalance_ms: int, *, metadata: str = "", first: bool = True) -> Event:
    """Ask to join, for the first time with a version that makes a member at once, or again."""
    return Event(
        type=EventType.JOIN,
        group_id=group,
        member_id="" if first else who,
        assigned_member_id=who if first else None,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        protocol_type="consumer",
        protocols=(Protocol("range", metadata),),
        api_version=3,
    )


def ask(kind: EventType, group: str, who: str, generation: int, **more: Any) -> Event:
    """Send a heartbeat, a sync or a commit."""
    return Event(type=kind, group_id=group, member_id=who, generation_id=generation, **more)


def row_in_short(row: ExpirationRow | TriggerRow) -> Decided:
    """Return a row in short."""
    if isinstance(row, ExpirationRow):
        return row.deadline_ms - START_MS, row.reason, row.member_id
    return row.time_ms - START_MS, row.type, row.reason


def rows_of(verdicts: list[Verdict]) -> list[Decided]:
    """Return the rows of verdicts in short."""
    return [row_in_short(row_of(v, shard=0, detected_ms=0)) for v in verdicts if topic_of(v) is not None]


def derived_rows(derived: list[Derived]) -> list[Decided]:
    """Say the same of what the audit derived."""
    return [
        (one.time_ms - START_MS, str(one.facts["reason"]), str(one.facts["member_id"]))
        if one.type == "expired"
        else (one.time_ms - START_MS, one.type, str(one.facts["reason"]))
        for one in derived
    ]


def adding(who: str) -> str:
    """Give the words for a new member."""
    return f"Adding new member {who} with group instance id null; client reason: not provided"


def stands(generation: int, members: int, group: str = "g") -> str:
    """Give the words for a completed join phase."""
    return f"Stabilized group {group} generation {generation} with {members} members."


def is_empty(generation: int, group: str = "g") -> str:
    """Give the words for a group without members."""
    return f"Group {group} with generation {generation} is now empty."


def expires(who: str) -> str:
    """Give the words for a rebalance that an expired session triggers."""
    return f"removing member {who} on heartbeat expiration."


def ids_of_six() -> list[str]:
    """Name the six members of log 1c in the order in which they join."""
    return [f"m{n}-00000000-0000-0000-0000-00000000000{n}" for n in range(6)]


def _six_end_together() -> list[Decided]:
    ids = ids_of_six()
    in_javas_order = [ids[n] for n in (3, 2, 4, 0, 5, 1)]
    first, *others = in_javas_order
    return [
        (0, "rebalance_triggered", adding(ids[0])),
        (6_000, "rebalance_completed", stands(1, 6)),
        (16_000, "session_timeout", first),
        (16_000, "rebalance_triggered", expires(first)),
        *((16_000, "session_timeout", who) for who in others),
        (16_000, "group_empty", is_empty(2)),
    ]


TIES: Final[dict[str, tuple[int, list[Decided]]]] = {
    "1a": (
        60_000,
        [
            (0, "rebalance_triggered", adding("A")),
            (6_000, "rebalance_completed", stands(1, 2)),
            (16_000, "session_timeout", "A"),
            (16_000, "rebalance_triggered", expires("A")),
            (26_000, "rebalance_timeout", "B"),
            (26_000, "group_empty", is_empty(2)),
        ],
    ),
    "1b": (
        12_000,
        [
            (0, "rebalance_triggered", adding("A")),
            (5_000, "rebalance_completed", stands(1, 2)),
            (6_500, "rebalance_triggered", adding("C")),
            (11_500, "session_timeout", "A"),
            (11_500, "rebalance_completed", stands(2, 2)),
        ],
    ),
    "1c": (60_000, _six_end_together()),
}
"""The logs whose ties the rules decide alone: the clock at the end, and what is decided by then."""
