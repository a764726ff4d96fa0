"""What a demo came to, as one document for people and machines."""

from __future__ import annotations

from typing import Any

import msgspec

from heartwheel.base.percentiles import percentile
from heartwheel.front.demo.judge import DemoJudgement
from heartwheel.front.demo.tally import Tally
from heartwheel.front.demo.verdicts_judged import Compared
from heartwheel.proof.members.truth import Summary
from heartwheel.settings import Settings


def report_of(settings: Settings, judged: DemoJudgement, fed: Summary, tally: Tally) -> dict[str, Any]:
    """Assemble the report.

    Args:
        settings: what the demo ran with.
        judged: the verdicts against the log.
        fed: what the feeder did.
        tally: what came back.
    """
    late, presence, verdicts = judged.lateness_ms, judged.presence, judged.verdicts
    classic, first_s = verdicts.expirations, tally.first_expiration_s
    return {
        # A record whose fate nobody knows may be a member's last one, and then the truth about it is not the log's.
        "ok": judged.ok and (not presence.unread or fed.unknown > 0),
        "heartbeats": verdicts.fed,
        "members": fed.members,
        "killed": presence.killed,
        "expected": presence.expected + classic.expected,
        "expired": presence.expired + classic.written,
        "false": presence.false + classic.false,
        "missed": presence.missed + classic.missed,
        "duplicates": presence.duplicates,
        "conflicting": presence.conflicting,
        "unread": presence.unread,
        "rebalances": {"begun": verdicts.begun} | _figures(verdicts.rebalances),
        "arrivals": _figures(verdicts.arrivals),
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
        "examples_false": [silence._asdict() for silence in presence.examples_false] + _examples(judged, "false"),
        "examples_missed": [silence._asdict() for silence in presence.examples_missed] + _examples(judged, "missed"),
    }


def _figures(compared: Compared) -> dict[str, int]:
    return {
        "expected": compared.expected,
        "written": compared.written,
        "false": compared.false,
        "missed": compared.missed,
    }


def _examples(judged: DemoJudgement, kind: str) -> list[dict[str, Any]]:
    verdicts = judged.verdicts
    found = (
        getattr(each, f"examples_{kind}") for each in (verdicts.expirations, verdicts.rebalances, verdicts.arrivals)
    )
    return [msgspec.to_builtins(fault) for faults in found for fault in faults]
