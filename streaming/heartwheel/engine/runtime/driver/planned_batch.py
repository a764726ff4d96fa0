"""The batch that Spark has planned and not finished, as its logs in the checkpoint have it.

Spark writes `offsets/N` before it runs batch N: a version, then JSON a line, one of them the offsets up to which each
partition is read, exclusive. It writes `commits/N` when the batch is done. A batch begins where `offsets/N-1` ended,
the first one where its source wrote down its beginning (`MicroBatchExecution.populateStartOffsets`). The line of the
topic is found by its shape, whatever other sources the query has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from heartwheel.engine.runtime.driver.checkpoint_store import CheckpointStore

OFFSETS: Final = "offsets"
"""The folder in which Spark writes down what each batch reads, before it runs."""

_COMMITS: Final = "commits"
_SOURCES_MAX: Final = 8

READ_AHEAD_MAX: Final = 20_000
"""How many records behind a batch's end Kafka's consumer may unpack with its last ones: the most of a poll, by
`kafka.max.poll.records` of the source (`heartwheel.engine.runtime.driver.query`)."""


class PlannedBatch(NamedTuple):
    """A batch that was planned and not finished.

    Args:
        begins: where it begins in each partition; one that is not in it is read from its own beginning.
        ends: where it ends in each partition, exclusive.
        text: the whole file that plans it.
    """

    number: int
    topic: str
    begins: Mapping[int, int]
    ends: Mapping[int, int]
    text: bytes

    def begin(self, partition: int) -> int:
        """Return where it begins in a partition."""
        return self.begins.get(partition, 0)

    def spans(self) -> dict[int, tuple[int, int]]:
        """Return the first offset and the end, exclusive, of each partition from which it reads something."""
        return {
            partition: (self.begin(partition), end)
            for partition, end in sorted(self.ends.items())
            if end > self.begin(partition)
        }

    def __str__(self) -> str:
        spans = (f"partition {p} offsets {first} to {end - 1}" for p, (first, end) in self.spans().items())
        return f"batch {self.number}, {self.topic} {', '.join(spans) or 'without records'}"


def planned_batch(store: CheckpointStore, topic: str) -> PlannedBatch | None:
    """Read what the newest batch is to do, if it is not finished.

    Returns:
        The batch; `None` if all are finished, there is none, or its file is not in order, which Spark then says itself.

    Raises:
        OSError: the checkpoint cannot be read.
    """
    number = store.highest(OFFSETS)
    if number is None or is_finished(store, number):
        return None
    text = store.read(plan_name(number))
    ends = offsets_in(text, topic)
    if text is None or ends is None:
        return None
    return PlannedBatch(number, topic, _begins(store, number, topic), ends, text)


def plan_name(number: int) -> str:
    """Name the file that plans a batch."""
    return f"{OFFSETS}/{number}"


def is_finished(store: CheckpointStore, number: int) -> bool:
    """Return whether a batch is done.

    Raises:
        OSError: the checkpoint cannot be read.
    """
    return store.read(f"{_COMMITS}/{number}") is not None


def offsets_in(text: bytes | None, topic: str) -> dict[int, int] | None:
    """Find the offsets of a topic in one of Spark's files.

    Returns:
        The offset of each partition; `None` if the file has none of that topic.
    """
    for line in (text or b"").split(b"\n"):
        found = _offsets_of(line, topic)
        if found is not None:
            return found
    return None


def with_end(text: bytes, topic: str, partition: int, end: int) -> bytes:
    """Write a plan again that ends elsewhere in one partition, and is the same in everything else.

    Args:
        end: where it is to end, exclusive.
    """
    lines = text.split(b"\n")
    for number, line in enumerate(lines):
        if _offsets_of(line, topic) is not None:
            entry = json.loads(line)
            entry[topic][str(partition)] = end
            # As Spark writes it, without blanks.
            lines[number] = json.dumps(entry, separators=(",", ":")).encode()
    return b"\n".join(lines)


def _begins(store: CheckpointStore, number: int, topic: str) -> dict[int, int]:
    if number > 0:
        return offsets_in(store.read(plan_name(number - 1)), topic) or {}
    for source in range(_SOURCES_MAX):
        found = offsets_in(store.read(f"sources/{source}/0"), topic)
        if found is not None:
            return found
    return {}


def _offsets_of(line: bytes, topic: str) -> dict[int, int] | None:
    try:
        # A source's file has its version behind a zero byte, on a line of its own or before the JSON.
        entry = json.loads(line)
    except ValueError:
        return None
    found = entry.get(topic) if isinstance(entry, dict) else None
    # The metadata line has objects too, and a topic may be named as one of them is.
    if (
        not isinstance(found, dict)
        or not found
        or not all(name.isdecimal() and isinstance(at, int) for name, at in found.items())
    ):
        return None
    return {int(name): at for name, at in found.items()}
