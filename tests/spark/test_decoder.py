"""Decoding many values at once gives what decoding each of them gives, whatever the values and their hashes are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartwheel.engine.heartbeats.decoder import BAD, TICK, Decoder
from heartwheel.engine.heartbeats.value_digests import Digests, ValueDigests
from heartwheel.engine.runtime.map.java_hashes import shards_of
from heartwheel.wire.event_codec import decode_event, decode_events, encode_event, fingerprint
from heartwheel.wire.events import Event, EventType, RejectedError, TickError
from heartwheel.wire.partitioner import shard_of

SHARDS = 4
SIZE_MAX = 2_000

_VALUES = [
    b"",
    b"{",
    b"null",
    b'{"group_id":"","member_id":"m"}',
    b'{"group_id":"g","member_id":""}',
    b'{"group_id":"g","member_id":"m"}',
    b'{"group_id":"g", "member_id":"m"}',
    b'{"group_id":"h\\nh","member_id":"line\\u2028break"}',
    b'{"group_id":"g","member_id":"m","type":"leave"}',
    b'{"type":"tick","run":"r","mono_ms":7,"partitions":3,"interval_ms":200}',
    b'{"group_id":"g","member_id":"' + b"m" * 800 + b'"}',
    b'{"group_id":"g","member_id":"' + b"m" * 1_025 + b'"}',
    b'{"group_id":"g","member_id":"m","x":"' + b"x" * SIZE_MAX + b'"}',
    *(encode_event(Event(group_id=f"group {i % 3}", member_id=f"m{i}", generation_id=i)) for i in range(8)),
]


def _expected(value: bytes) -> tuple[int, int]:
    try:
        event = decode_event(value, size_max=SIZE_MAX)
    except TickError:
        return TICK, 0
    except RejectedError:
        return BAD, 0
    mark = fingerprint(event) if event.type is EventType.HEARTBEAT else 0
    return shard_of(event.group_id, SHARDS), mark


class _HalfDigests(ValueDigests):
    """Digests of which many share their first half, or all of them."""

    def __init__(self, first_halves: int) -> None:
        super().__init__()
        self._first_halves = np.uint64(first_halves)

    def of(self, values: pa.LargeBinaryArray) -> Digests:
        digests = super().of(values)
        digests[:, 0] %= self._first_halves
        return digests


@given(
    st.lists(st.lists(st.sampled_from(_VALUES), min_size=1, max_size=30), max_size=4),
    st.sampled_from([2, 100]),
    st.sampled_from([1, 3, 1 << 60]),
)
def test_a_frame_is_decoded_as_its_values_are(
    frames: list[list[bytes]], remembered_max: int, first_halves: int
) -> None:
    """Each record gets the shard and the fingerprint of its value, in any frame, also where digests are half equal."""
    decoder = Decoder(SHARDS, SIZE_MAX, remembered_max)
    decoder._digests = _HalfDigests(first_halves)
    for frame in frames:
        decoded = decoder.decode(pa.array(frame, pa.large_binary()), 0)
        columns = (decoded.bodies.to_pylist(), decoded.shard.tolist(), decoded.fingerprints.tolist())
        entries = list(zip(*columns, strict=True))
        assert [entries[entry] for entry in decoded.entry] == [(value, *_expected(value)) for value in frame]
        assert set(decoded.entry.tolist()) == set(range(len(entries)))
        assert len({value for value, *_ in entries}) == len(entries)


def test_errors_stand_where_the_values_stood() -> None:
    """Of many values those that are no events are named, each with the very words that it gets alone."""
    for value, found in zip(_VALUES, decode_events(_VALUES, size_max=SIZE_MAX), strict=True):
        if isinstance(found, Event):
            assert found == decode_event(value, size_max=SIZE_MAX)
            continue
        with pytest.raises(type(found)) as raised:
            decode_event(value, size_max=SIZE_MAX)
        assert (found.cause, found.detail) == (raised.value.cause, raised.value.detail)


@pytest.mark.parametrize(
    "value",
    [
        b'{"group_id":"g","member_id":"m","protocols":[' + b",".join([b'{"name":""}'] * 65) + b"]}",
        b'{"group_id":"g","member_id":"' + b"m" * 1_025 + b'"}',
        b'{"group_id":"g","member_id":"m","client_id":"' + "ø".encode() * 513 + b'"}',
    ],
)
def test_the_shortest_that_break_a_limit_are_refused(value: bytes) -> None:
    """Values that break a limit of sizes by the least are refused, one by one and together."""
    with pytest.raises(RejectedError):
        decode_event(value)
    (found,) = decode_events([value])
    assert isinstance(found, RejectedError)


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=20), st.integers(1, 64))
def test_shards_of_many_groups_are_those_of_each(group_ids: list[str], shards: int) -> None:
    """The hashes of a column of names are Java's, also of names outside of the basic plane."""
    assert shards_of(group_ids, shards).tolist() == [shard_of(name, shards) for name in group_ids]


def test_the_least_hash_has_no_absolute_value() -> None:
    """A name that hashes to `Integer.MIN_VALUE` goes to the first shard, as in Kafka."""
    assert shards_of(["polygenelubricants", "g"], 7).tolist() == [0, shard_of("g", 7)]
