"""Checks a history with the independent audit, which shares no rule with the engine."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Final, NamedTuple

from heartwheel.proof.audit import Audit, AuditConfig, Finding, FindingKind, in_log_order
from heartwheel.proof.simulation.checkers.problem import BrokenPromise
from heartwheel.proof.simulation.plan.parameters import VALUE_BYTES_MAX, Plan
from heartwheel.proof.simulation.world.checkpoint import Checkpoint
from heartwheel.proof.simulation.world.sink import read_reject, read_row
from heartwheel.proof.simulation.world.topic import SimulatedTopic
from heartwheel.wire.events import RejectedError
from heartwheel.wire.requests import decode_request

_PROMISES: Final = {
    FindingKind.FALSE: "P1",
    FindingKind.WRONG: "P1",
    FindingKind.LATE: "P2",
    FindingKind.DUPLICATE: "P3",
    FindingKind.FORGED: "P3",
    FindingKind.OUT_OF_ORDER: "P4",
    FindingKind.MISSED: "P5",
    FindingKind.REJECT_MISSING: "P6",
    FindingKind.REJECT_FORGED: "P6",
}
"""The promise that each kind of finding breaks."""


class AuditedHistory(NamedTuple):
    """The result of the audit of a history.

    Args:
        put_aside: the groups that it does not judge, because the order of their records is not promised.
    """

    problems: list[BrokenPromise]
    outages: int
    put_aside: frozenset[str]


def audited(
    plan: Plan, topic: SimulatedTopic, checkpoint: Checkpoint, runs: tuple[str, ...], excused: Collection[str]
) -> AuditedHistory:
    """Return what the audit finds.

    Args:
        checkpoint: with the sink, after the job has ended.
        runs: of the job's ticker.
        excused: groups whose findings do not count: the audit cannot know what the job could not know.
    """
    audit = _fed(plan, topic, checkpoint, runs)
    report = audit.finish()
    problems = []
    for finding in report.findings:
        group_id = finding.group_id or _group_of(finding, topic, checkpoint)
        if group_id not in excused and not _is_explained(finding, plan):
            words = f"audit: {finding.kind}, {finding.place()}: {finding.detail} {finding}"
            problems.append(BrokenPromise(_PROMISES[finding.kind], words))
    return AuditedHistory(problems, report.outages, audit.put_aside)


def _group_of(finding: Finding, topic: SimulatedTopic, checkpoint: Checkpoint) -> str | None:
    """Return the group of the record that a finding about a reject is about; `None` if it has none."""
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
    """Return whether the history explains a finding in a way that an audit of topics alone cannot know."""
    if finding.kind is FindingKind.OUT_OF_ORDER and "detected at" in finding.detail:
        # A row is detected at the time of the driver's clock, which may step back here.
        return any(by < 0 for _, by in plan.driver.steps)
    return False


def _fed(plan: Plan, topic: SimulatedTopic, checkpoint: Checkpoint, runs: tuple[str, ...]) -> Audit:
    """Return an audit that has read the topics of a history."""
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
            feeds=plan.relayed.names,
        )
    )
    for place, written in enumerate(checkpoint.sink):
        reject = read_reject(written)
        if reject is not None:
            audit.rejected(reject.partition, reject.offset, reject.cause, append_ms=reject.append_ms, row_offset=place)
    audit.exist(len(topic.partitions))
    starts = checkpoint.offsets[0].starts
    # The checkpoint is new: neither the audit nor the job reads anything before its first offsets.
    for record in in_log_order(topic.records(starts, checkpoint.read)):
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    for place, written in enumerate(checkpoint.sink):
        row = read_row(written)
        if row is not None:
            audit.written(row, written.shard, place, row.detected_ms)
    return audit
