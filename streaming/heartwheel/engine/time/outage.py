"""An outage is not silence: when a gap in a partition's records says that nobody could write.

While a partition can be written and the ticker lives, a tick comes every interval. So a gap between neighbouring
records that is longer than `engine.outage_min`, with a tick just before it, is no silence of the members: either nobody
could write, or the ticker was gone. *Who writes after it says which.* A run of the ticker that had written before it:
Kafka was away (or the driver was paused, or the broker's clock jumped), and the sessions of that partition start anew
at its end, as Kafka's own coordinator gives every member a whole session when it loads a partition. Other runs alone:
the job was restarted, and nothing is renewed, so that restarting again and again keeps nobody alive (promise P5).

The rule, on effective times (`heartwheel.engine.time.reading`): a gap (a, b) of one partition is an outage if there is
a run that lived through it, whoever else ticks meanwhile:

1. b - a > outage_min;
2. its last tick before the gap was appended at most half of outage_min before the gap's last record, and, where append
   times step back, at most `FORGOTTEN_MS` more by effective time;
3. its first tick after the gap is at most `RESUME_MAX_MS` after b.

Whoever else ticks takes nothing from that: two drivers may be alive, and a tick may be copied. So after a restart the
partition is undecided for `RESUME_MAX_MS`, as the run before may be alive.

Only ticks of known runs count: those with which this checkpoint was started. Others give time, like any record. A tick
of a known run may be forged all the same, as runs stand in every tick. So nothing else that a tick says takes part in
the rule, not even its interval: half of outage_min is more than two intervals by the configuration.

A record that carries its producer's time (`message.timestamp.type=CreateTime`) has no append time: it stands at the
effective time of its partition before it, and no time passes by it. How long such records took is not in the log. So
from the last record with an append time before them to the first one after them is an outage in any case: what they
keep alive has a whole session from its end.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

RESUME_MAX_MS: Final = 10_000
"""How long after the end of a gap the ticker may take to write again, ms.

Measured: 0.2 to 0.3 s. A client that has to find a new leader takes seconds. Until then nothing of the partition is
decided, so this bounds for how long records are held back."""


FORGOTTEN_MS: Final = 60_000
"""How far, beyond half of outage_min, effective time may have come since a run's last tick, ms.

Own append times tell how long a ticker has been silent, also where effective time stands still or has jumped. This
bounds how many runs a partition has to remember."""


class OutageKind(enum.StrEnum):
    """What an outage was, by the ticker's monotonic clock; it decides nothing."""

    UNWRITABLE = "unwritable"
    CLOCK_JUMP = "clock_jump"
    UNTIMED = "untimed"
    """Records without an append time stand in it."""
    NOT_PASSED_ON = "not_passed_on"
    """No gap of a partition, but of a feed (`heartwheel.engine.time.feeds`)."""


class TickSeen(msgspec.Struct, frozen=True, array_like=True):
    """A tick of a known run where it stands in its partition.

    Args:
        at_ms: its effective time, epoch ms.
        append_ms: its own append time, epoch ms; less than `at_ms` where append times stepped back.
        run: the ticker's.
        mono_ms: the ticker's monotonic clock, ms.
    """

    at_ms: int
    append_ms: int
    run: str
    mono_ms: int


class PartitionGap(msgspec.Struct, array_like=True):
    """Two neighbouring records of a partition that lie far apart.

    Args:
        before_ms: effective time of the first, epoch ms.
        last_append_ms: its own append time, epoch ms.
        after_ms: effective time of the second, epoch ms.
        ticks_before: the last tick of each run before the gap, as far as it is known.
        ticks_after: the first tick of each run after it that came in time, likewise, in the order of the log.
        untimed: whether records without an append time stand between the two; then it is an outage whatever the ticks.
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
        partition: of the heartbeat topic, or the number of a feed's source.
        before_ms: effective time of the last record before it, epoch ms.
        after_ms: effective time of the first record after it, epoch ms.
        kind: what it was, as far as one can tell.
        group_id: the one group that it is of; empty if it is of all groups of its partition.
    """

    partition: int
    before_ms: int
    after_ms: int
    kind: OutageKind
    group_id: str = ""


def is_remembered(tick: TickSeen, watermark_ms: int, *, outage_min_ms: int) -> bool:
    """Return whether a run's last tick may still stand just before a gap that begins at a time, epoch ms."""
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
    """Return whether a tick of that time, epoch ms, comes soon enough after a gap: point 3 of the rule."""
    return at_ms - gap.after_ms <= RESUME_MAX_MS


def evidence(gap: PartitionGap) -> tuple[TickSeen, TickSeen] | None:
    """Return the ticks of a run that lived through a gap, last before and first after it; `None` if none did.

    Args:
        gap: that has only ticks just before it.
    """
    alive = {tick.run: tick for tick in gap.ticks_before}
    return next(((alive[after.run], after) for after in gap.ticks_after if after.run in alive), None)


def kind_of(gap: PartitionGap, before: TickSeen, after: TickSeen) -> OutageKind:
    """Name what a gap was: if the ticker lived through far less time than the broker's clock shows, that one jumped.

    Args:
        gap: that was an outage.
        before: the last tick before it of a run that lived through it.
        after: the newest tick of that run that was read: the first after the gap may have been on its way before it.
    """
    lived_ms = after.mono_ms - before.mono_ms - (after.at_ms - gap.after_ms)
    return OutageKind.UNWRITABLE if 2 * lived_ms >= gap.after_ms - gap.before_ms else OutageKind.CLOCK_JUMP
