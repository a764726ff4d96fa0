"""Lines of a log: known requests are looked up, and nobody can tell."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartwheel.engine.replay.lines import T_MS_MAX, LineReader
from heartwheel.wire.events import RejectedError

BEAT = {"group_id": "g", "member_id": "m", "generation_id": 3}

_json = st.recursive(
    st.none() | st.integers(-5, 5) | st.text('t_ms":,{}\\5', max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["t_ms", "group_id", "x"]), inner),
    max_leaves=4,
)


@st.composite
def _lines(draw: st.DrawFn) -> bytes:
    """Write a heartbeat with its fields in any order, unknown ones with times of their own among them."""
    fields: dict[str, Any] = BEAT | {"t_ms": draw(st.integers(-1, 3)), "more": draw(_json)}
    names = draw(st.permutations(sorted(fields)))
    spaces = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]))
    text = json.dumps({name: fields[name] for name in names}, separators=spaces)
    if draw(st.integers(0, 4)) == 0:
        text = text[:-1] + f',"t_ms":{draw(st.integers(0, 3))}}}'  # the later of two equal names counts
    return text.encode()


def _read(reader: LineReader, line: bytes) -> tuple[int, Any] | str:
    try:
        read = reader.read(line, 1)
    except RejectedError as error:
        return str(error)
    assert read is not None
    return read.t_ms, read.event


@given(st.lists(_lines(), max_size=8))
def test_known_line_reads_as_a_new_one_does(lines: list[bytes]) -> None:
    """Whatever was read before, a line says the same as to a reader that knows nothing."""
    reader = LineReader(remembered_max=3)
    for line in lines:
        assert _read(reader, line) == _read(LineReader(), line)


@pytest.mark.parametrize("last", [False, True])
def test_heartbeat_that_differs_in_its_time_is_decoded_once(*, last: bool) -> None:
    """A member's heartbeats are one request, wherever in the line the time stands."""
    reader = LineReader()
    beats = [BEAT | {"t_ms": t_ms} if last else {"t_ms": t_ms} | BEAT for t_ms in (5, 6)]
    first, second = (reader.read(json.dumps(beat).encode() + b"\n", 1) for beat in beats)
    assert first is not None
    assert second is not None
    assert (first.t_ms, second.t_ms) == (5, 6)
    assert first.event is second.event


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"t_ms":1,"group_id":"\xff","member_id":"m"}',
        b'{"t_ms":1}',
        b'{"t_ms":01,"group_id":"g","member_id":"m"}',
        b'{"t_ms":1.5,"group_id":"g","member_id":"m"}',
        b'{"t_ms":"1","group_id":"g","member_id":"m"}',
        b'{"t_ms":-1,"group_id":"g","member_id":"m"}',
        b'{"t_ms":1e400,"group_id":"g","member_id":"m"}',
        b'{"t_ms":1,"group_id":"g","member_id":""}',
        b'{"t_ms":1,"type":"nap","group_id":"g","member_id":"m"}',
        b'{"x":' + b"[" * 5000,
        f'{{"t_ms":{T_MS_MAX + 1},"group_id":"g","member_id":"m"}}'.encode(),
        f'{{"t_ms":{10**30},"group_id":"g","member_id":"m"}}'.encode(),
    ],
)
def test_bad_line_is_refused_twice(line: bytes) -> None:
    """A line that is no event is refused with a cause, and is not taken for a known one when it comes again."""
    reader = LineReader()
    for _ in range(2):
        with pytest.raises(RejectedError):
            reader.read(line, 1)


def test_microseconds_are_told_from_milliseconds() -> None:
    """A time in microseconds is refused with its value, not taken for a year far ahead."""
    with pytest.raises(RejectedError, match="1795239789947412"):
        LineReader().read(b'{"t_ms":1795239789947412,"group_id":"g","member_id":"m"}', 1)
