"""An outage is not silence: when a gap in a partition's records says that nobody could write.

While a partition can be written and the ticker lives, a tick comes every interval. So a gap between neighbouring
records that is longer than `engine.outage_min`, with a tick just before it, is no silence of the members: either nobody
could write, or the ticker was gone. *Who writes the next tick says which.* The same run of the ticker: Kafka was away
(or the driver was paused, or the broker's clock jumped), and the sessions of that partition start anew at its end, as
Kafka's own coordinator gives every member a whole session when it loads a partition. Another run: the job was
restarted, and nothing is renewed, so that restarting again and again keeps nobody alive (promise P5).

The rule, on effective times (`heartwheel.log_time.reading`): a gap (a, b) of one partition is an outage if

1. b - a > outage_min;
2. the last tick before it was appended at most two of its intervals before the gap's last record;
3. the first tick after it, by a known run, is of the same run as that, and at most `RESUME_MAX_MS` after b.

Only ticks of known runs count: those with which this checkpoint was started. Others give time, like any record.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

RESUME_MAX_MS: Final = 10_000
"""How long after the end of a gap the ticker may take to write again, ms.

Measured: 0.2 to 0.3 s. A client that has to find a new leader takes seconds. Until then nothing of the partition is
decided, so this bounds for how long records are held back."""


class OutageKind(enum.StrEnum):
    """What an outage was, by the ticker's monotonic clock; it decides nothing."""

    UNWRITABLE = "unwritable"
    CLOCK_JUMP = "clock_jump"
    NOT_PASSED_ON = "not_passed_on"
    """No gap of a partition, but of a feed (`heartwheel.log_time.feeds`)."""


class TickSeen(msgspec.Struct, frozen=True, array_like=True):
    """A tick of a known run where it stands in its partition.

    Args:
        at_ms: its effective time, epoch ms.
        append_ms: its own append time, epoch ms; less than `at_ms` where append times stepped back.
        run: the ticker's.
        mono_ms: the ticker's monotonic clock, ms.
        interval_ms: from one tick to the next, ms.
    """

    at_ms: int
    append_ms: int
    run: str
    mono_ms: int
    interval_ms: int


class Gap(msgspec.Struct, frozen=True, array_like=True):
    """Two neighbouring records of a partition that lie far apart.

    Args:
        before_ms: effective time of the first, epoch ms.
        last_append_ms: its own append time, epoch ms.
        after_ms: effective time of the second, epoch ms.
        tick_before: the last tick before the gap; `None` if none is known (yet).
        tick_after: the first tick after it, likewise.
    """

    before_ms: int
    last_append_ms: int
    after_ms: int
    tick_before: TickSeen | None = None
    tick_after: TickSeen | None = None


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


def may_be_outage(gap: Gap, *, outage_min_ms: int) -> bool:
    """Tell whether points 1 and 2 of the rule hold, so that the tick after the gap decides."""
    tick = gap.tick_before
    if tick is None or gap.after_ms - gap.before_ms <= outage_min_ms:
        return False
    return gap.last_append_ms - tick.append_ms <= 2 * tick.interval_ms


def is_in_time(gap: Gap, *, now_ms: int) -> bool:
    """Tell whether the tick after a gap came in time, or still can at `now_ms`, that of the newest record, epoch ms."""
    return (now_ms if gap.tick_after is None else gap.tick_after.at_ms) - gap.after_ms <= RESUME_MAX_MS


def is_outage(gap: Gap) -> bool:
    """Tell whether the run that wrote before a gap is that which wrote after it; the rest of the rule is known."""
    before, after = gap.tick_before, gap.tick_after
    return before is not None and after is not None and before.run == after.run


def kind_of(gap: Gap, *, newest: TickSeen | None) -> OutageKind:
    """Name what a gap was: if the ticker lived through far less time than the broker's clock shows, that one jumped.

    Args:
        gap: with both its ticks.
        newest: the newest tick that was read with it: the first after the gap may have been on its way before it.
    """
    before, after = gap.tick_before, gap.tick_after
    if before is None or after is None:
        return OutageKind.CLOCK_JUMP
    if newest is not None and newest.run == before.run:
        after = newest
    lived_ms = after.mono_ms - before.mono_ms - (after.at_ms - gap.after_ms)
    return OutageKind.UNWRITABLE if 2 * lived_ms >= gap.after_ms - gap.before_ms else OutageKind.CLOCK_JUMP
