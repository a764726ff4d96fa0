"""The present state, as `Now`: the first thing a person with a pager sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from importlib import metadata
from typing import Final, NamedTuple

import msgspec

from heartwheel.readers.live.canary_figures import CanaryFigures
from heartwheel.readers.live.expiration import Expiration
from heartwheel.readers.live.expirations import count_expirations
from heartwheel.readers.live.figures import Lateness, lateness_of
from heartwheel.readers.live.group_entry import GroupEntry
from heartwheel.readers.live.groups import storms
from heartwheel.readers.live.health import Signs, health_of
from heartwheel.readers.live.health_states import Health
from heartwheel.readers.live.now_document import LastBatch, Now, StormLine, Window
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.states import ShownKind, state_of
from heartwheel.readers.live.storms import Storm, StormRule
from heartwheel.readers.live.ticks import STEP_MS
from heartwheel.readers.live.totals import totals_of
from heartwheel.readers.live.trouble import groups_in_trouble
from heartwheel.readers.live.warnings import verdict_warnings
from heartwheel.readers.live.wheel import shards_of
from heartwheel.wire.job import JobRow
from heartwheel.wire.status import StatusRow

VERSION: Final = metadata.version("heartwheel")
"""Release of heartwheel."""

_RATE_MS: Final = 60_000
_BEATS_STEPS: Final = 2
_STORMS_MAX: Final = 20


class View(NamedTuple):
    """The parameters for showing a picture.

    Args:
        bootstrap: the brokers' address, for sentences.
        storm: the definition of a storm.
        canary: the canary's figures, if one runs.
        show_canary: whether the canary's own groups count.
    """

    bootstrap: str = ""
    storm: StormRule = StormRule()
    canary: CanaryFigures | None = None
    show_canary: bool = False


class _Facts(NamedTuple):
    """What several figures of the document are computed from.

    Args:
        rows: the newest row of each shard.
        job: the newest row of the job, if any.
        kept: the expirations that count.
        hidden: the canary's groups, if they do not count.
        lateness: how late the expirations were known.
        strays: groups with records in more than one partition, and their number.
        health: whether the engine can be trusted.
        seen_ms: the time that the picture shows, epoch ms.
        decides: whether an engine decides at the moment.
    """

    rows: tuple[StatusRow, ...]
    job: JobRow | None
    kept: list[Expiration]
    hidden: list[GroupEntry]
    lateness: Lateness
    strays: dict[str, int]
    health: Health
    seen_ms: int
    decides: bool


def now_of(picture: Picture, view: View, *, now_ms: int) -> Now:
    """Return the present state."""
    with picture.lock:
        facts = _facts(picture, view, now_ms)
        rows, job, hidden, decides = facts.rows, facts.job, facts.hidden, facts.decides
        shards = shards_of(picture)
        members, groups, clock_ms = totals_of(picture, shards=shards, hidden=hidden)
        stormy = storms(picture, view.storm, now_ms=facts.seen_ms, canary=view.show_canary)
        known = decides or picture.log_tells
        return Now(
            at_ms=now_ms,
            version=VERSION,
            health=facts.health,
            members=members if rows else None,
            groups=groups if rows else None,
            groups_by_state=_less(_summed([row.groups_by_state for row in rows]), map(state_of, hidden)),
            groups_by_kind=_less(_summed([row.groups_by_kind for row in rows]), (ShownKind.PRESENCE for _ in hidden)),
            shards=shards,
            shards_held=sum(row.held for row in rows),
            expirations_per_minute=_last_minute(facts.kept, now_ms) if decides else None,
            expirations_total=len(facts.kept),
            triggers_total=picture.triggers_total,
            lateness_ms=facts.lateness,
            clock_ms=clock_ms,
            clock_behind_ms=now_ms - clock_ms if clock_ms >= 0 else None,
            last_batch=_last_batch(job),
            backlog=job.last_batch.behind if decides and job and job.last_batch else None,
            heartbeats_per_second=_heartbeats(picture, now_ms) if decides else None,
            rejects_total=picture.rejects.total(),
            rejects_by_cause=dict(picture.rejects),
            strays=facts.strays,
            storms=[_storm_line(group_id, storm) for group_id, storm in stormy[:_STORMS_MAX]],
            trouble=groups_in_trouble(picture, view.storm, now_ms=facts.seen_ms, canary=view.show_canary, known=known),
            canary=view.canary,
            window=_window(picture, now_ms, count_expirations(picture, canary=True)),
            job=job,
            log=picture.log_report,
        )


def _facts(picture: Picture, view: View, now_ms: int) -> _Facts:
    rows, job = tuple(picture.status.values()), picture.job
    kept = [row for row in picture.window.rows if view.show_canary or not picture.is_canary(row.group_id)]
    lateness = lateness_of([row.known_late_ms for row in kept if row.known_late_ms is not None], objective_ms(job))
    strays = _summed([row.strays for row in rows])
    signs = Signs(
        linked=picture.linked,
        linked_since_ms=picture.linked_since_ms,
        bootstrap=view.bootstrap,
        job=job,
        shards=rows,
        reasons=() if picture.log else verdict_warnings(lateness, strays, view.canary),
        log=picture.log,
        log_is_behind=picture.log_is_behind,
        written_ms=picture.written_ms,
    )
    health = health_of(signs, now_ms=now_ms)
    return _Facts(
        rows=rows,
        job=job,
        kept=kept,
        hidden=[] if view.show_canary else picture.canaries(),
        lateness=lateness,
        strays=strays,
        health=health,
        seen_ms=picture.written_ms if picture.log else now_ms if health.as_of_ms is None else health.as_of_ms,
        decides=health.as_of_ms is None and bool(rows),
    )


def _last_minute(kept: Iterable[Expiration], now_ms: int) -> int:
    return sum(row.append_ms > now_ms - _RATE_MS for row in kept)


def objective_ms(job: JobRow | None) -> int | None:
    """Return how late an expiration may be known, ms (promise P2, `heartwheel.wire.lateness`)."""
    return None if job is None else job.lateness_objective_ms


def _storm_line(group_id: str, storm: Storm) -> StormLine:
    return StormLine(group_id=group_id, **msgspec.structs.asdict(storm))


def _summed(counts: list[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _less(counts: dict[str, int], hidden: Iterable[str | None]) -> dict[str, int]:
    """Return counts without the canary's groups, whose states are from a slightly different moment."""
    left = Counter(counts)
    left.subtract(each for each in hidden if each in counts)
    return {str(name): number for name, number in left.items() if number > 0}


