"""The time of every partition, as a shard knows it. It is kept in the shard's state from batch to batch.

The *watermark* of a partition is the effective time of the newest record read from it, whether a tick or a heartbeat:
any record proves that everything before it has been read. When the ticker is dead, the time of busy partitions goes on
and that of quiet ones stops. A partition with a gap that may still turn out to be an outage is *decided* only up to the
beginning of that gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.time.feeds import FEED_CLOSED_MS, FIRST_SOURCE, FeedTime
from heartwheel.engine.time.outage import (
    Outage,
    OutageKind,
    PartitionGap,
    TickSeen,
    evidence,
    is_in_time,
    is_long,
    is_remembered,
    just_before,
    kind_of,
)
from heartwheel.engine.time.reading import UNTIMED_MS, Reading, first_of_each
from heartwheel.wire.relayed import FEEDS_PARTITION
from timing_wheel import TIME_MS_MAX

Ints = NDArray[np.int64]

UNKNOWN_MS: Final = -1
"""The time of a partition from which nothing was read."""

STALLED_MS: Final = 5_000
"""How far a partition may be behind the newest one before it counts as stalled, ms."""

MOVED_MS_MAX: Final = 600_000
"""How long after a topic has grown a group may still move to another partition, ms: producers refresh their metadata
every five minutes (`metadata.max.age.ms`). If a group's records go for longer to another partition than the one that
its id hashes to, its producer chooses partitions in another way, and the group waits only for its own partition."""


class PartitionTime(msgspec.Struct, array_like=True):
    """The time of one partition.

    Args:
        watermark_ms: effective time of the newest record read, epoch ms.
        last_append_ms: append time of that record itself, epoch ms.
        ticks: the newest tick of each known run that may still turn out to be just before a gap.
        gaps: the gaps that wait for a tick to show what they were, and the outages after them, in the order of the log.
        untimed: whether the newest records read have no append time.
    """

    watermark_ms: int
    last_append_ms: int
    ticks: list[TickSeen] = []
    gaps: list[PartitionGap] = []
    untimed: bool = False

    @property
    def decided_ms(self) -> int:
        """The time up to which the partition is decided, epoch ms."""
        return self.gaps[0].before_ms if self.gaps else self.watermark_ms


class LogTime(msgspec.Struct):
    """The time of every partition of a topic.

    Args:
        partitions: the time of each partition from which something was read.
        count: the known number of partitions of the topic; it only rises.
        grown_ms: when that number was first known, epoch ms.
        former: the earlier numbers, as long as records from before the growth may be unread and groups may move.
        feeds: the time of each feed, in the order of their first records.
    """

    partitions: dict[int, PartitionTime] = {}
    count: int = 0
    grown_ms: int = UNKNOWN_MS
    former: list[int] = []
    feeds: list[FeedTime] = []

    def source(self, feed: str) -> int:
        """Return the number of a feed's source; a new feed gets one.

        Groups wait for a new source as if it had just written a mark, so that its events are applied in order, too.
        """
        for at, known in enumerate(self.feeds):
            if known.feed == feed:
                return FIRST_SOURCE - at
        self.feeds = [*self.feeds, FeedTime(feed, written_ms=self.feeds_written_ms())]
        return FIRST_SOURCE - len(self.feeds) + 1

    def feeds_written_ms(self) -> int:
        """Return the watermark of the partition of the feeds, epoch ms; `UNKNOWN_MS` if nothing was read from it."""
        part = self.partitions.get(FEEDS_PARTITION)
        return part.watermark_ms if part else UNKNOWN_MS

    def is_closed(self, source: int) -> bool:
        """Return whether a source belongs to a feed that has written no mark for long."""
        return source < 0 and self.feeds_written_ms() - self.feed(source).written_ms > FEED_CLOSED_MS

    def awaited(self, sources: list[int]) -> list[int]:
        """Return those of a group's sources that are not closed; if all of them are, all."""
        return [source for source in sources if not self.is_closed(source)] or sources

    def reached_by_feeds(self, decided: Ints) -> int:
        """Return how far all feeds have come that are not closed, epoch ms; `decided` is as in `with_feeds`."""
        sources = [FIRST_SOURCE - at for at in range(len(self.feeds))]
        return min((int(decided[each]) for each in sources if not self.is_closed(each)), default=TIME_MS_MAX)

    def feed(self, source: int) -> FeedTime:
        """Return the time of a feed's source."""
        return self.feeds[FIRST_SOURCE - source]

    def relayed_until_ms(self, decided: Ints, source: int, group_id: str) -> int:
        """Return the time up to which a source's feed has relayed everything about a group, epoch ms."""
        return min(int(decided[source]), self.feed(source).held.get(group_id, TIME_MS_MAX))

    def relayed_ms(self) -> dict[str, int]:
        """Return the time up to which each feed has relayed everything, epoch ms."""
        return {feed.feed: feed.passed_ms for feed in self.feeds}

    def partition_of(self, source: int) -> int:
        """Return the partition of the heartbeat topic from which a source is read."""
        return source if source >= 0 else FEEDS_PARTITION

    def with_feeds(self, partitions: Ints) -> Ints:
        """Add the times of the feeds to those of the partitions, so that sources index both.

        Args:
            partitions: int64 (count,), epoch ms.

        Returns:
            int64 (count + feeds + 1,), epoch ms; negative indices are those of the sources.
        """
        fed = [feed.passed_ms for feed in reversed(self.feeds)]
        return np.concatenate((partitions, np.array([*fed, UNKNOWN_MS], np.int64)))

    def read(
        self,
        readings: Iterable[Reading],
        *,
        outage_min_ms: int,
        counts: Sequence[int] = (),
        partitions_max: int | None = None,
    ) -> list[Outage]:
        """Add the readings of a batch.

        Args:
            outage_min_ms: shortest gap that may be an outage, ms.
            counts: the present and former partition counts of the topic that are known from elsewhere, ascending.
            partitions_max: the most partitions that a tick may name; `None` for any number. Any client that may write
                to the topic can write a tick, and a group would wait for ever for a partition that does not exist.

        Returns:
            The outages that are certain now, ordered by their beginning, then by partition.
        """
        readings = sorted(readings, key=lambda each: (each.partition, each.first_offset))
        self._count(readings, counts, partitions_max)
        outages: list[Outage] = []
        for reading in readings:
            outages += self._read(reading, outage_min_ms)
            for mark in reading.marks:
                source = self.source(mark.feed)
                outages += self.feed(source).read(mark, source)
        return sorted(outages, key=lambda outage: (outage.before_ms, outage.partition))

    def _read(self, reading: Reading, outage_min_ms: int) -> list[Outage]:
        """Add the reading of a partition; return its outages that are certain now."""
        before = self.partitions.get(reading.partition)
        if reading.first_ms == UNTIMED_MS:
            if before is not None:
                before.untimed = True
            return []
        floor = before.watermark_ms if before else UNKNOWN_MS
        last = [_raised(tick, floor) for tick in reading.last_ticks]
        after = self.partitions[reading.partition] = PartitionTime(max(reading.last_ms, floor), reading.last_append_ms)
        ticks = _with_earlier(last, before.ticks if before else [])
        after.untimed = reading.ends_untimed
        after.ticks = [tick for tick in ticks if is_remembered(tick, after.watermark_ms, outage_min_ms=outage_min_ms)]
        outages = []
        for gap in _gaps(before, reading):
            if not is_long(gap, outage_min_ms=outage_min_ms):
                continue
            gap.ticks_before = just_before(gap, outage_min_ms=outage_min_ms)
            proven = gap.untimed or evidence(gap) is not None
            if not proven and (not gap.ticks_before or not is_in_time(gap, after.watermark_ms)):
                continue
            if not proven or after.gaps:
                after.gaps.append(gap)  # outages are returned in the order of the log: one may wait for an earlier gap
                continue
            kind = _kind_of(gap, last)
            outages.append(Outage(reading.partition, gap.before_ms, gap.after_ms, kind))
        return outages

    def _count(self, readings: list[Reading], counts: Sequence[int], partitions_max: int | None) -> None:
        """Update the number of partitions, and when it was first known."""
        if not readings:
            return
        newest_ms = max(reading.last_ms for reading in readings)
        if newest_ms == UNTIMED_MS:
            newest_ms = self.newest_ms()
        named = max(each.partitions for each in readings)
        named = named if partitions_max is None else min(named, partitions_max)
        count = max(*counts, self.count, named, *(each.partition + 1 for each in readings))
        if count > self.count:
            known = (self.count, *(each for each in counts if each > self.count))
            self.former = [*self.former, *(each for each in known if 0 < each < count)]
            self.count = count
            self.grown_ms = max(self.grown_ms, newest_ms)
        elif self.former and self.watermarks().min() > self.grown_ms + MOVED_MS_MAX:
            # The partition that is furthest behind decides: when a backlog is read in bounded batches, one partition
            # may have been read far beyond the growth and another one not yet up to it.
            self.former = []
        first_ms = [each.first_ms for each in readings if each.partition not in self.partitions]
        self.grown_ms = max([self.grown_ms, *first_ms])

    def watermarks(self) -> Ints:
        """Return the watermark of every partition, int64 (count,), epoch ms, `UNKNOWN_MS` where nothing was read."""
        return self._column({number: part.watermark_ms for number, part in self.partitions.items()})

    def decided(self) -> Ints:
        """Return the time up to which every partition is decided, int64 (count,), epoch ms or `UNKNOWN_MS`."""
        return self._column({number: part.decided_ms for number, part in self.partitions.items()})

    def clock_ms(self) -> int:
        """Return the time up to which all partitions are decided, epoch ms; `UNKNOWN_MS` if one was never read."""
        return int(self.decided().min()) if self.count else UNKNOWN_MS

    def newest_ms(self) -> int:
        """Return the time of the newest record of any partition, epoch ms, `UNKNOWN_MS` if there was none."""
        return int(self.watermarks().max(initial=UNKNOWN_MS))

    def stalled(self) -> list[tuple[int, int]]:
        """Return the stalled partitions and the time up to which each is decided, the oldest first."""
        decided = self.decided()
        behind = np.flatnonzero(decided < self.newest_ms() - STALLED_MS)
        return sorted(zip(behind.tolist(), decided[behind].tolist(), strict=True), key=lambda each: each[1])

    def stepped_back_ms(self) -> int:
        """Return how far the newest append time of a partition is behind its watermark, ms: the most of all."""
        return max((part.watermark_ms - part.last_append_ms for part in self.partitions.values()), default=0)

    def _column(self, values: dict[int, int]) -> Ints:
        column = np.full(self.count, UNKNOWN_MS, np.int64)
        for number, value in values.items():
            column[number] = value
        return column


