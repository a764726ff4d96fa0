"""A history before the independent audit, which shares no rule with the engine."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict

from heartwheel.audit import Audit, AuditConfig, Finding, FindingKind, Report, in_log_order
from heartwheel.simulation.checkpoint import Checkpoint
from heartwheel.simulation.plan import VALUE_BYTES_MAX, Plan
from heartwheel.simulation.problem import Problem
from heartwheel.simulation.sink import read_reject, read_row
from heartwheel.simulation.topic import Topic
from heartwheel.wire.events import RejectedError
from heartwheel.wire.requests import decode_request


def audited(
    plan: Plan, topic: Topic, checkpoint: Checkpoint, runs: tuple[str, ...], astray: Collection[str]
) -> Iterator[Problem]:
    """List what the audit finds.

    Args:
        plan: the history's parameters.
        topic: the heartbeats.
        checkpoint: with the sink, after the job has ended.
        runs: of the job's ticker.
        astray: groups whose records have no promised order.
    """
    report = _report(plan, topic, checkpoint, runs)
    for finding in report.findings:
        group_id = finding.group_id or _group_of(finding, topic, checkpoint)
        if group_id not in astray and not _is_explained(finding, plan):
            yield Problem("audit", f"{finding.kind}, {finding.place()}: {finding.detail} {finding}")


def _group_of(finding: Finding, topic: Topic, checkpoint: Checkpoint) -> str | None:
    """Name the group of the record that a finding about a reject is about; `None` if it has none."""
    partition, offset = finding.partition, finding.offset
    if finding.kind is FindingKind.REJECT_FORGED:
        reject = read_reject(checkpoint.sink[offset])
        partition, offset = (reject.partition, reject.offset) if reject is not None else (-1, -1)
    elif finding.kind is not FindingKind.REJECT_MISSING:
        return None
    try:
        return decode_request(topic.partitions[partition][offset].record.value, size_max=VALUE_BYTES_MAX).group_id
    except RejectedError:
        return None


def _is_explained(finding: Finding, plan: Plan) -> bool:
    """Tell whether the history explains a finding in a way that an audit of topics alone cannot know."""
    if finding.kind is FindingKind.OUT_OF_ORDER and "detected at" in finding.detail:
        # The driver's clock is what a row is detected at, and here it may step back.
        return any(by < 0 for _, by in plan.driver.steps)
    return False


def _report(plan: Plan, topic: Topic, checkpoint: Checkpoint, runs: tuple[str, ...]) -> Report:
    rules = {name: value for name, value in asdict(plan.coordinator).items() if name in AuditConfig.__struct_fields__}
    rules["group_overrides"] = {f"{own.group_id}/{own.name}": own.value for own in plan.coordinator.group_overrides}
    audit = Audit(
        AuditConfig(
            **rules,
            members_per_group_max=plan.limits.members_per_group_max,
            value_bytes_max=VALUE_BYTES_MAX,
            tick_ms=plan.tick_ms,
            outage_min_ms=plan.outage_min_ms,
            runs=runs,
            feeds=plan.passed_on.names,
        )
    )
    for place, written in enumerate(checkpoint.sink):
        reject = read_reject(written)
        if reject is not None:
            audit.rejected(reject.partition, reject.offset, reject.cause, append_ms=reject.append_ms, row_offset=place)
    audit.exist(len(topic.partitions))
    starts = checkpoint.offsets[0].starts
    logs = topic.records(starts, checkpoint.read)
    for log in logs:
        if log and log[0].offset > 0:
            audit.begins(log[0].partition, log[0].append_ms)
    for record in in_log_order(logs):
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    for place, written in enumerate(checkpoint.sink):
        row = read_row(written)
        if row is not None:
            audit.written(row, written.shard, place, row.detected_ms)
    return audit.finish()
