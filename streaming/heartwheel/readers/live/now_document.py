"""The document of the present state, which the dashboard, `heartwheel top` and the API show."""

from __future__ import annotations

import msgspec

from heartwheel.readers.live.canary_figures import CanaryFigures
from heartwheel.readers.live.figures import Lateness
from heartwheel.readers.live.health_states import Health
from heartwheel.readers.live.logged import LogReport
from heartwheel.readers.live.storms import Offender
from heartwheel.readers.live.trouble import GroupsInTrouble
from heartwheel.wire.job import JobRow


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
