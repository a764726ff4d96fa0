"""Packs as they travel and as they wait: what was packed comes out again, whatever it is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartwheel.engine.shard.pack import Bodies, Pack, decode_pack, encode_cut
from heartwheel.engine.shard.sent_pack import decode_relayed, decode_sent, encode_relayed, encode_sent

INT64 = st.integers(-(2**62), 2**62)


@st.composite
def packs(draw: st.DrawFn, times: st.SearchStrategy[int] = INT64) -> Pack:
    """Draw a pack; the values that come with their bytes are the first of its values."""
    fingerprints = draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
    entries = draw(st.lists(st.integers(0, len(fingerprints) - 1), min_size=1, max_size=60))
    if draw(st.booleans()):
        entries = list(range(len(fingerprints)))
    count = len(entries)
    of_records = st.lists(times, min_size=count, max_size=count)
    repeat = draw(st.sampled_from([0, 1, 200]))
    bodies = draw(st.lists(st.binary(max_size=30).map(lambda value: value * repeat), max_size=len(fingerprints)))
    return Pack(
        draw(st.integers(-(2**31), 2**31 - 1)),
        np.array(fingerprints, np.int64),
        Bodies.of(bodies),
        np.array(entries, np.intp),
        np.array(draw(of_records), np.int64),
        np.array(draw(of_records), np.int64),
    )


def said(pack: Pack) -> tuple[object, ...]:
    """All that a pack says."""
    bodies = pack.bodies.take(np.arange(len(pack.bodies)))
    assert bodies == [pack.bodies[index] for index in range(len(pack.bodies))]
    columns = (pack.fingerprints, pack.entry, pack.append_ms, pack.offset)
    assert [column.dtype for column in columns] == [np.int64, np.intp, np.int64, np.int64]
    return pack.partition, bodies, *(column.tolist() for column in columns)


def sent(pack: Pack, bodies: pa.Array | None = None) -> bytes:
    """Encode a pack for its way to a shard."""
    if bodies is None:
        bodies = pa.array(pack.bodies.take(np.arange(len(pack.bodies))), pa.large_binary())
    return encode_sent(pack.partition, pack.fingerprints, bodies, pack.entry, pack.append_ms, pack.offset)


@given(packs())
def test_what_is_sent_arrives(pack: Pack) -> None:
    """Records in any order, times and offsets of any span, values with and without bytes, short and compressed."""
    assert said(decode_sent(sent(pack))) == said(pack)
    assert decode_relayed(encode_relayed("feed", sent(pack)))[0] == "feed"
    assert said(decode_relayed(encode_relayed("feed", sent(pack)))[1]) == said(pack)


@given(packs(), st.integers(0, 3))
def test_values_are_sent_as_a_slice_has_them(pack: Pack, before: int) -> None:
    """A slice of an Arrow array shares its buffers with what is before and after it."""
    values = pack.bodies.take(np.arange(len(pack.bodies)))
    around = pa.array([b"before"] * before + values + [b"after"], pa.large_binary())
    assert said(decode_sent(sent(pack, around.slice(before, len(values))))) == said(pack)


def test_a_steady_record_takes_ten_bytes() -> None:
    """A heartbeat without its bytes that comes once: eight of fingerprint, and one each of time and offset."""
    n = 1000
    steps = np.arange(n, dtype=np.int64)
    pack = Pack(0, steps * 10**15, Bodies.of([]), np.arange(n), steps // 3 + 10**12, 7 * steps + 10**9)
    assert len(sent(pack)) < 10 * n + 100
    assert said(decode_sent(sent(pack))) == said(pack)


@pytest.mark.parametrize("span", [2**8, 2**16, 2**32, 2**33])
def test_a_difference_that_needs_another_byte_has_it(span: int) -> None:
    """Differences at the edge of an integer's width."""
    for step in (span - 1, span, span + 1):
        times = np.array([5, 5 + step, 5 + 2 * step], np.int64)
        pack = Pack(0, np.array([1], np.int64), Bodies.of([b"x"]), np.zeros(3, np.intp), times, times)
        assert said(decode_sent(sent(pack))) == said(pack)


@given(packs(times=st.integers(0, 2**34)))
def test_what_waits_is_kept_in_parts_that_span_32_bits(pack: Pack) -> None:
    """The parts together have the records in their order, each part with the values of its own records alone."""
    whole = pack._replace(bodies=Bodies.of([b"%d" % index for index in range(len(pack.fingerprints))]))
    parts = [decode_pack(part) for part in encode_cut(whole)]
    if len(parts) > 1:
        assert all(sorted(set(part.entry.tolist())) == list(range(len(part.bodies))) for part in parts)

    def records(some: Pack) -> list[tuple[object, ...]]:
        values = [some.bodies[entry] for entry in some.entry.tolist()]
        marks = some.fingerprints[some.entry].tolist()
        return list(zip(values, marks, some.append_ms.tolist(), some.offset.tolist(), strict=True))

    assert [record for part in parts for record in records(part)] == records(whole)
    spans = [np.ptp(column) for part in parts for column in (part.append_ms, part.offset)]
    assert max(spans) < 2**32
