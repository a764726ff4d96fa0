"""The time of each partition of the heartbeat topic, and the outages that its records and ticks prove.

The *effective time* of a record is the greatest append time of its partition up to it. The *watermark* of a partition
is the effective time of the newest record read: all records before it have been read, too.

A *gap* (a, b) is a pause between neighbouring records that is longer than `outage_min_ms`. It is an *outage* if one run
of the ticker wrote just before it and soon after it: then no producer could write, so no member was silent. Ticks of
other runs in between do not matter. "Just before" is at most half of `outage_min_ms` before the record at a, whatever
interval the tick names, as any client can write a tick. Until the gap is judged, the partition is decided up to a.
"""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.proof.audit.ticks import AuditedTick

RESUME_MAX_MS: Final = 10_000
"""The latest that the tick after a gap may come after the gap's end, ms."""

STEPPED_MAX_MS: Final = 60_000
"""How far beyond half of `outage_min_ms` effective time may run after the tick before a gap, where append times have
stepped back, ms."""

_RUNS_REMEMBERED: Final = 64
_UNKNOWN_MS: Final = -1
_MANY: Final = 2**31


class LastTick(msgspec.Struct, frozen=True, array_like=True):
    """The newest tick of a run: its own append time and its effective time, epoch ms."""

    append_ms: int
    time_ms: int

    def is_forgotten(self, now_ms: int, outage_min_ms: int) -> bool:
        """Return whether the run counts as ended at an effective time, epoch ms."""
        return now_ms - self.time_ms - STEPPED_MAX_MS > outage_min_ms / 2


class AuditedGap(msgspec.Struct, array_like=True):
    """A gap that may be an outage: its begin and end (epoch ms), the runs just before it, and whether one came back."""

    from_ms: int
    to_ms: int
    runs: list[str]
    proven: bool = False


class AuditedOutage(msgspec.Struct, frozen=True, array_like=True):
    """An outage of a partition: no producer could write to it from one moment to the other, epoch ms.

    A span that a feed has missed is an outage of the feed's source; with a group id it is one of that group alone.
    """

    from_ms: int
    to_ms: int
    partition: int
    group_id: str = ""


class Partition(msgspec.Struct):
    """The clock of one partition.

    Args:
        watermark_ms: effective time of the newest record, epoch ms; -1 if nothing was read.
        append_ms: append time of that record itself, epoch ms.
        ticks: the newest tick of each run that may still be alive.
        gaps: gaps that are not judged yet, the first one first.
        due: heap of (moment, group id): groups to run once this partition is decided up to the moment, epoch ms.
        untimed: whether the newest record has no append time.
    """

    number: int
    watermark_ms: int = _UNKNOWN_MS
    append_ms: int = _UNKNOWN_MS
    ticks: dict[str, LastTick] = {}
    gaps: list[AuditedGap] = []
    due: list[tuple[int, str]] = []
    untimed: bool = False

    @property
    def decided_ms(self) -> int:
        """Up to when everything in this partition is known, epoch ms."""
        return self.gaps[0].from_ms if self.gaps else self.watermark_ms

    def read(
        self, append_ms: int, tick: AuditedTick | None, *, runs: tuple[str, ...], outage_min_ms: int
    ) -> list[AuditedOutage]:
        """Read the next record; return the gaps that it proves to be outages.

        Args:
            append_ms: its own append time, epoch ms; negative if it has none.
            tick: the decoded tick, if it is a tick.
            runs: ticker runs of the audited job; empty if every run is believed.
            outage_min_ms: a gap is longer than this.
        """
        if append_ms < 0:
            self.untimed = self.watermark_ms != _UNKNOWN_MS
            return []
        before_ms, now_ms = self.watermark_ms, max(append_ms, self.watermark_ms)
        if self.untimed and now_ms > before_ms:
            self.gaps.append(AuditedGap(before_ms, now_ms, [], proven=True))
        elif before_ms != _UNKNOWN_MS and now_ms - before_ms > outage_min_ms:
            self._open_gap(before_ms, now_ms, outage_min_ms)
        self.watermark_ms, self.append_ms, self.untimed = now_ms, append_ms, False
        if tick is not None and tick.run and (not runs or tick.run in runs):
            self._take_tick(tick.run, append_ms, now_ms, outage_min_ms)
        outages = []
        # Outages are returned in the order of the log. A proven one waits for earlier gaps that may yet be proven.
        while self.gaps and (self.gaps[0].proven or now_ms - self.gaps[0].to_ms > RESUME_MAX_MS):
            gap = self.gaps.pop(0)
            if gap.proven:
                outages.append(AuditedOutage(gap.from_ms, gap.to_ms, self.number))
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
            self.gaps.append(AuditedGap(before_ms, now_ms, runs))


def home_of(group_id: str, partitions: int) -> int:
    """Return the partition that Kafka's clients choose for a key: `Utils.murmur2` and `toPositive`."""
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
