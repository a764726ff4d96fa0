"""The schemas of the job: the state row, which stays the same for ever, and the rows between the operators."""

from __future__ import annotations

from typing import Final

STATE_SCHEMA: Final = "version int, last_trigger_ms long, clock_ms long, members int, groups int, blob string"
"""The state of one shard.

Spark refuses a checkpoint whose state schema differs, so this never changes: what changes is inside `blob`, which has a
version of its own. Scalars and one string only: array and map columns of a state crash Spark 4.3.0's Python worker.
"""

STATE_VERSION: Final = 1
"""The version of the state row's meaning."""

PACKED: Final = "slot int, rejected boolean, payload binary"
"""One pack or one list of rejects on its way to its shard; a tick is a row without payload."""

OUTPUT: Final = (
    "topic string, key string, value string, id string, type string, time_ms long, "
    "members int, groups int, records long, expired int, triggers int, rejected int, held int"
)
"""One record for an output topic, by the topic's logical name.

The columns after `time_ms` are figures for the progress line; they are set in the row of the status topic only.
"""

OUTPUT_COLUMNS: Final = tuple(column.split()[0] for column in OUTPUT.split(", "))
"""The names of the columns of `OUTPUT`."""
