"""The findings of an audit: the kinds of fault, one finding with its place, and the report."""

from __future__ import annotations

import enum

import msgspec


class FindingKind(enum.StrEnum):
    """The kinds of fault."""

    FALSE = "false"
    MISSED = "missed"
    WRONG = "wrong"
    DUPLICATE = "duplicate"
    LATE = "late"
    OUT_OF_ORDER = "out_of_order"
    FORGED = "forged"
    REJECT_MISSING = "reject_missing"
    REJECT_FORGED = "reject_forged"


MEANINGS = {
    FindingKind.FALSE: "written, but the log gives no such verdict (P1)",
    FindingKind.MISSED: "due by the log, but never written (P1)",
    FindingKind.WRONG: "the verdict is right, but a field of its row is not",
    FindingKind.DUPLICATE: "a second, different row for a verdict that was already written (P3)",
    FindingKind.LATE: "written later than the bound, while the job ran (P2)",
    FindingKind.OUT_OF_ORDER: "written before a row of its group that must come first (P4)",
    FindingKind.FORGED: "its id does not match its content, or its group or member is not in the log",
    FindingKind.REJECT_MISSING: "a record that cannot be used, but is not on the rejects topic (P6)",
    FindingKind.REJECT_FORGED: "a reject of a record that can be used, or that is not in the log",
}
"""Each kind of finding in one sentence."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fault.

    Args:
        topic: the topic of its row: `expirations`, `triggers` or `rejects`; `heartbeats` for a missing verdict or
            reject.
        partition: partition of that row or record; -1 for a missing verdict, which comes from many records.
        offset: its offset; -1 likewise.
        time_ms: when the verdict became true, or when the record was appended, epoch ms.
    """

    kind: FindingKind
    topic: str
    partition: int = -1
    offset: int = -1
    group_id: str | None = None
    member_id: str | None = None
    time_ms: int | None = None
    detail: str = ""

    def place(self) -> str:
        """Return the place of the record, as `topic partition@offset`."""
        return f"{self.topic} {self.partition}@{self.offset}" if self.partition >= 0 else f"{self.topic} -"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The report of an audit.

    Args:
        ok: whether nothing is wrong.
        clock_ms: up to when it judged, epoch ms; `None` if up to the end of each partition.
        derived: verdicts that follow from the log up to then.
        written: rows of the topics of verdicts that were read, repetitions included.
        confirmed: verdicts that were written as they were derived.
        repeated: rows that were written again unchanged, which is no fault: delivery is at least once.
        pending: rows and derived verdicts after the clock, or after the time of their group: a later audit judges them.
        unjudged: rows about groups whose beginning is not in the log, or that are older than what is remembered.
        unsettled: findings about groups whose order of records is not defined: with records in several partitions, or
            with an event that a feed relayed too late.
        ticks: records of the heartbeat topic that were ticks.
        outages: gaps in partitions that were outages, so that every session there started again.
        clamped: records whose append time is before that of an earlier record of their partition.
        unread: records of the heartbeat topic whose batch unpacks to too much to be read; the job is believed.
        skipped: records that the job passed over because of `heartwheel skip`; the audit ignores them, too.
        findings: the first of each kind.
    """

    ok: bool
    clock_ms: int | None
    events: int
    derived: int
    written: int
    confirmed: int
    repeated: int
    pending: int
    unjudged: int
    unsettled: int
    ticks: int
    outages: int
    clamped: int
    unread: int
    skipped: int
    faults: dict[FindingKind, int]
    findings: tuple[Finding, ...]
