"""Each limit is reached, refused by name, counted, kept byte by byte among the rejects, and all others go on (P6)."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import msgspec
import pytest

from heartwheel.engine.heartbeats.advance import advance_shard
from heartwheel.engine.heartbeats.config import JobConfig
from heartwheel.engine.heartbeats.packer import REJECT_STUB_BYTES, REJECTS_BYTES_MAX, Packer
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.runtime.state.schema import NEW_STATE, StateRow
from heartwheel.engine.shard import ShardLimits
from heartwheel.proof.testing import LogBuilder, ProducedRecord, arrivals, run_shard
from heartwheel.wire.tick import Tick, encode_tick

T0 = 1_795_239_789_000
SESSION_MS = 1_500


class Shard:
    """Run one shard batch by batch; batch n has the timestamp n seconds after T0, and its records that append time."""

    def __init__(
        self,
        *,
        value_bytes_max: int = 1 << 20,
        group_max_size: int = 1_000,
        empty_group_retention_ms: int = 86_400_000,
        **limits: int,
    ) -> None:
        self.config = JobConfig(
            checkpoint="unused",
            kafka_options={},
            source="beats",
            topics={"heartbeats": "beats"},
            slots=(0,),
            coordinator=CoordinatorConfig(
                group_min_session_timeout_ms=1,
                group_max_size=group_max_size,
                empty_group_retention_ms=empty_group_retention_ms,
            ),
            limits=ShardLimits(**limits),
        )
        self.state: StateRow = NEW_STATE
        self.sent: list[bytes] = []
        self.rows: dict[str, list[dict[str, Any]]] = {"expirations": [], "triggers": [], "status": [], "rejects": []}
        self._packer = Packer("beats", 1, value_bytes_max=value_bytes_max)
        self._now_ms = T0

    def batch(self, *values: bytes) -> None:
        """Run one batch."""
        first, self.sent = len(self.sent), [*self.sent, *values]
        records = [ProducedRecord(self._now_ms, value, 0, first + i) for i, value in enumerate(values)]
        tick = ProducedRecord(self._now_ms, encode_tick(Tick()), 0, len(self.sent))
        frame = arrivals([*records, tick], self._packer)
        self.state, output = advance_shard(self.config, 0, self.state, [frame], batch_ms=self._now_ms)
        for record in output.records:
            self.rows[record.topic].append(msgspec.json.decode(record.value))
        self._now_ms += 1_000

    def until_silent(self) -> list[str]:
        """Run batches until all are expired, and name them."""
        for _ in range(5):
            self.batch()
        assert self.state[3] == 0
        return sorted(row["member_id"] for row in self.rows["expirations"])

    def refused(self, cause: str) -> list[int]:
        """Give the offsets of what was refused, all for one cause, and check what is said about it."""
        rejects = self.rows["rejects"]
        assert {row["cause"] for row in rejects} == {cause}
        assert [base64.b64decode(row["value_base64"]) for row in rejects] == [
            self.sent[row["offset"]] for row in rejects
        ]
        assert all(row["detail"] for row in rejects)
        assert sum(row["counts"].get(f"rejected_{cause}", 0) for row in self.rows["status"]) == len(rejects)
        assert self.rows["status"][-1]["totals"][f"rejected_{cause}"] == len(rejects)
        return [row["offset"] for row in rejects]


def beat(group: str, member: str, **more: object) -> bytes:
    """Give the value of a heartbeat, with a space that only the very bytes have."""
    document = {"group_id": group, "member_id": member, "session_timeout_ms": SESSION_MS, **more}
    return json.dumps(document).encode() + b" "


def join(group: str, member: str, **more: object) -> list[bytes]:
    """Give the values of the two joins of a new member: it is given its id (KIP-394), and comes back with it."""
    more |= {"type": "join", "protocol_type": "consumer", "protocols": [{"name": "range"}]}
    return [beat(group, "", assigned_member_id=member, **more), beat(group, member, **more)]


def test_p6_value_bytes_max() -> None:
    """P6: a value of the limit is taken, one of a byte more is refused as too large."""
    shard = Shard(value_bytes_max=100)
    shard.batch(beat("g", "a").ljust(100), beat("g", "b").ljust(101), beat("g", "c"))
    assert shard.refused("too_large") == [1]
    assert shard.until_silent() == ["a", "c"]


def test_p6_members_per_shard_max() -> None:
    """P6: beyond the limit a new member is refused; known ones go on, whichever group they are in."""
    shard = Shard(members_max=2)
    shard.batch(beat("g", "a"), beat("h", "b"), beat("h", "c"), beat("g", "a"))
    assert shard.refused("shard_full") == [2]
    assert shard.until_silent() == ["a", "b"]


def test_p6_groups_per_shard_max() -> None:
    """P6: beyond the limit the records of a new group are refused; known groups take new members."""
    shard = Shard(groups_max=2)
    shard.batch(beat("g", "a"), beat("h", "b"), beat("i", "c"), beat("g", "d"))
    assert shard.refused("shard_full") == [2]
    assert shard.until_silent() == ["a", "b", "d"]


@pytest.mark.parametrize("known", [(), (0,), (0, 1)])
def test_p3_who_comes_first_gets_the_last_group(known: tuple[int, ...]) -> None:
    """P3: of two groups with room for one the first gets it, whatever the worker has seen before it packs the batch."""
    values = [beat("g", "a"), beat("h", "b"), beat("i", "c")]
    shard, earlier = Shard(groups_max=1), Shard()
    shard._packer = earlier._packer
    for number in known:
        earlier.batch(values[number])
    shard.batch(*values)
    assert shard.refused("shard_full") == [1, 2]


@pytest.mark.parametrize("known", [(), (1,), (2,), (2, 1)])
def test_p3_new_groups_find_room_for_members_as_they_come(known: tuple[int, ...]) -> None:
    """P3: of three new groups with room for two members the first two get it, whatever the worker has seen before."""
    values = [beat("g", "a"), beat("h", "b"), beat("i", "c")]
    shard, earlier = Shard(members_max=2), Shard()
    shard._packer = earlier._packer
    for number in known:
        earlier.batch(values[number])
    shard.batch(*values)
    assert shard.refused("shard_full") == [2]


def test_p6_state_bytes_max() -> None:
    """P6: a shard whose state is too large takes no new member and no new group until it is smaller."""
    shard = Shard(state_bytes_max=15_000, empty_group_retention_ms=1_000)
    ids = [hashlib.shake_256(bytes([i])).hexdigest(500) for i in range(12)]
    known = [beat(long_id[::-1], long_id) for long_id in ids]
    shard.batch(*known)
    assert len(shard.state[5]) > 15_000
    shard.batch(beat(ids[0][::-1], "a"), beat("h", "b"), known[0])
    assert sorted(shard.refused("shard_full")) == [12, 13]
    assert {row["detail"] for row in shard.rows["rejects"]} == {"the shard's state has reached 15000 bytes"}
    assert shard.until_silent() == sorted(ids)
    shard.batch(beat("g", "a"), beat("h", "b"))
    assert shard.state[3] == 2


def test_p6_members_per_group_max() -> None:
    """P6: beyond the limit a new member of that group is refused; other groups have room."""
    shard = Shard(members_per_group_max=2)
    shard.batch(beat("g", "a"), beat("g", "b"), beat("g", "c"), beat("h", "d"), beat("g", "b"))
    assert shard.refused("group_full") == [2]
    assert shard.until_silent() == ["a", "b", "d"]


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2)])
def test_p6_the_gone_make_room_at_any_cut(cuts: tuple[int, ...]) -> None:
    """P6: who is refused follows from the log alone: a member whose time is over makes room before it is looked at."""
    log = LogBuilder()
    log.beat(0, "g", "a", session_timeout_ms=1_000)
    log.beat(999, "g", "too early", session_timeout_ms=1_000)
    log.beat(1_000, "g", "b", session_timeout_ms=1_000)
    verdicts = run_shard(log, clock_ms=5_000, cuts=cuts, limits=ShardLimits(members_per_group_max=1))
    expired = [(verdict.member_id, verdict.time_ms) for verdict in verdicts if verdict.expiry_reason]
    assert expired == [("a", 1_000), ("b", 2_000)]


def test_p6_group_max_size() -> None:
    """P6: Kafka's own group.max.size: the join that is too much gets its answer, and is kept."""
    shard = Shard(group_max_size=2)
    shard.batch(*join("g", "a"), *join("g", "b"), *join("g", "c"), *join("h", "d"))
    assert shard.refused("group_full") == [4, 5]


@pytest.mark.parametrize("limit", ["members_max", "members_per_group_max"])
def test_p6_who_leaves_a_full_shard_or_group_is_let_go(limit: str) -> None:
    """P6: a leave, a batch leave, and a coordinator that goes and comes back are never refused for want of room."""
    shard = Shard(**{limit: 3})
    shard.batch(beat("g", "a"), beat("g", "b"), beat("g", "c"))
    leave = json.dumps({"type": "leave", "group_id": "g", "leaving": [{"member_id": "a"}]}).encode()
    shard.batch(leave, beat("g", "d"), b'{"type":"unload","group_id":"g"}', b'{"type":"load","group_id":"g"}')
    assert shard.rows["rejects"] == []
    assert shard.until_silent() == ["b", "c", "d"]


def test_p6_a_static_member_comes_back_into_a_full_group() -> None:
    """P6: a static member that starts anew takes its own place: a full group does not lock it out."""
    shard = Shard(members_per_group_max=2)
    static, _ = join("g", "a", group_instance_id="i")
    again, _ = join("g", "a2", group_instance_id="i")
    stranger, _ = join("g", "c")
    shard.batch(static, *join("g", "b"))
    shard.batch(again, stranger)
    assert shard.refused("group_full") == [4]


def test_p6_output_per_batch_max() -> None:
    """P6: verdicts beyond the limit wait for the next batch; none is lost, and each has its true deadline."""
    shard = Shard(verdicts_max=10)
    members = [f"m{i:03}" for i in range(600)]
    shard.batch(*(beat(f"g-{member}", member) for member in members))
    assert shard.until_silent() == members
    assert {row["deadline_ms"] for row in shard.rows["expirations"]} == {T0 + SESSION_MS}
    assert len({row["detected_ms"] for row in shard.rows["expirations"]}) > 1
    assert shard.rows["status"][-1]["totals"]["groups_deferred"] > 0


def test_p6_a_flood_of_large_garbage_keeps_a_part_of_each() -> None:
    """P6: rejects of one frame keep a bounded part of the values, and tell how long each was."""
    value = b"x" * 65_536
    count = REJECTS_BYTES_MAX // len(value)
    shard = Shard()
    shard.batch(*(value for _ in range(count + 10)))
    kept = [len(base64.b64decode(row["value_base64"])) for row in shard.rows["rejects"]]
    assert kept == [len(value)] * count + [REJECT_STUB_BYTES] * 10
    assert {row["value_bytes"] for row in shard.rows["rejects"]} == {len(value)}


def test_p6_what_is_remembered_of_values_is_bounded() -> None:
    """P6: heartbeats that change with every beat, and are large, do not fill the packer's memory."""
    packer, held = Packer("beats", 1, remembered_max=50), []
    for i in range(300):
        arrivals([ProducedRecord(T0, beat("g", "a", noise=f"{i:01000}"), 0, i)], packer)
        held.append(len(packer._decoder._table))
    assert max(held) == 50
