"""The hierarchical timing wheel: integer handles filed under deadlines, arrays in and arrays out.

With the default geometry, a tick of 100 ms and 20 buckets per level, the levels are:

| level | a bucket spans  | the level covers     |
|-------|-----------------|----------------------|
| 0     | 100 ms          | 2 s                  |
| 1     | 2 s             | 40 s                 |
| 2     | 40 s            | 13 min 20 s          |
| 3     | 13 min 20 s     | 4 h 26 min 40 s      |
| 4     | 4 h 26 min 40 s | 3 d 16 h 53 min 20 s |

and so on, on demand, until all deadlines up to `TIME_MS_MAX` are covered. A worked example:

>>> wheel = TimingWheel(tick_ms=100, wheel_size=20)
>>> wheel.file([0, 1, 2], [250, 45_000, 250])   # 250 rounds up to tick 3; 45 s is on level 2, whose buckets span 40 s
>>> [(level.level, level.entries) for level in wheel.occupancy()]
[(0, 2), (1, 0), (2, 1)]
>>> wheel.touch([2], [90_000])                  # one write: the entry stays in its bucket ...
>>> wheel.advance(299).tolist(), wheel.advance(300).tolist()
([], [0])
>>> wheel.deadline_of(2), wheel.stats.moves     # ... and moved once, when its bucket was flushed
(90000, 1)
>>> wheel.next_expiration_ms()                  # handle 1: its bucket is checked when it begins
40000
>>> wheel.advance(44_999).tolist(), wheel.advance(45_000).tolist()
([], [1])
>>> len(wheel), wheel.advance(90_000).tolist(), len(wheel)
(1, [2], 0)
"""

from __future__ import annotations

from operator import index
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from timing_wheel import invariants
from timing_wheel.columns import HANDLE_MAX, NEVER, TIME_MS_MAX, Ints, as_deadlines, as_handles
from timing_wheel.figures import LevelOccupancy, WheelStats, occupancy_of
from timing_wheel.filing import Filing
from timing_wheel.geometry import NOT_FILED, OVERDUE_SLOT, Geometry
from timing_wheel.ordering import sort_by_deadline
from timing_wheel.snapshot import WheelSnapshot, refill, take, verify


