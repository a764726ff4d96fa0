"""The state of a shard as text: six sections in a frame, each an Arrow IPC stream with zstd.

| section        | what                                                                    | changes with         |
|----------------|-------------------------------------------------------------------------|----------------------|
| `members`      | the member table's columns, and the order of the fingerprints           | every heartbeat      |
| `groups`       | the group table's columns                                               | every heartbeat      |
| `wheel`        | handles and deadlines, bucket after bucket, and the buckets             | every heartbeat      |
| `member_text`  | ids and details of the members                                          | joins, expirations   |
| `group_text`   | ids and details of the groups                                           | rebalances           |
| `counts`       | counters since the shard was made, JSON                                 | every batch          |

Version history: 1, the first.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heartwheel.shard.arrays import read_columns, read_wheel, write_columns, write_wheel
from heartwheel.shard.frame import CorruptBlobError, decode_frame, encode_frame
from heartwheel.shard.handles import handles_max
from heartwheel.shard.tables import Table, group_table, member_table
from heartwheel.shard.text import TextTable
from timing_wheel import SnapshotError, TimingWheel

BLOB_VERSION: Final = 1
"""The version that is written. Older ones are migrated when they are read; newer ones are refused by name."""

_ORDER: Final = "fingerprint_order"


class ShardState(NamedTuple):
    """Hold all that a shard keeps from one batch to the next.

    Args:
        members: the member table.
        groups: the group table.
        wheel: the timing wheel.
        fingerprint_order: intp (members,), rows in the order of their fingerprints.
        counts: counters by name.
    """

    members: Table
    groups: Table
    wheel: TimingWheel
    fingerprint_order: NDArray[np.intp]
    counts: dict[str, int]


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
        },
    )


def decode_state(blob: str) -> ShardState:
    """Decode a shard's state.

    Args:
        blob: what `encode_state` returned, of this or of an older release.

    Raises:
        CorruptBlobError: it is not whole, or contradicts itself.
        UnknownBlobVersionError: a newer release wrote it.
    """
    _, sections = decode_frame(blob, newest=BLOB_VERSION)
    try:
        columns = read_columns(sections["members"])
        order = columns.pop(_ORDER).astype(np.intp)
        members, groups = member_table(), group_table()
        members.load(columns, TextTable(sections["member_text"]))
        groups.load(read_columns(sections["groups"]), TextTable(sections["group_text"]))
        wheel = TimingWheel.restore(read_wheel(sections["wheel"]), capacity=handles_max(members.rows, groups.rows))
        counts = msgspec.json.decode(sections["counts"], type=dict[str, int])
    except (KeyError, pa.ArrowInvalid, OSError, SnapshotError, msgspec.MsgspecError) as error:
        raise CorruptBlobError(f"the state blob's checksum is right, but not its content: {error}") from error
    return ShardState(members, groups, wheel, order, counts)
