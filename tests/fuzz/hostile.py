"""Hypothesis strategies for values that no producer should send, and for good ones beside them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from heartwheel.wire.events import EventType

EXAMPLES: Final = int(os.environ.get("HEARTWHEEL_EXAMPLES", "20"))
"""How many batches a property test tries; `make proof` tries more, and so does the fuzzer where there is no atheris."""

FIELDS = (
    "type",
    "group_id",
    "member_id",
    "generation_id",
    "group_instance_id",
    "session_timeout_ms",
    "rebalance_timeout_ms",
    "assigned_member_id",
    "protocol_type",
    "protocols",
    "leaving",
    "client_id",
    "client_host",
    "reason",
    "\ud800",
    "unknown",
)

TEXTS = (
    '"g"',
    '"m"',
    '""',
    '"\\u0000"',
    '"\\u0000\\u001f\\"\\\\\\/"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\ud83d\\ude00"',
    '"\u2028\U0010ffff"',
    '"' + "x" * 1024 + '"',
    '"' + "\\u0000" * 1024 + '"',
    '"' + "\u00e9" * 513 + '"',
    '"' + "y" * 70_000 + '"',
)
NUMBERS = (
    *("0", "-0", "1", "-1", "-2", "1.0", "1e3", "1e400", "-1e400", "0.1", "01", "+1", "0x10", ".5", "1e"),
    *(str(n + d) for n in (2**31, 2**53, 2**63, 2**64) for d in (-1, 0, 1)),
    *("9" * 400, "-" + "9" * 400, "NaN", "Infinity", "-Infinity", "true", "false", "null"),
)
LISTS = (
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    '[{"member_id":"m"},{"group_instance_id":"i","reason":null}]',
    '[{"name":"range"}]',
    '[{"name":"range","metadata_sha1":"\\u0000"}]',
    "[" + ",".join(['{"name":"p"}'] * 65) + "]",
    "[" * 2_000 + "]" * 2_000,
    '{"a":' * 2_000 + "1" + "}" * 2_000,
    "[" * 50_000,
)
WHOLE = (
    b"",
    b" ",
    b"null",
    b"[]",
    b"{}",
    b"7",
    b'"g"',
    b"\xef\xbb\xbf{}",
    '{"group_id":"g","member_id":"m"}'.encode("utf-16"),
    '{"group_id":"g","member_id":"m"}'.encode("utf-8-sig"),
    b'{"group_id":"\xed\xa0\x80","member_id":"m"}',
    b'{"group_id":"\xff","member_id":"m"}',
    b'{"group_id":"g\x00","member_id":"m"}',
    b'{"group_id":"g","member_id":"m"}{}',
    b"\x00" * 100,
    b"[" * 100_000,
    b'{"group_id":' * 100_000,
)

_token = st.one_of(
    st.sampled_from(TEXTS),
    st.sampled_from(NUMBERS),
    st.sampled_from(LISTS),
    st.sampled_from([json.dumps(kind.value) for kind in EventType]),
    st.text(max_size=20).map(json.dumps),
    st.integers().map(str),
    st.floats().map(json.dumps),
)


@st.composite
def objects(draw: st.DrawFn) -> bytes:
    """Draw the text of an object: any field with any token, keys twice, raw surrogates."""
    pairs = draw(st.lists(st.tuples(st.sampled_from(FIELDS), _token), max_size=8))
    named = [("group_id", draw(_token)), ("member_id", draw(_token))]
    return _text_of([*named, *pairs])


def _text_of(pairs: list[tuple[str, str]]) -> bytes:
    text = ",".join(f"{json.dumps(name)}:{token}" for name, token in pairs)
    return ("{" + text + "}").encode("utf-8", "surrogatepass")


@st.composite
def events(draw: st.DrawFn) -> bytes:
    """Draw the text of an event that is nearly or wholly right, of few groups and members, so that they meet."""
    document: dict[str, object] = {
        "type": draw(st.sampled_from([kind.value for kind in EventType])),
        "group_id": draw(st.sampled_from(["g", "h", "\0", "\U0001f600"])),
        "member_id": draw(st.sampled_from(["a", "b", "c", "d", "", "\0\x1f", "é"])),
    }
    if draw(st.booleans()):
        document["generation_id"] = draw(st.integers(-1, 3))
    if document["type"] == "join":
        document |= {"protocol_type": "consumer", "protocols": [{"name": "range"}], "session_timeout_ms": 1_000}
        document["assigned_member_id"] = draw(st.sampled_from([None, "a", "e"]))
    if document["type"] == "leave":
        document["leaving"] = [{"member_id": "a"}]
    return json.dumps(document).encode()


@st.composite
def bent(draw: st.DrawFn) -> bytes:
    """Draw a right event with a few bytes replaced, cut out or put in."""
    data = bytearray(draw(events()))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        data[start : start + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return bytes(data)


values = st.one_of(st.none(), st.binary(max_size=60), st.sampled_from(WHOLE), objects(), events(), bent())

OPERATION_FIELDS = (
    *("type", "operation_id", "timeout_ms", "keys", "needs", "offsets", "from_bytes", "bytes_min", "key", "offset"),
    *("size_bytes", "\ud800", "unknown"),
)
_COUNTS = (0, 1, 2, 2**31, 2**62 - 1, 2**62)
_partition_keys = st.sampled_from(["a", "t-0", "\0", "\U0001f600"])
_counts = st.dictionaries(_partition_keys, st.sampled_from(_COUNTS), min_size=1, max_size=4)


@st.composite
def operations(draw: st.DrawFn) -> bytes:
    """Draw the text of an operation that is nearly or wholly right, of few ids and keys, so that they meet."""
    document: dict[str, object] = {"type": draw(st.sampled_from(["watch", "watch", "complete", "high_watermark"]))}
    if document["type"] == "watch":
        document |= {"operation_id": draw(st.sampled_from(["o", "p", "\0\x1f", "é"]))}
        document["timeout_ms"] = draw(st.sampled_from([1, 2, 1_000, 2**31 - 1, 2**31]))
        conditions = {"keys": st.lists(_partition_keys, max_size=3), "offsets": _counts, "from_bytes": _counts}
        condition = draw(st.sampled_from([*conditions]))
        document[condition] = draw(conditions[condition])
        document["needs"] = draw(st.sampled_from(["any", "all"]))
        document["bytes_min"] = draw(st.sampled_from(_COUNTS))
    elif draw(st.booleans()):
        document |= {"operation_id": draw(st.sampled_from(["o", "p", "é"]))}
    else:
        document |= {"key": draw(_partition_keys), "offset": draw(st.sampled_from(_COUNTS))}
        document["size_bytes"] = draw(st.sampled_from([None, *_COUNTS]))
    return json.dumps(document).encode()


@st.composite
def operation_objects(draw: st.DrawFn) -> bytes:
    """Draw the text of an object: any field of an operation with any token."""
    return _text_of(draw(st.lists(st.tuples(st.sampled_from(OPERATION_FIELDS), _token), max_size=8)))


operation_values = st.one_of(operations(), operation_objects(), values)
keys = st.one_of(st.none(), st.binary(max_size=20))
records = st.lists(st.tuples(keys, values), max_size=12)
operation_records = st.one_of(
    st.lists(st.tuples(keys, operation_values), max_size=12),
    st.lists(st.tuples(keys, operations()), min_size=8, max_size=24),  # so many that limits are reached
)


def corpus() -> list[bytes]:
    """Read the values that are tried in every test run: one of each kind, and what the fuzzer found."""
    return [file.read_bytes() for file in sorted(Path(__file__).with_name("corpus").iterdir())]
