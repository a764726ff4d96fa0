"""A log, what the engine tells of it, and an audit of both; and ways to falsify what was told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec

from heartwheel.audit import Audit, AuditConfig, Report
from heartwheel.audit.derived import Row
from heartwheel.coordinator.config import CoordinatorConfig
from heartwheel.shard.limits import ShardLimits
from heartwheel.shard.shard import Shard
from heartwheel.spark.packer import Packer
from heartwheel.testing import LogBuilder, frame_of, pack_records
from heartwheel.wire.rejects import Reject
from heartwheel.wire.verdicts import ExpirationRow, row_of, topic_of


@dataclass
class Told:
    """Hold a row and where it is."""

    row: Row
    partition: int
    offset: int
    append_ms: int


@dataclass
class Rejected:
    """Hold a reject: which record it names, and why."""

    partition: int
    offset: int
    cause: str


@dataclass
class Run:
    """Hold a log and what was told of it, to be falsified and audited.

    Args:
        log: the heartbeats.
        config: the rules.
        clock_ms: the job's clock at the end, epoch ms.
        told: in the order in which it was told.
        rejected: likewise.
    """

    log: LogBuilder
    config: CoordinatorConfig
    clock_ms: int
    told: list[Told] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    def find(self, wanted: Callable[[Row], bool]) -> Told:
        """Return the first row of a kind."""
        return next(told for told in self.told if wanted(told.row))

    def append(self, row: Row, *, append_ms: int | None = None) -> Told:
        """Tell one row more."""
        same = [told.offset for told in self.told if type(told.row) is type(row)]
        at = self.clock_ms if append_ms is None else append_ms
        self.told.append(Told(row, 0, max(same, default=-1) + 1, at))
        return self.told[-1]

    def audit(self, *, told_first: bool = False, cut: int | None = None, **settings: int | bool | None) -> Report:
        """Audit it.

        Args:
            told_first: whether what was told comes before the heartbeats, or after them.
            cut: after how many heartbeats the audit is written down and carried on.
            settings: further settings of `AuditConfig`.
        """
        config = audit_config(self.config, **settings)
        audit = Audit(config)
        for reject in self.rejected:
            audit.rejected(reject.partition, reject.offset, reject.cause)
        if told_first:
            self.tell(audit)
        for number, record in enumerate(self.log.records):
            if number == cut:
                audit = Audit(config, snapshot=audit.snapshot())
            audit.event(record.append_ms, record.partition, record.offset, record.value)
        if not told_first:
            self.tell(audit)
        return audit.finish(self.clock_ms)

    def tell(self, audit: Audit) -> None:
        """Tell an audit what was told."""
        for told in self.told:
            audit.told(told.row, told.partition, told.offset, told.append_ms)


def audit_config(config: CoordinatorConfig, **settings: int | bool | None) -> AuditConfig:
    """Set up an audit by the rules of an engine."""
    return AuditConfig(**{name: getattr(config, name) for name in config.__slots__} | settings)


def engine_run(
    log: LogBuilder,
    *,
    clock_ms: int,
    config: CoordinatorConfig,
    cuts: Sequence[int] = (),
    limits: ShardLimits | None = None,
) -> Run:
    """Run a log through a real shard, its state encoded and decoded between batches.

    Args:
        log: the records.
        clock_ms: the clock at the end, epoch ms.
        config: the rules.
        cuts: after how many records a batch ends; the clock stays before its successor's first record.
        limits: what the shard may hold.
    """
    run = Run(log, config, clock_ms)
    blob, clock = "", -1
    for start, stop in pairwise([0, *sorted(cuts), len(log.records)]):
        batch, rest = log.records[start:stop], log.records[stop:]
        now = min([clock_ms, *(record.append_ms - 1 for record in rest)])
        shard = Shard(coordinator=config, limits=limits or ShardLimits(), clock_ms=clock, blob=blob)
        outcome = shard.apply(pack_records(batch), max(clock, now))
        for verdict in outcome.verdicts:
            if topic_of(verdict) is not None:
                run.append(row_of(verdict, shard=0, detected_ms=max(verdict.time_ms, now)))
        run.rejected += [Rejected(r.partition, r.offset, r.cause.value) for r in outcome.refused]
        blob, clock = shard.encode(), shard.clock_ms
    run.rejected += _undecodable(log)
    return run


def _undecodable(log: LogBuilder) -> list[Rejected]:
    found = []
    for partition in {record.partition for record in log.records}:
        records = [record for record in log.records if record.partition == partition]
        for _, is_reject, payload in Packer("consumer-heartbeats", 1).pack(frame_of(records)):
            if is_reject:
                rejects = msgspec.json.decode(payload, type=list[Reject])
                found += [Rejected(reject.partition, reject.offset, reject.cause) for reject in rejects]
    return found


def is_expired(row: Row) -> bool:
    """Tell a row of the expirations topic."""
    return isinstance(row, ExpirationRow)
