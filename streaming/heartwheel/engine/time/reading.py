"""Readings: what one task has read from one partition in a batch, as times and gaps.

The *effective time* of a record is the greatest append time among the records of its partition up to it, whatever they
are. Append times step back when a partition's leader changes to a broker whose clock is behind; effective time does
not.

A record with its producer's time has no append time. Its effective time is that of the record before it. Before the
first append time of a partition it has no effective time, as if it came before the beginning of the partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.time.feeds import FeedMark, note_mark
from heartwheel.engine.time.outage import PartitionGap, TickSeen, is_in_time
from heartwheel.wire.relayed import FeedWatermark
from heartwheel.wire.tick import Tick

Ints = NDArray[np.int64]

UNTIMED_MS: Final = -1
"""Stands for the append time of a record without one, and for an unknown effective time."""


class Reading(msgspec.Struct, array_like=True):
    """What one task has read from one partition in a batch.

    Args:
        first_ms: append time of the first record that has one, epoch ms; `UNTIMED_MS` if none has.
        last_ms: effective time of the last record, epoch ms: the greatest append time of all.
        last_append_ms: append time of the last record itself, epoch ms.
        regressed: the number of records with an earlier append time than a record before them.
        partitions: the newest count of the topic's partitions in a tick; 0 if there was none.
        first_ticks: the first tick of each known run, in the order of the log.
        last_ticks: the last tick of each known run, in the order of the log.
        gaps: the gaps that may be outages, in the order of the log.
        marks: the marks of feeds, in the order of the log.
        untimed: the number of records without an append time.
        begins_untimed: whether the first record has no append time.
        ends_untimed: whether the last record has no append time.
    """

    partition: int
    first_offset: int
    first_ms: int
    last_ms: int
    last_append_ms: int
    regressed: int = 0
    partitions: int = 0
    first_ticks: list[TickSeen] = msgspec.field(default_factory=list)
    last_ticks: list[TickSeen] = msgspec.field(default_factory=list)
    gaps: list[PartitionGap] = msgspec.field(default_factory=list)
    marks: list[FeedMark] = msgspec.field(default_factory=list)
    untimed: int = 0
    begins_untimed: bool = False
    ends_untimed: bool = False


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Reading]).decode


def encode_readings(readings: Sequence[Reading]) -> bytes:
    """Encode the readings of a task."""
    return _encode(list(readings))


def decode_readings(data: bytes) -> list[Reading]:
    """Decode what `encode_readings` returned."""
    return _decode(data)


class ReadingsBuilder:
    """Builds the readings of one task while it reads.

    Args:
        runs: the known runs of the ticker.
        outage_min_ms: shortest gap that may be an outage, ms.
    """

    def __init__(self, runs: Sequence[str], outage_min_ms: int) -> None:
        self._runs = frozenset(runs)
        self._outage_min_ms = outage_min_ms
        self._readings: dict[int, Reading] = {}

    def add(
        self, partition: int, first_offset: int, append_ms: Ints, tick_rows: Sequence[int], ticks: Sequence[Tick]
    ) -> Ints:
        """Add the next records of a partition.

        Args:
            append_ms: int64 (records,), their append times, epoch ms, `UNTIMED_MS` without one; at least one record.
            tick_rows: the indices of those that are ticks, ascending.

        Returns:
            int64 (records,), their effective times according to what this task has read, epoch ms.
        """
        reading = self._readings.get(partition)
        if reading is None:
            first_ms = int(append_ms[0])
            reading = self._readings[partition] = Reading(partition, first_offset, first_ms, first_ms, first_ms)
            reading.begins_untimed = first_ms == UNTIMED_MS
        reading.partitions = max([reading.partitions, *(tick.partitions for tick in ticks if tick.run in self._runs)])
        if int(append_ms.min()) == UNTIMED_MS:
            return self._add_some_untimed(reading, append_ms, tick_rows, ticks)
        return self._add_timed(reading, append_ms, tick_rows, ticks)

    def _add_some_untimed(
        self, reading: Reading, append_ms: Ints, tick_rows: Sequence[int], ticks: Sequence[Tick]
    ) -> Ints:
        """Add records of which some have no append time; these get the effective time of the record before them."""
        timed = append_ms != UNTIMED_MS
        rows = np.flatnonzero(timed)
        reading.untimed += len(append_ms) - len(rows)
        effective = np.full(len(append_ms), reading.last_ms, np.int64)
        if len(rows):
            at = {row: place for place, row in enumerate(rows.tolist())}
            evidence = [(at[row], tick) for row, tick in zip(tick_rows, ticks, strict=True) if row in at]
            behind_untimed = np.diff(rows, prepend=-1) > 1
            places, known = [place for place, _ in evidence], [tick for _, tick in evidence]
            effective[rows] = self._add_timed(reading, append_ms[rows], places, known, behind_untimed)
            effective = np.maximum.accumulate(effective)
        reading.ends_untimed = not timed[-1]
        return effective

    def _add_timed(
        self,
        reading: Reading,
        append_ms: Ints,
        tick_rows: Sequence[int],
        ticks: Sequence[Tick],
        behind_untimed: NDArray[np.bool_] | None = None,
    ) -> Ints:
        """Add records with append times; `behind_untimed` marks those that directly follow records without one."""
        ends = np.zeros(len(append_ms), np.bool_) if behind_untimed is None else behind_untimed
        ends[0] |= reading.ends_untimed
        reading.ends_untimed = False
        if reading.first_ms == UNTIMED_MS:
            # The shard knows the time of the partition before this first record.
            reading.first_ms = reading.last_ms = reading.last_append_ms = int(append_ms[0])
        before = np.concatenate(([reading.last_ms], append_ms[:-1]))
        effective = np.maximum.accumulate(np.concatenate(([reading.last_ms], append_ms)))[1:]
        reading.regressed += int(np.count_nonzero(append_ms < effective))
        known = [
            (row, TickSeen(int(effective[row]), int(append_ms[row]), tick.run, tick.mono_ms))
            for row, tick in zip(tick_rows, ticks, strict=True)
            if tick.run in self._runs
        ]
        self._find_gaps(reading, before, effective, known, ends)
        reading.first_ticks = first_of_each([*reading.first_ticks, *(tick for _, tick in known)])
        reading.last_ms = int(effective[-1])
        reading.last_append_ms = int(append_ms[-1])
        return effective

    def mark(self, partition: int, mark: FeedWatermark, at_ms: int, append_ms: int) -> None:
        """Add a mark of a feed.

        Args:
            at_ms: its effective time, epoch ms.
            append_ms: its own append time, epoch ms.
        """
        note_mark(self._readings[partition].marks, mark, at_ms, append_ms)

    def _find_gaps(
        self,
        reading: Reading,
        before: Ints,
        effective: Ints,
        known: list[tuple[int, TickSeen]],
        behind_untimed: NDArray[np.bool_],
    ) -> None:
        """Find the gaps among the next records that may be outages, with the ticks before and after each."""
        steps = np.diff(effective, prepend=reading.last_ms)
        rows = np.flatnonzero((steps > self._outage_min_ms) | (behind_untimed & (steps > 0)))
        # A tick before a gap has a lower row than the gap's second record; the tick after it may be that record.
        stops = np.searchsorted([row for row, _ in known], rows).tolist() if len(rows) else []
        done = 0
        for row, stop in zip(rows.tolist(), stops, strict=True):
            self._note_ticks(reading, known[done:stop])
            done = stop
            last_append_ms = reading.last_append_ms if row == 0 else int(before[row])
            before_ms, after_ms = int(effective[row] - steps[row]), int(effective[row])
            untimed = bool(behind_untimed[row])
            reading.gaps.append(PartitionGap(before_ms, last_append_ms, after_ms, reading.last_ticks, [], untimed))
        self._note_ticks(reading, known[done:])
        # Perhaps only the shard knows the runs before a gap; but the ticks that came in time after it are all here.
        now_ms = int(effective[-1])
        reading.gaps = [gap for gap in reading.gaps if gap.ticks_after or gap.untimed or is_in_time(gap, now_ms)]

    @staticmethod
    def _note_ticks(reading: Reading, known: list[tuple[int, TickSeen]]) -> None:
        """Record ticks after the gaps of a reading as the last ones of their runs and the first ones after the gaps."""
        for _, tick in known:
            for gap in reversed(reading.gaps):
                if not is_in_time(gap, tick.at_ms):
                    break
                gap.ticks_after = first_of_each([*gap.ticks_after, tick])
        if known:
            last = {tick.run: tick for _, tick in known}
            reading.last_ticks = [*(tick for tick in reading.last_ticks if tick.run not in last), *last.values()]

    def readings(self) -> list[Reading]:
        """Return the reading of every partition."""
        return list(self._readings.values())


def first_of_each(ticks: Sequence[TickSeen]) -> list[TickSeen]:
    """Return the first tick of each run."""
    return list({tick.run: tick for tick in reversed(ticks)}.values())[::-1]
