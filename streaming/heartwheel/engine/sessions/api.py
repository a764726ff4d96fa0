"""`sessions`: which keys of a DataFrame have fallen silent, have come, and have come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, Literal

from heartwheel.engine.sessions.arguments import Checks, Duration, Options, SessionsArgumentError, checked
from heartwheel.engine.sessions.config import SessionsConfig
from heartwheel.engine.sessions.described import described

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


Event = Literal["gone", "came", "back"]

METRICS: Final = "heartwheel_sessions"
"""The name of the observed metrics."""


class Sessions:
    """The type of `heartwheel.sessions`, which is called like a function."""

    def __call__(  # noqa: PLR0913 - each is a question that a user has
        self,
        events: DataFrame,
        *,
        key: str | Sequence[str],
        timeout: Duration | Column,
        time: str | Column | None = None,
        ends: str | Column | None = None,
        carry: Sequence[str] = (),
        emit: Iterable[Event] = ("gone", "came", "back"),
        idle: Duration = "30 seconds",
        wait: Duration = "0 seconds",
        outage: Duration | None = None,
        ahead: Duration = "10 seconds",
        forget: Duration = "7 days",
        partition: str | Column | None = "partition",
        ticks: Column | None = None,
        shards: int | None = None,
        keys_max: int = 16_000_000,
        name: str = METRICS,
    ) -> DataFrame:
        """Return a row for each key that falls silent, is seen for the first time, or is seen again.

        Columns: those of `key`, `event` (`gone`, `came`, `back`), `at`, `first_seen` (of the session), `last_seen`
        (before `at`), `deadline`, `silent_for` (seconds from `last_seen` to `at`), `times` (number of the session),
        `reason` (`timeout`, `late`, or that of `ends`), those of `carry`, and `id`, which is equal on every replay.
        Times are whole milliseconds.

        Args:
            events: any DataFrame, streaming or not. In one that is not, all rows are there: nothing is waited for.
            key: names of the columns that tell keys apart.
            timeout: after how long without an event a key is gone: a duration such as "30 seconds", or a column of
                seconds or of a day-time interval. Of each event, it counts until the next one of its key.
            time: when an event happened, a column of timestamps; left out, it is when its batch was planned.
            ends: which events end the session of their key in an orderly way: a column of booleans, or of strings, the
                reasons, null for events that do not.
            carry: columns whose last values are in the row.
            emit: which events become rows.
            idle: after how long without a row a partition of the source no longer holds back the clock.
            wait: how far the clock stays behind the events, for those that come out of order.
            outage: a silence of all keys of this length is taken as one of the source: nobody is gone by it.
            ahead: an event that is further ahead of the batch has a wrong clock: it counts as seen now.
            forget: how long after its end a key is remembered; then it comes, in place of coming back.
            partition: the column with the partition of the source, in which times ascend; if there is no such column,
                or with `None`, the whole source is one.
            ticks: which rows are ticks: they have a time and no key (`heartwheel tick`).
            shards: how many parts of the state there are, `spark.sql.shuffle.partitions` if left out. A checkpoint
                keeps its number.
            keys_max: how many keys are remembered at most; what is beyond is counted as refused.
            name: of the observed metrics.

        Raises:
            SessionsArgumentError: arguments are wrong; all errors at once.
        """
        from heartwheel.engine.sessions.plan import planned  # noqa: PLC0415 - Spark, only where it is used
        from heartwheel.engine.sessions.plan_arguments import inputs_of, output_schema  # noqa: PLC0415 - likewise

        options = Options(key, timeout, time, ends, carry, emit, idle, wait, outage, ahead, forget, shards, keys_max)
        checks = Checks()
        config = _config(events, options, checks)
        inputs = inputs_of(events, options, partition, ticks, checks)
        if not name or not isinstance(name, str):
            checks.add("name", f"{name!r} is no name of observed metrics")
        checks.end()
        return planned(events, inputs, config, output_schema(events, options), name)

    def describe(self, events: DataFrame, **arguments: Any) -> None:
        """Print which time is used, and what is assumed.

        Args:
            events: any DataFrame.
            arguments: those of `sessions`.

        Raises:
            SessionsArgumentError: arguments are wrong; all errors at once.
        """
        from heartwheel.engine.sessions.plan_arguments import inputs_of, partitions_of  # noqa: PLC0415 - Spark

        bound = signature(Sessions.__call__).bind(self, events, **arguments)
        bound.apply_defaults()
        given = bound.arguments
        options = Options(**{name: given[name] for name in Options._fields})
        checks = Checks()
        config = _config(events, options, checks)
        inputs_of(events, options, given["partition"], given["ticks"], checks)
        checks.end()
        conf = events.sparkSession.conf
        text = described(
            config,
            options,
            by_partition=partitions_of(events, given["partition"]) is not None,
            has_ticks=given["ticks"] is not None,
            state_partitions=int(conf.get("spark.sql.shuffle.partitions") or 200),
            keeps_running=conf.get("spark.sql.streaming.noDataMicroBatches.enabled") != "false",
            name=given["name"],
        )
        print(text)  # noqa: T201 - it is what it is for

    def test(  # noqa: PLR0913 - likewise
        self,
        rows: Sequence[Mapping[str, Any]] | Sequence[tuple[datetime, Sequence[Mapping[str, Any]]]],
        *,
        key: str | Sequence[str],
        timeout: Duration,
        time: str | None = None,
        ends: str | Callable[[Mapping[str, Any]], str | bool | None] | None = None,
        carry: Sequence[str] = (),
        emit: Iterable[Event] = ("gone", "came", "back"),
        idle: Duration = "30 seconds",
        wait: Duration = "0 seconds",
        outage: Duration | None = None,
        ahead: Duration = "10 seconds",
        forget: Duration = "7 days",
        partition: str | None = "partition",
        until: datetime | timedelta | None = None,
        shards: int = 1,
        keys_max: int = 16_000_000,
    ) -> list[dict[str, Any]]:
        """Return what `sessions` makes of a list, without Spark: the same packer and the same shards.

        >>> from datetime import datetime, timedelta, UTC
        >>> from heartwheel import sessions
        >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
        >>> rows = [{"device": "a", "at": noon}, {"device": "b", "at": noon}]
        >>> rows += [{"device": "b", "at": noon + timedelta(seconds=40)}]
        >>> [(row["device"], row["event"], row["reason"]) for row in
        ...  sessions.test(rows, key="device", timeout="30 seconds", time="at", emit=["gone"])]
        [('a', 'gone', 'timeout'), ('b', 'gone', 'timeout')]

        Args:
            rows: the rows of one batch; or of several, each with its timestamp, as pairs.
            key: see `sessions`, as the arguments below.
            timeout: a duration, or the name of a column of seconds.
            time: name of a column of datetimes; those without a zone are UTC.
            ends: name of a column of booleans or reasons, or a function of the row.
            carry: see `sessions`.
            emit: see `sessions`.
            idle: see `sessions`.
            wait: see `sessions`.
            outage: see `sessions`.
            ahead: see `sessions`.
            forget: see `sessions`.
            partition: name of the column with the partition of the source.
            until: up to when, or for how long, the query goes on without rows.
            shards: see `sessions`.
            keys_max: see `sessions`.

        Raises:
            SessionsArgumentError: arguments are wrong; all errors at once.
        """
        from heartwheel.engine.sessions.without_spark import tested  # noqa: PLC0415 - Arrow, only where it is used

        options = Options(key, timeout, time, ends, carry, emit, idle, wait, outage, ahead, forget, shards, keys_max)
        return tested(rows, options, partition=partition, until=until)


def _config(events: DataFrame, options: Options, checks: Checks) -> SessionsConfig:
    from pyspark.sql import DataFrame  # noqa: PLC0415 - Spark, only where it is used

    if not isinstance(events, DataFrame):
        raise SessionsArgumentError(
            f"events: {events!r} is no DataFrame", hint="sessions.test(rows, ...) takes a list, without Spark"
        )
    conf = events.sparkSession.conf
    shards = int(conf.get("spark.sql.shuffle.partitions") or 200)
    where = "driver" if str(conf.get("spark.master", "")).startswith("local") else "executor"
    heap = conf.get(f"spark.{where}.memory", "1g") if events.isStreaming else None
    columns = dict(events.dtypes)
    return checked(options, columns, shards=shards, whole=not events.isStreaming, checks=checks, heap=heap)


sessions: Final = Sessions()
"""Which keys of a DataFrame fall silent, come and come back; `help(sessions.__call__)` has its arguments."""
