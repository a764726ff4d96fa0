"""The mechanics of the wheel: which handle is in which bucket, and how entries are added and removed.

Three columns are indexed by handle: its true deadline, its slot, and its **floor**, one tick before its bucket begins.
A handle may stay in its bucket as long as its deadline is after the floor; so the hot path reads one column and writes
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
    """The handles in their buckets, and the buckets in the order of their first ticks.

    Args:
        geometry: the levels and buckets.
        capacity: the number of handles to make room for.
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
        """Return the handles that must be filed again under new deadlines, including those that are not filed."""
        moves = deadlines <= self.floor[handles]
        if int(deadlines.min()) <= clock_ms:
            # A deadline that has passed is due now, although its bucket may only begin with the next tick.
            moves |= (deadlines <= clock_ms) & (self.where[handles] != OVERDUE_SLOT)
        return handles[moves] if moves.any() else _NOTHING

    def place(self, handles: Ints, now: int, overdue_until: int) -> None:
        """File handles under their deadlines.

        Args:
            handles: distinct, in no bucket.
            now: the present tick; no bucket begins at or before it.
            overdue_until: deadlines up to this go to the overdue bucket, milliseconds.
        """
        if not len(handles):
            return
        deadlines = self.deadline[handles]
        # Overdue handles get a bucket as well, so that the columns keep one length; their slot is overwritten.
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
        """Add a bucket to an empty slot and to the queue."""
        self.buckets[slot] = bucket
        if slot != OVERDUE_SLOT:
            heapq.heappush(self.queue, (bucket.tick, slot))

    def floor_of(self, bucket: Bucket) -> int:
        """Return the deadline, milliseconds, after which a handle may stay in a bucket."""
        return BEFORE_ALL_TIME if bucket.level < 0 else (bucket.tick - 1) * self.geometry.tick_ms

    def leave_one(self, handle: int) -> None:
        """Remove one filed handle from its bucket, as `leave` does for a column."""
        self.buckets[int(self.where[handle])].live -= 1
        self.filed -= 1

    def leave(self, handles: Ints) -> None:
        """Remove distinct, filed handles from their buckets; their entries remain as stale ones."""
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
            The handles of each bucket that had any. The caller must place or forget them.
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
        """Return the first bucket that is not empty; empty ones before it are dropped."""
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
            The remaining entries: each handle that is filed there, once.
        """
        bucket = self.buckets[slot]
        if len(bucket) > bucket.live:
            handles = bucket.entries[self.where[bucket.entries] == slot]
            # There may be more than live ones: a handle that left and came back has its former entry, too.
            bucket.replace(handles if len(handles) == bucket.live else handles[self.last_of_each(handles)])
            self.floor[bucket.entries] = self.floor_of(bucket)
        return bucket.entries

    def last_of_each(self, handles: Ints | Entries) -> NDArray[np.bool_]:
        """Return where each handle occurs for the last time, so that its other entries can be dropped.

        This uses the floors of the handles as a scratch column, which costs no memory: every caller writes them again.
        """
        positions = np.arange(len(handles))
        self.floor[handles] = positions
        last: NDArray[np.bool_] = self.floor[handles] == positions
        return last
