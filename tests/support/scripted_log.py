"""Broker's logs that tests write line by line, at moments of their choice."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scan import Scanned
from heartwheel.wire.explained import ExplainedEvent

START_MS = 1_795_313_510_000
"""2026-11-22 02:11:50 UTC, when scripted logs begin."""

UUID = "9c0f6a3e-1f7b-4c4e-9a55-{:012x}"


def member(client: str, number: int = 1) -> str:
    """Return the id that a broker gives the `number`th member of a client."""
    return f"{client}-{UUID.format(number)}"


def lines_of(*lines: tuple[float, str], broker: int = 1, new: bool = False, zone: str = "") -> str:
    """Write a broker's log of messages at seconds after `START_MS`.

    Args:
        lines: seconds and messages.
        new: whether it is the coordinator of the newer group types that writes.
        zone: what stands behind each time, such as `+0100`.
    """
    prefix = (
        f"[GroupCoordinator id={broker} topic=__consumer_offsets partition=3]"
        if new
        else f"[GroupCoordinator {broker}]:"
    )
    logger = (
        "org.apache.kafka.coordinator.group.GroupMetadataManager" if new else "kafka.coordinator.group.GroupCoordinator"
    )
    return "".join(f"[{stamp(second)}{zone}] INFO {prefix} {text} ({logger})\n" for second, text in lines)


def stamp(second: float) -> str:
    """Write a moment as the stock layout does, in UTC."""
    at = datetime.fromtimestamp(START_MS / 1000 + second, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}"


def preparing(old: int, reason: str, group: str = "g") -> str:
    """Write the line that begins a rebalance of a classic group."""
    began = f"Preparing to rebalance group {group} in state PreparingRebalance with old generation {old}"
    return f"{began} (__consumer_offsets-3) (reason: {reason})"


def stable(number: int, group: str = "g", members: int = 2) -> str:
    """Write the line that ends one."""
    return f"Stabilized group {group} generation {number} (__consumer_offsets-3) with {members} members"


def read(folder: Path, *logs: str) -> tuple[list[str], list[ExplainedEvent], Scanned]:
    """Write logs into a folder, and explain them: their names, the events, and what was counted."""
    names: Sequence[str] = [str(folder / f"broker-{number}.log") for number in range(1, len(logs) + 1)]
    for name, text in zip(names, logs, strict=True):
        Path(name).write_text(text)
    scanned = Scanned()
    return list(names), list(explain_logs(names, scanned, stdin=io.BytesIO())), scanned
