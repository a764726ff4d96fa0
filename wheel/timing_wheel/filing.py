"""The mechanics of the wheel: which handle is in which bucket, and how entries get there and away.

Three columns are indexed by handle: its true deadline, its slot, and its **floor**, one tick before its bucket begins.
A handle may stay where it is as long as its deadline is after the floor; so the hot path reads one column and writes
another.
"""

from __future__ import annotations

import heapq
from typing import Final

import numpy as np
from numpy.typing import NDArray

from timing_wheel.bucket import Bucket, Entries
from timing_wheel.columns import NEVER, Ints
from timing_wheel.geometry import NOT_FILED, OVERDUE_SLOT, Geometry

BEFORE_ALL_TIME: Final = -(2**63)
"""First tick, and floor, of the overdue bucket."""

_NOTHING: Final = np.empty(0, np.int64)


class Filing:
    """Keep handles in buckets, and buckets in the order in which they begin.

    Args:
        geometry: where a deadline belongs.
        capacity: how many handles to make room for.
    """

    def __init__(self, geometry: Geometry, capacity: int) -> None:
        self.geometry = geometry
        self.filed = 0
        self.buckets: dict[int, Bucket] = {}
        self.queue: list[tuple[int, int]] = []
        self.deadline = np.full(capacity, NEVER, np.int64)
        self.floor = np.full(capacity, NEVER, np.int64)
        self.where = np.full(capacity, NOT_FILED, np.int16)

    def make_room(self, capacity: int) -> None:
        """Grow the columns to at least `capacity` handles, by doubling."""
        if capacity > len(self.where):
            missing = max(capacity, 2 * len(self.where)) - len(self.where)
            self.deadline = np.concatenate((self.deadline, np.full(missing, NEVER, np.int64)))
            self.floor = np.concatenate((self.floor, np.full(missing, NEVER, np.int64)))
            self.where = np.concatenate((self.where, np.full(missing, NOT_FILED, np.int16)))

    def misplaced(self, handles: Ints, deadlines: Ints, clock_ms: int) -> Ints:
        """Find the handles that cannot stay where they are under new deadlines, those not filed among them."""
        moves = deadlines <= self.floor[handles]
        if int(deadlines.min()) <= clock_ms:
            # A deadline that has passed is due now, although its bucket may begin with the next tick only.
            moves |= (deadlines <= clock_ms) & (self.where[handles] != OVERDUE_SLOT)
        return handles[moves] if moves.any() else _NOTHING

    def place(self, handles: Ints, now: int, overdue_until: int) -> None:
        """File handles under their deadlines.

        Args:
            handles: distinct, in no bucket.
            now: the tick to file relative to; no bucket begins at or before it.
            overdue_until: deadlines up to here go to the overdue bucket, milliseconds.
        """
        if not len(handles):
            return
        deadlines = self.deadline[handles]
        # Overdue ones get some bucket as well, so that the columns stay whole; their slot is overruled.
        levels, virtual_ids = self.geometry.locate(self.geometry.ticks_of(deadlines), now)
        slots = self.geometry.slots_of(levels, virtual_ids)
        if int(deadlines.min()) <= overdue_until:
            slots[deadlines <= overdue_until] = OVERDUE_SLOT
        slots = slots.astype(np.int16)
        order = np.argsort(slots, kind="stable")
        slots, handles = slots[order], handles[order]
        starts = np.concatenate(([0], np.flatnonzero(np.diff(slots)) + 1))
        ends = np.append(starts[1:], len(slots))
        heads = order[starts]
        self.where[handles] = slots
        for slot, level, virtual_id, start, end in zip(
            slots[starts].tolist(),
            levels[heads].tolist(),
            virtual_ids[heads].tolist(),
            starts.tolist(),
            ends.tolist(),
            strict=True,
        ):
            self._append(slot, level, virtual_id, handles[start:end])
        self.filed += len(handles)

    def place_one(self, handle: int, now: int, overdue_until: int) -> None:
        """File one handle that is in no bucket, as `place` does for a column."""
        deadline = int(self.deadline[handle])
        level, virtual_id = self.geometry.locate_one(self.geometry.ticks_of(deadline), now)
        slot = OVERDUE_SLOT if deadline <= overdue_until else self.geometry.slot_of(level, virtual_id)
        bucket = self._bucket(slot, level, virtual_id)
        bucket.append_one(handle)
        self.where[handle] = slot
        self.floor[handle] = self.floor_of(bucket)
        self.filed += 1
        if bucket.crowded:
            self.drop_stale(slot)

    def _append(self, slot: int, level: int, virtual_id: int, handles: Ints) -> None:
        bucket = self._bucket(slot, level, virtual_id)
        bucket.append(handles.astype(np.int32))
        self.floor[handles] = self.floor_of(bucket)
        if bucket.crowded:
            self.drop_stale(slot)

    def _bucket(self, slot: int, level: int, virtual_id: int) -> Bucket:
        bucket = self.buckets.get(slot)
        if bucket is None:
            overdue = slot == OVERDUE_SLOT
            tick = BEFORE_ALL_TIME if overdue else virtual_id * self.geometry.spans[level]
            bucket = Bucket(-1 if overdue else level, 0 if overdue else virtual_id, tick)
            self.add(slot, bucket)
        return bucket

    def add(self, slot: int, bucket: Bucket) -> None:
        """Take a bucket into an empty slot, and into the queue."""
        self.buckets[slot] = bucket
        if slot != OVERDUE_SLOT:
            heapq.heappush(self.queue, (bucket.tick, slot))

    def floor_of(self, bucket: Bucket) -> int:
        """Tell the deadline, milliseconds, after which a handle may stay in a bucket."""
        return BEFORE_ALL_TIME if bucket.level < 0 else (bucket.tick - 1) * self.geometry.tick_ms

    def leave_one(self, handle: int) -> None:
        """Take one filed handle out of its bucket, as `leave` does for a column."""
        self.buckets[int(self.where[handle])].live -= 1
        self.filed -= 1

    def leave(self, handles: Ints) -> None:
        """Take distinct, filed handles out of their buckets; their entries stay behind as stale."""
        counts = np.bincount(self.where[handles])
        for slot in np.flatnonzero(counts).tolist():
            self.buckets[slot].live -= int(counts[slot])
        self.filed -= len(handles)

    def forget(self, handles: Ints | int) -> None:
        """Mark handles as not filed."""
        self.deadline[handles] = NEVER
        self.floor[handles] = NEVER
        self.where[handles] = NOT_FILED

    def flush(self, now: int) -> list[Ints]:
        """Empty the overdue bucket and every bucket that begins at or before a tick, in this order.

        Returns:
            The handles of each bucket that had any. They are neither filed nor forgotten: place or forget them next.
        """
        flushed = []
        if OVERDUE_SLOT in self.buckets:
            flushed.append(self._take(OVERDUE_SLOT))
        while self.queue and self.queue[0][0] <= now:
            flushed.append(self._take(heapq.heappop(self.queue)[1]))
        return [handles for handles in flushed if len(handles)]

    def _take(self, slot: int) -> Ints:
        handles = self.drop_stale(slot)
        del self.buckets[slot]
        self.filed -= len(handles)
        return handles.astype(np.int64)

    def earliest(self) -> Bucket | None:
        """Find the bucket that begins first and is not empty; empty ones before it are dropped."""
        overdue = self.buckets.get(OVERDUE_SLOT)
        if overdue is not None and overdue.live:
            return overdue
        while self.queue:
            bucket = self.buckets[self.queue[0][1]]
            if bucket.live:
                return bucket
            del self.buckets[heapq.heappop(self.queue)[1]]
        return None

    def drop_stale(self, slot: int) -> Entries:
        """Drop the stale entries of a bucket.

        Returns:
            What is left: each handle that is filed there, once.
        """
        bucket = self.buckets[slot]
        if len(bucket) > bucket.live:
            handles = bucket.entries[self.where[bucket.entries] == slot]
            # More than are live: a handle went away and came back while its old entry was still here.
            bucket.replace(handles if len(handles) == bucket.live else handles[self.last_of_each(handles)])
            self.floor[bucket.entries] = self.floor_of(bucket)
        return bucket.entries

    def last_of_each(self, handles: Ints | Entries) -> NDArray[np.bool_]:
        """Tell where each handle comes for the last time, so that the others can be dropped.

        It leaves their floors scrambled, as a scratch column that costs no memory: every caller writes them anew.
        """
        positions = np.arange(len(handles))
        self.floor[handles] = positions
        last: NDArray[np.bool_] = self.floor[handles] == positions
        return last
