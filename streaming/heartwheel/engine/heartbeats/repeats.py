"""Which heartbeats a worker sends to their shards without their bytes.

`heartwheel.engine.shard.heartbeats` has the rule, and why it is exact. This is the worker's half: a value goes without
its bytes if *this* worker has packed it in an earlier batch of the same query, and not too many batches ago; one that
is no heartbeat of the classic protocol always has them. Of the running batch itself a worker knows nothing: its task
may fail and be done again, also by this worker, or be a second copy that comes too late.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.shard.heartbeats import REMEMBERED_BATCHES

Stamps = NDArray[np.int32]

NEVER_PACKED: Final = 0

ALWAYS_WHOLE: Final = -1
"""The stamp of a value that is always sent with its bytes, and that keeps it."""


class BatchOf(NamedTuple):
    """One batch of one query.

    Args:
        query: a name that no other start of a query has, on whatever checkpoint.
        number: of the batch, rising by one from batch to batch.
    """

    query: str
    number: int


class Repeats:
    """Keeps count of the batches in which a worker has packed each value, by stamps that lie beside the values.

    A stamp is twice the number of the batch, counted from the first one of the query that this worker has seen, and one
    more if the value had gone without its bytes in it: so it may again in that batch.
    """

    def __init__(self) -> None:
        self._query = ""
        self._first = 0
        self._now = 0

    def begin(self, batch: BatchOf | None, stamps: Stamps) -> None:
        """Begin to pack for a batch; what was packed for another query counts for nothing.

        Args:
            batch: which one; `None` if all values are to be sent with their bytes.
            stamps: int32 (values,), of all values that are remembered.
        """
        if batch is None:
            self._now = NEVER_PACKED
            return
        if batch.query != self._query:
            self._query, self._first = batch.query, batch.number
            stamps[stamps != ALWAYS_WHOLE] = NEVER_PACKED
        # A task that outlived its batch may come with an earlier number: it sends all bytes.
        self._now = max(NEVER_PACKED, batch.number - self._first + 1)

    @property
    def stamp(self) -> int:
        """The stamp of a value that was packed now, with its bytes."""
        return 2 * self._now

    def take(self, stamps: Stamps, codes: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which values may go without their bytes, and stamp them.

        Args:
            stamps: int32 (values,), changed in place.
            codes: int32 (n,), the values that are packed now, distinct.
        """
        if not self._now:
            return np.zeros(len(codes), np.bool_)
        last = stamps[codes]
        batch = last >> 1
        earlier = (batch > NEVER_PACKED) & (batch < self._now) & (self._now - batch <= REMEMBERED_BATCHES)
        again = last == self.stamp + 1
        found: NDArray[np.bool_] = earlier | again
        stamps[codes] = np.where(last == ALWAYS_WHOLE, ALWAYS_WHOLE, self.stamp + found)
        return found
