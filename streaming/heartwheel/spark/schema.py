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
    "topic string, key string, value string, id string, type string, time_ms long, "
    "members int, groups int, records long, expired int, triggers int, rejected int, held int, "
    "behind_ms long, standing int, outage_ms long, renewed long, waiting long"
)
"""One record for an output topic, by the topic's logical name.

The columns after `time_ms` are figures for the progress line; they are set in the row of the status topic only.
"""


class StateRow(NamedTuple):
    """The state row of one shard, in the order of `STATE_SCHEMA`.

    Args:
        version: of the row's meaning.
        last_trigger_ms: timestamp of the last batch, epoch ms; -1 before the first.
        clock_ms: up to when every partition is decided, epoch ms; -1 while one of them gave no time.
        members: how many there are.
        groups: likewise.
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


class OutputRow(NamedTuple):
    """One output record, in the order of `OUTPUT`.

    Args:
        topic: its logical name; `None` for a row that only carries figures.
        key: of the record.
        value: JSON.
        id: of the event.
        type: of the event.
        time_ms: when what it tells of happened, epoch ms.
        members: figures, for the progress line alone.
        groups: likewise.
        records: likewise.
        expired: likewise.
        triggers: likewise.
        rejected: likewise.
        held: likewise.
        behind_ms: likewise.
        standing: likewise.
        outage_ms: likewise.
        renewed: likewise.
        waiting: likewise.
    """

    topic: str | None
    key: str
    value: str
    id: str
    type: str
    time_ms: int
    members: int = 0
    groups: int = 0
    records: int = 0
    expired: int = 0
    triggers: int = 0
    rejected: int = 0
    held: int = 0
    behind_ms: int = 0
    standing: int = 0
    outage_ms: int = 0
    renewed: int = 0
    waiting: int = 0
