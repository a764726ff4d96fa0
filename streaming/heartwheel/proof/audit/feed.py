"""Passes records of topics, or lines of files, to an audit. Every value is decoded here, and nowhere else."""

from __future__ import annotations

import contextlib
import enum
from typing import Final, NamedTuple

import msgspec

from heartwheel.proof.audit.audit import Audit
from heartwheel.proof.audit.clocks import Clocks
from heartwheel.proof.audit.rejects import GROUP_FULL, SHARD_FULL
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow


class AuditedTopic(enum.StrEnum):
    """The topics that an audit reads, by their names in the configuration."""

    HEARTBEATS = "heartbeats"
    EXPIRATIONS = "expirations"
    TRIGGERS = "triggers"
    STATUS = "status"
    REJECTS = "rejects"


class AuditedRecord(NamedTuple):
    """One record of a topic or a file.

    Args:
        value: its value; `None` is a tombstone.
        stream: the stream it was read from: the partition, or one number for a whole file.
        position: its position in that stream: the offset, or the number of the line.
    """

    append_ms: int
    source: AuditedTopic
    partition: int
    offset: int
    value: bytes | None
    stream: int
    position: int


class _StatusRow(msgspec.Struct):
    shard: int
    batch_ms: int
    clock_ms: int


class _RejectRow(msgspec.Struct):
    partition: int
    offset: int
    append_ms: int
    cause: str
    topic: str = ""


_LIMITS: Final = frozenset({SHARD_FULL, GROUP_FULL})
_expiration = msgspec.json.Decoder(ExpirationRow).decode
_trigger = msgspec.json.Decoder(TriggerRow).decode
_status = msgspec.json.Decoder(_StatusRow).decode
_reject = msgspec.json.Decoder(_RejectRow).decode


class Feed:
    """The input of an audit.

    Args:
        audit: the audit that receives the records.
        heartbeats: name of the heartbeat topic; rejects of other topics are skipped. Empty accepts all.
    """

    def __init__(self, audit: Audit, *, heartbeats: str = "") -> None:
        self._audit = audit
        self._heartbeats = heartbeats

    def limit(self, entry: AuditedRecord) -> None:
        """Pass a reject on if its cause is a limit of the engine; these must be known before their records are read."""
        self._rejected(entry, only_limits=True)

    def clock(self, entry: AuditedRecord, clocks: Clocks) -> None:
        """Update clocks from a status row, without passing it to the audit."""
        if entry.value is not None:
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                row = _status(entry.value)
                clocks.batch(row.shard, row.batch_ms, row.clock_ms)

    def take(self, entry: AuditedRecord) -> None:
        """Pass a record of any topic to the audit."""
        source = entry.source
        if source is AuditedTopic.HEARTBEATS:
            self._audit.event(entry.append_ms, entry.partition, entry.offset, entry.value)
        elif entry.value is None:
            return  # a tombstone carries no verdict: it only deletes older rows of a compacted topic
        elif source is AuditedTopic.STATUS:
            self._went_through_batch(entry.value, entry.append_ms)
        elif source is AuditedTopic.REJECTS:
            self._rejected(entry, only_limits=False)
        else:
            self._take_verdict(entry, entry.value)

    def _take_verdict(self, entry: AuditedRecord, value: bytes) -> None:
        row: ExpirationRow | TriggerRow
        try:
            row = _expiration(value) if entry.source is AuditedTopic.EXPIRATIONS else _trigger(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._unreadable(entry, error)
        else:
            self._audit.written(row, entry.partition, entry.offset, entry.append_ms)

    def _unreadable(self, entry: AuditedRecord, error: Exception) -> None:
        self._audit.unreadable(entry.source.value, entry.partition, entry.offset, entry.append_ms, str(error)[:200])

    def _went_through_batch(self, value: bytes, append_ms: int) -> None:
        try:
            row = _status(value)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return  # a status row only helps to judge lateness
        self._audit.batch(row.shard, row.batch_ms, append_ms=append_ms, clock_ms=row.clock_ms)

    def _rejected(self, entry: AuditedRecord, *, only_limits: bool) -> None:
        if entry.value is None:
            return
        try:
            row = _reject(entry.value)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if not only_limits:
                self._unreadable(entry, error)
            return
        other = bool(self._heartbeats) and row.topic != self._heartbeats
        if other or (only_limits and row.cause not in _LIMITS):
            return
        self._audit.rejected(
            row.partition,
            row.offset,
            row.cause,
            append_ms=row.append_ms,
            row_partition=entry.partition,
            row_offset=entry.offset,
        )
