"""One run of an audit over a log: read it, judge up to the job's clock, return the state to continue from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from heartwheel.base.errors import HeartwheelError
from heartwheel.proof.audit.audit import Audit
from heartwheel.proof.audit.clocks import Clocks
from heartwheel.proof.audit.feed import AuditedRecord, AuditedTopic, Feed
from heartwheel.proof.audit.findings import Report
from heartwheel.proof.audit.partitions import RESUME_MAX_MS

_NEEDED_MS: Final = 2 * RESUME_MAX_MS
"""How far beyond the clock heartbeats are read, ms."""


class NoClockError(HeartwheelError):
    """The status rows do not show up to when the job has decided."""


class AuditedLog(Protocol):
    """The log that an audit reads: topics or files, each from where the audit stopped before."""

    name: str
    """Name of the heartbeat topic, as rejects give it; empty accepts any."""

    def newest_status(self) -> Iterable[AuditedRecord]:
        """Read the newest status rows, enough for the last batches of every shard."""

    def rejects(self) -> Iterable[AuditedRecord]:
        """Read the rejects."""

    def entries(self) -> Iterable[AuditedRecord]:
        """Read everything, merged by append time."""

    def ends(self) -> dict[AuditedTopic, dict[int, int]]:
        """Return the next offset of every partition, after everything was read."""


class AuditResult(NamedTuple):
    """The result of a run: its report, and the snapshot from which the next run continues."""

    report: Report
    snapshot: bytes


def run(audit: Audit, log: AuditedLog, *, shards: int, until_ms: int | None = None) -> AuditResult:
    """Audit a log as far as the job has decided it.

    Heartbeats after the job's clock are read too, as they show that time has passed, and whether a gap was an outage.
    But the snapshot does not include them: the rejects of those that the job refused may not be written yet.

    Args:
        audit: a new one, or one that continues from a snapshot.
        until_ms: judge up to here instead of up to the job's clock, epoch ms.

    Raises:
        NoClockError: no `until_ms` is given, and the status rows do not show the job's clock.
    """
    feed = Feed(audit, heartbeats=log.name)
    clock_ms = _clock(feed, log, shards) if until_ms is None else until_ms
    for entry in log.rejects():
        feed.limit(entry)
    ahead = _Ahead(clock_ms)
    for entry in log.entries():
        if not (entry.source is AuditedTopic.HEARTBEATS and ahead.keeps(entry)):
            feed.take(entry)
    for source, ends in log.ends().items():
        audit.positions[source.value] = {**audit.positions.get(source.value, {}), **ends}
    audit.positions.setdefault(AuditedTopic.HEARTBEATS.value, {}).update(ahead.first)
    snapshot = audit.snapshot()
    for entry in ahead.kept:
        feed.take(entry)
    return AuditResult(audit.finish(clock_ms), snapshot)


def _clock(feed: Feed, log: AuditedLog, shards: int) -> int:
    clocks = Clocks()
    for entry in log.newest_status():
        feed.clock(entry, clocks)
    unexpected = sorted(shard for shard in clocks.shards if shard >= shards)
    if unexpected:
        hint = "audit with the configuration that the job runs with"
        raise NoClockError(f"there is a status row of shard {unexpected[0]}, but engine.shards is {shards}", hint=hint)
    clock_ms = clocks.proven_ms(shards)
    if clock_ms < 0:
        hint = "let the job run until it is live, or pass --until MS"
        raise NoClockError(f"the status rows of {shards} shards do not show up to when the job has decided", hint=hint)
    return clock_ms


class _Ahead:
    """The heartbeats ahead of the clock, in each stream from the first such record on.

    They show up to when each partition was read, and whether a gap was an outage. In each partition the first record
    that is more than `_NEEDED_MS` ahead is the last one needed.
    """

    def __init__(self, clock_ms: int) -> None:
        self._clock_ms = clock_ms
        self.kept: list[AuditedRecord] = []
        self.first: dict[int, int] = {}
        self._full: set[int] = set()

    def keeps(self, entry: AuditedRecord) -> bool:
        if entry.stream not in self.first:
            if entry.append_ms <= self._clock_ms:
                return False
            self.first[entry.stream] = entry.position
        if entry.partition not in self._full:
            self.kept.append(entry)
            if entry.append_ms > self._clock_ms + _NEEDED_MS:
                self._full.add(entry.partition)
        return True
