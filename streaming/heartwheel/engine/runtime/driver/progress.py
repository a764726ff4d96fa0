"""Progress of the job: what one trigger did, in one readable line."""

from __future__ import annotations

import ast
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.streaming.query import StreamingQuery

from heartwheel.base.phrases import count
from heartwheel.engine.runtime.state.output import total

IDLE_EVERY_S: Final = 10
"""Of batches that did nothing, how often one is logged, seconds: without any a log looks dead."""

BACKLOG_MS: Final = 10_000
"""A batch that leaves records unread, and whose newest one is older than this, reads a backlog."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What one batch did.

    Args:
        held: whether it was a batch of a backlog.
        heartbeats: records read from the topic, ticks not counted.
        behind: records that were in the topic when the batch was planned and are not read yet.
        read_ms: the part of it in which the data was read, decided on and written, ms.
        behind_ms: how far the newest record read was behind the driver's clock when the batch began, ms.
        standing: partitions whose time stands still, or was never known.
        outage_ms: the longest outage whose end was read, ms; 0 if there was none.
        sessions_renewed: sessions that started again after outages.
        waiting: records that wait until what comes before them has been read.
        untimed: records that carry their producers' times, by which no time passes.
        stepped_back_ms: by how much the newest append time of a partition is behind the partition's time, ms; of
            several partitions the most.
    """

    batch_id: int
    held: bool
    heartbeats: int
    behind: int
    members: int
    groups: int
    expired: int
    triggers: int
    rejected: int
    duration_ms: int
    read_ms: int
    behind_ms: int = 0
    standing: int = 0
    outage_ms: int = 0
    sessions_renewed: int = 0
    waiting: int = 0
    untimed: int = 0
    stepped_back_ms: int = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing but ticks was read and nothing was decided."""
        return not (self.heartbeats or self.expired or self.triggers or self.rejected or self.outage_ms)

    def line(self) -> str:
        """Return what it did as one line."""
        parts = [
            f"batch {self.batch_id}",
            count(self.heartbeats, "heartbeat"),
            f"{count(self.members, 'member')} in {count(self.groups, 'group')}",
            f"{self.expired:,} expired",
            count(self.triggers, "trigger"),
        ]
        if self.rejected:
            parts.append(f"{self.rejected:,} rejected")
        if self.outage_ms:
            parts.append(f"Kafka was not writable for {self.outage_ms / 1000:.0f} s, {self.sessions_renewed:,} renewed")
        if self.untimed:
            parts.append(f"{self.untimed:,} without append time")
        if self.held:
            parts.append(f"catching up, {self.behind:,} behind")
        return f"{', '.join(parts)} in {self.duration_ms / 1000:.2f} s"


class IdleLog:
    """Which batches are worth a line of the log: all that did something, and of idle ones one now and then.

    Args:
        clock: returns seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged_s = -math.inf

    def wants(self, batch: Progress) -> bool:
        """Return whether to log a batch."""
        now_s = self._clock()
        if batch.is_idle and now_s < self._logged_s + IDLE_EVERY_S:
            return False
        self._logged_s = now_s
        return True


class ProgressReader:
    """Read a query's progress, each batch once."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._last = -1

    def fresh(self) -> Iterator[Progress]:
        """Yield the batches that have finished since the last call."""
        newest = self._query.lastProgress
        if newest is None or int(newest["batchId"]) <= self._last:
            return
        # Each report costs a round trip to the JVM and its JSON: of a hundred that Spark keeps, one is new as a rule.
        skipped = int(newest["batchId"]) > self._last + 1
        for raw in self._query.recentProgress if skipped else (newest,):
            batch_id = int(raw["batchId"])
            if batch_id > self._last and raw["numInputRows"]:
                self._last = batch_id
                yield read_progress(raw)


def read_progress(raw: Any) -> Progress:
    """Read one of Spark's progress reports."""
    observed = raw["observedMetrics"].get("heartwheel")
    figures = total(observed["shards"] if observed is not None else ())
    kafka = raw["sources"][0]
    duration: Mapping[str, int] = raw["durationMs"]
    behind = _behind(kafka)
    return Progress(
        batch_id=int(raw["batchId"]),
        held=behind > 0 and figures.behind_ms > BACKLOG_MS,
        heartbeats=figures.records,
        behind=behind,
        members=figures.members,
        groups=figures.groups,
        expired=figures.expired,
        triggers=figures.triggers,
        rejected=figures.rejected,
        duration_ms=int(duration.get("triggerExecution", 0)),
        read_ms=int(duration.get("addBatch", 0)),
        behind_ms=figures.behind_ms,
        standing=figures.standing,
        outage_ms=figures.outage_ms,
        sessions_renewed=figures.renewed,
        waiting=figures.waiting,
        untimed=figures.untimed,
        stepped_back_ms=figures.stepped_back_ms,
    )


def _behind(kafka: Any) -> int:
    end, latest = _offsets(kafka["endOffset"]), _offsets(kafka["latestOffset"])
    return sum(max(0, offset - end.get(key, 0)) for key, offset in latest.items())


def _offsets(report: Any) -> dict[tuple[str, str], int]:
    if isinstance(report, str):
        # It is JSON from PySpark 4.2 on, and a dictionary as Python shows it before: texts and numbers read alike.
        report = ast.literal_eval(report) if report not in {"null", "None"} else {}
    return {
        (topic, partition): int(offset)
        for topic, partitions in (report or {}).items()
        for partition, offset in partitions.items()
    }
