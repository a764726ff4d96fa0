"""The time of each partition of the heartbeat topic, and the outages that its records and ticks prove.

The *effective time* of a record is the greatest append time of its partition up to it. The *watermark* of a partition
is that of the newest record read: whoever has read it has read all that stands before it.

A *gap* (a, b) is one between neighbouring records that is longer than `outage_min_ms`. It is an *outage* if one run of
the ticker wrote just before it and soon after it: then nobody could write, and nobody was silent. What other runs wrote
meanwhile does not matter. Just before is at most half of `outage_min_ms` before the record at a, whatever interval the
tick names, as anybody can write one. Until that is known the partition is decided up to a.

A record that carries its producer's time has no append time: no time passes by it. How long the records took that have
none is not known, so what lies between the one with an append time before them and the one after them is an outage,
whoever wrote ticks. Before the first append time of a partition there is no time at all.
"""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.audit.ticks import Tick

RESUME_MAX_MS: Final = 10_000
"""Most that the tick after a gap may come later than the gap's end, ms."""

STEPPED_MAX_MS: Final = 60_000
"""Most that effective time may be beyond half of `outage_min_ms` after the tick before a gap, where append times have
stepped back, ms."""

_RUNS_REMEMBERED: Final = 64
_UNKNOWN_MS: Final = -1
_MANY: Final = 2**31


class LastTick(msgspec.Struct, frozen=True, array_like=True):
    """The newest tick of a run: its own append time and its effective time, epoch ms."""

    append_ms: int
    time_ms: int

    def is_forgotten(self, now_ms: int, outage_min_ms: int) -> bool:
        """Return whether effective time has come so far, epoch ms, that the run counts as ended."""
        return now_ms - self.time_ms - STEPPED_MAX_MS > outage_min_ms / 2


class Gap(msgspec.Struct, array_like=True):
    """A gap that may be an outage: from when to when (epoch ms), the runs just before it, and whether one is back."""

    from_ms: int
    to_ms: int
    runs: list[str]
    proven: bool = False


class Outage(msgspec.Struct, frozen=True, array_like=True):
    """Hold an outage of a partition: nobody could write to it from one moment to the other, epoch ms.

    What a feed has missed is one of its source; with a group, it is of that group alone.
    """

    from_ms: int
    to_ms: int
    partition: int
    group_id: str = ""


class Partition(msgspec.Struct):
    """Follow the time of one partition.

    Args:
        number: which.
        watermark_ms: effective time of the newest record, epoch ms; -1 if nothing was read.
        append_ms: append time of that record itself, epoch ms.
        ticks: the newest tick of each run that may still be alive.
        gaps: that are not decided, the first one first.
        due: (moment, group id) of groups to be run once this partition has come that far, as a heap, epoch ms.
        untimed: whether the newest record has no append time.
    """

    number: int
    watermark_ms: int = _UNKNOWN_MS
    append_ms: int = _UNKNOWN_MS
    ticks: dict[str, LastTick] = {}
    gaps: list[Gap] = []
    due: list[tuple[int, str]] = []
    untimed: bool = False

    @property
    def decided_ms(self) -> int:
        """Up to when everything is known, epoch ms."""
        return self.gaps[0].from_ms if self.gaps else self.watermark_ms

    def read(self, append_ms: int, tick: Tick | None, *, runs: tuple[str, ...], outage_min_ms: int) -> list[Outage]:
        """Take the next record; return the gaps that it proves to be outages.

        Args:
            append_ms: its own append time, epoch ms; negative if it has none.
            tick: what it says, if it is a tick.
            runs: of the audited job; empty if every run is believed.
            outage_min_ms: a gap is longer than that.
        """
        if append_ms < 0:
            self.untimed = self.watermark_ms != _UNKNOWN_MS
            return []
        before_ms, now_ms = self.watermark_ms, max(append_ms, self.watermark_ms)
        if self.untimed and now_ms > before_ms:
            self.gaps.append(Gap(before_ms, now_ms, [], proven=True))
        elif before_ms != _UNKNOWN_MS and now_ms - before_ms > outage_min_ms:
            self._open_gap(before_ms, now_ms, outage_min_ms)
        self.watermark_ms, self.append_ms, self.untimed = now_ms, append_ms, False
        if tick is not None and tick.run and (not runs or tick.run in runs):
            self._take_tick(tick.run, append_ms, now_ms, outage_min_ms)
        outages = []
        # In the order of the log: one that is proven waits for those before it, which a run may yet come back from.
        while self.gaps and (self.gaps[0].proven or now_ms - self.gaps[0].to_ms > RESUME_MAX_MS):
            gap = self.gaps.pop(0)
            if gap.proven:
                outages.append(Outage(gap.from_ms, gap.to_ms, self.number))
        return outages

    def _take_tick(self, run: str, append_ms: int, now_ms: int, outage_min_ms: int) -> None:
        for gap in self.gaps:
            gap.proven |= run in gap.runs and now_ms - gap.to_ms <= RESUME_MAX_MS
        self.ticks.pop(run, None)
        self.ticks[run] = LastTick(append_ms, now_ms)
        self.ticks = {run: last for run, last in self.ticks.items() if not last.is_forgotten(now_ms, outage_min_ms)}
        if len(self.ticks) > _RUNS_REMEMBERED:
            del self.ticks[next(iter(self.ticks))]

    def _open_gap(self, before_ms: int, now_ms: int, outage_min_ms: int) -> None:
        runs = [
            run
            for run, tick in self.ticks.items()
            if self.append_ms - tick.append_ms <= outage_min_ms / 2 and not tick.is_forgotten(before_ms, outage_min_ms)
        ]
        if runs:
            self.gaps.append(Gap(before_ms, now_ms, runs))


def home_of(group_id: str, partitions: int) -> int:
    """Name the partition that Kafka's clients choose for a key: `Utils.murmur2` and `toPositive`."""
    data, most = group_id.encode(), 0xFFFFFFFF
    h = 0x9747B28C ^ len(data)
    words = len(data) // 4
    for word in range(words):
        k = int.from_bytes(data[4 * word : 4 * word + 4], "little") * 0x5BD1E995 & most
        k = (k ^ k >> 24) * 0x5BD1E995 & most
        h = (h * 0x5BD1E995 & most) ^ k
    rest = data[4 * words :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * 0x5BD1E995 & most
    h = (h ^ h >> 13) * 0x5BD1E995 & most
    h ^= h >> 15
    return h % _MANY % partitions
