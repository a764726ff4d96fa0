"""The function that Spark calls for every shard in every batch: state and packs in, verdicts and new state out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import pandas as pd

from heartwheel.events import encode_event
from heartwheel.pack import decode_pack
from heartwheel.shard.shard import Outcome, Refusal, Shard
from heartwheel.spark.job import JobConfig
from heartwheel.spark.packer import Reject, to_base64
from heartwheel.spark.schema import STATE_VERSION
from heartwheel.status import StatusRow, status_of
from heartwheel.verdicts import ExpirationRow, row_of, topic_of

_encode = msgspec.json.Encoder().encode

StateFunction = Callable[[tuple[Any, ...], Iterable[pd.DataFrame], Any], Iterator[pd.DataFrame]]

_COLUMNS = (
    "topic",
    "key",
    "value",
    "id",
    "type",
    "time_ms",
    "members",
    "groups",
    "records",
    "expired",
    "triggers",
    "rejected",
    "held",
)
_NO_FIGURES = (0,) * 7


class StateVersionError(RuntimeError):
    """Tell that a newer release wrote the state row."""


def state_function(config: JobConfig, *, held: bool) -> StateFunction:
    """Make the function for `applyInPandasWithState`.

    Args:
        config: the job's.
        held: whether the shards' clocks stand still.
    """
    shard_of_slot = {slot: shard for shard, slot in enumerate(config.slots)}

    def advance(key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        shard_index = shard_of_slot[int(key[0])]
        batch_ms = int(state.getCurrentProcessingTimeMs())
        before = state.get if state.exists else (STATE_VERSION, -1, -1, 0, 0, "")
        row, output = advance_shard(config, shard_index, before, frames, batch_ms=batch_ms, held=held)
        state.update(row)
        yield output

    return advance


def advance_shard(
    config: JobConfig,
    shard_index: int,
    before: tuple[int, int, int, int, int, str],
    frames: Iterable[pd.DataFrame],
    *,
    batch_ms: int,
    held: bool,
) -> tuple[tuple[int, int, int, int, int, str], pd.DataFrame]:
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
    version, last_trigger_ms, clock_ms, _, _, blob = before
    if version > STATE_VERSION:
        raise StateVersionError(
            f"the state of shard {shard_index} has version {version}, this release reads up to {STATE_VERSION}"
        )
    packs, rejects = [], []
    for frame in frames:
        for rejected, payload in zip(frame["rejected"], frame["payload"], strict=True):
            if payload is None:
                continue
            if rejected:
                rejects += msgspec.json.decode(payload, type=list[Reject])
            else:
                packs.append(decode_pack(payload))
    shard = Shard(
        coordinator=config.coordinator,
        limits=config.limits,
        tick_ms=config.tick_ms,
        wheel_size=config.wheel_size,
        clock_ms=clock_ms,
        blob=blob,
    )
    live = not held and last_trigger_ms >= 0
    outcome = shard.apply(packs, last_trigger_ms - config.skew_allowance_ms if live else None)
    rejects += (_refused(config, refusal) for refusal in outcome.refused)
    shard.count(outcome, Counter(f"rejected_{reject.cause}" for reject in rejects))
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
    row = (
        STATE_VERSION,
        last_trigger_ms if held else max(last_trigger_ms, batch_ms),
        shard.clock_ms,
        shard.member_count,
        shard.group_count,
        blob,
    )
    return row, output


def _refused(config: JobConfig, refusal: Refusal) -> Reject:
    value = encode_event(refusal.event)
    return Reject(
        topic=config.topics["heartbeats"],
        partition=refusal.partition,
        offset=refusal.offset,
        append_ms=refusal.append_ms,
        cause=refusal.cause.value,
        detail=refusal.detail,
        key_base64=to_base64(refusal.event.group_id.encode()),
        value_base64=to_base64(value),
        value_bytes=len(value),
    )


def _output(outcome: Outcome, rejects: list[Reject], status: StatusRow) -> pd.DataFrame:
    rows: list[tuple[Any, ...]] = []
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
        rows.append((topic.value, row.group_id, _text(row), row.id, kind, verdict.time_ms, *_NO_FIGURES))
    for reject in rejects:
        place = f"{reject.topic}-{reject.partition}"
        rows.append(
            (
                "rejects",
                place,
                _text(reject),
                f"{place}@{reject.offset}",
                "heartwheel.record.rejected.v1",
                reject.append_ms,
                *_NO_FIGURES,
            )
        )
    figures = (
        status.members,
        status.groups,
        status.counts.get("records", 0),
        expired,
        triggers,
        len(rejects),
        int(status.held),
    )
    status_id = f"{status.shard}/{status.batch_ms}"
    rows.append(
        (
            "status",
            str(status.shard),
            _text(status),
            status_id,
            "heartwheel.shard.status.v1",
            status.batch_ms,
            *figures,
        )
    )
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def _text(row: msgspec.Struct) -> str:
    return _encode(row).decode()
