"""What an audit finds: kinds of fault, the first examples of each with their place, and the report of all."""

from __future__ import annotations

import enum

import msgspec


class FindingKind(enum.StrEnum):
    """Name what is wrong."""

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
    FindingKind.FALSE: "written, and the log gives no such verdict (P1)",
    FindingKind.MISSED: "due by the log, and never written (P1)",
    FindingKind.WRONG: "the verdict is right, and something that its row says of it is not",
    FindingKind.DUPLICATE: "a second, different row for what was written already (P3)",
    FindingKind.LATE: "known later than the bound, while the job ran (P2)",
    FindingKind.OUT_OF_ORDER: "before a row of its group that must come first (P4)",
    FindingKind.FORGED: "its id is not that of its content, or nobody in the log is who it is about",
    FindingKind.REJECT_MISSING: "a record that cannot be used, and is not on the rejects topic (P6)",
    FindingKind.REJECT_FORGED: "a reject of a record that can be used, or that is not in the log",
}
"""Each kind of finding in one sentence."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Hold one fault.

    Args:
        kind: what is wrong.
        topic: where its row is: `expirations`, `triggers`, `rejects`; `heartbeats` for a verdict or a reject that is
            not there.
        partition: of that topic; -1 for a verdict that is not there, as many records made it.
        offset: likewise.
        group_id: about which group, if it is about one.
        member_id: about which member, if it is about one.
        time_ms: when the verdict is true, or when the record was appended, epoch ms.
        detail: what exactly, for people.
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
        """Name the record, as `topic partition@offset`."""
        return f"{self.topic} {self.partition}@{self.offset}" if self.partition >= 0 else f"{self.topic} -"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Hold what an audit comes to.

    Args:
        ok: whether nothing is wrong.
        clock_ms: up to when it judged, epoch ms; `None` as far as each partition goes.
        events: records of the heartbeat topic that were read.
        derived: verdicts that the log gives up to then.
        written: rows of the topics of verdicts that were read, repetitions included.
        confirmed: verdicts that were written as they were derived.
        repeated: rows that came again just as they were: at least once is what is promised.
        pending: rows and derived verdicts after the clock, or after the time of their group: a later audit judges them.
        unjudged: rows about groups whose beginning is not in the log, or that are older than what is remembered.
        unsettled: findings about groups whose order nothing promises: with records in several partitions, or of which a
            feed said something too late.
        ticks: records of the heartbeat topic that were ticks.
        outages: gaps in partitions that were outages, so that every session there began anew.
        clamped: records that were appended, by their own time, before an earlier one of their partition.
        unread: records of the heartbeat topic that unpack to too much to be read: the job is believed about them.
        skipped: records that the job passed over, by `heartwheel skip`: they count for nothing here either.
        faults: how many findings there are of each kind.
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
