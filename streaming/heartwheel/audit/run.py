"""One run of an audit over a log: read in step, judge up to the job's clock, write down where to carry on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from heartwheel.audit.audit import Audit
from heartwheel.audit.clocks import Clocks
from heartwheel.audit.feed import Entry, Feed, Source
from heartwheel.audit.findings import Report
from heartwheel.audit.partitions import RESUME_MAX_MS
from heartwheel.errors import HeartwheelError

_NEEDED_MS: Final = 2 * RESUME_MAX_MS
"""How far beyond the clock heartbeats are looked at, ms."""


class NoClockError(HeartwheelError):
    """Tell that nothing says up to when the job has decided."""


class Log(Protocol):
    """What an audit reads: topics or files, each from where the audit has come to."""

    name: str
    """Of the heartbeat topic, as rejects have it; empty if any will do."""

    def newest_status(self) -> Iterable[Entry]:
        """Read the newest status rows, enough for the last batches of every shard."""

    def rejects(self) -> Iterable[Entry]:
        """Read the rejects."""

    def entries(self) -> Iterable[Entry]:
        """Read everything, merged by append time."""

    def ends(self) -> dict[Source, dict[int, int]]:
        """Tell the next offset of every partition once all has been read."""


class AuditResult(NamedTuple):
    """Hold what a run comes to: its report, and what carries on from it."""

    report: Report
    snapshot: bytes


def run(audit: Audit, log: Log, *, shards: int, until_ms: int | None = None) -> AuditResult:
    """Audit a log as far as the job has decided it.

    Heartbeats after the job's clock are looked at too, as they show that time has passed, and what a gap was. But what
    they do is not written down: the rejects that say which of them the job refused may not be there yet.

    Args:
        audit: a new one, or one that carries on.
        log: what to read.
        shards: how many shards the job has.
        until_ms: judge up to here instead of up to the job's clock, epoch ms.

    Raises:
        NoClockError: no `until_ms` is given, and the status rows do not tell.
    """
    feed = Feed(audit, heartbeats=log.name)
    clock_ms = _clock(feed, log, shards) if until_ms is None else until_ms
    for entry in log.rejects():
        feed.limit(entry)
    ahead = _Ahead(clock_ms)
    for entry in log.entries():
        if not (entry.source is Source.HEARTBEATS and ahead.keeps(entry)):
            feed.take(entry)
    for source, ends in log.ends().items():
        audit.positions[source.value] = {**audit.positions.get(source.value, {}), **ends}
    audit.positions.setdefault(Source.HEARTBEATS.value, {}).update(ahead.first)
    snapshot = audit.snapshot()
    for entry in ahead.kept:
        feed.take(entry)
    return AuditResult(audit.finish(clock_ms), snapshot)


def _clock(feed: Feed, log: Log, shards: int) -> int:
    clocks = Clocks()
    for entry in log.newest_status():
        feed.clock(entry, clocks)
    strange = sorted(shard for shard in clocks.shards if shard >= shards)
    if strange:
        hint = "audit with the configuration that the job runs with"
        raise NoClockError(f"there is a status of shard {strange[0]}, and engine.shards is {shards}", hint=hint)
    clock_ms = clocks.proven_ms(shards)
    if clock_ms < 0:
        hint = "let the job run until it is live, or say --until MS"
        raise NoClockError(f"the status rows of {shards} shards do not say up to when the job has decided", hint=hint)
    return clock_ms


class _Ahead:
    """Keep heartbeats that are ahead of the clock, in each stream from the first such record on.

    They show up to when each partition was read, and whether a gap was an outage. The first that is further ahead than
    that takes is the last that is needed of its partition.
    """

    def __init__(self, clock_ms: int) -> None:
        self._clock_ms = clock_ms
        self.kept: list[Entry] = []
        self.first: dict[int, int] = {}
        self._full: set[int] = set()

    def keeps(self, entry: Entry) -> bool:
        if entry.stream not in self.first:
            if entry.append_ms <= self._clock_ms:
                return False
            self.first[entry.stream] = entry.position
        if entry.partition not in self._full:
            self.kept.append(entry)
            if entry.append_ms > self._clock_ms + _NEEDED_MS:
                self._full.add(entry.partition)
        return True
