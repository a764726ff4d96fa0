"""The state of a shard as text: named sections in a frame, with narrow columns and zstd.

| section         | what                                                                    | changes with         |
|-----------------|-------------------------------------------------------------------------|----------------------|
| `beats`         | deadlines and seen times of the members, and which bucket each is in    | every heartbeat      |
| `members`       | the other columns of the member table                                   | joins, expirations   |
| `fingerprints`  | of the members                                                          | joins, expirations   |
| `groups`        | the group table's columns                                               | every heartbeat      |
| `member_ids`    | ids of the members, in blocks                                           | joins, expirations   |
| `member_detail` | details of the members, in blocks                                       | joins, expirations   |
| `group_ids`     | ids of the groups, in blocks                                            | new groups           |
| `group_detail`  | details of the groups, in blocks                                        | rebalances           |
| `counts`        | counters since the shard was made, JSON                                 | every batch          |
| `time`          | the time of every partition, and where groups were seen, MessagePack    | every batch          |
| `heartbeats`    | heartbeats that no row has, of late batches, MessagePack                | leaves, expirations  |
| `waiting`       | records that wait for their time, packs, MessagePack                    | seldom               |

A section that did not change is written as the text that was read. Of a large shard the blocks of ids, details and
fingerprints may lie in block files (`heartwheel.engine.shard.block_files`): then `fingerprint_list` is in place of
`fingerprints`, and `block_files` says which files there are.

Version history: 1, time from the driver's clock; 2, time from the log; 3, ASCII of seven bits, times as differences; 4,
the last tick of each run, and incarnations of workers; 5, block files. A state that needs none is written as version 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
import numpy as np

from heartwheel.engine.shard.arrays import read_columns, write_columns
from heartwheel.engine.shard.block_files import BlockFileError, BlockFiles
from heartwheel.engine.shard.blocks import ByteBlocks, settle
from heartwheel.engine.shard.frame import (
    CorruptBlobError,
    decode_frame,
    decode_section,
    encode_frame,
    encode_section,
    kept_section,
)
from heartwheel.engine.shard.heartbeats import Kept
from heartwheel.engine.shard.pack import Pack, decode_pack, encode_cut
from heartwheel.engine.shard.tables import Table, group_table, member_table
from heartwheel.engine.shard.text import TextTable
from heartwheel.engine.shard.timers import read_timers, write_timers
from heartwheel.engine.time import LogTime, Outage
from timing_wheel import SnapshotError, TimingWheel

BLOB_VERSION: Final = 5
"""The newest version that is written. Newer ones are refused by name."""

_WITHOUT_FILES: Final = 4
"""The version of a state that needs no block file, and the oldest that is read: the first has no time of any partition,
and its contents were decided by another clock. No release wrote the second and the third."""

_NOISE: Final = frozenset({"fingerprints"})
"""Sections that compression does not make smaller."""


class ShardState(NamedTuple):
    """All that a shard keeps from one batch to the next.

    Args:
        elsewhere: partitions that groups were seen in besides their first, by the group's row.
        sources: partitions from which records of those groups were applied, likewise.
        waiting: records that wait for their time.
        pending_renewals: outages that have not renewed a group's sessions yet, by the group's row.
        encoded: the sections from which the state was decoded, each as bytes and as text.
        kept: heartbeats that no row has, by fingerprint.
        files: the block files; `None` where there can be none.
        fingerprints: their blocks, if they are in files.
        kept_bytes: size of `kept` in the encoded state.
        sessions: the session timeouts then in use that a broker sets (`EpochConfig.sessions`).
    """

    members: Table
    groups: Table
    wheel: TimingWheel
    counts: dict[str, int]
    time: LogTime
    elsewhere: dict[int, list[int]]
    sources: dict[int, list[int]]
    waiting: list[Pack]
    pending_renewals: dict[int, list[Outage]]
    encoded: Mapping[str, tuple[bytes, str]]
    kept: dict[int, Kept]
    files: BlockFiles | None
    fingerprints: ByteBlocks
    kept_bytes: int = 0
    sessions: int = 0


class _TimeSection(msgspec.Struct, array_like=True):
    time: LogTime
    elsewhere: dict[int, list[int]] = {}
    pending_renewals: dict[int, list[Outage]] = {}
    sessions: int = 0
    sources: dict[int, list[int]] = {}


def new_state(files: BlockFiles | None = None) -> ShardState:
    """Return the state of a new shard."""
    members, groups = member_table(), group_table()
    members.text, groups.text = TextTable(files=files), TextTable(files=files)
    fingerprints = ByteBlocks(files=files)
    return ShardState(members, groups, TimingWheel(), {}, LogTime(), {}, {}, [], {}, {}, {}, files, fingerprints)


def encode_state(state: ShardState) -> str:
    """Encode a shard's state as ASCII text, once the block files that it names are written.

    Raises:
        BlockFileError: a block file cannot be read.
        BlockStoreError: the object store of the block files cannot be reached.
        OSError: a block file cannot be written.
    """
    members, groups = state.members.dump(), state.groups.dump()
    fingerprints = members.pop("fingerprint").tobytes()
    beats = write_timers(state.wheel, members, groups)
    texts = {
        "beats": beats,
        "members": write_columns(members),
        "fingerprints": fingerprints,
        "groups": write_columns(groups),
        "counts": msgspec.json.encode(state.counts),
        "time": msgspec.msgpack.encode(
            _TimeSection(state.time, state.elsewhere, state.pending_renewals, state.sessions, state.sources)
        ),
        "waiting": _write_waiting(state.waiting),
        "heartbeats": msgspec.msgpack.encode(state.kept) if state.kept else b"",
    }
    about_files = _settle_blocks(state, fingerprints)
    if "fingerprint_list" in about_files:
        del texts["fingerprints"]
    sections = {
        name: kept_section(name, data, state.encoded, compressed=name not in _NOISE) for name, data in texts.items()
    }
    sections["member_ids"], sections["member_detail"] = state.members.text.encode()
    sections["group_ids"], sections["group_detail"] = state.groups.text.encode()
    version = BLOB_VERSION if "fingerprint_list" in about_files else _WITHOUT_FILES
    return encode_frame(version, sections | about_files)


def _settle_blocks(state: ShardState, fingerprints: bytes) -> dict[str, str]:
    """Bring the blocks into files or into the row, and return the sections that say so."""
    files, sections = state.files, dict[str, str]()
    if files is None:
        return sections
    lists = [*state.members.text.blocks(), *state.groups.text.blocks()]
    in_files = files.are_wanted(len(fingerprints) + sum(each.size() for each in lists))
    lists.append(state.fingerprints.hold(fingerprints if in_files else b""))
    settle(lists, files, in_files=in_files)
    files.sweep()
    if in_files:
        sections["fingerprint_list"] = lists[-1].encode()
    if listed := files.section():
        # Names are random, and a repeat is to write a row of the same size.
        sections["block_files"] = encode_section(listed, compressed=False)
    return sections


def decode_state(blob: str, files: BlockFiles | None = None) -> ShardState:
    """Decode a shard's state.

    Args:
        files: learns from the state which there are.

    Raises:
        BlockFileError: a block file that it names is missing, cut short or changed.
        BlockStoreError: the object store of the block files cannot be reached.
        CorruptBlobError: if it is cut short, changed, or contradicts itself.
        OldBlobVersionError: if a release wrote it whose state cannot be continued.
        UnknownBlobVersionError: if a newer release wrote it.
    """
    _, sections = decode_frame(blob, newest=BLOB_VERSION, oldest=_WITHOUT_FILES)
    kept_bytes = len(sections.get("heartbeats", ""))
    try:
        member_text = TextTable(sections.pop("member_ids"), sections.pop("member_detail"), files)
        group_text = TextTable(sections.pop("group_ids"), sections.pop("group_detail"), files)
        fingerprints = _open_files(sections, files)
        encoded = {name: (decode_section(text), text) for name, text in sections.items()}
        known = encoded["fingerprints"][0] if "fingerprints" in encoded else fingerprints.data
        member_columns = read_columns(encoded["members"][0])
        wheel = read_timers(encoded["beats"][0], member_columns)
        member_columns["fingerprint"] = np.frombuffer(known, np.int64)
        members, groups = member_table(), group_table()
        members.load(member_columns, member_text)
        groups.load(read_columns(encoded["groups"][0]), group_text)
        counts = msgspec.json.decode(encoded["counts"][0], type=dict[str, int])
        time = msgspec.msgpack.decode(encoded["time"][0], type=_TimeSection)
        waiting = _read_waiting(encoded["waiting"][0])
        kept = _read_kept(encoded["heartbeats"][0])
    except (KeyError, ValueError, OSError, SnapshotError, msgspec.MsgspecError) as error:
        raise CorruptBlobError(f"the state blob's checksum is right, but not its content: {error}") from error
    return ShardState(
        members,
        groups,
        wheel,
        counts,
        time.time,
        time.elsewhere,
        time.sources,
        waiting,
        time.pending_renewals,
        encoded,
        kept,
        files,
        fingerprints,
        kept_bytes,
        time.sessions,
    )


def _open_files(sections: dict[str, str], files: BlockFiles | None) -> ByteBlocks:
    """Take what is about files out of the sections, and return the fingerprints that are in them."""
    about_files = sections.pop("block_files", "")
    fingerprints = "" if "fingerprints" in sections else sections.pop("fingerprint_list")
    if files is None and fingerprints:
        raise BlockFileError("the state names block files, and was opened without its checkpoint")
    if files is not None and about_files:
        files.load(decode_section(about_files))
    return ByteBlocks(fingerprints, files)


def _write_waiting(packs: list[Pack]) -> bytes:
    return msgspec.msgpack.encode([part for pack in packs for part in encode_cut(pack)]) if packs else b""


def _read_waiting(section: bytes) -> list[Pack]:
    return [decode_pack(pack) for pack in msgspec.msgpack.decode(section, type=list[bytes])] if section else []


def _read_kept(section: bytes) -> dict[int, Kept]:
    return msgspec.msgpack.decode(section, type=dict[int, Kept]) if section else {}
