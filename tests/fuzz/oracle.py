"""What must hold of any records whatever: nothing raises, nothing is lost, nothing unsafe comes out.

`check_records` is called by the property tests with values that Hypothesis makes, and by the fuzzer with bytes that its
coverage leads it to.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import pandas as pd
import pyarrow as pa
import pytest

from heartwheel.engine.heartbeats.advance import advance_shard
from heartwheel.engine.heartbeats.config import JobConfig
from heartwheel.engine.heartbeats.packer import Packer
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.runtime.driver.job_config import StreamConfig
from heartwheel.engine.runtime.map.packed import PayloadKind
from heartwheel.engine.runtime.plugin import Advance
from heartwheel.engine.runtime.state.output import Output, frame_of_output
from heartwheel.engine.runtime.state.schema import NEW_STATE, StateRow
from heartwheel.engine.shard import ShardLimits
from heartwheel.engine.shard.sent_pack import decode_sent
from heartwheel.engine.time import Reading, ReadingsBuilder, encode_readings
from heartwheel.wire.event_codec import decode_event, encode_event, fingerprint
from heartwheel.wire.events import DETAIL_CHARS_MAX, Event, EventType, RejectedError, TickError
from heartwheel.wire.rejects import REJECT_VALUE_BYTES_MAX, Reject

T0 = 1_795_239_789_000
PARTITION = 0
FIRST_OFFSET = 41
ROW_BYTES_MAX = 1_000_000
"""A little less than what a Kafka producer sends in one request by default."""

CONFIG = JobConfig(
    checkpoint="unused",
    kafka_options={},
    source="beats",
    topics={"heartbeats": "beats"},
    slots=(0,),
    coordinator=CoordinatorConfig(group_min_session_timeout_ms=1),
    limits=ShardLimits(members_max=6, members_per_group_max=3, groups_max=4),
    at_risk_count=1_000,
)
"""Small limits, so that a few records reach them."""


class Packed(NamedTuple):
    """Hold what the map side made of some records: accepted offsets with their bodies and fingerprints, and rejects."""

    rows: list[tuple[PayloadKind, bytes]]
    accepted: dict[int, tuple[bytes, int]]
    rejects: dict[int, Reject]


def check_records(records: Sequence[tuple[bytes | None, bytes | None]]) -> None:
    """Run (key, value) records through decode, pack and shard, and check everything that comes out."""
    packed = _pack(records)
    ticks = {offset for offset, (_, value) in zip(_offsets(records), records, strict=True) if _is_tick(value)}
    assert packed.accepted.keys() | packed.rejects.keys() == set(_offsets(records)) - ticks
    assert not packed.accepted.keys() & packed.rejects.keys()
    for offset, (key, value) in zip(_offsets(records), records, strict=True):
        if offset in ticks:
            continue
        if offset in packed.rejects:
            _check_reject(packed.rejects[offset], key, value)
        else:
            assert value is not None
            _check_accepted(*packed.accepted[offset], value)
    _check_batches(records, packed)


def _is_tick(value: bytes | None) -> bool:
    try:
        decode_event(value)
    except TickError:
        return True
    except RejectedError:
        return False
    return False


def _offsets(records: Sequence[object]) -> range:
    return range(FIRST_OFFSET, FIRST_OFFSET + len(records))


def record_batch(records: Sequence[tuple[bytes | None, bytes | None]]) -> pa.RecordBatch:
    """Give (key, value) records as Spark hands them to a task."""
    count = len(records)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([key for key, _ in records], pa.binary()),
            "value": pa.array([value for _, value in records], pa.binary()),
            "partition": pa.array([PARTITION] * count, pa.int32()),
            "offset": pa.array(_offsets(records), pa.int64()),
            "append_ms": pa.array(range(T0, T0 + count), pa.int64()),
        }
    )


def _pack(records: Sequence[tuple[bytes | None, bytes | None]]) -> Packed:
    packed = Packed([], {}, {})
    readings = ReadingsBuilder((), 3_000)
    for shard, kind, payload in Packer("beats", 1).pack(record_batch(records), readings):
        assert shard == 0
        packed.rows.append((kind, payload))
        if kind is PayloadKind.REJECTS:
            packed.rejects.update((each.offset, each) for each in msgspec.json.decode(payload, type=list[Reject]))
        else:
            pack = decode_sent(payload)
            for offset, entry in zip(pack.offset.tolist(), pack.entry.tolist(), strict=True):
                packed.accepted[offset] = (pack.bodies[entry], int(pack.fingerprints[entry]))
    packed.rows.append((PayloadKind.READINGS, encode_readings(readings.readings())))
    return packed


def _check_reject(reject: Reject, key: bytes | None, value: bytes | None) -> None:
    """A reject tells the right cause and place, and keeps the bytes."""
    with pytest.raises(RejectedError) as caught:
        decode_event(value)
    assert (reject.cause, reject.detail) == (caught.value.cause.value, caught.value.detail)
    assert 0 < len(reject.detail) <= DETAIL_CHARS_MAX + 4
    assert (reject.topic, reject.partition) == ("beats", PARTITION)
    assert reject.append_ms - T0 == reject.offset - FIRST_OFFSET
    assert _bytes(reject.value_base64) == (value if value is None else value[:REJECT_VALUE_BYTES_MAX])
    assert _bytes(reject.key_base64) == (key if key is None else key[:REJECT_VALUE_BYTES_MAX])
    assert reject.value_bytes == (None if value is None else len(value))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _check_accepted(body: bytes, mark: int, value: bytes) -> None:
    """An accepted record travels unchanged, means what a fresh decode says, and survives being encoded."""
    event = decode_event(value)
    assert body == value
    assert mark == (fingerprint(event) if event.type is EventType.HEARTBEAT else 0)
    again = decode_event(encode_event(event), size_max=len(value) * 8 + 4096)
    assert (again, fingerprint(again)) == (event, fingerprint(event))


def _check_batches(records: Sequence[tuple[bytes | None, bytes | None]], packed: Packed) -> None:
    """The shard takes the batch, decides on all members by the clock, and does both again alike on what it kept."""
    state, output = advance_twice(advance_shard, CONFIG, 0, NEW_STATE, packed.rows, batch_ms=T0 + len(records))
    rows = check_output(output)
    rejected = [(row["partition"], row["offset"]) for topic, row in rows if topic == "rejects"]
    assert len(rejected) == len(set(rejected)) >= len(packed.rejects)
    assert {offset for _, offset in rejected} >= packed.rejects.keys()
    counts = next(row["counts"] for topic, row in rows if topic == "status")
    assert counts.get("records", 0) == len(packed.accepted)
    assert sum(n for name, n in counts.items() if name.startswith("rejected_")) == len(rejected)
    for batch_ms in (T0 + 2**32, T0 + 2**33):
        tick = encode_readings([Reading(PARTITION, batch_ms, batch_ms, batch_ms, batch_ms)])
        rows_of_tick = [(PayloadKind.READINGS, tick)]
        state, output = advance_twice(advance_shard, CONFIG, 0, state, rows_of_tick, batch_ms=batch_ms)
        check_output(output)


def advance_twice(
    advance: Advance[Any, Output],
    config: StreamConfig,
    shard: int,
    before: StateRow,
    rows: Sequence[tuple[PayloadKind, bytes]],
    *,
    batch_ms: int,
) -> tuple[StateRow, Output]:
    """Advance a shard by what was packed for it: done again, it gives the same state and rows."""
    frame = pd.DataFrame(rows, columns=["kind", "payload"])
    state, output = advance(config, shard, before, [frame], batch_ms=batch_ms)
    again, same = advance(config, shard, before, [frame], batch_ms=batch_ms)
    assert state == again
    assert output == same
    assert state[5].isascii()
    return state, output


def check_output(output: Output) -> list[tuple[str, dict[str, Any]]]:
    """Records out are UTF-8 and JSON, short enough for Kafka, and their headers are plain; Arrow takes them all."""
    frame = frame_of_output(output, {record.topic: record.topic for record in output.records})
    table = pa.Table.from_pandas(frame)  # lone surrogates would not pass
    assert len(pa.compute.list_flatten(table["vals"])) == len(output.records)
    rows = []
    for topic, key, value, row_id, kind, _ in output.records:
        encoded = value.encode()
        assert len(key.encode()) + len(encoded) < ROW_BYTES_MAX
        assert (row_id + kind).isascii()
        assert (row_id + kind).isprintable()
        rows.append((topic, json.loads(encoded.decode())))
    return rows


def accepted(value: bytes | None) -> Event | None:
    """Decode a value as the engine would; `None` if it is rejected, whatever for."""
    try:
        return decode_event(value)
    except RejectedError:
        return None
