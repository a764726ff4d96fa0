"""The timing wheel of a shard, from its newest status row."""

from __future__ import annotations

import msgspec

from heartwheel.readers.live.picture import Picture
from heartwheel.wire.status import AtRiskMember, StatusRow


class WheelLevelView(msgspec.Struct, frozen=True, kw_only=True):
    """One level of a wheel.

    Args:
        tick_ms: width of a slot, ms.
        span_ms: width of the whole level, ms.
        entries: timers on it.
        slots: timers of each slot.
        hand: the slot in which the clock is; `None` before the clock runs.
    """

    tick_ms: int
    span_ms: int
    entries: int
    slots: tuple[int, ...]
    hand: int | None


class WheelView(msgspec.Struct, frozen=True, kw_only=True):
    """The wheel of a shard.

    Args:
        shard: which.
        shards: how many there are.
        clock_ms: up to where timers have fired, epoch ms; -1 before the first live trigger.
        batch_ms: timestamp of the trigger that wrote the row, epoch ms.
        held: whether the clock stands still because a backlog is being read.
        tick_ms: width of a slot of the finest level, ms; 0 while the wheel is empty.
        size: slots a level.
        moves: timers moved since the shard was created.
        fires: timers fired since the shard was created.
        members: members of the shard.
        levels: the finest first.
        at_risk: members nearest to expiry.
        state_bytes: size of the shard's encoded state.
    """

    shard: int
    shards: int
    clock_ms: int
    batch_ms: int
    held: bool
    tick_ms: int
    size: int
    moves: int
    fires: int
    members: int
    levels: list[WheelLevelView]
    at_risk: list[AtRiskMember]
    state_bytes: int


def shards_of(picture: Picture) -> int:
    """Return the number of shards, as far as it is known."""
    known = max(picture.status, default=-1) + 1
    return max(known, picture.job.shards if picture.job else 0)


def wheel_of(picture: Picture, shard: int, *, canary: bool = False) -> WheelView | None:
    """Return the wheel of a shard.

    Returns:
        The wheel; `None` before the first status row of that shard.
    """
    with picture.lock:
        row, shards = picture.status.get(shard), shards_of(picture)
    if row is None:
        return None
    return WheelView(
        shard=shard,
        shards=shards,
        clock_ms=row.clock_ms,
        batch_ms=row.batch_ms,
        held=row.held,
        tick_ms=row.wheel[0].tick_ms if row.wheel else 0,
        size=len(row.wheel[0].slots) if row.wheel else 0,
        moves=row.wheel_moves,
        fires=row.wheel_fires,
        members=row.members,
        levels=_levels(row),
        at_risk=[member for member in row.at_risk if canary or not picture.is_canary(member.group_id)],
        state_bytes=row.state_bytes,
    )


def _levels(row: StatusRow) -> list[WheelLevelView]:
    return [
        WheelLevelView(
            tick_ms=level.tick_ms,
            span_ms=level.tick_ms * len(level.slots),
            entries=level.entries,
            slots=level.slots,
            # A slot is the deadline's tick modulo the number of slots, so the clock's own slot follows.
            hand=row.clock_ms // level.tick_ms % len(level.slots) if row.clock_ms >= 0 and level.slots else None,
        )
        for level in row.wheel
    ]
