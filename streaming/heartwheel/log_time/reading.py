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
from heartwheel.log_time.outage import Gap, TickSeen, is_in_time, may_be_outage
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
        first_tick: the first tick of a known run.
        last_tick: the last one.
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
    first_tick: TickSeen | None = None
    last_tick: TickSeen | None = None
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
        if known:
            reading.first_tick = reading.first_tick or known[0][1]
            reading.last_tick = known[-1][1]
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
        """Keep the gaps among the next records that may be outages, and close open ones by their first tick."""
        now_ms = int(effective[-1])
        if reading.gaps and reading.gaps[-1].tick_after is None:
            first = known[0][1] if known else None
            gaps = (gap if gap.tick_after else msgspec.structs.replace(gap, tick_after=first) for gap in reading.gaps)
            reading.gaps = [gap for gap in gaps if is_in_time(gap, now_ms=now_ms)]
        steps = np.diff(effective, prepend=reading.last_ms)
        rows = np.flatnonzero(steps > self._outage_min_ms)
        if not len(rows):
            return
        at = np.fromiter((row for row, _ in known), np.int64, len(known))
        # The tick before a gap is at a row before that of its second record, the tick after it may be that very one.
        for row, following in zip(rows.tolist(), np.searchsorted(at, rows).tolist(), strict=True):
            gap = Gap(
                int(effective[row] - steps[row]),
                reading.last_append_ms if row == 0 else int(before[row]),
                int(effective[row]),
                known[following - 1][1] if following else reading.last_tick,
                known[following][1] if following < len(known) else None,
            )
            # Of one before the first tick of the reading the shard alone knows the tick before it.
            early = gap.tick_before is None
            if (early or may_be_outage(gap, outage_min_ms=self._outage_min_ms)) and is_in_time(gap, now_ms=now_ms):
                reading.gaps.append(gap)

    def readings(self) -> list[Reading]:
        """Return what was read of every partition."""
        return list(self._readings.values())
