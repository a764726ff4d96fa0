"""The map side: nothing is lost, nothing is reordered, what cannot be decoded is set aside by name."""

from __future__ import annotations

import base64
import gc
import weakref
from collections import defaultdict
from itertools import pairwise
from unittest import mock

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartwheel.engine.heartbeats.packer import Packer
from heartwheel.engine.runtime.map import frames
from heartwheel.engine.runtime.map.frames import FRAME_BYTES_MAX, FRAME_RECORDS_MAX
from heartwheel.engine.runtime.map.packed import PayloadKind
from heartwheel.engine.shard.log import BatchLog
from heartwheel.engine.shard.pack import Pack
from heartwheel.engine.shard.sent_pack import decode_sent
from heartwheel.engine.time import ReadingsBuilder
from heartwheel.proof.testing import LogBuilder, frame_of
from heartwheel.wire.event_codec import decode_event, fingerprint
from heartwheel.wire.events import Event, EventType, TickError
from heartwheel.wire.partitioner import shard_of
from heartwheel.wire.rejects import REJECT_VALUE_BYTES_MAX, Reject
from heartwheel.wire.requests import encode_request

SHARDS = 4


def _event(group: int, member: int, kind: EventType = EventType.HEARTBEAT) -> Event:
    return Event(type=kind, group_id=f"g{group}", member_id=f"m{member}")


def _pack(packer: Packer, log: LogBuilder) -> tuple[dict[int, list[Pack]], list[Reject]]:
    packs: dict[int, list[Pack]] = defaultdict(list)
    rejects: list[Reject] = []
    for shard, kind, payload in packer.pack(frame_of(log.records), ReadingsBuilder((), 3_000)):
        if kind is PayloadKind.REJECTS:
            rejects += msgspec.json.decode(payload, type=list[Reject])
        else:
            packs[shard].append(decode_sent(payload))
    return packs, rejects


_records = st.lists(
    st.tuples(
        st.integers(0, 2**41),
        st.integers(0, 5),
        st.integers(0, 3),
        st.sampled_from([EventType.HEARTBEAT, EventType.SYNC]),
        st.booleans(),
    ),
    min_size=1,
    max_size=60,
)


@given(_records)
def test_nothing_is_lost_and_order_is_kept(rows: list[tuple[int, int, int, EventType, bool]]) -> None:
    """Every record comes out once, in its shard, in the order of the log, with its effective time and fingerprint."""
    log = LogBuilder()
    for append_ms, group, member, kind, broken in rows:
        log.add(append_ms, b"{" if broken else _event(group, member, kind))
    packs, rejects = _pack(Packer("t", SHARDS), log)
    expected = defaultdict(list)
    effective_ms = 0
    for record, (_, group, member, kind, broken) in zip(log.records, rows, strict=True):
        effective_ms = max(effective_ms, record.append_ms)
        if not broken:
            event = _event(group, member, kind)
            mark = fingerprint(event) if kind is EventType.HEARTBEAT else 0
            expected[shard_of(event.group_id, SHARDS)].append((effective_ms, record.offset, event, mark))
    for shard in range(SHARDS):
        batch = BatchLog(packs[shard])
        got = [
            (int(ms), int(offset), batch.event(int(entry)), int(batch.fingerprint[entry]))
            for ms, offset, entry in zip(batch.append_ms, batch.offset, batch.entry, strict=True)
        ]
        assert got == expected[shard]
    assert [reject.offset for reject in rejects] == [
        r.offset for r, row in zip(log.records, rows, strict=True) if row[4]
    ]


def test_a_value_is_sent_once() -> None:
    """Records with the same bytes share one body, so a backlog shrinks before the shuffle."""
    log = LogBuilder()
    for t in range(1000):
        log.add(t, _event(1, t % 2))
    packs, _ = _pack(Packer("t", 1), log)
    (pack,) = packs[0]
    assert (len(pack.entry), len(pack.bodies)) == (1000, 2)


def test_a_forgotten_value_is_decoded_again() -> None:
    """The packer's memory is only a cache: with room for two values it packs the same as with room for all."""
    log = LogBuilder()
    for t in range(50):
        log.add(t, _event(t % 7, t % 5))
    log.add(50, b"not json")
    small, large = Packer("t", SHARDS, remembered_max=2), Packer("t", SHARDS)
    for _ in range(3):
        (some, bad), (others, as_bad) = _pack(small, log), _pack(large, log)
        assert {s: _records_of(packs) for s, packs in some.items()} == {s: _records_of(p) for s, p in others.items()}
        assert bad == as_bad


def _records_of(packs: list[Pack]) -> list[tuple[int, int, int, bytes]]:
    batch = BatchLog(packs)
    columns = (batch.append_ms.tolist(), batch.offset.tolist(), batch.fingerprint[batch.entry].tolist())
    return list(zip(*columns, map(batch.body, batch.entry.tolist()), strict=True))


