"""The data of the charts: the figures of each step of the last minutes."""

from __future__ import annotations

import msgspec

from heartwheel.base.percentiles import percentile
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.ticks import STEP_MS, WheelStep


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of each step, in lists of one length; `null` where nothing is known.

    Args:
        step_ms: length of a step, ms.
        t_ms: the start of each, epoch ms.
        expirations: expirations that were appended in it.
        lateness_p50_ms: how long after their deadlines, median, ms.
        lateness_p99_ms: the same, 99th percentile, ms.
        heartbeats_per_second: records that were read.
        batch_ms: the longest batch that ended in it, ms.
    """

    step_ms: int
    t_ms: list[int]
    expirations: list[int]
    lateness_p50_ms: list[int | None]
    lateness_p99_ms: list[int | None]
    heartbeats_per_second: list[float | None]
    batch_ms: list[int | None]


class SeriesStep(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of the newest step, which is not over yet; the fields are those of `Series`, for one step."""

    step_ms: int
    t_ms: int
    expirations: int
    lateness_p50_ms: int | None
    lateness_p99_ms: int | None
    heartbeats_per_second: float | None
    batch_ms: int | None


def series_of(picture: Picture, *, now_ms: int, points: int = 120, step_ms: int = STEP_MS) -> Series:
    """Return the last steps, including the present one.

    Args:
        step_ms: how long each is, ms; a multiple of `STEP_MS`.
    """
    last_ms = now_ms - now_ms % step_ms
    first_ms = last_ms - (points - 1) * step_ms
    with picture.lock:
        found = picture.ticks.steps(first_ms, last_ms + step_ms)
        by_step: dict[int, list[WheelStep]] = {}
        for at_ms, tick in found:
            by_step.setdefault(at_ms - at_ms % step_ms, []).append(tick)
        steps = [
            _step(at_ms, by_step.get(at_ms, []), step_ms, now_ms)
            for at_ms in range(first_ms, last_ms + step_ms, step_ms)
        ]
    return Series(
        step_ms=step_ms,
        t_ms=[step.t_ms for step in steps],
        expirations=[step.expirations for step in steps],
        lateness_p50_ms=[step.lateness_p50_ms for step in steps],
        lateness_p99_ms=[step.lateness_p99_ms for step in steps],
        heartbeats_per_second=[step.heartbeats_per_second for step in steps],
        batch_ms=[step.batch_ms for step in steps],
    )


def newest_step(picture: Picture, *, now_ms: int) -> SeriesStep:
    """Return the step that `now_ms` is in, so far."""
    at_ms = now_ms - now_ms % STEP_MS
    with picture.lock:
        return _step(at_ms, [tick for _, tick in picture.ticks.steps(at_ms, at_ms + STEP_MS)], STEP_MS, now_ms)


def _step(at_ms: int, ticks: list[WheelStep], step_ms: int, now_ms: int) -> SeriesStep:
    late = sorted(ms for tick in ticks for ms in tick.lateness_ms)
    records = [tick.records for tick in ticks if tick.records is not None]
    batches = [tick.batch_ms for tick in ticks if tick.batch_ms is not None]
    passed_ms = max(1_000, min(step_ms, now_ms - at_ms))
    return SeriesStep(
        step_ms=step_ms,
        t_ms=at_ms,
        expirations=sum(tick.expirations for tick in ticks),
        lateness_p50_ms=percentile(late, 0.5) if late else None,
        lateness_p99_ms=percentile(late, 0.99) if late else None,
        heartbeats_per_second=round(sum(records) * 1000 / passed_ms, 1) if records else None,
        batch_ms=max(batches, default=None),
    )
