"""The state of the whole job, which the engine's three listeners keep up to date."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import metadata

import msgspec

from heartwheel.base.wall_clock import wall_ms
from heartwheel.engine.runtime.driver.progress import Progress
from heartwheel.engine.runtime.state.faults import Fault
from heartwheel.settings import Settings
from heartwheel.settings.secret import MASK, holds_secret, secrets_within
from heartwheel.wire.job import BatchFigures, JobRow, OutageFigures, Phase, TickerState, TopicProblem


class JobTally:
    """Keep the row of the job topic that is true now.

    One thread, the engine's, calls the listeners; any thread may ask for the row. Each change puts a new row in the
    place of the old one, so nobody ever sees half of a change.

    Args:
        now_ms: reads the wall clock, epoch ms.
    """

    def __init__(self, settings: Settings, *, now_ms: Callable[[], int] = wall_ms) -> None:
        self._now_ms = now_ms
        self._secrets = secrets_of(settings)
        # A fault was met, and no batch has ended since.
        self._faulty = False
        self._ticker: Callable[[], TickerState] | None = None
        self._topic: Callable[[], tuple[TopicProblem, ...]] = tuple
        now = now_ms()
        self._row = JobRow(
            at_ms=now,
            started_ms=now,
            phase=Phase.STARTING,
            phase_since_ms=now,
            fault=None,
            faults=0,
            batches=0,
            records=0,
            last_batch=None,
            trigger_interval_ms=settings.engine.trigger_interval_ms,
            tick_interval_ms=settings.engine.tick_interval_ms,
            wheel_tick_ms=settings.wheel.tick_ms,
            shards=settings.engine.shards,
            version=metadata.version("heartwheel"),
        )

    def row(self) -> JobRow:
        """Return the row that is true now, with the present time."""
        ticker = self._ticker() if self._ticker is not None else None
        return msgspec.structs.replace(self._row, at_ms=self._now_ms(), ticker=ticker, topic_problems=self._topic())

    def watch(self, ticker: Callable[[], TickerState]) -> None:
        """Ask the ticker how it does whenever a row is made."""
        self._ticker = ticker

    def watch_topic(self, problems: Callable[[], tuple[TopicProblem, ...]]) -> None:
        """Ask what is wrong with the topic whenever a row is made."""
        self._topic = problems

    def enter(self, phase: str) -> None:
        """Note that the job has entered a phase."""
        if phase != self._row.phase:
            self._change(phase=Phase(phase), phase_since_ms=self._now_ms())

    def add_batch(self, batch: Progress) -> None:
        """Note that a batch has ended; whatever fault there was is over."""
        row = self._row
        outage = None
        if batch.outage_ms:
            outage = OutageFigures(
                seen_ms=self._now_ms(), duration_ms=batch.outage_ms, sessions_renewed=batch.sessions_renewed
            )
        self._change(
            behind_ms=batch.behind_ms,
            standing=batch.standing,
            outages=row.outages + (outage is not None),
            sessions_renewed=row.sessions_renewed + batch.sessions_renewed,
            last_outage=outage or row.last_outage,
            untimed=row.untimed + batch.untimed,
            untimed_at_ms=self._now_ms() if batch.untimed else row.untimed_at_ms,
            stepped_back_ms=batch.stepped_back_ms,
            fault=None,
            faults=row.faults + self._faulty,
            batches=row.batches + 1,
            records=row.records + batch.heartbeats,
            last_batch=_figures(batch, self._now_ms()),
        )
        self._faulty = False

    def add_fault(self, fault: Fault) -> None:
        """Note the fault that ended the query; it is in the row until a batch has ended again."""
        self._faulty = True
        self._change(fault=redacted(fault.message, self._secrets))

    def _change(self, **changes: object) -> None:
        self._row = msgspec.structs.replace(self._row, **changes)


def _figures(batch: Progress, now_ms: int) -> BatchFigures:
    return BatchFigures(
        batch_id=batch.batch_id,
        ended_ms=now_ms,
        duration_ms=batch.duration_ms,
        read_ms=batch.read_ms,
        records=batch.heartbeats,
        behind=batch.behind,
        expired=batch.expired,
        triggers=batch.triggers,
        rejected=batch.rejected,
    )


def secrets_of(settings: Settings) -> frozenset[str]:
    """Collect the values that must not be shown: those of secret settings, and passwords within a JAAS line."""
    found: set[str] = set()
    for table in (settings.kafka.client, settings.spark.conf):
        found.update(_secrets_in(table))
    found.update(filter(None, [settings.spark.auth_secret]))
    return frozenset(found)


def _secrets_in(table: Mapping[str, str]) -> Iterable[str]:
    for name, value in table.items():
        if value and holds_secret(name, value):
            yield value
            yield from secrets_within(value)
            yield from (quoted for quoted in re.findall(r'password="([^"]+)"', value))


def redacted(text: str, secrets: Collection[str]) -> str:
    """Mask every secret in a text, the longest first, because one may be part of another.

    Args:
        text: what people are to see.
        secrets: what they are not to see.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text
