"""Timers filed again: on a wheel of another geometry, and under the handles of other rows."""

from __future__ import annotations

import numpy as np

from heartwheel.engine.shard.handles import member_deadlines, member_handle
from heartwheel.engine.shard.tables import Table
from timing_wheel import NEVER, TimingWheel


def shaped(wheel: TimingWheel, tick_ms: int | None, wheel_size: int | None) -> TimingWheel:
    """Return the wheel, or a new one with its timers if the configuration asks for another geometry.

    Args:
        wheel: with any geometry.
        tick_ms: the wanted resolution, ms; `None` for that of the wheel.
        wheel_size: the wanted number of buckets a level; `None` for that of the wheel.
    """
    old = wheel.geometry
    wanted = (tick_ms or old.tick_ms, wheel_size or old.wheel_size)
    if wanted == (old.tick_ms, old.wheel_size):
        return wheel
    deadlines = wheel.deadlines()
    armed = np.flatnonzero(deadlines != NEVER)
    anew = TimingWheel(tick_ms=wanted[0], wheel_size=wanted[1], start_ms=wheel.clock_ms, capacity=len(deadlines))
    anew.file(armed, deadlines[armed])
    return anew


def renumber_members(members: Table, wheel: TimingWheel) -> None:
    """Renumber the members to the first rows of their table, and file their timers under the handles of those."""
    kept = members.used()
    deadlines = member_deadlines(wheel, members.rows)[kept]
    wheel.cancel(member_handle(np.arange(members.rows)))
    members.keep(kept)
    armed = np.flatnonzero(deadlines != NEVER)
    wheel.file(member_handle(armed), deadlines[armed])
