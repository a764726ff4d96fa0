"""What a demo came to, as one document for people and machines."""

from __future__ import annotations

from typing import Any

import msgspec

from heartwheel.base.percentiles import percentile
from heartwheel.front.demo.judge import DemoJudgement
from heartwheel.front.demo.tally import Tally
from heartwheel.proof.audit.feed import AuditedTopic
from heartwheel.proof.audit.findings import FindingKind
from heartwheel.proof.members.truth import Summary
from heartwheel.settings import Settings


def report_of(settings: Settings, judged: DemoJudgement, fed: Summary, tally: Tally) -> dict[str, Any]:
    """Assemble the report.

    Args:
        judged: the verdicts against the log.
        fed: what the feeder did.
    """
    late, report = judged.lateness_ms, judged.report
    first_s = tally.first_expiration_s
    return {
        # A record whose fate nobody knows may be a member's last one, and then the truth about it is not the log's.
        "ok": report.ok and (not judged.unread or fed.unknown > 0),
        "heartbeats": fed.acknowledged,
        "members": fed.members,
        "killed": judged.killed,
        "expected": judged.expected(AuditedTopic.EXPIRATIONS),
        "expired": judged.expired,
        "triggers_expected": judged.expected(AuditedTopic.TRIGGERS),
        "triggers_written": judged.triggers,
        "rebalances_begun": judged.begun,
        "false": judged.false,
        "missed": report.faults.get(FindingKind.MISSED, 0),
        "duplicates": report.repeated,
        "conflicting": report.faults.get(FindingKind.DUPLICATE, 0),
        "unread": judged.unread,
        "lateness_ms": {
            "p50": percentile(late, 0.5),
            "p90": percentile(late, 0.9),
            "p99": percentile(late, 0.99),
            "max": max(late, default=0),
        },
        "expired_by_reason": dict(tally.expired),
        "triggers": dict(tally.triggers),
        "rejected": tally.rejected,
        "first_expiration_s": None if first_s is None else round(first_s, 1),
        "fed_s": round((fed.ended_ms - fed.started_ms) / 1000, 1),
        "fed": {"sent": fed.sent, "acknowledged": fed.acknowledged, "unknown": fed.unknown, "turns": fed.turns},
        "feeder_behind_ms_max": fed.behind_ms_max,
        "batches": len(tally.batch_ms),
        "batch_ms": {"p50": percentile(tally.batch_ms, 0.5), "max": max(tally.batch_ms, default=0)},
        "trigger_interval_ms": settings.engine.trigger_interval_ms,
        "tick_interval_ms": settings.engine.tick_interval_ms,
        "seed": settings.feed.seed,
        "findings": [msgspec.to_builtins(each) for each in report.findings],
    }
