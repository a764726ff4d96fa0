"""One batch of one shard of heartbeats: state and packs in, verdicts and new state out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import pandas as pd

from heartwheel.engine.heartbeats.config import JobConfig
from heartwheel.engine.runtime.driver.progress import BACKLOG_MS
from heartwheel.engine.runtime.map.collector import no_cycle_collection
from heartwheel.engine.runtime.state.output import (
    Output,
    OutputRecord,
    ProgressFigures,
    json_text,
    json_texts,
    reject_record,
)
from heartwheel.engine.runtime.state.schema import STATE_VERSION, StateRow
from heartwheel.engine.runtime.state.state_function import require_known_version, split
from heartwheel.engine.shard.admission import Refusal
from heartwheel.engine.shard.batch import BatchResult
from heartwheel.engine.shard.block_files import BlockFiles
from heartwheel.engine.shard.sent_pack import decode_relayed, decode_sent
from heartwheel.engine.shard.shard import Shard
from heartwheel.engine.shard.status import status_of
from heartwheel.engine.time import Outage, OutageKind, Reading, decode_readings
from heartwheel.wire.rejects import Reject, make_reject
from heartwheel.wire.status import StatusRow
from heartwheel.wire.verdict_rows import ExpirationRow, row_of
from heartwheel.wire.verdicts import TRIGGER_TYPES, Topic, Verdict, topic_of

_TRIGGER_EVENTS: Final = {kind: f"heartwheel.{kind}.v1" for kind in TRIGGER_TYPES.values()}
_EXPIRED: Final = "heartwheel.member.expired.v1"
_ROWS_AT_ONCE: Final = 256
"""How many verdicts are encoded together."""


@no_cycle_collection()
def advance_shard(
    config: JobConfig,
    shard_index: int,
    before: StateRow,
    frames: Iterable[pd.DataFrame],
    *,
    batch_ms: int,
    batch: int | None = None,
) -> tuple[StateRow, Output]:
    """Advance one shard by one batch.

    The append times of the records determine what is due (`heartwheel.engine.time`). The driver's clock is used only
    for figures: when a verdict was found, and how far the log is behind.

    Args:
        frames: packs, rejects and readings.
        batch_ms: the batch's timestamp in Spark's offset log, the same on every replay, epoch ms.
        batch: its number, if Spark says it.

    Raises:
        StateVersionError: another release wrote the state row.
        StateBlobError: the state's blob cannot be read.
    """
    require_known_version(before, shard_index)
    payloads, rejects, read, relayed = split(frames)
    readings = [reading for payload in read for reading in decode_readings(payload)]
    counts = config.counts_in(batch)
    shard = Shard(
        coordinator=config.coordinator,
        limits=config.limits,
        tick_ms=config.tick_ms,
        wheel_size=config.wheel_size,
        outage_min_ms=config.outage_min_ms,
        counts=counts,
        partitions_max=max(counts, default=0),
        blob=before.blob,
        files=_block_files(config, shard_index, batch),
    )
    packs = [decode_sent(payload) for payload in payloads]
    outcome = shard.apply(packs, readings, [decode_relayed(payload) for payload in relayed])
    rejects += (_refused(config, refusal) for refusal in outcome.refused)
    shard.count(outcome, _counts_of(rejects, readings, shard_index, config.shards))
    blob = shard.encode()
    status = status_of(
        shard,
        outcome,
        index=shard_index,
        batch_ms=batch_ms,
        held=batch_ms - shard.newest_ms > BACKLOG_MS,
        at_risk_count=config.at_risk_count,
        state_bytes=len(blob) + shard.filed_bytes,
    )
    row = StateRow(
        STATE_VERSION,
        max(before.last_trigger_ms, batch_ms),
        shard.clock_ms,
        shard.member_count,
        shard.group_count,
        blob,
    )
    stepped_back_ms = shard.time.stepped_back_ms()
    return row, _output(outcome, rejects, status, standing=len(shard.stalled()), stepped_back_ms=stepped_back_ms)


def _block_files(config: JobConfig, shard_index: int, batch: int | None) -> BlockFiles | None:
    """Return where blocks of the state may lie."""
    if not config.block_location:
        return None
    return BlockFiles(
        config.block_location,
        shard_index,
        batch=batch,
        from_bytes=config.block_files_from,
        versions=config.versions,
    )


def _counts_of(rejects: list[Reject], readings: list[Reading], shard_index: int, shards: int) -> Counter[str]:
    """Count rejects, and records whose append times are missing or went back.

    Every shard gets the readings of all partitions, so each partition is counted by one shard.
    """
    counts = Counter(f"rejected_{reject.cause}" for reject in rejects)
    mine = [reading for reading in readings if reading.partition % shards == shard_index]
    counts["append_time_stepped_back"] += sum(reading.regressed for reading in mine)
    counts["records_untimed"] += sum(reading.untimed for reading in mine)
    return +counts


def _refused(config: JobConfig, refusal: Refusal) -> Reject:
    return make_reject(
        topic=config.topics["heartbeats"],
        partition=refusal.partition,
        offset=refusal.offset,
        append_ms=refusal.append_ms,
        cause=refusal.cause.value,
        detail=refusal.detail,
        # Keys do not travel through the shuffle; by the contract they are the group's id.
        key=refusal.group_id.encode(),
        value=refusal.value,
    )


def _output(
    outcome: BatchResult, rejects: list[Reject], status: StatusRow, *, standing: int, stepped_back_ms: int
) -> Output:
    records = _verdict_records(outcome.verdicts, status)
    expired = sum(record.topic == Topic.EXPIRATIONS for record in records)
    triggers = len(records) - expired
    records += map(reject_record, rejects)
    records.append(
        OutputRecord(
            "status",
            str(status.shard),
            json_text(status),
            f"{status.shard}/{status.batch_ms}",
            "heartwheel.shard.status.v1",
            status.batch_ms,
        )
    )
    figures = ProgressFigures(
        members=status.members,
        groups=status.groups,
        records=status.counts.get("records", 0) + len(rejects) - len(outcome.refused),
        expired=expired,
        triggers=triggers,
        rejected=len(rejects),
        behind_ms=max(0, status.batch_ms - status.newest_ms) if status.newest_ms >= 0 else 0,
        standing=standing,
        outage_ms=_longest_ms(outcome.outages),
        renewed=outcome.counts["sessions_renewed"],
        waiting=status.waiting,
        untimed=status.counts.get("records_untimed", 0),
        stepped_back_ms=stepped_back_ms,
    )
    return Output(records, figures)


def _verdict_records(verdicts: Iterable[Verdict], status: StatusRow) -> list[OutputRecord]:
    """Shape those verdicts as records that are written to a topic."""
    written = [verdict for verdict in verdicts if topic_of(verdict) is not None]
    records: list[OutputRecord] = []
    # Some at a time: what a part of them has taken in memory, the next one uses again.
    for start in range(0, len(written), _ROWS_AT_ONCE):
        part = written[start : start + _ROWS_AT_ONCE]
        rows = [row_of(verdict, shard=status.shard, detected_ms=status.batch_ms) for verdict in part]
        records += [
            OutputRecord(Topic.EXPIRATIONS, row.group_id, value, row.id, _EXPIRED, row.deadline_ms)
            if isinstance(row, ExpirationRow)
            else OutputRecord(Topic.TRIGGERS, row.group_id, value, row.id, _TRIGGER_EVENTS[row.type], row.time_ms)
            for row, value in zip(rows, json_texts(rows), strict=True)
        ]
    return records


def _longest_ms(outages: Iterable[Outage]) -> int:
    """Return how long the longest outage of Kafka was, ms; what a feed has missed is none, nor what has no time."""
    none = {OutageKind.NOT_RELAYED, OutageKind.UNTIMED}
    kafkas = (each for each in outages if each.kind not in none)
    return max((outage.after_ms - outage.before_ms for outage in kafkas), default=0)
