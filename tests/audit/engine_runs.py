"""A log, the rows that the engine writes about it, and an audit of both; and ways to falsify the rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import msgspec

from heartwheel.engine.heartbeats.packer import Packer
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.runtime.map.packed import PayloadKind
from heartwheel.engine.shard.limits import ShardLimits
from heartwheel.engine.time import ReadingsBuilder
from heartwheel.proof.audit import Audit, AuditConfig, Report
from heartwheel.proof.audit.derived import Row
from heartwheel.proof.testing import OUTAGE_MIN_MS, LogBuilder, ProducedRecord, Read, frame_of, read_records, until
from heartwheel.wire.rejects import Reject
from heartwheel.wire.verdict_rows import row_of
from heartwheel.wire.verdicts import topic_of
from support.shard_runs import shard_runs

SETTINGS = tuple(name for name in CoordinatorConfig.__slots__ if name != "group_overrides")
"""The coordinator's settings that are one value each."""

TICK = b'{"type":"tick"}'
"""A tick that is evidence of nothing."""


@dataclass
class WrittenRow:
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
    """Hold a log and the rows about it, to be falsified and audited.

    Args:
        log: the heartbeats.
        config: the rules.
        clock_ms: the job's clock at the end, epoch ms.
        written: the rows, in the order in which they were written.
        rejected: likewise.
    """

    log: LogBuilder
    config: CoordinatorConfig
    clock_ms: int
    written: list[WrittenRow] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    def copy(self) -> Run:
        """Return a run whose rows can be falsified."""
        return replace(self, written=[copy.copy(each) for each in self.written], rejected=list(self.rejected))

    def find(self, wanted: Callable[[Row], bool]) -> WrittenRow:
        """Return the first row of a kind."""
        return next(each for each in self.written if wanted(each.row))

    def append(self, row: Row, *, append_ms: int | None = None) -> WrittenRow:
        """Tell one row more."""
        same = [each.offset for each in self.written if type(each.row) is type(row)]
        at = self.clock_ms if append_ms is None else append_ms
        self.written.append(WrittenRow(row, 0, max(same, default=-1) + 1, at))
        return self.written[-1]

    def play(self, reads: Iterable[Read], limits: ShardLimits | None = None) -> None:
        """Take the rows and rejects of a real shard, its state encoded and decoded between batches."""
        for shard, result in shard_runs(reads, self.config, limits=limits):
            for verdict in result.verdicts:
                if topic_of(verdict) is not None:
                    self.append(row_of(verdict, shard=0, detected_ms=max(verdict.time_ms, shard.newest_ms)))
            self.rejected += [Rejected(r.partition, r.offset, r.cause.value) for r in result.refused]

    def audit(
        self, *, rows_first: bool = False, cut: int | None = None, **settings: int | bool | tuple[str, ...] | None
    ) -> Report:
        """Audit it.

        Args:
            rows_first: whether the rows come before the heartbeats, or after them.
            cut: after how many heartbeats the audit is written down and carried on.
            settings: further settings of `AuditConfig`.
        """
        config = audit_config(self.config, **settings)
        audit = Audit(config)
        for reject in self.rejected:
            audit.rejected(reject.partition, reject.offset, reject.cause)
        if rows_first:
            self.write_to(audit)
        for number, record in enumerate(self.log.records):
            if number == cut:
                audit = Audit(config, snapshot=audit.snapshot())
            audit.event(record.append_ms, record.partition, record.offset, record.value)
        self.let_time_pass(audit)
        if not rows_first:
            self.write_to(audit)
        return audit.finish(self.clock_ms)

    def let_time_pass(self, audit: Audit) -> None:
        """Read a tick of nobody's in every partition, which proves that the log was read up to the clock."""
        offsets = {record.partition: record.offset + 1 for record in self.log.records}
        for partition, offset in offsets.items():
            # A millisecond later, as of the clock's own one something may still come.
            audit.event(self.clock_ms + 1, partition, offset, TICK)

    def write_to(self, audit: Audit) -> None:
        """Give every row to an audit."""
        for each in self.written:
            audit.written(each.row, each.partition, each.offset, each.append_ms)


def audit_config(config: CoordinatorConfig, **settings: int | bool | tuple[str, ...] | None) -> AuditConfig:
    """Set up an audit by the rules of an engine."""
    rules = [name for name in config.__slots__ if name in AuditConfig.__struct_fields__]
    own = {f"{each.group_id}/{each.name}": each.value for each in config.group_overrides}
    return AuditConfig(**{name: getattr(config, name) for name in rules} | {"group_overrides": own} | settings)


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
        clock_ms: append time of a last tick in every partition, epoch ms.
        config: the rules.
        cuts: after how many records a batch ends.
    """
    run = Run(log, config, clock_ms)
    partitions = {record.partition for record in log.records}
    last = Read([], until(clock_ms, *partitions) if partitions else [])
    run.play((*map(read_records, parts_of(log, cuts)), last), limits)
    run.rejected += _undecodable(log)
    return run


def parts_of(log: LogBuilder, cuts: Iterable[int]) -> Iterator[list[ProducedRecord]]:
    """Yield the records of each batch, which end after so many records."""
    return (log.records[start:stop] for start, stop in pairwise([0, *sorted(cuts), len(log.records)]))


def _undecodable(log: LogBuilder) -> list[Rejected]:
    found = []
    for partition in {record.partition for record in log.records}:
        records = [record for record in log.records if record.partition == partition]
        readings = ReadingsBuilder((), OUTAGE_MIN_MS)
        for _, kind, payload in Packer("consumer-heartbeats", 1).pack(frame_of(records), readings):
            if kind is PayloadKind.REJECTS:
                rejects = msgspec.json.decode(payload, type=list[Reject])
                found += [Rejected(reject.partition, reject.offset, reject.cause) for reject in rejects]
    return found