def test_equal_meaning_has_equal_fingerprints() -> None:
    """Unknown fields, white space and the order of keys do not count; every field that a rule sees does."""
    plain = b'{"group_id":"g","member_id":"m"}'
    same = [
        b' {"member_id" : "m", "group_id": "g", "sent_at": 17}',
        b'{"type":"heartbeat","group_id":"g","member_id":"m"}',
    ]
    other = [b'{"group_id":"g","member_id":"m","generation_id":0}', b'{"group_id":"gm","member_id":""}']
    log = LogBuilder()
    for value in (plain, *same, *other[:1]):
        log.add(0, value)
    packs, _ = _pack(Packer("t", 1), log)
    (pack,) = packs[0]
    marks = [int(pack.fingerprints[entry]) for entry in pack.entry]
    assert marks[0] == marks[1] == marks[2] != marks[3]


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (None, "tombstone"),
        (b"", "not_json"),
        (b"\xff\xfe", "not_json"),
        (b'{"group_id":"\xff"}', "not_json"),
        (b"[" * 100_000, "bad_field"),
        (b'{"group_id":"g","x":' + b"[" * 100_000, "not_json"),
        (b'{"group_id":"g","generation_id":NaN}', "not_json"),
        (b"[]", "bad_field"),
        (b'{"member_id":"m"}', "missing_field"),
        (b'{"group_id":"","member_id":"m"}', "missing_field"),
        (b'{"group_id":"g"}', "missing_field"),
        (b'{"group_id":"g","type":"join"}', "missing_field"),
        (b'{"group_id":"g","type":"leave"}', "missing_field"),
        (b'{"group_id":"g","member_id":"m","type":"dance"}', "unknown_type"),
        (b'{"group_id":"g","member_id":7}', "bad_field"),
        (b'{"group_id":"g","member_id":"m","generation_id":9223372036854775808}', "bad_field"),
        (b'{"group_id":"g","member_id":"m","session_timeout_ms":0}', "bad_field"),
        (b'{"group_id":"g","member_id":"' + b"m" * 1025 + b'"}', "id_too_long"),
        (b'{"group_id":"\\ud800","member_id":"m"}', "not_json"),
        (b'{"group_id":"g","member_id":"m","x":"' + b"x" * (1 << 20) + b'"}', "too_large"),
    ],
)
def test_bad_records_are_set_aside_by_cause(value: bytes | None, cause: str) -> None:
    """A record that is no event is kept with where it was, why, and what it said; its neighbours are handled."""
    log = LogBuilder()
    log.add(5, _event(1, 1), partition=3)
    log.add(6, value, partition=3)
    log.add(7, _event(1, 1), partition=3)
    packs, (reject,) = _pack(Packer("beats", SHARDS), log)
    assert sum(len(pack.entry) for shard in packs.values() for pack in shard) == 2
    assert (reject.topic, reject.partition, reject.offset, reject.append_ms) == ("beats", 3, 1, 6)
    assert reject.cause == cause
    assert reject.detail
    kept = None if value is None else base64.b64encode(value[:REJECT_VALUE_BYTES_MAX]).decode()
    assert (reject.value_base64, reject.value_bytes) == (kept, None if value is None else len(value))


def test_a_duplicate_key_counts_by_its_last_value() -> None:
    """JSON with a key twice is read as every common parser does."""
    log = LogBuilder()
    log.add(0, b'{"group_id":"a","group_id":"b","member_id":"m"}')
    packs, _ = _pack(Packer("t", 1), log)
    assert BatchLog(packs[0]).event(0).group_id == "b"
    assert encode_request(BatchLog(packs[0]).event(0)) == b'{"group_id":"b","member_id":"m"}'


@pytest.mark.parametrize(
    "value",
    [
        b'{"type":"tick","run":"r","mono_ms":7,"partitions":3,"interval_ms":200}',
        b'{ "partitions": 3, "type" : "tick" }',
        b'{"type":"tick","group_id":"g","member_id":"m"}',
        b'{"type":"tick","run":7}',
    ],
)
def test_ticks_are_passed_over(value: bytes) -> None:
    """A tick of anybody is no event and no reject, and counts as read; its neighbours are handled."""
    log = LogBuilder()
    log.add(5, _event(1, 1))
    log.add(9, value)
    readings, packer = ReadingsBuilder(("r",), 3_000), Packer("t", 1)
    rows = list(packer.pack(frame_of(log.records), readings))
    assert [(kind, decode_sent(payload).offset.tolist()) for _, kind, payload in rows] == [(PayloadKind.RECORDS, [0])]
    (reading,) = readings.readings()
    assert (reading.first_ms, reading.last_ms) == (5, 9)
    assert len(packer._decoder._table) == 1
    with pytest.raises(TickError):
        decode_event(value)


@pytest.mark.parametrize(
    "value", [b"{", b"[]", b'{"type":"tick","run":"r","mono_ms":7}', b'{"type":"consumer_group_heartbeat"}']
)
def test_what_is_no_event_keeps_no_frame_of_records(value: bytes) -> None:
    """Nothing of a frame with ticks and bad records waits for the garbage collector, which arrays do not start."""
    log = LogBuilder()
    log.add(5, value)
    packer = Packer("t", 1)
    released = weakref.ref(packer)
    gc.disable()
    try:
        _pack(packer, log)
        del packer
        assert released() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("frame_bytes", [FRAME_BYTES_MAX, 4_000])
@given(sizes=st.lists(st.integers(0, 40_000), max_size=12))
def test_arrow_batches_are_joined_to_frames(sizes: list[int], frame_bytes: int) -> None:
    """Nothing is lost or moved, frames are bounded by records and bytes, and no two could have been one."""
    ends = np.cumsum([0, *sizes])
    batches = [pa.RecordBatch.from_pydict({"n": np.arange(a, b)}) for a, b in pairwise(ends.tolist())]
    with mock.patch.object(frames, "FRAME_BYTES_MAX", frame_bytes):
        joined = list(frames.frames_of(batches))
    assert [n for frame in joined for n in frame.column("n").to_pylist()] == list(range(sum(sizes)))
    most = max([FRAME_RECORDS_MAX if frame_bytes == FRAME_BYTES_MAX else frame_bytes // 8, *sizes])
    assert all(len(frame) <= most for frame in joined)
    assert len(joined) <= 1 + 2 * sum(sizes) / min(FRAME_RECORDS_MAX, frame_bytes // 8)
