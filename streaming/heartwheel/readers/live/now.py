"""The present state in one document: the first thing a person with a pager sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Final, NamedTuple

import msgspec

from heartwheel.base.percentiles import HUNDRED
from heartwheel.base.phrases import count, length, setting
from heartwheel.readers.live.canary_figures import CanaryFigures
from heartwheel.readers.live.expirations import count_expirations
from heartwheel.readers.live.figures import Lateness, lateness_of
from heartwheel.readers.live.groups import storms
from heartwheel.readers.live.health import Health, Signs, health_of
from heartwheel.readers.live.logged import LogReport
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.states import ShownKind, state_of
from heartwheel.readers.live.storms import Offender, Storm, StormRule
from heartwheel.readers.live.ticks import STEP_MS
from heartwheel.readers.live.totals import totals_of
from heartwheel.readers.live.trouble import GroupsInTrouble, groups_in_trouble
from heartwheel.readers.live.wheel import shards_of
from heartwheel.wire.job import JobRow

VERSION: Final = metadata.version("heartwheel")
"""Release of heartwheel."""

_RATE_MS: Final = 60_000
_BEATS_STEPS: Final = 2
_STORMS_MAX: Final = 20


class LastBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The newest batch: Spark's number, when it ended (epoch ms), how long it took (ms), how much it read."""

    batch_id: int
    at_ms: int
    duration_ms: int
    records: int
    behind: int


