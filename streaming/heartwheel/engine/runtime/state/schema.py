"""The schemas of the job: the state row, which stays the same for ever, and the rows between the operators."""

from __future__ import annotations

from typing import Final, NamedTuple

STATE_SCHEMA: Final = "version int, last_trigger_ms long, clock_ms long, members int, groups int, blob string"
"""The state of one shard.

Spark refuses a checkpoint whose state schema differs, so this never changes: what changes is inside `blob`, which has a
version of its own. Scalars and one string only: array and map columns of a state crash Spark 4.3.0's Python worker.
"""

STATE_VERSION: Final = 2
"""The version of the state row's meaning."""

PACKED: Final = "slot int, kind int, payload binary"
"""One pack, one list of rejects or the readings of a task on their way to a shard (`packer.PayloadKind`)."""

OUTPUT: Final = (
    "topics array<string>, keys array<string>, vals array<string>, ids array<string>, types array<string>, "
    "times array<string>, figures array<bigint>"
)
"""Some records for output topics, an array for each of their parts; in one row of a shard its `output.ProgressFigures`.

A row for each record would cost Python and the JVM more than the record does, so there are many in one (`output.rows`).
"""


class StateRow(NamedTuple):
    """The state row of one shard, in the order of `STATE_SCHEMA`.

    Args:
        version: of the row's meaning.
        last_trigger_ms: timestamp of the last batch, epoch ms; -1 before the first.
        clock_ms: up to when every partition is decided, epoch ms; -1 while one of them gave no time.
        blob: the shard's state, in a format of its own.
    """

    version: int
    last_trigger_ms: int
    clock_ms: int
    members: int
    groups: int
    blob: str


NEW_STATE: Final = StateRow(STATE_VERSION, -1, -1, 0, 0, "")
"""The state row of a shard that was never called."""
