"""What one task has read of one partition in a batch: how far its time has come, and its gaps.

The *effective time* of a record is the greatest append time of all records of its partition up to it, whatever they
are: append times step back when a partition's leader changes to a broker whose clock is behind, and time must not.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from heartwheel.log_time.feeds import FeedMark, note_mark
from heartwheel.log_time.outage import Gap, TickSeen, is_in_time
from heartwheel.wire.passed_on import Mark
from heartwheel.wire.tick import Tick

Ints = NDArray[np.int64]


class Reading(msgspec.Struct, array_like=True):
    """What one task has read of one partition in a batch.

    Args:
        partition: of the heartbeat topic.
        first_offset: of the first record.
        first_ms: append time of the first record, epoch ms.
        last_ms: effective time of the last record, epoch ms: the greatest append time of all.
        last_append_ms: append time of the last record itself, epoch ms.
        regressed: how many records were appended, by their time, before an earlier one.
        partitions: the newest count of the topic's partitions in a tick; 0 if there was none.
        first_ticks: the first tick of each known run, in the order of the log.
        last_ticks: the last tick of each known run, in the order of the log.
        gaps: those that may be outages, in the order of the log.
        marks: what each feed has passed on, in the order of the log.
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
    gaps: list[Gap] = msgspec.field(default_factory=list)
    marks: list[FeedMark] = msgspec.field(default_factory=list)


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
            append_ms: (records,) their append times, epoch ms; at least one.
            tick_rows: which of them are ticks, ascending.
            ticks: those ticks.

        Returns:
            (records,) their effective times, as far as this task has read, epoch ms.
        """
        reading = self._readings.get(partition)
        if reading is None:
            first_ms = int(append_ms[0])
            reading = self._readings[partition] = Reading(partition, first_offset, first_ms, first_ms, first_ms)
        before = np.concatenate(([reading.last_ms], append_ms[:-1]))
        effective = np.maximum.accumulate(np.concatenate(([reading.last_ms], append_ms)))[1:]
        reading.regressed += int(np.count_nonzero(append_ms < effective))
        known = [
            (row, TickSeen(int(effective[row]), int(append_ms[row]), tick.run, tick.mono_ms, tick.interval_ms))
            for row, tick in zip(tick_rows, ticks, strict=True)
            if tick.run in self._runs
        ]
        reading.partitions = max([reading.partitions, *(tick.partitions for tick in ticks if tick.run in self._runs)])
        self._find_gaps(reading, before, effective, known)
        reading.first_ticks = first_of_each([*reading.first_ticks, *(tick for _, tick in known)])
        reading.last_ms = int(effective[-1])
        reading.last_append_ms = int(append_ms[-1])
        return effective

    def mark(self, partition: int, mark: Mark, at_ms: int, append_ms: int) -> None:
        """Take in a feed's mark, which stands in a partition that was read.

        Args:
            partition: of the heartbeat topic.
            mark: of a feed whose times are believed.
            at_ms: its effective time, epoch ms.
            append_ms: its own append time, epoch ms.
        """
        note_mark(self._readings[partition].marks, mark, at_ms, append_ms)

    def _find_gaps(self, reading: Reading, before: Ints, effective: Ints, known: list[tuple[int, TickSeen]]) -> None:
        """Note the gaps among the next records that may be outages, and the ticks on both sides of each."""
        steps = np.diff(effective, prepend=reading.last_ms)
        rows = np.flatnonzero(steps > self._outage_min_ms)
        # The tick before a gap is at a row before that of its second record, the tick after it may be that very one.
        stops = np.searchsorted([row for row, _ in known], rows).tolist() if len(rows) else []
        done = 0
        for row, stop in zip(rows.tolist(), stops, strict=True):
            self._note_ticks(reading, known[done:stop])
            done = stop
            last_append_ms = reading.last_append_ms if row == 0 else int(before[row])
            before_ms, after_ms = int(effective[row] - steps[row]), int(effective[row])
            reading.gaps.append(Gap(before_ms, last_append_ms, after_ms, reading.last_ticks, []))
        self._note_ticks(reading, known[done:])
        # Which runs lived before a gap the shard alone may know, but all of those that came back in time are here.
        now_ms = int(effective[-1])
        reading.gaps = [gap for gap in reading.gaps if gap.ticks_after or is_in_time(gap, now_ms)]

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
