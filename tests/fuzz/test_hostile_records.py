"""Records that no producer should send: each is accepted or rejected by name, and none harms the job (I1)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from msgspec.structs import fields

from fuzz.hostile import EXAMPLES, corpus, records
from fuzz.oracle import accepted, check_records
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import (
    BATCH_LEAVE_MAX,
    ID_BYTES_MAX,
    PROTOCOLS_MAX,
    TEXT_BYTES_MAX,
    Event,
    RejectCause,
    RejectedError,
)


@given(records)
@settings(max_examples=EXAMPLES)
def test_i1_any_records_are_accepted_or_rejected_by_name(batch: list[tuple[bytes | None, bytes | None]]) -> None:
    """I1: nothing raises, nothing is lost, rejects keep place, cause and bytes, and rows out are safe to send."""
    check_records(batch)


def test_i1_what_the_fuzzer_found_stays_found() -> None:
    """Every value of the corpus, alone and all in one batch, is taken as `check_records` demands."""
    known = corpus()
    assert len(known) >= 20
    for value in known:
        check_records([(None, value)])
    check_records([(b"k", value) for value in known])


def _event(**fields: object) -> bytes:
    return json.dumps({"group_id": "g", "member_id": "m", **fields}).encode()


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (_event(type="x" * 1_000_000), RejectCause.UNKNOWN_TYPE),
        (_event(member_id="x" * 1_000_000), RejectCause.ID_TOO_LONG),
        (_event(type="leave", leaving=[{}] * 100_000), RejectCause.BAD_FIELD),
        (_event(type="leave", leaving=[{"member_id": "x" * 1025}]), RejectCause.ID_TOO_LONG),
        (_event(unknown=0)[:-2] + b"[" * 500_000, RejectCause.NOT_JSON),
        (_event(generation_id=0)[:-2] + b"9" * 1_000_000 + b"}", RejectCause.BAD_FIELD),
    ],
    ids=["type", "id", "leaving", "leaving id", "depth", "digits"],
)
def test_huge_parts_make_small_rejects(value: bytes, cause: RejectCause) -> None:
    """A megabyte in any part of a record is refused by name in a reject that Kafka takes."""
    with pytest.raises(RejectedError) as caught:
        decode_event(value)
    assert caught.value.cause is cause
    check_records([(None, value)])


@pytest.mark.parametrize("field", [each.name for each in fields(Event) if each.type in {str, str | None}])
def test_every_text_of_an_event_is_bounded(field: str) -> None:
    """A text that no limit knew would be kept in the state, however long it is."""
    with pytest.raises(RejectedError) as caught:
        decode_event(_event(**{"type": "leave", field: "x" * (ID_BYTES_MAX + 1)}))
    assert caught.value.cause is RejectCause.ID_TOO_LONG


def test_a_huge_value_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value above the limit costs a look at its length, however it would decode."""
    monkeypatch.setattr("heartwheel.wire.event_codec._decode", pytest.fail)
    with pytest.raises(RejectedError, match="100000000 bytes, at most 1048576"):
        decode_event(b"[" * 100_000_000)


def test_limits_of_ids_are_sharp() -> None:
    """An id of 1,024 bytes is taken, one of 1,025 is not, in letters of any width; so with members that leave."""
    assert accepted(_event(member_id="x" * ID_BYTES_MAX))
    assert accepted(_event(member_id="é" * (ID_BYTES_MAX // 2)))
    assert not accepted(_event(member_id="x" * (ID_BYTES_MAX + 1)))
    assert not accepted(_event(member_id="é" * (ID_BYTES_MAX // 2) + "x"))
    assert accepted(_event(type="leave", leaving=[{"member_id": "m"}] * BATCH_LEAVE_MAX))
    assert not accepted(_event(type="leave", leaving=[{"member_id": "m"}] * (BATCH_LEAVE_MAX + 1)))


def test_limits_of_a_join_are_sharp() -> None:
    """A join may offer 64 protocols, and say 16 KiB of ids and names in all: no more of either."""

    def offers(count: int, name: str) -> bytes:
        return _event(type="join", protocol_type="consumer", protocols=[{"name": name}] * count)

    assert accepted(offers(PROTOCOLS_MAX, "range"))
    assert not accepted(offers(PROTOCOLS_MAX + 1, "range"))
    others = len("g" + "m" + "consumer")
    sixteen = [{"name": "x" * ID_BYTES_MAX}] * (TEXT_BYTES_MAX // ID_BYTES_MAX - 1)
    for size, taken in ((ID_BYTES_MAX - others, True), (ID_BYTES_MAX - others + 1, False)):
        protocols = [*sixteen, {"name": "x" * size}]
        value = _event(type="join", protocol_type="consumer", protocols=protocols)
        assert bool(accepted(value)) is taken