def _gaps(before: PartitionTime | None, reading: Reading) -> list[PartitionGap]:
    """Return possible gaps of a partition, in the order of the log: open ones, one before the reading, its own."""
    if before is None:
        return list(reading.gaps)
    floor = before.watermark_ms
    gaps = list(before.gaps)
    if reading.first_ms > floor:
        untimed = before.untimed or reading.begins_untimed
        gaps.append(PartitionGap(floor, before.last_append_ms, reading.first_ms, before.ticks, [], untimed))
    for gap in gaps:
        after = [tick for tick in reading.first_ticks if is_in_time(gap, tick.at_ms)]
        gap.ticks_after = first_of_each([*gap.ticks_after, *after])
    for gap in reading.gaps:
        ticks = [_raised(tick, floor) for tick in gap.ticks_before]
        known = _with_earlier(ticks, before.ticks)
        begin_ms = max(gap.before_ms, floor)
        gaps.append(PartitionGap(begin_ms, gap.last_append_ms, gap.after_ms, known, gap.ticks_after, gap.untimed))
    return gaps


def _kind_of(gap: PartitionGap, last: list[TickSeen]) -> OutageKind:
    """Return the kind of an outage, given the last tick of each run in the same reading."""
    seen = evidence(gap)
    if gap.untimed or seen is None:
        return OutageKind.UNTIMED
    newest = next((tick for tick in last if tick.run == seen[0].run), seen[1])
    return kind_of(gap, seen[0], newest)


def _raised(tick: TickSeen, floor: int) -> TickSeen:
    """Return a tick with its effective time raised to what its partition had reached before it, epoch ms."""
    return tick if tick.at_ms >= floor else msgspec.structs.replace(tick, at_ms=floor)


def _with_earlier(ticks: list[TickSeen], earlier: list[TickSeen]) -> list[TickSeen]:
    """Return the newest tick of each run in two lists; those in `earlier` are older."""
    known = {tick.run for tick in ticks}
    return [*(tick for tick in earlier if tick.run not in known), *ticks]
