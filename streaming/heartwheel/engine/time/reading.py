"""What one task has read of one partition in a batch: how far its time has come, and its gaps.

The *effective time* of a record is the greatest append time of all records of its partition up to it, whatever they
are: append times step back when a partition's leader changes to a broker whose clock is behind, and time must not.

A record whose time is its producer's has none here. Its effective time is that of its partition before it; before the
first record of a partition that has an append time, that is none, as if it came before the partition's beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.time.feeds import FeedMark, note_mark
from heartwheel.engine.time.outage import PartitionGap, TickSeen, is_in_time
from heartwheel.wire.passed_on import FeedWatermark
from heartwheel.wire.tick import Tick

Ints = NDArray[np.int64]

UNTIMED_MS: Final = -1
"""In place of the append time of a record that has none, and of an effective time that is not known."""


class Reading(msgspec.Struct, array_like=True):
    """What one task has read of one partition in a batch.

    Args:
        partition: of the heartbeat topic.
        first_offset: of the first record.
        first_ms: append time of the first record that has one, epoch ms; `UNTIMED_MS` if none has.
        last_ms: effective time of the last record, epoch ms: the greatest append time of all.
        last_append_ms: append time of the last record itself, epoch ms.
        regressed: how many records were appended, by their time, before an earlier one.
        partitions: the newest count of the topic's partitions in a tick; 0 if there was none.
        first_ticks: the first tick of each known run, in the order of the log.
        last_ticks: the last tick of each known run, in the order of the log.
        gaps: those that may be outages, in the order of the log.
        marks: what each feed has passed on, in the order of the log.
        untimed: how many records have no append time.
        begins_untimed: whether the first record has none.
        ends_untimed: whether the last one has none.
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
    """Decode what `encode_readings` wrote."""
    return _decode(data)


class ReadingsBuilder:
    """The readings of one task, while it reads.

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
        """Take in the next records of a partition.

        Args:
            partition: of the heartbeat topic.
            first_offset: of the first of them.
            append_ms: (records,) their append times, epoch ms, `UNTIMED_MS` of those without; at least one.
            tick_rows: which of them are ticks, ascending.
            ticks: those ticks.

        Returns:
            (records,) their effective times, as far as this task has read, epoch ms.
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
        """Take in records of which some have no append time: those that have one, and where the others stand."""
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
        """Take in records that have append times; `behind_untimed` marks those right behind some that have none."""
        ends = np.zeros(len(append_ms), np.bool_) if behind_untimed is None else behind_untimed
        ends[0] |= reading.ends_untimed
        reading.ends_untimed = False
        if reading.first_ms == UNTIMED_MS:
            # What the first one is behind, the shard knows.
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
        """Take in a feed's mark, which stands in a partition that was read.

        Args:
            partition: of the heartbeat topic.
            mark: of a feed whose times are believed.
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
        """Note the gaps among the next records that may be outages, and the ticks on both sides of each."""
        steps = np.diff(effective, prepend=reading.last_ms)
        rows = np.flatnonzero((steps > self._outage_min_ms) | (behind_untimed & (steps > 0)))
        # The tick before a gap is at a row before that of its second record, the tick after it may be that very one.
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
        # Which runs lived before a gap the shard alone may know, but all of those that came back in time are here.
        now_ms = int(effective[-1])
        reading.gaps = [gap for gap in reading.gaps if gap.ticks_after or gap.untimed or is_in_time(gap, now_ms)]

    @staticmethod
    def _note_ticks(reading: Reading, known: list[tuple[int, TickSeen]]) -> None:
        """Note ticks behind the gaps of a reading as the last of their runs, and as the first after those gaps."""
        for _, tick in known:
            for gap in reversed(reading.gaps):
                if not is_in_time(gap, tick.at_ms):
                    break
                gap.ticks_after = first_of_each([*gap.ticks_after, tick])
        if known:
            last = {tick.run: tick for _, tick in known}
            reading.last_ticks = [*(tick for tick in reading.last_ticks if tick.run not in last), *last.values()]

    def readings(self) -> list[Reading]:
        """Return what was read of every partition."""
        return list(self._readings.values())


def first_of_each(ticks: Sequence[TickSeen]) -> list[TickSeen]:
    """Return the first tick of each run."""
    return list({tick.run: tick for tick in reversed(ticks)}.values())[::-1]