class StormLine(msgspec.Struct, frozen=True, kw_only=True):
    """A group that is in a storm; see `Storm`."""

    group_id: str
    count: int
    window_ms: int
    first_cause: str
    offenders: list[Offender]


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The time that the picture covers.

    Args:
        from_ms: expirations since then are all there, epoch ms.
        kept_ms: for how long events are kept, ms.
        expirations: how many are kept.
        expirations_max: how many can be kept.
        dropped: how many were dropped early, because there were too many.
    """

    from_ms: int
    kept_ms: int
    expirations: int
    expirations_max: int
    dropped: int


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """The present state, in one document.

    Args:
        at_ms: wall clock of the answer, epoch ms.
        version: release of heartwheel.
        health: whether the engine can be trusted.
        members: members of all shards, those of the canary left out, as in the next three; `None` before any shard has
            reported. If the engine does not process them, they are as of `health.as_of_ms`.
        groups: groups of all shards; the same applies.
        groups_by_state: count by Kafka's state name.
        groups_by_kind: count by kind.
        shards: how many shards there are.
        shards_held: how many of them have their clock held.
        expirations_per_minute: expirations that were appended in the last minute; `None` if no engine decides.
        expirations_total: expirations in the window.
        triggers_total: rows of the triggers topic that were seen.
        lateness_ms: how long after their deadlines the expirations of the window were known.
        clock_ms: up to where every shard has fired its timers, epoch ms; -1 before all have.
        clock_behind_ms: how far that is behind the wall clock, ms; `None` before all have.
        last_batch: the newest batch, if the job reports it.
        backlog: records that are yet to be read, if the job reports that and reads.
        heartbeats_per_second: records that were read lately; `None` if no status row came lately.
        rejects_total: rejected records that were seen.
        rejects_by_cause: the same by cause.
        strays: groups with records in more than one partition, and their number.
        storms: groups that rebalance again and again, the worst first.
        trouble: groups that have lost their members, storm, flap, or poll too late, the worst first.
        canary: figures of the canary, if one runs.
        window: the time that is shown.
        job: the newest row of the job, if any.
        log: the report of brokers' logs on all groups, if these are shown.
    """

    at_ms: int
    version: str
    health: Health
    members: int | None
    groups: int | None
    groups_by_state: dict[str, int]
    groups_by_kind: dict[str, int]
    shards: int
    shards_held: int
    expirations_per_minute: int | None
    expirations_total: int
    triggers_total: int
    lateness_ms: Lateness
    clock_ms: int
    clock_behind_ms: int | None
    last_batch: LastBatch | None
    backlog: int | None
    heartbeats_per_second: float | None
    rejects_total: int
    rejects_by_cause: dict[str, int]
    strays: dict[str, int]
    storms: list[StormLine]
    trouble: GroupsInTrouble
    canary: CanaryFigures | None
    window: Window
    job: JobRow | None
    log: LogReport | None


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


def now_of(picture: Picture, view: View, *, now_ms: int) -> Now:
    """Return the present state.

    Args:
        picture: the content of the topics.
        view: the parameters.
        now_ms: wall clock, epoch ms.
    """
    with picture.lock:
        rows = tuple(picture.status.values())
        job, shards = picture.job, shards_of(picture)
        kept = [row for row in picture.window.rows if view.show_canary or not picture.is_canary(row.group_id)]
        lateness = lateness_of([row.known_late_ms for row in kept if row.known_late_ms is not None], objective_ms(job))
        strays: Counter[str] = Counter()
        for row in rows:
            strays.update(row.strays)
        signs = Signs(
            linked=picture.linked,
            linked_since_ms=picture.linked_since_ms,
            bootstrap=view.bootstrap,
            job=job,
            shards=rows,
            reasons=() if picture.log else _reasons(lateness, strays, view.canary),
            log=picture.log,
            written_ms=picture.written_ms,
        )
        hidden = [] if view.show_canary else picture.canaries()
        members, groups, clock_ms = totals_of(picture, shards=shards, hidden=hidden)
        health = health_of(signs, now_ms=now_ms)
        decides = health.as_of_ms is None and bool(rows)
        seen_ms = picture.written_ms if picture.log else now_ms if health.as_of_ms is None else health.as_of_ms
        stormy = storms(picture, view.storm, now_ms=seen_ms, canary=view.show_canary)
        return Now(
            at_ms=now_ms,
            version=VERSION,
            health=health,
            members=members if rows else None,
            groups=groups if rows else None,
            groups_by_state=_less(_summed([row.groups_by_state for row in rows]), map(state_of, hidden)),
            groups_by_kind=_less(_summed([row.groups_by_kind for row in rows]), (ShownKind.PRESENCE for _ in hidden)),
            shards=shards,
            shards_held=sum(row.held for row in rows),
            expirations_per_minute=sum(row.append_ms > now_ms - _RATE_MS for row in kept) if decides else None,
            expirations_total=len(kept),
            triggers_total=picture.triggers_total,
            lateness_ms=lateness,
            clock_ms=clock_ms,
            clock_behind_ms=now_ms - clock_ms if clock_ms >= 0 else None,
            last_batch=_last_batch(job),
            backlog=job.last_batch.behind if decides and job and job.last_batch else None,
            heartbeats_per_second=_heartbeats(picture, now_ms) if decides else None,
            rejects_total=picture.rejects.total(),
            rejects_by_cause=dict(picture.rejects),
            strays=dict(strays),
            storms=[_storm_line(group_id, storm) for group_id, storm in stormy[:_STORMS_MAX]],
            trouble=groups_in_trouble(
                picture, view.storm, now_ms=seen_ms, canary=view.show_canary, known=decides or picture.log_tells
            ),
            canary=view.canary,
            window=_window(picture, now_ms, count_expirations(picture, canary=True)),
            job=job,
            log=picture.log_report,
        )


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
        from_ms=max(from_ms, oldest_ms),
        kept_ms=picture.window_ms,
        expirations=kept,
        expirations_max=window.rows_max,
        dropped=window.dropped,
    )


def _reasons(lateness: Lateness, strays: Mapping[str, int], canary: CanaryFigures | None) -> tuple[str, ...]:
    return tuple(line for line in (_late(lateness), _stray(strays), *_canary(canary)) if line)


def _late(lateness: Lateness) -> str:
    if lateness.objective is None or lateness.p99 <= lateness.objective:
        return ""
    if lateness.count < HUNDRED:
        which = "The only expiration" if lateness.count == 1 else f"The slowest of {lateness.count} expirations"
        late = f"{which} was known {length(lateness.max)} after its deadline"
    else:
        late = f"One expiration in a hundred was known {length(lateness.p99)} after its deadline, or later"
    return f"{late}; the objective is {setting(lateness.objective)}."


def _stray(strays: Mapping[str, int]) -> str:
    if not strays:
        return ""
    names = ", ".join(sorted(strays)[:3])
    return f"Groups send to more than one partition: {names}. Use one partitioner (murmur2) in all producers."


def _canary(canary: CanaryFigures | None) -> list[str]:
    if canary is None:
        return []
    missed, false, late, lines = canary.missed, canary.false_, canary.late, list[str]()
    if missed:
        lines.append(f"The canary was not expired in time {count(missed, 'time')}: real members may be missed too.")
    if false:
        lines.append(f"The canary was expired {count(false, 'time')} though it was alive: real members may be too.")
    if late:
        lines.append(f"The canary was expired late {count(late, 'time')}: real members may be, too.")
    return lines
