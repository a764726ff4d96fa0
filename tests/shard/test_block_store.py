"""Block files in an object store: they change no state, and a store that cannot be reached loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heartwheel.engine.heartbeats.config import job_config
from heartwheel.engine.heartbeats.plugin import heartbeat_job
from heartwheel.engine.runtime.state.faults import explain
from heartwheel.engine.shard import Shard, ShardLimits, block_store
from heartwheel.engine.shard.block_files import SWEEP_EVERY, BlockFileError, BlockFiles
from heartwheel.engine.shard.block_store import BlockStoreError, why_unreachable
from heartwheel.front.cli.checks import Status, check_block_files
from heartwheel.proof.testing import LogBuilder, read_records
from heartwheel.settings import Settings, load_settings
from support.heartbeat_logs import CONFIG, T0
from support.object_store import BUCKET, ObjectStore, object_store

CHECKPOINT = f"s3a://{BUCKET}/jobs/checkpoint"
MEMBERS = 200


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """Return this machine's folder of copies."""
    return tmp_path / "copies"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, copies: Path) -> Iterator[ObjectStore]:
    """Return an object store that the environment names."""
    monkeypatch.setattr(block_store, "_folder_of_copies", lambda: copies)
    with object_store() as running:
        for name, value in running.variables().items():
            monkeypatch.setenv(name, value)
        block_store._opened.cache_clear()
        why_unreachable.cache_clear()
        yield running
    block_store._opened.cache_clear()
    why_unreachable.cache_clear()


def _shard(blob: str, batch: int, *, from_bytes: int = 1, checkpoint: str = CHECKPOINT) -> Shard:
    files = BlockFiles(checkpoint, 3, batch=batch, from_bytes=from_bytes)
    return Shard(coordinator=CONFIG, limits=ShardLimits(), blob=blob, files=files)


def _beat(shard: Shard, members: int = MEMBERS, *, at_ms: int = 0) -> str:
    log = LogBuilder()
    for member in range(members):
        log.beat(T0 + at_ms, f"g{member % 50}", f"m{member}", session_timeout_ms=60_000)
    shard.apply(*read_records(log.records))
    return shard.encode()


def _tries_max(error: Exception) -> int | None:
    """Return how often a job tries a batch again that has failed with an error of a worker."""
    return explain(RuntimeError(f"{type(error).__module__}.{type(error).__name__}: {error}")).tries_max


def _move(copies: Path) -> None:
    """Let the next batch be on another machine."""
    copies.rename(copies.with_name(f"of-{len(list(copies.parent.iterdir()))}"))


def test_a_state_in_an_object_store_is_that_of_a_row(store: ObjectStore) -> None:
    """A shard is filled with one request; batches of known heartbeats ask for nothing, and decide as without files."""
    blob, in_row = _beat(_shard("", 1)), _beat(_shard("", 1, from_bytes=0))
    assert (store.asked, len(store.files("jobs/checkpoint/blocks/3/"))) == ({"PUT": 1}, 1)
    for batch in (2, 3):
        blob = _beat(_shard(blob, batch), at_ms=1_000 * batch)
        in_row = _beat(_shard(in_row, batch, from_bytes=0), at_ms=1_000 * batch)
        assert store.asked == {"PUT": 1}
    assert len(blob) < len(in_row)
    assert _shard(blob, 4).dump() == _shard(in_row, 4, from_bytes=0).dump()


def test_another_machine_fetches_the_files_once(store: ObjectStore, copies: Path) -> None:
    """A shard that moves to another executor fetches what its state names, and what was cut short there is mended."""
    blob = _beat(_shard("", 0))
    dump = _shard(blob, 1).dump()
    _move(copies)
    store.asked.clear()
    assert _shard(blob, 1).dump() == dump
    asked = store.asked.copy()
    assert set(asked) == {"HEAD", "GET"}
    assert _shard(blob, 1).dump() == dump
    assert store.asked == asked
    (copy,) = copies.glob("*/3/*")
    copy.write_bytes(b"")
    assert _shard(blob, 1).dump() == dump


