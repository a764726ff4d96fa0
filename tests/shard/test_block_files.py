"""Block files: a shard with them decides what one without them does, and no crash leaves a name without its file."""

from __future__ import annotations

import dataclasses
import os
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heartwheel.engine.shard import Shard, ShardLimits, block_files, block_store, blocks, text
from heartwheel.engine.shard.block_files import SWEEP_EVERY, BlockFileError, BlockFiles
from heartwheel.engine.shard.block_store import FOLDER
from heartwheel.engine.shard.codec import BLOB_VERSION
from heartwheel.engine.shard.frame import decode_frame
from heartwheel.proof.testing import OUTAGE_MIN_MS, LogBuilder, by_group, read_records, until
from support.heartbeat_logs import CONFIG, EXAMPLES, T0, beating_logs, cuts_of, heartbeat_logs

ROOMY = dataclasses.replace(CONFIG, group_max_size=5_000)
VERSIONS = 10
CRASHES = min(20, EXAMPLES // 4)
"""How many histories of crashes a test tries: one has forty batches, and takes a second or two."""
ALWAYS = 1
"""A threshold that every block is above."""


def _shard(blob: str, checkpoint: Path | str | None, batch: int, from_bytes: int = ALWAYS, **changes: Any) -> Shard:
    files = None
    if checkpoint is not None:
        files = BlockFiles(str(checkpoint), 3, batch=batch, from_bytes=from_bytes, versions=VERSIONS)
    limits = changes.pop("limits", ShardLimits())
    return Shard(coordinator=ROOMY, limits=limits, outage_min_ms=OUTAGE_MIN_MS, blob=blob, files=files, **changes)


def _files(checkpoint: Path) -> list[str]:
    folder = checkpoint / FOLDER / "3"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def _version(blob: str) -> int:
    return decode_frame(blob, newest=BLOB_VERSION)[0]


def _run(log: LogBuilder, cuts: list[int], checkpoint: Path | None) -> tuple[Any, Any]:
    blob, verdicts, bounds = "", [], [0, *sorted(cuts), len(log.records)]
    for batch, (start, stop) in enumerate(pairwise(bounds)):
        shard = _shard(blob, checkpoint, batch)
        verdicts += shard.apply(*read_records(log.records[start:stop])).verdicts
        blob = shard.encode()
    partitions = {record.partition for record in log.records} or {0}
    shard = _shard(blob, checkpoint, len(bounds))
    verdicts += shard.apply([], until(T0 + 60_000, *partitions)).verdicts
    return by_group(verdicts), _shard(blob, checkpoint, len(bounds)).dump()


@given(heartbeat_logs() | beating_logs(), st.data())
@settings(max_examples=EXAMPLES)
def test_p3_any_log_gives_the_same_verdicts_and_state_with_block_files(log: LogBuilder, data: st.DataObject) -> None:
    """P3: with every block in files, verdicts and groups are those of a state that has all in its row."""
    cuts = data.draw(cuts_of(log))
    with tempfile.TemporaryDirectory() as folder:
        assert _run(log, cuts, Path(folder)) == _run(log, cuts, None)


def _beats(members: range, *, at_ms: int = 0, session_ms: int = 4_000) -> LogBuilder:
    log = LogBuilder()
    for member in members:
        log.beat(T0 + at_ms, f"g{member % 5}", f"m{member}", session_timeout_ms=session_ms)
    return log


def _filled(checkpoint: Path | None, members: int = 3_000, **changes: Any) -> str:
    shard = _shard("", checkpoint, 0, **changes)
    shard.apply(*read_records(_beats(range(members)).records))
    return shard.encode()


def test_a_batch_of_known_heartbeats_writes_no_file_and_a_small_row(tmp_path: Path) -> None:
    """Heartbeats change neither ids nor fingerprints: their files stay, and the row is a fraction of what it was."""
    blob = _filled(tmp_path)
    before = _files(tmp_path)
    shard = _shard(blob, tmp_path, 1)
    shard.apply(*read_records(_beats(range(3_000), at_ms=500).records))
    after, in_row = shard.encode(), _shard(blob, tmp_path, 1, from_bytes=0).encode()
    assert (len(before), _files(tmp_path)) == (1, before)
    assert len(after) < len(in_row) / 3
    assert shard.filed_bytes == sum(path.stat().st_size for path in (tmp_path / FOLDER / "3").iterdir())


def test_a_state_below_the_threshold_has_no_files_and_its_old_version(tmp_path: Path) -> None:
    """A small shard is written to the byte as without block files, so an older release reads it."""
    large = 1 << 20
    assert _filled(tmp_path, from_bytes=large) == _filled(tmp_path, from_bytes=0) == _filled(None)
    assert not (tmp_path / FOLDER).exists()


def test_the_setting_brings_blocks_into_files_and_back(tmp_path: Path) -> None:
    """Upgrade and the way back: the first batch moves the blocks, and a state without files is of the older version."""
    plain = _filled(tmp_path, from_bytes=0)
    filed = _shard(plain, tmp_path, 1).encode()
    back = _shard(filed, tmp_path, 2, from_bytes=0).encode()
    assert (_version(plain), _version(filed), _version(back)) == (4, 5, 4)
    assert len(filed) < len(plain) / 3
    dumps = [_shard(blob, tmp_path, 3).dump() for blob in (plain, filed)]
    assert dumps == [_shard(blob, None, 3).dump() for blob in (plain, back)]


def test_a_shard_that_shrinks_has_its_blocks_in_the_row_again(tmp_path: Path) -> None:
    """Below half of the threshold the blocks come back, and the shard goes on with those who are left."""
    blob = _filled(tmp_path, from_bytes=10_000)
    assert _version(blob) == BLOB_VERSION
    shard = _shard(blob, tmp_path, 1, from_bytes=10_000)
    shard.apply(*read_records(_beats(range(10), at_ms=3_000).records, clock_ms=T0 + 5_000))
    assert shard.member_count == 10
    assert _version(shard.encode()) == 4


@given(heartbeat_logs())
@settings(max_examples=EXAMPLES)
def test_w7_a_state_with_files_survives_the_round_trip(log: LogBuilder) -> None:
    """W7: decoded and encoded again the row is the same, and no file is written."""
    with tempfile.TemporaryDirectory() as folder:
        shard = _shard("", Path(folder), 0)
        shard.apply(*read_records(log.records, clock_ms=T0 + 2_000))
        blob, files = shard.encode(), _files(Path(folder))
        again = _shard(blob, Path(folder), 1)
        assert again.encode() == blob
        assert again.dump() == shard.dump()
        assert _files(Path(folder)) == files


@contextmanager
def _small_blocks() -> Iterator[None]:
    """Let few rows fill several blocks, and few batches bring a sweep."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as copies:
        patch.setattr(block_store, "_folder_of_copies", lambda: Path(copies))
        patch.setattr(block_files, "SWEEP_EVERY", 8)
        patch.setattr(text, "BLOCK_ROWS", 8)
        patch.setattr(blocks, "_BYTES", 128)
        yield


@given(st.data())
@settings(max_examples=CRASHES)
def test_every_kept_version_has_its_files_whatever_crashes(data: st.DataObject) -> None:
    """Crashes before the commit, repeats, twice at once: each kept version reads as it was, and nothing else stays."""
    _crash("", data)


@given(st.data())
@settings(max_examples=CRASHES)
def test_every_kept_version_has_its_copies_whatever_crashes(data: st.DataObject) -> None:
    """The same with copies of files, as an object store has them: no more of these stay than the state names."""
    _crash("file://", data)


def _crash(scheme: str, data: st.DataObject) -> None:
    """Run batches that crash and repeat at random, on a checkpoint in a folder that is named with a scheme."""
    with tempfile.TemporaryDirectory() as folder, _small_blocks():
        Path(folder, FOLDER, "3").mkdir(parents=True)
        checkpoint, batch = f"{scheme}{folder}", 0
        versions: list[tuple[str, Any]] = [("", [])]
        while batch < 4 * VERSIONS:
            members = data.draw(st.sampled_from([range(30), range(30), range(20, 50), range(4)]))
            log = _beats(members, at_ms=100 * batch, session_ms=1_000)
            for _ in range(data.draw(st.sampled_from([1, 1, 1, 2, 3]))):  # of several attempts the last one commits
                shard = _shard(versions[-1][0], checkpoint, batch, from_bytes=data.draw(st.sampled_from([1, 600, 0])))
                shard.apply(*read_records(log.records, clock_ms=T0 + 100 * batch + 50))
                blob, dump = shard.encode(), shard.dump()
            versions = [*versions[-VERSIONS:], (blob, dump)]
            batch += 1
            for kept, expected in (versions[0], versions[-1]):
                assert _shard(kept, checkpoint, batch).dump() == expected
        blob = versions[-1][0]
        for quiet in range(batch, batch + 3 * VERSIONS):
            shard = _shard(blob, checkpoint, quiet)
            blob = shard.encode()
        assert shard._files is not None
        assert set(_files(Path(folder))) == set(shard._files.files)
        if scheme:  # a worker keeps copies of no other files
            assert {path.name for path in block_store._folder_of_copies().glob("*/3/*")} <= set(shard._files.files)


@given(st.lists(st.binary(max_size=600), min_size=1))
@settings(max_examples=EXAMPLES)
def test_bytes_in_blocks_are_those_that_were_held_last(steps: list[bytes]) -> None:
    """Bytes that change, grow and shrink from batch to batch come out of row and files as they went in."""
    encoded = ""
    with tempfile.TemporaryDirectory() as folder, _small_blocks():
        files = BlockFiles(folder, 3, batch=0, from_bytes=ALWAYS)
        for data in steps:
            held = blocks.ByteBlocks(encoded, files).hold(data)
            blocks.settle([held], files, in_files=True)
            encoded = held.encode()
            assert blocks.ByteBlocks(encoded, files).data == data


def test_two_writers_of_one_batch_have_files_of_their_own(tmp_path: Path) -> None:
    """A repeated batch, a speculative task, a second job: either state can be read, whichever is committed."""
    blob = _filled(tmp_path, from_bytes=0)
    one, other = (_shard(blob, tmp_path, 7).encode() for _ in range(2))
    assert one != other
    assert len(one) == len(other)  # the size is in the status row, which a repeat must write to the byte
    assert len(_files(tmp_path)) == 2
    assert _shard(one, tmp_path, 8).dump() == _shard(other, tmp_path, 8).dump()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.unlink(), r"cannot be read \(No such file or directory\)"),
        (lambda path: os.truncate(path, path.stat().st_size - 1), r"has \d+ bytes, and \d+ were written"),
        (lambda path: path.write_bytes(bytes(path.stat().st_size)), "was changed"),
    ],
)
def test_f6_a_damaged_file_is_refused_by_name(tmp_path: Path, damage: Any, words: str) -> None:
    """F6: a file that is gone, cut short or changed is an error that says which file of which shard."""
    blob = _filled(tmp_path)
    (path,) = (tmp_path / FOLDER / "3").iterdir()
    damage(path)
    with pytest.raises(BlockFileError, match=f"block file {path} of shard 3 {words}"):
        _shard(blob, tmp_path, 1)


def test_f6_a_state_that_names_files_is_not_read_without_them(tmp_path: Path) -> None:
    """F6: copied to where no worker reaches files, such a state is refused by name."""
    with pytest.raises(BlockFileError, match="names block files"):
        _shard(_filled(tmp_path), None, 1)


@contextmanager
def _disk_of(size_bytes: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_f7_a_file_that_finds_no_room_leaves_nothing(tmp_path: Path) -> None:
    """F7: the batch fails, and what was written of the file does not fill the disk further; the next try goes on."""
    blob = _filled(tmp_path, from_bytes=0)
    with _disk_of(5_000), pytest.raises(OSError, match="File too large"):
        _shard(blob, tmp_path, 1).encode()
    assert _files(tmp_path) == []
    assert _version(_shard(blob, tmp_path, 1).encode()) == BLOB_VERSION


def test_p6_the_limit_of_a_state_counts_its_files(tmp_path: Path) -> None:
    """P6: a shard whose row is small and whose files are not takes no new member."""
    shard = _shard("", tmp_path, 0)
    shard.apply(*read_records(_beats(range(3_000)).records))
    blob = shard.encode()
    assert len(blob) < shard.filed_bytes
    most = ShardLimits(state_bytes_max=shard.filed_bytes)
    for limits, members in ((most, 3_000), (ShardLimits(), 3_001)):
        after = _shard(blob, tmp_path, 1, limits=limits)
        after.apply(*read_records(_beats(range(3_001), at_ms=500).records))
        assert after.member_count == members


def test_what_others_put_into_the_folder_stays(tmp_path: Path) -> None:
    """Only files with the names of block files are collected, and of those only old ones that nobody names."""
    blob = _filled(tmp_path)
    (named,) = _files(tmp_path)
    folder = tmp_path / FOLDER / "3"
    fresh, stale = f"{SWEEP_EVERY - 1:08x}00000000", f"{1:08x}00000000"
    for name in (fresh, stale, "notes.txt"):
        (folder / name).touch()
    _shard(blob, tmp_path, SWEEP_EVERY).encode()
    assert _files(tmp_path) == sorted([named, fresh, "notes.txt"])
