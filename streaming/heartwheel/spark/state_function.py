"""The function that Spark calls for every shard in every batch: state and packs in, verdicts and new state out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import pandas as pd

from heartwheel.errors import HeartwheelError
from heartwheel.pack import decode_pack
from heartwheel.shard.admission import Refusal
from heartwheel.shard.shard import Outcome, Shard
from heartwheel.shard.status import status_of
from heartwheel.spark.job_config import JobConfig, StreamConfig
from heartwheel.spark.schema import NEW_STATE, STATE_VERSION, OutputRow, StateRow
from heartwheel.wire.rejects import Reject, make_reject
from heartwheel.wire.status import StatusRow
from heartwheel.wire.verdicts import ExpirationRow, row_of, topic_of

_encode = msgspec.json.Encoder().encode

StateFunction = Callable[[tuple[Any, ...], Iterable[pd.DataFrame], Any], Iterator[pd.DataFrame]]
AdvanceOne = Callable[..., tuple[StateRow, pd.DataFrame]]


class StateVersionError(HeartwheelError):
    """Tell that a newer release wrote the state row."""


def state_function(config: StreamConfig, advance_one: AdvanceOne, *, held: bool) -> StateFunction:
    """Make the function for `applyInPandasWithState`.

    Args:
        config: the job's.
        advance_one: advances one shard of the job by one batch, with the parameters of `advance_shard`.
        held: whether the shards' clocks stand still.
    """
    shard_of_slot = {slot: shard for shard, slot in enumerate(config.slots)}

    def advance(key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        shard_index = shard_of_slot[int(key[0])]
        batch_ms = int(state.getCurrentProcessingTimeMs())
        before = StateRow(*state.get) if state.exists else NEW_STATE
        row, output = advance_one(config, shard_index, before, frames, batch_ms=batch_ms, held=held)
        state.update(row)
        yield output

    return advance


def require_known_version(row: StateRow, shard_index: int) -> None:
    """Refuse a state row that a newer release wrote.

    Raises:
        StateVersionError: it is newer than this release knows.
    """
    if row.version > STATE_VERSION:
        raise StateVersionError(
            f"the state of shard {shard_index} has version {row.version}, this release reads up to {STATE_VERSION}"
        )


def split(frames: Iterable[pd.DataFrame]) -> tuple[list[bytes], list[Reject]]:
    """Take the payloads of records, and the rejects, out of what came for a shard; ticks have neither."""
    payloads: list[bytes] = []
    rejects: list[Reject] = []
    for frame in frames:
        for rejected, payload in zip(frame["rejected"], frame["payload"], strict=True):
            if payload is None:
                continue
            if rejected:
                rejects += msgspec.json.decode(payload, type=list[Reject])
            else:
                payloads.append(payload)
    return payloads, rejects


def advance_shard(
    config: JobConfig,
    shard_index: int,
    before: StateRow,
    frames: Iterable[pd.DataFrame],
    *,
    batch_ms: int,
    held: bool,
) -> tuple[StateRow, pd.DataFrame]:
    """Advance one shard by one batch.

    The clock in a batch is the timestamp of the batch *before*, less the skew allowance. Spark fetches the end offsets
    and then takes the batch's timestamp, so a record may be appended in between and stay unread; what was appended
    before the previous timestamp has been read by now, whatever stalled (`test_state_function.py` holds P1 that way).

    Args:
        config: the job's.
        shard_index: which shard.
        before: the state row.
        frames: packs, rejects and ticks.
        batch_ms: the batch's timestamp in Spark's offset log, the same on every replay, epoch ms.
        held: whether the clock stands still.

    Raises:
        StateVersionError: a newer release wrote the state row.
        StateBlobError: the state's blob can not be read.
    """
    require_known_version(before, shard_index)
    last_trigger_ms = before.last_trigger_ms
    payloads, rejects = split(frames)
    shard = Shard(
        coordinator=config.coordinator,
        limits=config.limits,
        tick_ms=config.tick_ms,
        wheel_size=config.wheel_size,
        clock_ms=before.clock_ms,
        blob=before.blob,
    )
    live = not held and last_trigger_ms >= 0
    outcome = shard.apply(
        [decode_pack(payload) for payload in payloads], last_trigger_ms - config.skew_allowance_ms if live else None
    )
    rejects += (_refused(config, refusal) for refusal in outcome.refused)
    counts = Counter(f"rejected_{reject.cause}" for reject in rejects)
    # The driver's clock went back: time stands still until it is where it was, for it may not be lived through twice.
    counts["trigger_stepped_back"] += batch_ms < last_trigger_ms
    shard.count(outcome, +counts)
    blob = shard.encode()
    status = status_of(
        shard,
        outcome,
        index=shard_index,
        batch_ms=batch_ms,
        held=held,
        at_risk_count=config.at_risk_count,
        state_bytes=len(blob),
    )
    output = _output(outcome, rejects, status)
    row = StateRow(
        STATE_VERSION,
        last_trigger_ms if held else max(last_trigger_ms, batch_ms),
        shard.clock_ms,
        shard.member_count,
        shard.group_count,
        blob,
    )
    return row, output


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


def _output(outcome: Outcome, rejects: list[Reject], status: StatusRow) -> pd.DataFrame:
    rows: list[OutputRow] = []
    expired = triggers = 0
    for verdict in outcome.verdicts:
        topic = topic_of(verdict)
        if topic is None:
            continue
        row = row_of(verdict, shard=status.shard, detected_ms=status.batch_ms)
        if isinstance(row, ExpirationRow):
            expired += 1
            kind = "heartwheel.member.expired.v1"
        else:
            triggers += 1
            kind = f"heartwheel.{row.type}.v1"
        rows.append(OutputRow(topic.value, row.group_id, json_text(row), row.id, kind, verdict.time_ms))
    rows += map(reject_row, rejects)
    rows.append(
        OutputRow(
            "status",
            str(status.shard),
            json_text(status),
            f"{status.shard}/{status.batch_ms}",
            "heartwheel.shard.status.v1",
            status.batch_ms,
            members=status.members,
            groups=status.groups,
            records=status.counts.get("records", 0),
            expired=expired,
            triggers=triggers,
            rejected=len(rejects),
            held=int(status.held),
        )
    )
    return pd.DataFrame(rows, columns=list(OutputRow._fields))


def reject_row(reject: Reject) -> OutputRow:
    """Shape a reject as a row of `OUTPUT`."""
    place = f"{reject.topic}-{reject.partition}"
    record_id = f"{place}@{reject.offset}"
    kind = "heartwheel.record.rejected.v1"
    return OutputRow("rejects", place, json_text(reject), record_id, kind, reject.append_ms)


def json_text(row: msgspec.Struct) -> str:
    """Encode the value of an output record."""
    return _encode(row).decode()
