"""The report of an audit, from its counts and findings."""

from __future__ import annotations

from heartwheel.proof.audit.findings import FindingKind, Report
from heartwheel.proof.audit.state import AuditState


def report_of(state: AuditState, clock_ms: int | None, *, pending: int) -> Report:
    """Return the report.

    Args:
        state: the audit's state, after everything due was judged.
        clock_ms: up to when it was judged, epoch ms; `None` if the whole log was read.
        pending: number of rejects that cannot be judged yet.
    """
    counts, faults = state.counts, state.ledger.counts
    return Report(
        ok=not faults,
        clock_ms=clock_ms,
        events=counts.get("events", 0),
        derived=counts.get("derived", 0),
        written=counts.get("written", 0),
        confirmed=counts.get("confirmed", 0),
        repeated=counts.get("repeated", 0),
        pending=counts.get("pending", 0) + pending,
        unjudged=counts.get("unjudged", 0),
        unsettled=state.ledger.unsettled,
        ticks=counts.get("ticks", 0),
        outages=counts.get("outages", 0),
        clamped=counts.get("clamped", 0),
        unread=counts.get("unread", 0),
        skipped=counts.get("skipped", 0),
        faults={kind: faults[kind] for kind in FindingKind if kind in faults},
        findings=tuple(state.ledger.kept),
    )
