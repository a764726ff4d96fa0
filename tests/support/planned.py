"""A checkpoint as Spark leaves it when a batch has ended the job: planned, and not finished."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TOPIC = "consumer-heartbeats"
METADATA: dict[str, Any] = {"batchWatermarkMs": 0, "batchTimestampMs": 1_700_000_000_000, "conf": {"a.b": "2"}}


def plan_text(ends: Mapping[int, int], *, topic: str = TOPIC) -> bytes:
    """Write what Spark writes to `offsets/N`, with another source before and one behind that of Kafka."""
    offsets = json.dumps({topic: {str(partition): end for partition, end in ends.items()}}, separators=(",", ":"))
    lines = ("v1", json.dumps(METADATA, separators=(",", ":")), '{"offset":7,"timestamp":1}', offsets, "12")
    return "\n".join(lines).encode()


def write_plan(checkpoint: Path, number: int, ends: Mapping[int, int], *, finished: bool, topic: str = TOPIC) -> None:
    """Plan a batch, with the checksum that Hadoop's file system leaves beside the file."""
    for folder in ("offsets", "commits"):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
    (checkpoint / "offsets" / str(number)).write_bytes(plan_text(ends, topic=topic))
    (checkpoint / "offsets" / f".{number}.crc").write_bytes(b"crc")
    if finished:
        finish_plan(checkpoint, number)


def finish_plan(checkpoint: Path, number: int) -> None:
    """Commit a batch."""
    (checkpoint / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def write_beginning(checkpoint: Path, begins: Mapping[int, int], *, source: int = 0) -> None:
    """Write where the source begins, as Spark's Kafka source does."""
    folder = checkpoint / "sources" / str(source)
    folder.mkdir(parents=True)
    begin = json.dumps({TOPIC: {str(partition): offset for partition, offset in begins.items()}})
    (folder / "0").write_bytes(b"\0v1\n" + begin.encode())
