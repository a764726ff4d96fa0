"""The clock of a shard: the times of the source's rows, and the running time of the query while there are no rows.

Every shard gets the same readings, so all shards of a query have one time (`docs/sessions.md` has the table).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from heartwheel.engine.sessions.config import SessionsConfig
from heartwheel.engine.sessions.packer import UNTIMED_MS, SourceReading

NO_TIME: Final = -1
"""The clock before the first row that brings a time."""

SOURCES_MAX: Final = 4_096
"""Most partitions of a source that are known at once. Of more, those that were quiet for longest are forgotten: they
hold no clock back, unless a column of other values was taken for partitions."""

_GAPS_KEPT: Final = 3
_GAP_MIN_MS: Final = 1_000
_GAP_FACTOR: Final = 3


class SourceTime(msgspec.Struct, array_like=True):
    """What is known of one partition of the source.

    Args:
        newest_ms: the latest time of its rows, epoch ms.
        quiet_ms: for how long of running time it has had no row, ms.
    """

    newest_ms: int
    quiet_ms: int = 0


class Clock(msgspec.Struct, array_like=True):
    """The time of a shard, from one batch to the next.

    Args:
        now_ms: the clock, epoch ms; `NO_TIME` before the first time.
        proven_ms: the latest time of the rows so far, of all partitions.
        batch_ms: the timestamp of the last batch, epoch ms; `NO_TIME` before the first.
        gaps_ms: the last intervals between batches, ms.
        sources: what is known of each partition.
        spans: stretches without an outage that are not all decided yet, as (first, last), ascending.
        quiet_ms: running time since the last row, ms.
        renewed_ms: the end of the last outage, epoch ms.
    """

    now_ms: int = NO_TIME
    proven_ms: int = NO_TIME
    batch_ms: int = NO_TIME
    gaps_ms: list[int] = []
    sources: dict[int, SourceTime] = {}
    spans: list[tuple[int, int]] = []
    quiet_ms: int = 0
    renewed_ms: int = NO_TIME


class Advanced(NamedTuple):
    """What a batch has made of the clock.

    Args:
        outages: outages that have ended by now, as (from, until), ascending, epoch ms.
        shift_ms: by how much all deadlines move, as the query did not run, ms.
    """

    outages: list[tuple[int, int]]
    shift_ms: int = 0


def advance(clock: Clock, readings: Sequence[SourceReading], batch_ms: int, config: SessionsConfig) -> Advanced:
    """Advance a clock by one batch; it never goes back.

    Args:
        clock: it is changed.
        readings: what the batch has read of each partition; several of one partition are joined.
        batch_ms: the batch's timestamp, the same on every replay, epoch ms.
        config: the query's.
    """
    gap_ms = 0 if clock.batch_ms == NO_TIME else max(0, batch_ms - clock.batch_ms)
    ran_ms = _running(clock, gap_ms)
    clock.batch_ms = batch_ms
    heard = any(reading.events for reading in readings)
    if not config.event_time:
        return _by_batches(clock, gap_ms, ran_ms, config, heard=heard)
    return _by_rows(clock, readings, ran_ms, config)


def _running(clock: Clock, gap_ms: int) -> int:
    """Return how much of the interval since the last batch counts as time in which the query ran.

    A query that was stopped has an interval that is far longer than those before. So at most three times the shortest
    of the last three counts, or a second. This needs no clock but the batches' timestamps, which a repeated batch has
    again. A computer that slept and a batch that took long count as stops, too: the query heard no key in that time.
    """
    allowed = max(_GAP_MIN_MS, _GAP_FACTOR * min(clock.gaps_ms, default=0))
    if clock.batch_ms != NO_TIME:
        clock.gaps_ms = [*clock.gaps_ms, gap_ms][-_GAPS_KEPT:]
    return min(gap_ms, allowed)


def _by_batches(clock: Clock, gap_ms: int, ran_ms: int, config: SessionsConfig, *, heard: bool) -> Advanced:
    """Advance by the time of batches: all rows of a batch are seen at its timestamp."""
    if clock.now_ms == NO_TIME:
        clock.now_ms = clock.proven_ms = clock.batch_ms if heard else NO_TIME
        return Advanced([])
    clock.quiet_ms += ran_ms
    silent_since, silent_ms = clock.now_ms, clock.quiet_ms
    clock.proven_ms += gap_ms
    if heard:
        clock.quiet_ms = 0
    elif config.outage_ms is not None:
        # Nothing is decided while no key is heard: it may be the source that is silent.
        return Advanced([], gap_ms - ran_ms)
    clock.now_ms = clock.proven_ms
    is_outage = heard and config.outage_ms is not None and silent_ms >= config.outage_ms
    return Advanced([(silent_since, clock.now_ms)] if is_outage else [], gap_ms - ran_ms)


def _by_rows(clock: Clock, readings: Sequence[SourceReading], ran_ms: int, config: SessionsConfig) -> Advanced:
    """Advance by the times of rows, and by running time while every partition is idle."""
    for source in clock.sources.values():
        source.quiet_ms += ran_ms
    for reading in readings:
        if reading.newest_ms != UNTIMED_MS:
            source = clock.sources.setdefault(reading.partition, SourceTime(reading.newest_ms))
            source.newest_ms = max(source.newest_ms, reading.newest_ms)
            source.quiet_ms = 0
            clock.proven_ms = max(clock.proven_ms, reading.newest_ms)
    if not clock.sources:
        return Advanced([])
    if len(clock.sources) > SOURCES_MAX:
        kept = sorted(clock.sources.items(), key=lambda source: (source[1].quiet_ms, -source[1].newest_ms, source[0]))
        clock.sources = dict(kept[:SOURCES_MAX])
    busy = [source.newest_ms for source in clock.sources.values() if source.quiet_ms < config.idle_ms]
    if config.whole:
        found_ms = clock.proven_ms  # nothing is left to be read
    elif busy:
        found_ms = min(busy)
    else:
        found_ms = clock.proven_ms + min(source.quiet_ms for source in clock.sources.values())
    # A row from the future moves the clock to the present at most: else one wrong clock would end all other sessions.
    found_ms = min(found_ms, clock.batch_ms) - config.wait_ms
    if config.outage_ms is None:
        clock.now_ms = max(clock.now_ms, found_ms)
        return Advanced([])
    return Advanced(_outages(clock, readings, found_ms, config.outage_ms))


def _outages(clock: Clock, readings: Sequence[SourceReading], found_ms: int, outage_ms: int) -> list[tuple[int, int]]:
    """Advance the clock as far as keys were heard, and return the outages that end by then."""
    spans = merged([*clock.spans, *(span for reading in readings for span in reading.spans)], outage_ms)
    before_ms = clock.now_ms
    if spans:
        clock.now_ms = max(before_ms, min(found_ms, spans[-1][1]))
    ended = [(last, first) for (_, last), (first, _) in pairwise(spans) if before_ms < first <= clock.now_ms]
    # Of those before the clock the last one is kept: it says since when there is silence.
    decided = max((at for at, (first, _) in enumerate(spans) if first <= clock.now_ms), default=0)
    clock.spans = spans[decided:]
    return ended


def merged(spans: Sequence[tuple[int, int]], outage_ms: int) -> list[tuple[int, int]]:
    """Join stretches that overlap or lie less than an outage apart.

    Args:
        spans: (first, last), in any order.
        outage_ms: shortest silence that counts, ms.
    """
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first - joined[-1][1] < outage_ms:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined
