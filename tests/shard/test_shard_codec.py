"""The state of a shard: nothing is lost in it, little is done for it, and what is broken is refused by name."""

from __future__ import annotations

import binascii
import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heartwheel.engine.rules.model import GroupKind, GroupState
from heartwheel.engine.shard import (
    CorruptBlobError,
    OldBlobVersionError,
    Shard,
    ShardLimits,
    StateBlobError,
    UnknownBlobVersionError,
)
from heartwheel.engine.shard.arrays import read_columns, write_columns
from heartwheel.engine.shard.codec import BLOB_VERSION
from heartwheel.engine.shard.frame import decode_frame, decode_section, encode_frame, encode_section
from heartwheel.engine.shard.heartbeats import REMEMBERED_BATCHES
from heartwheel.engine.shard.rules_path import KINDS, STATES
from heartwheel.proof.testing import LogBuilder, by_group, read_records, until
from support.heartbeat_logs import CONFIG, T0, heartbeat_logs

ROOMY = dataclasses.replace(CONFIG, group_max_size=5_000)


def _shard(blob: str = "") -> Shard:
    return Shard(coordinator=ROOMY, limits=ShardLimits(), blob=blob)


def _beats(members: int, *, at_ms: int = 0) -> LogBuilder:
    log = LogBuilder()
    for member in range(members):
        log.beat(T0 + at_ms, f"g{member % 5}", f"m{member}", session_timeout_ms=4_000)
    return log


def _blob() -> str:
    shard = _shard()
    shard.apply(*read_records(_beats(20).records))
    return shard.encode()


BLOB = _blob()


@given(heartbeat_logs())
@settings(max_examples=100)
def test_w7_a_state_survives_the_round_trip(log: LogBuilder) -> None:
    """W7: decoded and encoded again the text is the same, and every group and member is as it was."""
    shard = _shard()
    shard.apply(*read_records(log.records, clock_ms=T0 + 2_000))
    blob = shard.encode()
    again = _shard(blob)
    assert again.encode() == blob
    assert (again.member_count, again.group_count) == (shard.member_count, shard.group_count)
    assert again.dump() == shard.dump()
    assert again.figures.at_risk(100) == shard.figures.at_risk(100)
    assert again.figures.occupancy() == shard.figures.occupancy()


@given(
    heartbeat_logs(),
    st.sampled_from([(1, 2), (100, 20), (250, 3), (1_000, 512)]),
    st.sampled_from([(1, 20), (100, 7), (250, 3)]),
)
@settings(max_examples=60)
def test_another_wheel_tells_the_same(log: LogBuilder, old: tuple[int, int], new: tuple[int, int]) -> None:
    """`[wheel]` may be changed between two runs: it counts from the next start on, and no timer is lost."""
    first = Shard(coordinator=ROOMY, limits=ShardLimits(), tick_ms=old[0], wheel_size=old[1])
    first.apply(*read_records(log.records, clock_ms=T0 + 700))
    blob, end_ms = first.encode(), T0 + 600_000
    kept = Shard(coordinator=ROOMY, limits=ShardLimits(), blob=blob)
    other = Shard(coordinator=ROOMY, limits=ShardLimits(), blob=blob, tick_ms=new[0], wheel_size=new[1])
    assert other.figures.occupancy()[0].tick_ms == new[0]
    assert other.figures.at_risk(100) == kept.figures.at_risk(100)
    assert by_group(other.apply([], until(end_ms)).verdicts) == by_group(kept.apply([], until(end_ms)).verdicts)
    assert other.dump() == kept.dump()


def test_untouched_text_is_not_encoded_again() -> None:
    """A batch of known heartbeats leaves the ids as the bytes they came in, which is most of a state."""
    shard = _shard(BLOB)
    shard.apply(*read_records(_beats(20, at_ms=500).records))
    before, after = decode_frame(BLOB, newest=BLOB_VERSION)[1], decode_frame(shard.encode(), newest=BLOB_VERSION)[1]
    for section in ("member_ids", "member_detail", "group_ids", "group_detail", "members", "fingerprints"):
        assert before[section] == after[section]
    assert before["beats"] != after["beats"]


@given(st.text(min_size=1, max_size=200) | st.text("HWST0123456789abcdef", min_size=1).map("HWST".__add__))
def test_w7_random_text_is_refused_by_name(text: str) -> None:
    """W7: no text that is not a state is taken for one."""
    with pytest.raises(StateBlobError):
        _shard(text)


def test_w7_a_state_of_base64_is_refused_by_name() -> None:
    """W7: what was written before version 3 is not called broken, but old."""
    with pytest.raises(OldBlobVersionError, match="base64"):
        _shard(binascii.b2a_base64(b"HWST" + bytes(20), newline=False).decode())


@given(st.data())
def test_w7_a_changed_or_shortened_state_is_refused_by_name(data: st.DataObject) -> None:
    """W7: a state of which anything is missing or different is refused, whatever it is."""
    if data.draw(st.booleans()):
        broken = BLOB[: data.draw(st.integers(1, len(BLOB) - 1))]
    else:
        at = data.draw(st.integers(0, len(BLOB) - 1))
        other = data.draw(st.characters(max_codepoint=255).filter(lambda character: character != BLOB[at]))
        broken = BLOB[:at] + other + BLOB[at + 1 :]
    with pytest.raises(StateBlobError):
        _shard(broken)


def test_w7_a_newer_version_is_refused_by_name() -> None:
    """W7: the state of a newer release says so, with both versions."""
    with pytest.raises(UnknownBlobVersionError, match=rf"version {BLOB_VERSION + 1}.*up to {BLOB_VERSION}"):
        _shard(encode_frame(BLOB_VERSION + 1, {}))


def test_w7_a_frame_without_its_sections_is_refused_by_name() -> None:
    """W7: a whole frame with the right checksum and nothing sensible in it is refused as well."""
    with pytest.raises(CorruptBlobError, match="member_ids"):
        _shard(encode_frame(BLOB_VERSION, {}))


def test_a_shard_that_shrinks_gives_its_rows_back() -> None:
    """After a mass expiry the tables are renumbered, and those who are left go on with their deadlines."""
    shard = _shard()
    shard.apply(*read_records(_beats(5_000).records))
    full = len(shard.encode())
    stayers = _beats(5_000, at_ms=3_000)
    stayers.records = stayers.records[:10]
    shard.apply(*read_records(stayers.records, clock_ms=T0 + 4_000))
    blob = shard.encode()
    assert shard.member_count == 10
    for _ in range(REMEMBERED_BATCHES):  # for so long it can say the heartbeats of who is gone
        shard.apply([], until(T0 + 4_000))
    assert len(shard.encode()) < full / 5
    again = _shard(blob)
    assert {member.deadline_ms for member in again.figures.at_risk(100)} == {T0 + 7_000}
    verdicts = again.apply([], until(T0 + 7_000)).verdicts
    expired = [str(verdict.member_id) for verdict in verdicts if verdict.expiry_reason]
    assert sorted(expired) == sorted(f"m{member}" for member in range(10))


def test_states_and_kinds_have_the_numbers_of_the_checkpoints() -> None:
    """A checkpoint holds a group's state and kind as numbers; a new member of the enums may not shift the old ones."""
    assert [state.value for state in STATES] == [
        "Empty",
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
        "Dead",
        "Assigning",
        "Reconciling",
    ]
    assert [kind.value for kind in KINDS] == ["new", "classic", "loaded", "presence", "consumer", "share", "streams"]
    assert set(STATES) == set(GroupState)
    assert set(KINDS) == set(GroupKind)


def _with_column_of_before(blob: str) -> str:
    """Return the state with the name that its column of pending renewals had in earlier builds."""
    version, sections = decode_frame(blob, newest=BLOB_VERSION)
    columns = read_columns(decode_section(sections["groups"]))
    assert columns["renewal_pending"].tolist() == [1]
    renamed = {"owed" if name == "renewal_pending" else name: column for name, column in columns.items()}
    return encode_frame(version, sections | {"groups": encode_section(write_columns(renamed))})


def test_a_state_that_names_pending_renewals_otherwise_loses_none() -> None:
    """P1: the group of a state whose column is still called `owed` gets the renewal that it waits for."""
    log = LogBuilder()
    for partition in (0, 1):
        log.beat(T0, "g", "m", session_timeout_ms=4_000, partition=partition)
    for t in (*range(0, 3_000, 200), *range(13_000, 30_001, 200)):
        log.tick(T0 + t, partitions=2)
    for t in range(0, 30_001, 200):
        log.tick(T0 + t, partition=1, partitions=2)
    # The gap of the first partition is an outage; the second one has not been read up to it.
    first, rest = (
        [each for each in log.records if (each.partition == 0 or each.offset < 2) == is_first]
        for is_first in (True, False)
    )
    before = Shard(coordinator=ROOMY, limits=ShardLimits(), outage_min_ms=5_000)
    assert [each for each in before.apply(*read_records(first)).verdicts if each.expiry_reason] == []
    for blob in (before.encode(), _with_column_of_before(before.encode())):
        after = Shard(coordinator=ROOMY, limits=ShardLimits(), outage_min_ms=5_000, blob=blob)
        verdicts = after.apply(*read_records(rest)).verdicts
        assert [(each.member_id, each.time_ms - T0) for each in verdicts if each.expiry_reason] == [("m", 17_000)]