def _last_batch(job: JobRow | None) -> LastBatch | None:
    if job is None or job.last_batch is None:
        return None
    batch = job.last_batch
    return LastBatch(
        batch_id=batch.batch_id,
        at_ms=batch.ended_ms,
        duration_ms=batch.duration_ms,
        records=batch.records,
        behind=batch.behind,
    )


def _heartbeats(picture: Picture, now_ms: int) -> float | None:
    """Return the rate of the last two whole steps: the present one has just begun."""
    end_ms = now_ms - now_ms % STEP_MS
    steps = picture.ticks.steps(end_ms - _BEATS_STEPS * STEP_MS, end_ms)
    records = [tick.records for _, tick in steps if tick.records is not None]
    return round(sum(records) * 1000 / (len(records) * STEP_MS), 1) if records else None


def _window(picture: Picture, now_ms: int, kept: int) -> Window:
    window = picture.window
    from_ms = now_ms - picture.window_ms
    # The dropped ones were older than all that are kept.
    oldest_ms = window.rows[0].append_ms if window.dropped and window.rows else from_ms
    return Window(
        from_ms=max(from_ms, oldest_ms, window.known_from_ms or from_ms),
        kept_ms=picture.window_ms,
        expirations=kept,
        expirations_max=window.rows_max,
        dropped=window.dropped,
    )
