"""Records of delayed operations that no producer should send: refused by name, and safe to pass on if taken."""

from __future__ import annotations

import contextlib
import json

import msgspec
import pytest
from hypothesis import given, settings

from fuzz.hostile import EXAMPLES, corpus, operation_records, values
from fuzz.operations_oracle import check_operations, is_operation
from heartwheel.wire.events import ID_BYTES_MAX, RejectCause, RejectedError
from heartwheel.wire.operations import KEYS_BYTES_MAX, KEYS_MAX, decode_operation, encode_operation
from heartwheel.wire.outcomes import Ended, Ending, outcome_row

REQUEST_BYTES_MAX = 1_000_000


def _watch(keys: list[str]) -> bytes:
    document = {"type": "watch", "operation_id": "\0" * ID_BYTES_MAX, "timeout_ms": 1_000, "keys": keys}
    return json.dumps(document).encode()


@given(values)
def test_i1_any_value_is_an_operation_or_rejected_by_name(value: bytes | None) -> None:
    """I1: nothing but the named refusal is raised, and what is accepted survives being encoded."""
    with contextlib.suppress(RejectedError):
        event = decode_operation(value)
        assert decode_operation(encode_operation(event)) == event


@given(operation_records)
@settings(max_examples=EXAMPLES)
def test_i1_any_records_of_operations_are_taken_or_refused_by_name(
    batch: list[tuple[bytes | None, bytes | None]],
) -> None:
    """I1: nothing raises on any shard, nothing is lost, each operation ends once, and rows out are safe to send."""
    check_operations(batch)


def test_i1_operations_that_the_fuzzer_found_stay_found() -> None:
    """Every value of the corpus, alone and all in one batch, is taken as `check_operations` demands."""
    known = corpus()
    assert sum(map(is_operation, known)) >= 5
    for value in known:
        check_operations([(None, value)])
    check_operations([(b"k", value) for value in known])


def test_p6_limits_of_keys_are_sharp() -> None:
    """P6: keys are limited in number and in bytes, for all of them are named by the outcome."""
    longest = ["k" * (ID_BYTES_MAX - 2) + f"{i:02}" for i in range(KEYS_BYTES_MAX // ID_BYTES_MAX)]
    assert decode_operation(_watch(longest))
    assert decode_operation(_watch([str(i) for i in range(KEYS_MAX)]))
    with pytest.raises(RejectedError, match=f"keys of {KEYS_BYTES_MAX + 1} bytes together") as caught:
        decode_operation(_watch([*longest, "x"]))
    assert caught.value.cause is RejectCause.ID_TOO_LONG
    with pytest.raises(RejectedError, match=f"{KEYS_MAX + 1} keys"):
        decode_operation(_watch([str(i) for i in range(KEYS_MAX + 1)]))


def test_p6_the_longest_outcome_row() -> None:
    """P6: the outcome of a watch with the most and longest keys is short enough for a Kafka producer."""
    keys = tuple("\0" * (ID_BYTES_MAX - 2) + f"{i:02}" for i in range(KEYS_BYTES_MAX // ID_BYTES_MAX))
    event = decode_operation(_watch(list(keys)))
    ended = Ended(
        operation_id=event.operation_id,
        ending=Ending.EXPIRED,
        condition="all_keys",
        keys=event.keys,
        lacking=event.keys,
        watched_ms=2**62,
        timeout_ms=2**31 - 1,
        time_ms=2**62,
        completed_by=event.operation_id,
    )
    assert event.keys == keys
    assert len(msgspec.json.encode(outcome_row(ended, shard=0, detected_ms=2**62))) < REQUEST_BYTES_MAX
