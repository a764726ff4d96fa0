"""What `sessions` was asked for, as plain values that travel to the workers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

GONE: Final = "gone"
CAME: Final = "came"
BACK: Final = "back"
EVENTS: Final = (GONE, CAME, BACK)
"""What a row can say of a key: its session has ended, it is seen for the first time, it is seen again."""

TIMEOUT: Final = "timeout"
"""The reason of a session that ended as its key was silent."""

LATE: Final = "late"
"""The reason of a return that is older than the end of the session before: with it in time there had been no end."""

FIGURES: Final = (
    "alive",
    "closed",
    "events",
    "late",
    "untimed",
    "unkeyed",
    "untimeouted",
    "refused",
    "released",
    "uncarried",
    "waiting",
)
"""What a batch adds to the observed metrics, in this order; sums over the shards."""


HEAP_PART: Final = 24
"""Which part of a JVM's heap the state's text may have, and the events that wait likewise.

Spark keeps two versions of the state, and has some eight copies of what a running task reads and writes: with as many
shards as cores a heap is full at a tenth of it (`tests/benchmarks/sessions_scale.py`).
"""

BYTES_MAX: Final = 512 << 20
"""Most bytes of one shard, whatever the heap: Spark has no text of 2 GiB."""


def bytes_of_shard(heap: str, shards: int) -> int:
    """Return how many bytes the state of a shard may have.

    Args:
        heap: of the JVM with the state, as Spark has it: `1g`, `512m`, or a number of MiB.
        shards: how many there are; one JVM may have them all.
    """
    found = re.fullmatch(r"(\d+)([kmgtp]?)b?", heap.strip().lower())
    size = int(found[1]) << 10 * " kmgtp".index(found[2] or "m") if found else 1 << 30
    return min(BYTES_MAX, size // HEAP_PART // shards)


DURATION_MAX_MS: Final = 36_525 * 86_400_000
"""The longest timeout, and the longest of all other durations, ms: with it no deadline is beyond the year 9999."""


@dataclass(frozen=True, kw_only=True)
class SessionsConfig:
    """The configuration of one query.

    Args:
        slots: the grouping key of each shard.
        shape: the columns by name and type; a checkpoint keeps those that it was begun with.
        keys: how many key columns there are.
        carry: how many columns are carried.
        event_time: whether rows bring their time; else it is that of the batch.
        timeout_ms: of every key, ms; `None` if each row brings its own.
        whole: whether all rows are there at once: a DataFrame that is not streaming.
        wait_ms: how far the clock stays behind the newest event, ms.
        idle_ms: after how much running time without a row a partition is left out, ms.
        outage_ms: from what length on a silence of all keys is an outage, ms; `None` for never.
        forget_ms: how long after its end a key is remembered, ms.
        emit: which of `EVENTS` become rows.
        keys_max: most keys of a shard.
        bytes_max: most bytes of the text that a shard's keys and carried values become, and of the keys and carried
            values of its waiting events.
        waiting_max: most events of a shard that wait for its clock.
    """

    slots: tuple[int, ...]
    shape: str
    keys: int
    carry: int
    event_time: bool
    timeout_ms: int | None
    whole: bool = False
    wait_ms: int = 0
    idle_ms: int = 30_000
    outage_ms: int | None = None
    forget_ms: int = 7 * 86_400_000
    emit: frozenset[str] = frozenset(EVENTS)
    keys_max: int = 2_000_000
    bytes_max: int = BYTES_MAX
    waiting_max: int = 1_000_000

    @property
    def shards(self) -> int:
        """How many shards there are."""
        return len(self.slots)
