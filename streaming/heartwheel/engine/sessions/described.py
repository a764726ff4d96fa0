"""What `sessions.describe` prints."""

from __future__ import annotations

from heartwheel.engine.sessions.arguments import Options
from heartwheel.engine.sessions.config import SessionsConfig
from heartwheel.settings.units import format_duration


def described(
    config: SessionsConfig,
    options: Options,
    *,
    by_partition: bool,
    has_ticks: bool,
    state_partitions: int,
    keeps_running: bool,
    name: str,
) -> str:
    """Return which time a query uses, and what it assumes, a line a subject.

    Args:
        config: the query's.
        options: the arguments.
        by_partition: whether rows name their partition of the source.
        has_ticks: whether some rows are ticks.
        state_partitions: Spark's shuffle partitions.
        keeps_running: whether Spark has batches without rows.
        name: of the observed metrics.
    """
    timeout = "a column" if config.timeout_ms is None else format_duration(config.timeout_ms)
    lines = {
        "sessions": f"of {', '.join(options.keys)}; gone after {timeout} without an event"
        + ("" if options.ends is None else ", or by an event that ends it"),
        "time": _time(config, options),
        "clock": _clock(config, by_partition=by_partition),
        "no rows": _quiet(config, has_ticks=has_ticks),
        "stops": "while the query is stopped no time passes",
        "late": "an event older than the clock still counts for a key that is not gone; for one that is, it is a row "
        f"`back` with reason `late`, if it would have kept the key alive; the clock waits "
        f"{format_duration(config.wait_ms)} for such",
        "state": f"{config.shards} shards, at most {config.keys_max * config.shards:,} keys, each forgotten "
        f"{format_duration(config.forget_ms)} after its end{_room(config)}",
        "metrics": f'lastProgress["observedMetrics"]["{name}"]: late, untimed, unkeyed and refused '
        "count what could not be used as it was",
    }
    notes = []
    if state_partitions > 4 * config.shards or state_partitions >= 100:
        notes.append(
            f"spark.sql.shuffle.partitions is {state_partitions}: each batch has as many tasks. One a core is enough"
        )
    if not config.whole and keeps_running:
        notes.append(
            "set a trigger, such as processingTime='500 milliseconds': without one, batches follow each other at once; "
            "with availableNow=True the query ends only if spark.sql.streaming.noDataMicroBatches.enabled is false"
        )
    text = [f"{subject:<9} {words}" for subject, words in lines.items()]
    return "\n".join(text + [f"{'note':<9} {note}" for note in notes])


def _room(config: SessionsConfig) -> str:
    if config.whole:
        return ""
    size = config.bytes_max * config.shards / (1 << 20)
    return f", and {size:.0f} MiB, a part of spark.driver.memory, or on a cluster of spark.executor.memory"


def _time(config: SessionsConfig, options: Options) -> str:
    if not config.event_time:
        return "that of the batch in which an event is read (processing time), as time= is not given"
    ahead = options.ahead if isinstance(options.ahead, str) else str(options.ahead)
    return f"that of the events, time={_named(options.time)}; one more than {ahead} ahead of the batch counts as now"


def _named(value: object) -> str:
    return value if isinstance(value, str) else str(value).removeprefix("Column<'").removesuffix("'>")


def _clock(config: SessionsConfig, *, by_partition: bool) -> str:
    if not config.event_time:
        return "the batch's timestamp"
    if config.whole:
        return "the newest time of all events, as none is left to be read"
    if by_partition:
        return "the least of the newest times of the source's partitions (column partition)"
    return "the newest time of the whole source, as there is no column partition: what is read later must be newer"


def _quiet(config: SessionsConfig, *, has_ticks: bool) -> str:
    if config.whole:
        return "the end of the data ends nothing that is not due by its newest event"
    if config.outage_ms is not None:
        return (
            "while no key is heard no time passes, and after "
            f"{format_duration(config.outage_ms)} of it all sessions start again"
        )
    if not config.event_time:
        return "time goes on: a source that is silent for the timeout ends all sessions (outage= prevents it)"
    ticks = "; ticks give it a time" if has_ticks else ""
    return (
        f"a partition without rows is left out after {format_duration(config.idle_ms)} of running time{ticks}; once "
        "all are, the clock goes on with the running query (outage= prevents that)"
    )
