"""Block files of a real job, in a folder and in an object store: killed once written, swept, and inspected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heartwheel.engine.shard.block_store import FOLDER
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support.beating import Beating
from support.checkpoints import newest_batch
from support.job import Job, Topics, beats_of, ended
from support.object_store import BUCKET, ObjectStore, object_store
from support.verdicts import assert_exact

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof]

FAULTY = Path(__file__).parents[1] / "support" / "faulty"
MEMBERS = 10
QUICK = "engine.trigger_interval=100ms"
ALWAYS = "engine.block_files_from=1B"


class _InFolder:
    """A checkpoint in a folder.

    Attributes:
        location: what stands before its path.
    """

    location = ""
    settings: tuple[str, ...] = ()

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint

    def names(self) -> list[str]:
        """Return shard and name of all block files."""
        return [str(path.relative_to(self.checkpoint)) for path in (self.checkpoint / FOLDER).glob("*/*")]

    def files(self, batch: int | None = None) -> set[str]:
        """Return the block files, or those that a batch has written."""
        return {name for name in self.names() if batch is None or int(name.rpartition("/")[2][:8], 16) == batch}

    def copy_back(self) -> None:
        """Bring all that belongs to the checkpoint into its folder."""


class _InStore(_InFolder):
    """A checkpoint of which Spark writes to a folder, by the name of an object store, and workers to such a store."""

    location = f"s3://{BUCKET}"
    settings = ("spark.conf.spark.hadoop.fs.s3.impl=org.apache.hadoop.fs.ProxyLocalFileSystem",)

    def __init__(self, checkpoint: Path, store: ObjectStore) -> None:
        super().__init__(checkpoint)
        self.store = store

    def names(self) -> list[str]:
        root = f"{self.checkpoint}/".removeprefix("/")
        return [name.removeprefix(root) for name in self.store.files(root)]

    def copy_back(self) -> None:
        for name in self.names():
            path = self.checkpoint / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.store.objects[str(path).removeprefix("/")])


@pytest.fixture(params=["folder", "object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_InFolder]:
    """Return where a checkpoint is."""
    if request.param == "folder":
        yield _InFolder(tmp_path / "checkpoint")
        return
    with object_store() as store:
        for name, value in store.variables().items():
            monkeypatch.setenv(name, value)
        yield _InStore(tmp_path / "checkpoint", store)


def _inspected(checkpoint: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "heartwheel", "inspect", "--checkpoint", str(checkpoint), "--groups", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {group["group_id"]: group["members"] for group in json.loads(done.stdout)["groups"]}


@pytest.mark.timeout(600)
def test_f1_killed_with_block_files_written_and_not_committed(
    kafka_broker: EmbeddedKafka,
    topics: Callable[[str], str],
    place: _InFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """F1, P3: a kill leaves files that nobody names: the next start tells the same once, and deletes them."""
    faults = tmp_path / "faults"
    faults.mkdir()
    monkeypatch.setenv("HEARTWHEEL_TEST_FAULTS", str(faults))
    monkeypatch.setenv("PYTHONPATH", str(FAULTY), prepend=os.pathsep)
    made = Topics(kafka_broker.bootstrap, topics)

    def job() -> Job:
        return Job(made, place.checkpoint, ALWAYS, QUICK, *place.settings, store=place.location).start()

    with Beating(made, session_ms=300_000):
        with ended(job()) as first:
            first.until_live()
            (faults / "hold").write_text("killed")
            made.send(beats_of("killed", MEMBERS))
            first.wait_for(lambda: list(faults.glob("held-*")), "a shard held once its files are written")
            first.kill()
        (faults / "hold").unlink()
        orphans = place.files(newest_batch(place.checkpoint, "offsets"))
        assert orphans
        with ended(job()) as second:
            second.until_expired([f"killed-m{number}" for number in range(MEMBERS)])
            second.wait_for(lambda: not orphans & place.files(), "the files of the killed batch to be deleted")
            made.send(beats_of("later", MEMBERS, session_ms=300_000))
            second.until_clock(int(time.time() * 1000))
            assert second.stop() == 0
        place.copy_back()
        assert _inspected(place.checkpoint)["later"] == MEMBERS
    assert_exact(second, due=["killed"], members=MEMBERS)
