"""The state of a shard as text: sections in a frame, columns as Arrow IPC streams with zstd.

| section        | what                                                                    | changes with         |
|----------------|-------------------------------------------------------------------------|----------------------|
| `members`      | the member table's columns, and the order of the fingerprints           | every heartbeat      |
| `groups`       | the group table's columns                                               | every heartbeat      |
| `wheel`        | handles and deadlines, bucket after bucket, and the buckets             | every heartbeat      |
| `member_text`  | ids and details of the members                                          | joins, expirations   |
| `group_text`   | ids and details of the groups                                           | rebalances           |
| `counts`       | counters since the shard was made, JSON                                 | every batch          |
| `time`         | the time of every partition, and where groups were seen, MessagePack    | every batch          |
| `heartbeats`   | heartbeats that no row has, of late batches, MessagePack with zstd      | leaves, expirations  |
| `waiting`      | records that wait for their time, packs, MessagePack with zstd          | seldom               |

Version history: 1, time from the driver's clock; 2, time from the log.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heartwheel.log_time import LogTime, Outage
from heartwheel.pack import Pack, decode_pack, encode_pack
from heartwheel.shard.arrays import read_columns, read_wheel, write_columns, write_wheel
from heartwheel.shard.frame import CorruptBlobError, OldBlobVersionError, decode_frame, encode_frame
from heartwheel.shard.handles import handles_max
from heartwheel.shard.heartbeats import Kept
from heartwheel.shard.tables import Table, group_table, member_table
from heartwheel.shard.text import TextTable
from timing_wheel import SnapshotError, TimingWheel

BLOB_VERSION: Final = 2
"""The version that is written. Newer ones are refused by name, and so is the first: it knows the time of no partition,
and what it holds was decided by another clock."""

_ORDER: Final = "fingerprint_order"


class ShardState(NamedTuple):
    """Hold all that a shard keeps from one batch to the next.

    Args:
        members: the member table.
        groups: the group table.
        wheel: the timing wheel.
        fingerprint_order: intp (members,), rows in the order of their fingerprints.
        counts: counters by name.
        time: of every partition.
        elsewhere: partitions that groups were seen in besides their first, by the group's row.
        waiting: records that wait for their time.
        owed: outages that have yet to renew a group's sessions, by the group's row.
        kept: heartbeats that no row has, by fingerprint.
        kept_share: how much of the encoded state they were, 0 to 1.
    """

    members: Table
    groups: Table
    wheel: TimingWheel
    fingerprint_order: NDArray[np.intp]
    counts: dict[str, int]
    time: LogTime
    elsewhere: dict[int, list[int]]
    waiting: list[Pack]
    owed: dict[int, list[Outage]]
    kept: dict[int, Kept]
    kept_share: float = 0.0


class _TimeSection(msgspec.Struct, array_like=True):
    time: LogTime
    elsewhere: dict[int, list[int]] = {}
    owed: dict[int, list[Outage]] = {}


def new_state() -> ShardState:
    """Make the state of a new shard."""
    return ShardState(member_table(), group_table(), TimingWheel(), np.empty(0, np.intp), {}, LogTime(), {}, [], {}, {})


def encode_state(state: ShardState) -> str:
    """Encode a shard's state as ASCII text."""
    members = state.members.dump()
    order = state.fingerprint_order.astype(np.int32)
    return encode_frame(
        BLOB_VERSION,
        {
            "members": write_columns({**members, _ORDER: order}),
            "groups": write_columns(state.groups.dump()),
            "wheel": write_wheel(state.wheel.snapshot()),
            "member_text": state.members.text.encode(state.members.rows),
            "group_text": state.groups.text.encode(state.groups.rows),
            "counts": msgspec.json.encode(state.counts),
            "time": msgspec.msgpack.encode(_TimeSection(state.time, state.elsewhere, state.owed)),
            "heartbeats": _compressed(msgspec.msgpack.encode(state.kept)) if state.kept else b"",
            "waiting": _write_waiting(state.waiting),
        },
    )


def decode_state(blob: str) -> ShardState:
    """Decode a shard's state.

    Args:
        blob: what `encode_state` returned, of this or of an older release.

    Raises:
        CorruptBlobError: it is not whole, or contradicts itself.
        OldBlobVersionError: a release wrote it whose state cannot be carried on.
        UnknownBlobVersionError: a newer release wrote it.
    """
    version, sections = decode_frame(blob, newest=BLOB_VERSION)
    if version < BLOB_VERSION:
        raise OldBlobVersionError(f"the state blob has version {version}, this release reads version {BLOB_VERSION}")
    try:
        columns = read_columns(sections["members"])
        order = columns.pop(_ORDER).astype(np.intp)
        members, groups = member_table(), group_table()
        members.load(columns, TextTable(sections["member_text"]))
        groups.load(read_columns(sections["groups"]), TextTable(sections["group_text"]))
        wheel = TimingWheel.restore(read_wheel(sections["wheel"]), capacity=handles_max(members.rows, groups.rows))
        counts = msgspec.json.decode(sections["counts"], type=dict[str, int])
        time = msgspec.msgpack.decode(sections["time"], type=_TimeSection)
        waiting = _read_waiting(sections["waiting"])
        kept = _read_kept(sections.get("heartbeats", b""))
        share = len(sections.get("heartbeats", b"")) / sum(map(len, sections.values()))
        if "heartbeats" not in sections:
            # Rows that do not say what their heartbeats say must not be taken to know them.
            members["fingerprint"][:] = 0
            order = np.arange(members.rows)
    except (KeyError, pa.ArrowInvalid, OSError, SnapshotError, msgspec.MsgspecError) as error:
        raise CorruptBlobError(f"the state blob's checksum is right, but not its content: {error}") from error
    return ShardState(members, groups, wheel, order, counts, time.time, time.elsewhere, waiting, time.owed, kept, share)


def _write_waiting(packs: list[Pack]) -> bytes:
    if not packs:
        return b""
    return _compressed(msgspec.msgpack.encode([encode_pack(pack) for pack in packs]))


def _read_waiting(section: bytes) -> list[Pack]:
    if not section:
        return []
    return [decode_pack(pack) for pack in msgspec.msgpack.decode(_plain(section), type=list[bytes])]


def _read_kept(section: bytes) -> dict[int, Kept]:
    return msgspec.msgpack.decode(_plain(section), type=dict[int, Kept]) if section else {}


def _compressed(data: bytes) -> bytes:
    return msgspec.msgpack.encode((len(data), pa.compress(data, codec="zstd", asbytes=True)))


def _plain(section: bytes) -> bytes:
    size, data = msgspec.msgpack.decode(section, type=tuple[int, bytes])
    plain: bytes = pa.decompress(data, size, codec="zstd", asbytes=True)
    return plain