class TimingWheel:
    """A timing wheel: handles filed under deadlines, and returned as the clock reaches them.

    The first `advance` whose clock reaches a handle's deadline **rounded up to the tick** returns the handle: never
    early, and late by less than a tick. A handle that is armed at or after its deadline is returned by the next
    `advance`.

    Re-arming to a later deadline is one write (the *lazy re-arm*): the entry stays in its bucket, and is filed again
    under the true deadline when that bucket is flushed. So a heartbeat costs no move, and a silence at most one per
    bucket. An entry whose handle was filed elsewhere is *stale*: it remains until its bucket is flushed or crowded.

    Args:
        tick_ms: width of a bucket of the lowest level, milliseconds.
        wheel_size: buckets per level.
        start_ms: the first clock, milliseconds.
        capacity: the number of handles to make room for; the arrays grow as needed.

    Raises:
        ValueError: the geometry is not valid, or the start is out of range.
    """

    def __init__(self, *, tick_ms: int = 100, wheel_size: int = 20, start_ms: int = 0, capacity: int = 0) -> None:
        if not 0 <= start_ms <= TIME_MS_MAX:
            raise ValueError(f"start_ms is {start_ms}; a clock must be in 0..{TIME_MS_MAX}")
        self._filing = Filing(Geometry(tick_ms, wheel_size), capacity)
        self._clock_ms = index(start_ms)
        self._stats = WheelStats()

    def __len__(self) -> int:
        """Return the number of filed handles."""
        return self._filing.filed

    @property
    def clock_ms(self) -> int:
        """The last clock the wheel was advanced to, milliseconds."""
        return self._clock_ms

    @property
    def geometry(self) -> Geometry:
        """The arithmetic of its levels."""
        return self._filing.geometry

    @property
    def stats(self) -> WheelStats:
        """The counters since the wheel's creation."""
        return self._stats

    @property
    def overdue(self) -> int:
        """The number of handles that were armed at or after their deadline, and wait for the next `advance`."""
        bucket = self._filing.buckets.get(OVERDUE_SLOT)
        return bucket.live if bucket else 0

    def deadlines(self) -> Ints:
        """Return the deadlines of all handles.

        Returns:
            A read-only view indexed by handle, milliseconds, `NEVER` where a handle is not filed. It covers the largest
            handle that was ever filed, and is out of date once a larger one is filed.
        """
        view = self._filing.deadline.view()
        view.flags.writeable = False
        return view

    def deadline_of(self, handle: int) -> int:
        """Return one handle's deadline in milliseconds, `NEVER` if it is not filed."""
        column = self._filing.deadline
        return int(column[handle]) if 0 <= handle < len(column) else NEVER

    def file(self, handles: ArrayLike, deadlines_ms: ArrayLike) -> None:
        """Arm handles, whether they are filed already or not.

        Args:
            handles: integers, small and dense: arrays are indexed by them. If one occurs twice, the last one counts.
            deadlines_ms: one deadline per handle, milliseconds; one that has passed is due at the next `advance`.

        Raises:
            TypeError: a column does not consist of integers.
            ValueError: the columns differ in length, or a value is out of range.
        """
        column = as_handles(handles)
        deadlines = as_deadlines(deadlines_ms, length=len(column))
        if not len(column):
            return
        self._filing.make_room(int(column.max()) + 1)
        misplaced = self._filing.misplaced(column, deadlines, self._clock_ms)
        self._filing.deadline[column] = deadlines
        self._refile(misplaced)

    def file_one(self, handle: int, deadline_ms: int) -> None:
        """Arm one handle, as `file` does for a column, but ten times faster than a column of one.

        Args:
            handle: the handle, filed already or not.
            deadline_ms: its deadline, milliseconds.

        Raises:
            TypeError: a value is not an integer.
            ValueError: a value is out of range.
        """
        handle, deadline_ms = index(handle), index(deadline_ms)
        if not 0 <= handle <= HANDLE_MAX:
            raise ValueError(f"handle {handle} is out of range, it must be in 0..{HANDLE_MAX}")
        if deadline_ms > TIME_MS_MAX:
            raise ValueError(f"deadline {deadline_ms} ms is out of range, at most {TIME_MS_MAX}")
        filing = self._filing
        filing.make_room(handle + 1)
        filing.deadline[handle] = deadline_ms
        slot = filing.where[handle]
        overdue = deadline_ms <= self._clock_ms and slot != OVERDUE_SLOT
        if deadline_ms > filing.floor[handle] and not overdue:
            return
        if slot != NOT_FILED:
            filing.leave_one(handle)
            self._count(moves=1)
        filing.place_one(handle, self._clock_ms // self.geometry.tick_ms, overdue_until=self._clock_ms)

    def touch(self, handles: ArrayLike, deadlines_ms: ArrayLike) -> None:
        """Re-arm filed handles. This is the hot path: one write each, unless the deadline is before their bucket.

        Args:
            handles: filed handles. If one occurs twice, the last one counts.
            deadlines_ms: one deadline per handle, milliseconds.

        Raises:
            KeyError: a handle is not filed; the wheel was not changed.
            TypeError: a column does not consist of integers.
            ValueError: the columns differ in length, or a value is out of range.
        """
        column = as_handles(handles)
        deadlines = as_deadlines(deadlines_ms, length=len(column))
        if not len(column):
            return
        if int(column.max()) >= len(self._filing.where):
            raise KeyError(f"handle {column.max()} is not filed; arm it with `file` first")
        misplaced = self._filing.misplaced(column, deadlines, self._clock_ms)
        if len(misplaced):
            self._require_filed(misplaced)
        self._filing.deadline[column] = deadlines
        self._refile(misplaced)

    def _require_filed(self, handles: Ints) -> None:
        unknown = handles[self._filing.where[handles] == NOT_FILED]
        if len(unknown):
            raise KeyError(f"handle {unknown[0]} is not filed; arm it with `file` first")

    def _refile(self, handles: Ints) -> None:
        if not len(handles):
            return
        distinct = handles[self._filing.last_of_each(handles)]
        filed = distinct[self._filing.where[distinct] != NOT_FILED]
        self._filing.leave(filed)
        self._filing.place(distinct, self._clock_ms // self.geometry.tick_ms, overdue_until=self._clock_ms)
        self._count(moves=len(filed))

    def _count(self, *, moves: int = 0, fires: int = 0, flushes: int = 0, regressions: int = 0) -> None:
        stats = self._stats
        self._stats = WheelStats(
            stats.moves + moves, stats.fires + fires, stats.flushes + flushes, stats.regressions + regressions
        )

    def cancel(self, handles: ArrayLike) -> None:
        """Remove handles; those that are not filed are ignored.

        Args:
            handles: integers; one may occur twice.

        Raises:
            TypeError: the column does not consist of integers.
            ValueError: a handle is out of range.
        """
        column = as_handles(handles)
        column = column[column < len(self._filing.where)]
        column = column[self._filing.where[column] != NOT_FILED]
        if len(column):
            column = column[self._filing.last_of_each(column)]
            self._filing.leave(column)
            self._filing.forget(column)

    def cancel_one(self, handle: int) -> None:
        """Remove one handle, as `cancel` does for a column; one that is not filed is ignored."""
        filing = self._filing
        if 0 <= handle < len(filing.where) and filing.where[handle] != NOT_FILED:
            filing.leave_one(handle)
            filing.forget(handle)

    def advance(self, clock_ms: int) -> Ints:
        """Advance the clock, and remove the handles that are due by then.

        Every bucket that begins by then is flushed, in order, before the clock moves: if the clock moved first, a
        handle filed for the next turn of the wheel could share a slot with one of this turn. A flushed handle that is
        not due, because its deadline moved or its bucket is coarse, is filed again under the new clock. So the cost
        depends on the handles that are due or move; an empty wheel jumps.

        Args:
            clock_ms: the clock, milliseconds. A clock that goes back is ignored, and counted.

        Returns:
            Handles in the order of deadline, then handle; they are no longer filed.

        Raises:
            TypeError: the clock is not an integer.
            ValueError: it is later than `TIME_MS_MAX`.
        """
        clock_ms = index(clock_ms)
        if clock_ms > TIME_MS_MAX:
            raise ValueError(f"clock {clock_ms} ms is out of range, at most {TIME_MS_MAX}")
        if clock_ms < self._clock_ms:
            self._count(regressions=1)
            return np.empty(0, np.int64)
        tick = clock_ms // self.geometry.tick_ms
        # Overdue handles may be due within the tick that has begun; all others are due at its beginning or before.
        due_until = max(self._clock_ms, tick * self.geometry.tick_ms)
        self._clock_ms = clock_ms
        flushed = self._filing.flush(tick)
        if not flushed:
            return np.empty(0, np.int64)
        handles = np.concatenate(flushed)
        deadlines = self._filing.deadline[handles]
        due = deadlines <= due_until
        fired, moved = handles[due], handles[~due]
        self._filing.forget(fired)
        self._filing.place(moved, tick, overdue_until=due_until)
        self._count(moves=len(moved), fires=len(fired), flushes=len(flushed))
        return sort_by_deadline(fired, deadlines[due])

    def next_expiration_ms(self) -> int | None:
        """Return when the earliest bucket that is not empty begins, milliseconds; `None` if no handle is filed.

        No handle is due before. But a bucket of a coarse level, or one whose handles were re-armed, may have no handle
        that is due at its beginning. Overdue handles count as due at the clock.
        """
        bucket = self._filing.earliest()
        if bucket is None:
            return None
        return max(self._clock_ms, bucket.tick * self.geometry.tick_ms)

    def occupancy(self, *, slots: bool = False) -> list[LevelOccupancy]:
        """Return the occupancy of each level, up to the coarsest one with handles.

        Args:
            slots: whether to count the handles of each slot, too, for a drawing.
        """
        return occupancy_of(self._filing, slots=slots)

    def check(self) -> None:
        """Assert every invariant; for tests, since it checks every handle."""
        invariants.check(self._filing, self._clock_ms)

    def snapshot(self) -> WheelSnapshot:
        """Return a snapshot of the wheel as plain arrays, and drop stale entries."""
        return take(self._filing, self._clock_ms, self._stats)

    @classmethod
    def restore(cls, snapshot: WheelSnapshot, *, capacity: int = 0) -> Self:
        """Return a wheel that continues exactly like the one of the snapshot.

        Args:
            snapshot: its `handles` are shared with the wheel, which never writes to them; the caller must not either.
            capacity: the number of handles to make room for at least.

        Raises:
            SnapshotError: the snapshot contradicts itself.
            ValueError: its geometry is not valid.
        """
        wheel = cls(
            tick_ms=snapshot.tick_ms,
            wheel_size=snapshot.wheel_size,
            capacity=max(capacity, int(snapshot.handles.max(initial=-1)) + 1),
        )
        verify(snapshot, wheel.geometry)
        wheel._clock_ms = snapshot.clock_ms
        wheel._stats = snapshot.stats
        refill(wheel._filing, snapshot)
        return wheel
