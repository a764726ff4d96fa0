"""The judgement of a demo: the audit of its topics, and what the feeder knows about its members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from heartwheel.kafka.client import reader
from heartwheel.proof.audit import run as auditing
from heartwheel.proof.audit.audit import Audit
from heartwheel.proof.audit.config import AuditConfig
from heartwheel.proof.audit.feed import AuditedRecord, AuditedTopic
from heartwheel.proof.audit.findings import FindingKind, Report
from heartwheel.proof.audit.topics import TopicLog
from heartwheel.proof.members.truth import LifeLine, TruthLine, Turn, read_truth
from heartwheel.settings import Settings
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

_expiration = msgspec.json.Decoder(ExpirationRow).decode
_trigger = msgspec.json.Decoder(TriggerRow).decode

_NO_FALSE_ROW: Final = frozenset({FindingKind.MISSED, FindingKind.DUPLICATE, FindingKind.LATE})

_NOT_EXPECTED: Final = frozenset({FindingKind.FALSE, FindingKind.FORGED})


class DemoJudgement(msgspec.Struct, frozen=True, kw_only=True):
    """What a demo's topics came to.

    Args:
        expired: expirations, each id once.
        triggers: rows about rebalances and arrivals, each id once.
        begun: rebalances that began.
        killed: members that the feeder killed.
        unread: those whose last record is not in the log: it was not read whole, or the truth is of another run.
        lateness_ms: how long after its deadline each expiration was in Kafka first, ms.
        left_out: what the names of groups begin with that are audited, and not counted.
    """

    report: Report
    expired: int
    triggers: int
    begun: int
    killed: int
    unread: int
    lateness_ms: list[int]
    left_out: str

    @property
    def false(self) -> int:
        """How many rows say what the log does not give, or say it wrongly."""
        return sum(count for kind, count in self.report.faults.items() if kind not in _NO_FALSE_ROW)

    def expected(self, topic: AuditedTopic) -> int:
        """Return how many rows a topic of verdicts had to have, each id once."""
        written = self.expired if topic is AuditedTopic.EXPIRATIONS else self.triggers
        for each in self.report.findings:
            if (each.group_id or "").startswith(self.left_out):
                continue
            if each.kind is FindingKind.MISSED:
                # Only an expiration is about one member.
                written += (each.member_id is not None) is (topic is AuditedTopic.EXPIRATIONS)
            elif each.kind in _NOT_EXPECTED:
                written -= each.topic == topic
        return written


def judge_topics(settings: Settings, truth_file: Path, audited: AuditConfig, *, until_ms: int) -> DemoJudgement:
    """Read the topics back and judge.

    Args:
        truth_file: what the feeder wrote.
        audited: what the job was set to.
        until_ms: verdicts that become true later may still be under way and are not missed, epoch ms.

    Raises:
        KafkaUnreachableError: if nobody answers.
        KafkaRefusedError: if a topic is missing or stalls.
    """
    kafka, audit = settings.kafka, Audit(audited)
    with reader(kafka.bootstrap_servers, kafka.client, doing="judge the topics") as consumer:
        log = TopicLog(consumer, kafka.topics.model_dump(), audit, settings.engine.shards)
        return judge_log(audit, log, read_truth(truth_file), settings, until_ms=until_ms)


def judge_log(
    audit: Audit, log: auditing.AuditedLog, truth: Iterable[TruthLine], settings: Settings, *, until_ms: int
) -> DemoJudgement:
    """Audit a log, and hold it against what the feeder knows.

    Args:
        settings: the number of shards, and the canary's groups: their rows are audited, and not counted.
        until_ms: verdicts that become true later are not missed, epoch ms.
    """
    left_out = settings.canary.group_prefix
    seen = _SeenLog(log, left_out)
    report = auditing.run(audit, seen, shards=settings.engine.shards, until_ms=until_ms).report
    killed = [line for line in truth if isinstance(line, LifeLine) and line.turn is Turn.KILLED]
    return DemoJudgement(
        report=report,
        expired=len(seen.lateness_ms),
        triggers=len(seen.triggers),
        begun=sum(row.type == "rebalance_triggered" and row.is_rebalance for row in seen.triggers.values()),
        killed=len(killed),
        unread=sum(_place(line) not in seen.heartbeats for line in killed if line.last_beat_ms is not None),
        lateness_ms=list(seen.lateness_ms.values()),
        left_out=left_out,
    )


def _place(line: LifeLine) -> tuple[int | None, int | None, int | None]:
    return line.partition, line.offset, line.last_beat_ms


class _SeenLog:
    """A log that keeps what a demo tells of its records while the audit reads them."""

    def __init__(self, log: auditing.AuditedLog, left_out: str) -> None:
        self._log, self._left_out = log, left_out
        self.name = log.name
        self.newest_status, self.rejects, self.ends = log.newest_status, log.rejects, log.ends
        self.heartbeats: set[tuple[int | None, int | None, int | None]] = set()
        self.lateness_ms: dict[str, int] = {}
        self.triggers: dict[str, TriggerRow] = {}

    def entries(self) -> Iterator[AuditedRecord]:
        """Read everything, merged by append time."""
        for entry in self._log.entries():
            self._see(entry)
            yield entry

    def _see(self, entry: AuditedRecord) -> None:
        if entry.source is AuditedTopic.HEARTBEATS:
            self.heartbeats.add((entry.partition, entry.offset, entry.append_ms))
        elif entry.source is AuditedTopic.EXPIRATIONS:
            expired = _expiration(entry.value or b"")
            if not expired.group_id.startswith(self._left_out):
                self.lateness_ms.setdefault(expired.id, entry.append_ms - expired.deadline_ms)
        elif entry.source is AuditedTopic.TRIGGERS:
            trigger = _trigger(entry.value or b"")
            if not trigger.group_id.startswith(self._left_out):
                self.triggers.setdefault(trigger.id, trigger)
