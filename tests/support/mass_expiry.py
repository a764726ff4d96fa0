"""What a job writes when all its members fall silent at once: rows of real shards, in batches that can be sent."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec
import pandas as pd

from heartwheel.engine.heartbeats.advance import advance_shard
from heartwheel.engine.heartbeats.config import JobConfig
from heartwheel.engine.heartbeats.packer import Packer
from heartwheel.engine.runtime.map.packed import PayloadKind
from heartwheel.engine.runtime.state.schema import NEW_STATE, StateRow
from heartwheel.engine.shard import ShardLimits
from heartwheel.engine.time import Reading, ReadingsBuilder, encode_readings
from heartwheel.proof.testing import ProducedRecord, frame_of
from heartwheel.wire.event_codec import encode_event
from heartwheel.wire.partitioner import partition_of
from heartwheel.wire.status import StatusRow
from support.produce import EncodedBatch
from support.rawfeed import RawMembers
from support.record_batch import encode_batch

BATCH_BYTES: Final = 131_072
"""Most bytes of values and headers in one batch: `kafka.batch.size` of the job's sink."""

_HEADERS_BYTES: Final = 200
_BEAT_MS: Final = 3_000
_LIMITS: Final = ShardLimits(members_max=10_000_000, verdicts_max=10_000_000)


class Row(NamedTuple):
    """One record of an output topic, by the topic's logical name."""

    topic: str
    key: str
    value: str
    headers: tuple[tuple[bytes, bytes], ...]


class Fallen(NamedTuple):
    """What one shard wrote: as its members came, as all of them were expired, and as they came back in another order.

    Args:
        came: verdicts of the first.
        gone: of the second.
        back: of the third.
        status: of the shard after the second.
    """

    came: list[Row]
    gone: list[Row]
    back: list[Row]
    status: StatusRow


def fallen(shard: int, who: RawMembers, *, now_ms: int) -> Fallen:
    """Let the members of one shard beat once, fall silent, and beat again.

    Args:
        who: its members; with a generation they are in loaded groups, without one in presence groups.
        now_ms: when the last of them runs out, epoch ms.
    """
    job = JobConfig(
        checkpoint="",
        kafka_options={},
        source="beats",
        topics={"heartbeats": "beats"},
        slots=tuple(range(shard + 1)),
        limits=_LIMITS,
    )
    values = [encode_event(who.event(number)) for number in range(who.first, who.first + who.members)]
    beat_ms = now_ms - who.session_timeout_ms - _BEAT_MS
    state, came = _advance(job, shard, NEW_STATE, _packed(values, beat_ms), beat_ms + _BEAT_MS)
    state, gone = _advance(job, shard, state, [], now_ms)
    random.Random(shard).shuffle(values)
    _, back = _advance(job, shard, state, _packed(values, now_ms), now_ms + _BEAT_MS)
    return Fallen(came[:-1], gone[:-1], back[:-1], msgspec.json.decode(gone[-1].value, type=StatusRow))


def _packed(values: list[bytes], beat_ms: int) -> list[bytes]:
    records = [ProducedRecord(beat_ms + at * _BEAT_MS // len(values), value, 0, at) for at, value in enumerate(values)]
    packed = Packer("beats", 1).pack(frame_of(records), ReadingsBuilder((), 3_000))
    return [payload for _, kind, payload in packed if kind is PayloadKind.RECORDS]


def _advance(
    job: JobConfig, shard: int, state: StateRow, payloads: list[bytes], now_ms: int
) -> tuple[StateRow, list[Row]]:
    readings = encode_readings([Reading(0, 1 << 60, now_ms, now_ms, now_ms)])
    frame = pd.DataFrame(
        [*((PayloadKind.RECORDS, payload) for payload in payloads), (PayloadKind.READINGS, readings)],
        columns=["kind", "payload"],
    )
    state, output = advance_shard(job, shard, state, [frame], batch_ms=now_ms)
    return state, [
        Row(record.topic, record.key, record.value, _headers(record.id, record.type)) for record in output.records
    ]


def _headers(id_: str, kind: str) -> tuple[tuple[bytes, bytes], ...]:
    """Write the headers that `runtime.driver.query.records` writes; the time is one of as many bytes."""
    return (
        (b"ce_specversion", b"1.0"),
        (b"ce_id", id_.encode()),
        (b"ce_source", b"/heartwheel"),
        (b"ce_type", kind.encode()),
        (b"ce_time", b"2026-01-01T00:00:00.000Z"),
        (b"content-type", b"application/json"),
    )


def batches(rows: list[Row], partitions: int) -> Iterator[EncodedBatch]:
    """Fill batches with rows of one topic, as a producer of the job would: by the key's partition, lz4.

    Args:
        rows: in their order.
        partitions: of the topic.
    """
    waiting: dict[int, list[Row]] = {}
    sizes: dict[int, int] = {}
    homes: dict[str, int] = {}
    for row in rows:
        home = homes.get(row.key)
        if home is None:
            home = homes[row.key] = partition_of(row.key.encode(), partitions)
        waiting.setdefault(home, []).append(row)
        sizes[home] = sizes.get(home, 0) + len(row.value) + _HEADERS_BYTES
        if sizes[home] >= BATCH_BYTES:
            yield _encoded(home, waiting.pop(home))
            sizes[home] = 0
    for home, rest in waiting.items():
        yield _encoded(home, rest)


def _encoded(partition: int, rows: list[Row]) -> EncodedBatch:
    records = [(row.key.encode(), row.value.encode()) for row in rows]
    headers = [row.headers for row in rows]
    return EncodedBatch(partition, list(range(len(rows))), encode_batch(records, 0, "lz4", headers))
