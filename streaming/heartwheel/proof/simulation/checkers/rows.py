"""What the job wrote: each verdict as it was written first, and the rejects."""

from __future__ import annotations

from collections import defaultdict
from typing import Final, NamedTuple

import msgspec

from heartwheel.proof.simulation.checkers.read_log import Place
from heartwheel.proof.simulation.world.checkpoint import SinkRecord
from heartwheel.proof.simulation.world.sink import Row, read_reject, read_row
from heartwheel.wire.rejects import Reject

_LIMITS: Final = ("the shard holds ", "the group has ")
"""How the details of rejects begin whose records met a limit of the shard."""


class WrittenRow(NamedTuple):
    """A verdict, and the record of the sink that holds it."""

    row: Row
    written: SinkRecord


class WrittenRows:
    """The sink of a history, decoded.

    Args:
        sink: all of its records, in the order of writing.

    Attributes:
        all: every row of a verdict, repetitions included.
        first: the rows of each group, each id as it was written first.
        rejects: every reject with its record.
        refused: records that met a limit of the shard: only their time counts.
    """

    def __init__(self, sink: list[SinkRecord]) -> None:
        self.all: list[WrittenRow] = []
        self.first: dict[str, list[WrittenRow]] = defaultdict(list)
        self.rejects: list[tuple[Reject, SinkRecord]] = []
        known: set[str] = set()
        for written in sink:
            if (reject := read_reject(written)) is not None:
                self.rejects.append((reject, written))
            elif (row := read_row(written)) is not None:
                self.all.append(WrittenRow(row, written))
                if row.id not in known:
                    known.add(row.id)
                    self.first[row.group_id].append(self.all[-1])
        self.refused: set[Place] = {
            (reject.partition, reject.offset) for reject, _ in self.rejects if reject.detail.startswith(_LIMITS)
        }


def content(row: Row) -> dict[str, object]:
    """Return what must be the same whenever a verdict is written: all but the trigger that decided it."""
    fields = msgspec.structs.asdict(row)
    del fields["detected_ms"]
    fields.pop("lateness_ms", None)
    return fields
