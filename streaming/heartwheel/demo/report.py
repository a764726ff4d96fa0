"""What a demo came to, as one document for people and machines."""

from __future__ import annotations

from typing import Any

from heartwheel.demo.tally import Tally, percentile
from heartwheel.feed.judge import Judgement
from heartwheel.feed.truth import Summary
from heartwheel.settings import Settings


def report_of(settings: Settings, judgement: Judgement, fed: Summary, tally: Tally) -> dict[str, Any]:
    """Assemble the report.

    Args:
        settings: what the demo ran with.
        judgement: of the expirations against the log.
        fed: what the feeder did.
        tally: what came back.
    """
    late = judgement.lateness_ms
    first_s = tally.first_expiration_s
    return {
        "ok": judgement.ok,
        "heartbeats": judgement.fed,
        "members": judgement.members,
        "killed": judgement.killed,
        "expected": judgement.expected,
        "expired": judgement.expired,
        "false": judgement.false,
        "missed": judgement.missed,
        "duplicates": judgement.duplicates,
        "conflicting": judgement.conflicting,
        "unread": judgement.unread,
        "lateness_ms": {"p50": late.p50, "p90": late.p90, "p99": late.p99, "max": late.max},
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
        "skew_allowance_ms": settings.engine.skew_allowance_ms,
        "seed": settings.feed.seed,
        "examples_false": [silence._asdict() for silence in judgement.examples_false],
        "examples_missed": [silence._asdict() for silence in judgement.examples_missed],
    }
