"""What the example `late_files.py` must find in two runs, whoever runs it; files of devices that beat."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

EXAMPLES = Path(__file__).parents[2] / "examples"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def beat(device: str, minute: float, **more: Any) -> dict[str, Any]:
    """Make one row, some minutes after noon."""
    return {"device": device, "at": (NOON + timedelta(minutes=minute)).isoformat(), **more}


def write(file: Path, *rows: dict[str, Any]) -> None:
    """Write a file of JSON lines."""
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def minutes(rows: list[dict[str, Any]]) -> list[tuple[str, str, float, str | None]]:
    """Return rows as device, event, minute after noon and reason, in the order of time and device."""
    found = [
        (row["device"], row["event"], (row["at"].replace(tzinfo=UTC) - NOON) / timedelta(minutes=1), row["reason"])
        for row in rows
    ]
    return sorted(found, key=lambda row: (row[2], row[0]))


def check_late_files(root: Path, run: Callable[[str, str], str]) -> None:
    """Check that an event that is late by less than ten minutes counts, and that an older one says so.

    Args:
        root: where the files go.
        run: is given the folder of the files and that of the output, and returns what was printed.
    """
    folder, output = root / "beats", root / "out"
    write(folder / "1.json", beat("a", 0), beat("b", 0), beat("b", 20), beat("b", 35))
    run(str(folder), str(output))
    assert minutes(pq.read_table(output).to_pylist()) == [("a", "came", 0, None), ("b", "came", 0, None)]
    write(folder / "2.json", beat("a", 29), beat("b", 80))
    write(folder / "3.json", beat("a", 45))
    later_s = (folder / "2.json").stat().st_mtime + 1
    os.utime(folder / "3.json", (later_s, later_s))
    printed = run(str(folder), str(output))
    assert minutes(pq.read_table(output).to_pylist())[2:] == [
        ("a", "back", 45, "late"),
        ("a", "gone", 59, "timeout"),
        ("b", "gone", 65, "timeout"),
    ]
    assert "|a     |gone |2026-01-01 12:59:00|2026-01-01 12:29:00|timeout|" in printed