def test_a_copy_of_the_checkpoint_in_a_folder_can_be_read(store: ObjectStore, tmp_path: Path) -> None:
    """Block files are named without their store: a checkpoint may be copied to where `inspect` reads it."""
    blob = _beat(_shard("", 0))
    dump = _shard(blob, 1).dump()
    for key in store.files("jobs/checkpoint/"):
        file = tmp_path / key.removeprefix("jobs/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(store.objects[key])
    assert _shard(blob, 1, checkpoint=str(tmp_path / "checkpoint")).dump() == dump


def test_f6_a_damaged_object_is_refused_by_name(store: ObjectStore, copies: Path) -> None:
    """F6: an object that is gone or changed is an error that says which one, and no restart is tried."""
    blob = _beat(_shard("", 0))
    (key,) = store.files("jobs/checkpoint/blocks/3/")
    _move(copies)
    store.objects[key] = bytes(len(store.objects[key]))
    with pytest.raises(BlockFileError, match=f"s3a://{BUCKET}/{key} of shard 3 was changed"):
        _shard(blob, 1)
    _move(copies)
    del store.objects[key]
    with pytest.raises(BlockFileError, match=f"s3a://{BUCKET}/{key} of shard 3 cannot be read") as raised:
        _shard(blob, 1)
    assert _tries_max(raised.value) == 0


def test_f6_a_store_that_cannot_be_reached_is_no_damage(store: ObjectStore, copies: Path) -> None:
    """F6: while a store refuses, the batch fails with an error that passes, and later goes on with the same state."""
    blob = _beat(_shard("", 0))
    dump = _shard(blob, 1).dump()
    _move(copies)
    store.refuses = True
    with pytest.raises(BlockStoreError, match=f"{CHECKPOINT} cannot be reached: .*ACCESS_DENIED") as raised:
        _shard(blob, 1)
    assert _tries_max(raised.value) is None
    store.refuses = False
    assert _shard(blob, 1).dump() == dump


def test_what_no_state_names_is_deleted(store: ObjectStore, copies: Path) -> None:
    """A sweep deletes the objects and copies of tasks that did not commit, and keeps what others put there."""
    blob = _beat(_shard("", 0))
    _beat(_shard("", 1))  # a second job by mistake
    store.objects["jobs/checkpoint/blocks/3/notes.txt"] = b"mine"
    files = _shard(blob, 2)._files
    assert files is not None
    (kept,) = files.files
    (folder,) = {path.parent for path in copies.glob("*/3/*")}
    (folder / "0000000200000000.1f").touch()  # another worker writes it
    _beat(_shard(blob, SWEEP_EVERY), at_ms=1_000)
    names = [key.rpartition("/")[2] for key in store.files("jobs/checkpoint/blocks/3/")]
    assert names == sorted([kept, "notes.txt"])
    assert {path.name for path in folder.iterdir()} == {kept, "0000000200000000.1f"}


def test_blocks_come_back_from_an_object_store(store: ObjectStore) -> None:
    """With `engine.block_files_from` at 0 the state is in its row again; once swept, nothing asks the store."""
    blob = _beat(_shard("", 0))
    dump = _shard(blob, 1).dump()
    for batch in range(1, 2 * SWEEP_EVERY + 1):
        blob = _shard(blob, batch, from_bytes=0).encode()
    assert (_shard(blob, batch).dump(), store.files("jobs/checkpoint/blocks/3/")) == (dump, [])
    store.asked.clear()
    _shard(blob, 3 * SWEEP_EVERY, from_bytes=0).encode()
    assert not store.asked


def _settings(*flags: str) -> Settings:
    return load_settings(None, {}, [f"checkpoint.location={CHECKPOINT}/", *flags]).settings


def test_a_job_tries_its_object_store_once(store: ObjectStore, caplog: pytest.LogCaptureFixture) -> None:
    """A store that a small object comes back from is used, and that object does not stay."""
    config = job_config(_settings(), shuffle_partitions=1)
    assert (config.block_location, config.block_files_from) == (CHECKPOINT, 2**20)
    asked = store.asked.copy()
    heartbeat_job(_settings())
    assert (store.asked, store.files(), caplog.messages) == (asked, [], [])


@pytest.mark.parametrize("location", [CHECKPOINT, "hdfs://name/checkpoint", "oss://bucket/checkpoint"])
def test_a_job_whose_store_cannot_be_reached_has_no_block_files(
    store: ObjectStore, caplog: pytest.LogCaptureFixture, location: str
) -> None:
    """All state stays in its rows then, with a warning that says why; without block files nobody asks."""
    store.refuses = True
    settings = _settings(f"checkpoint.location={location}")
    assert job_config(settings, shuffle_partitions=1).block_files_from == 0
    heartbeat_job(settings)
    (words,) = caplog.messages
    assert words.startswith(f"all state stays in its rows, without block files, as Python does not reach {location}: ")
    store.asked.clear()
    why_unreachable.cache_clear()
    heartbeat_job(_settings(f"checkpoint.location={location}", "engine.block_files_from=0B"))
    assert not store.asked


def test_doctor_tries_the_store(store: ObjectStore) -> None:
    """It writes and deletes a file, or says why it cannot; nothing is asked where no block files are wanted."""
    location = f"s3a://{BUCKET}/jobs/checkpoint"
    (check,) = check_block_files(_settings(f"checkpoint.location={location}"))
    assert (check.status, check.detail) == (Status.OK, f"Python can write to {location}")
    assert store.files() == []
    (check,) = check_block_files(_settings("checkpoint.location=nosuch://bucket/jobs"))
    assert (check.status, check.hint) == (Status.WARN, "docs/state.md, or engine.block_files_from=0B")
    store.asked.clear()
    assert list(check_block_files(_settings(f"checkpoint.location={location}", "engine.block_files_from=0B"))) == []
    assert list(check_block_files(_settings("checkpoint.location=folder"))) == []
    assert not store.asked
