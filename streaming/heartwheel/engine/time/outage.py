"""Outages: which gaps in a partition's records mean that no client could write.

While a partition can be written and the ticker is alive, a tick comes every interval. So a gap between two records that
is longer than `engine.outage_min`, with a tick just before it, does not count as silence of the members: either no
client could write, or the ticker was down. *The ticks after the gap show which it was.* If they include a run of the
ticker that had also written before the gap, Kafka was away (or the driver was paused, or the broker's clock jumped).
Then the sessions of that partition restart at the end of the gap, just as Kafka's coordinator gives every member a
whole session when it loads a partition. If there are only other runs, the job was restarted and nothing is renewed. So
a job that keeps restarting keeps no member alive (promise P5).

The rule, on effective times (`heartwheel.engine.time.reading`): a gap (a, b) of a partition is an outage if there is a
run of the ticker for which all of this is true:

1. b - a > outage_min;
2. its last tick before the gap was appended at most half of outage_min before the gap's last record and, where append
   times step back, at most `FORGOTTEN_MS` more by effective time;
3. its first tick after the gap is at most `RESUME_MAX_MS` after b.

Ticks of other runs do not change that: two drivers may be alive, and a tick may be copied. So after a restart the
partition is undecided for `RESUME_MAX_MS`, because the run before it may still be alive.

Only ticks of known runs count, the runs of this checkpoint's starts. Other ticks only advance the time, as any record
does. Even a tick of a known run may be forged, because every tick names its run. So the rule uses nothing else from a
tick, not even its interval: the configuration ensures that half of outage_min is more than two intervals.

A record with its producer's time (`message.timestamp.type=CreateTime`) has no append time: its effective time is that
of the record before it, so it advances no time. The log does not show how long such records took. So the stretch from
the last record with an append time before them to the first one after them is an outage in any case: the members that
they keep alive have a whole session from its end.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

RESUME_MAX_MS: Final = 10_000
"""How long after the end of a gap the ticker may take to write again, ms.

Measured: 0.2 to 0.3 s. A client that has to find a new leader takes seconds. Until then the partition is undecided, so
this limits how long records are held back."""


FORGOTTEN_MS: Final = 60_000
"""How far, beyond half of outage_min, effective time may have come since a run's last tick, ms.

The ticks' own append times show how long a ticker has been silent, even where effective time has stopped or jumped.
This limits how many runs a partition has to remember."""


class OutageKind(enum.StrEnum):
    """The kind of an outage, according to the ticker's monotonic clock; it is only reported, and changes no verdict."""

    UNWRITABLE = "unwritable"
    CLOCK_JUMP = "clock_jump"
    UNTIMED = "untimed"
    """It contains records without an append time."""
    NOT_RELAYED = "not_passed_on"
    """A gap of a feed, not of a partition (`heartwheel.engine.time.feeds`)."""


class TickSeen(msgspec.Struct, frozen=True, array_like=True):
    """A tick of a known run, with its times in its partition.

    Args:
        at_ms: its effective time, epoch ms.
        append_ms: its own append time, epoch ms; less than `at_ms` where append times stepped back.
        mono_ms: the ticker's monotonic clock, ms.
    """

    at_ms: int
    append_ms: int
    run: str
    mono_ms: int


class PartitionGap(msgspec.Struct, array_like=True):
    """A gap: two consecutive records of a partition that are far apart.

    Args:
        before_ms: effective time of the first record, epoch ms.
        last_append_ms: append time of that record itself, epoch ms.
        after_ms: effective time of the second record, epoch ms.
        ticks_before: the last known tick of each run before the gap.
        ticks_after: the first known tick of each run that came in time after it, in the order of the log.
        untimed: whether there are records without an append time between the two; then the gap is an outage in any
            case.
    """

    before_ms: int
    last_append_ms: int
    after_ms: int
    ticks_before: list[TickSeen] = []
    ticks_after: list[TickSeen] = []
    untimed: bool = False


class Outage(msgspec.Struct, frozen=True, array_like=True):
    """A gap that was an outage.

    Args:
        partition: the partition of the heartbeat topic, or the number of a feed's source.
        before_ms: effective time of the last record before it, epoch ms.
        after_ms: effective time of the first record after it, epoch ms.
        kind: what it was, as far as the log shows.
        group_id: the only group that it concerns; empty if it concerns all groups of its partition.
    """

    partition: int
    before_ms: int
    after_ms: int
    kind: OutageKind
    group_id: str = ""


def is_remembered(tick: TickSeen, watermark_ms: int, *, outage_min_ms: int) -> bool:
    """Return whether a run's last tick may count as just before a gap that begins at `watermark_ms`."""
    return 2 * (watermark_ms - tick.at_ms - FORGOTTEN_MS) <= outage_min_ms


def just_before(gap: PartitionGap, *, outage_min_ms: int) -> list[TickSeen]:
    """Return the ticks of the runs that were alive when a gap began: point 2 of the rule."""
    return [
        tick
        for tick in gap.ticks_before
        if 2 * (gap.last_append_ms - tick.append_ms) <= outage_min_ms
        and is_remembered(tick, gap.before_ms, outage_min_ms=outage_min_ms)
    ]


def is_long(gap: PartitionGap, *, outage_min_ms: int) -> bool:
    """Return whether a gap is long enough for an outage: point 1 of the rule."""
    return gap.after_ms - gap.before_ms > outage_min_ms or (gap.untimed and gap.after_ms > gap.before_ms)


def is_in_time(gap: PartitionGap, at_ms: int) -> bool:
    """Return whether a tick at a time, epoch ms, comes soon enough after a gap: point 3 of the rule."""
    return at_ms - gap.after_ms <= RESUME_MAX_MS


def evidence(gap: PartitionGap) -> tuple[TickSeen, TickSeen] | None:
    """Return the last tick before a gap and the first one after it of a run that outlived it; `None` without one.

    Args:
        gap: a gap whose `ticks_before` are all just before it.
    """
    alive = {tick.run: tick for tick in gap.ticks_before}
    return next(((alive[after.run], after) for after in gap.ticks_after if after.run in alive), None)


def kind_of(gap: PartitionGap, before: TickSeen, after: TickSeen) -> OutageKind:
    """Return the kind of an outage: if the ticker measured far less time than the broker's clock, that clock jumped.

    Args:
        before: the last tick before it of a run that outlived it.
        after: the newest tick of that run that was read. The first one after the gap would not do, because it may have
            been sent before the gap.
    """
    lived_ms = after.mono_ms - before.mono_ms - (after.at_ms - gap.after_ms)
    return OutageKind.UNWRITABLE if 2 * lived_ms >= gap.after_ms - gap.before_ms else OutageKind.CLOCK_JUMP
