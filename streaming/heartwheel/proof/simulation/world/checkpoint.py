"""The data that survives a crash: the offset log, the commit log, the versions of the state, and the sink.

They are kept as Spark does it: `offsets/N` is written before batch N runs and has its end offsets and its timestamp;
the state of batch N has version N + 1 and is written task by task; `commits/N` ends the batch. A batch without a commit
is run again from the state before it, with the same offsets and the same timestamp.
"""

from __future__ import annotations

from typing import NamedTuple

from heartwheel.engine.runtime.state.schema import NEW_STATE, StateRow


class Planned(NamedTuple):
    """An entry of the offset log.

    Args:
        starts: first offset of each partition.
        ends: end offset of each partition.
        batch_ms: the batch's timestamp, epoch ms.
    """

    starts: dict[int, int]
    ends: dict[int, int]
    batch_ms: int


class SinkRecord(NamedTuple):
    """A record in the sink.

    Args:
        topic: the output's logical name.
        attempt: the number of attempts of all batches so far.
    """

    topic: str
    value: str
    batch: int
    attempt: int
    shard: int


class Checkpoint:
    """The checkpoint and the sink of a job.

    Args:
        starts: first offsets of a new checkpoint.
    """

    def __init__(self, starts: dict[int, int]) -> None:
        self.offsets: list[Planned] = []
        self.counts: dict[int, int] = {}
        """The number of partitions at each start of the job, ascending, and the first batch planned with it."""
        self.commits = 0
        self.sink: list[SinkRecord] = []
        self._starts = starts
        self._states: dict[tuple[int, int], StateRow] = {}

    @property
    def read(self) -> dict[int, int]:
        """The end offsets of the newest planned batch."""
        return self.offsets[-1].ends if self.offsets else self._starts

    @property
    def unfinished(self) -> bool:
        """Whether the newest planned batch has no commit."""
        return len(self.offsets) > self.commits

    def plan(self, ends: dict[int, int], batch_ms: int) -> None:
        """Write `offsets/N`."""
        self.offsets.append(Planned(self.read, {**self.read, **ends}, batch_ms))

    def state(self, shard: int) -> StateRow:
        """Return the state of a shard after the newest commit."""
        return self._states.get((self.commits, shard), NEW_STATE)

    def state_at(self, batch: int, shard: int) -> StateRow:
        """Return the state of a shard before a batch."""
        return self._states.get((batch, shard), NEW_STATE)

    def put_state(self, shard: int, row: StateRow) -> None:
        """Write the state of a shard after the present batch; a later attempt overwrites it."""
        self._states[self.commits + 1, shard] = row

    def commit(self) -> None:
        """Write `commits/N`."""
        self.commits += 1
