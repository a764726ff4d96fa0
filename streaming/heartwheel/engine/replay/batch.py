"""Batches of a log: requests collected into the packs that a shard applies."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.replay.lines import Request
from heartwheel.engine.shard.pack import Bodies, Pack
from heartwheel.wire.partitioner import shard_of

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]


class ReplayedBatch:
    """A batch of requests.

    Args:
        shards: how many shards the groups are spread over.
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._number = 0
        self._clear()

    def __len__(self) -> int:
        return len(self._entry)

    def add(self, t_ms: int, request: Request) -> None:
        """Append a request to the batch.

        Args:
            t_ms: when it arrived, epoch ms.
            request: what was asked.
        """
        if request.batch != self._number:
            request.batch = self._number
            request.entry = len(self._requests)
            self._requests.append(request)
        self._entry.append(request.entry)
        self._t_ms.append(t_ms)

    def take(self) -> list[tuple[int, Pack]]:
        """Return the batch's packs and empty it.

        Returns:
            The packs, each with the number of its shard.
        """
        requests, entry = self._requests, np.array(self._entry, np.intp)
        t_ms = np.array(self._t_ms, np.int64)
        self._clear()
        if not len(entry):
            return []
        entry, t_ms = _in_time_order(requests, entry, t_ms)
        shard = np.array([shard_of(request.event.group_id, self._shards) for request in requests])
        return [
            (number, _pack(requests, np.flatnonzero(shard == number), entry, t_ms))
            for number in np.unique(shard).tolist()
        ]

    def _clear(self) -> None:
        self._number += 1
        self._requests: list[Request] = []
        self._entry: list[int] = []
        self._t_ms: list[int] = []


def _in_time_order(requests: list[Request], entry: Rows, t_ms: Ints) -> tuple[Rows, Ints]:
    """Sort a batch by time, and keep the order within each group.

    Where a group's own times step back they are kept: the rules raise them to the group's newest, unless they have
    forgotten the group meanwhile. Groups do not depend on each other, so that changes no verdict.
    """
    if (t_ms[1:] >= t_ms[:-1]).all():
        return entry, t_ms
    numbers: dict[str, int] = {}
    group_of = np.array([numbers.setdefault(request.event.group_id, len(numbers)) for request in requests])
    group = group_of[entry]
    by_group = np.argsort(group, kind="stable")
    newest = np.empty_like(t_ms)
    starts = np.flatnonzero(np.diff(group[by_group], prepend=-1))
    for rows in np.split(by_group, starts[1:]):
        newest[rows] = np.maximum.accumulate(t_ms[rows])
    order = np.argsort(newest, kind="stable")
    return entry[order], t_ms[order]


def _pack(requests: list[Request], mine: Rows, entry: Rows, t_ms: Ints) -> Pack:
    """Pack the records of some of the entries, ascending in `mine`; they count as records of one partition."""
    rank = np.full(len(requests), -1, np.intp)
    rank[mine] = np.arange(len(mine))
    rows = np.flatnonzero(rank[entry] >= 0)
    marks, bodies = zip(*(requests[number].encoded() for number in mine.tolist()), strict=True)
    ends = np.fromiter(accumulate(map(len, bodies)), np.int64, len(mine))
    values = Bodies(memoryview(b"".join(bodies)), ends)
    return Pack(0, np.array(marks, np.int64), values, rank[entry[rows]], t_ms[rows], rows.astype(np.int64))
