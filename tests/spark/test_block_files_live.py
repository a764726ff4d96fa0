"""Block files of a real job: killed once they are written and before it commits, swept, and inspected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heartwheel.engine.shard.block_files import FOLDER
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support.beating import Beating
from support.checkpoints import newest_batch
from support.job import Job, Topics, beats_of, ended
from support.verdicts import assert_exact

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof]

FAULTY = Path(__file__).parents[1] / "support" / "faulty"
MEMBERS = 10
QUICK = "engine.trigger_interval=100ms"
ALWAYS = "engine.block_files_from=1B"


def _files(checkpoint: Path, batch: int | None = None) -> set[Path]:
    """List the block files, or those that a batch has written."""
    found = set((checkpoint / FOLDER).glob("*/*"))
    return found if batch is None else {path for path in found if int(path.name[:8], 16) == batch}


def _inspected(checkpoint: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "heartwheel", "inspect", "--checkpoint", str(checkpoint), "--groups", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {group["group_id"]: group["members"] for group in json.loads(done.stdout)["groups"]}


@pytest.mark.timeout(600)
def test_f1_killed_with_block_files_written_and_not_committed(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1, P3: a kill leaves files that nobody names: the next start tells the same once, and deletes them."""
    faults, checkpoint = tmp_path / "faults", tmp_path / "checkpoint"
    faults.mkdir()
    monkeypatch.setenv("HEARTWHEEL_TEST_FAULTS", str(faults))
    monkeypatch.setenv("PYTHONPATH", str(FAULTY), prepend=os.pathsep)
    made = Topics(kafka_broker.bootstrap, topics)
    with Beating(made, session_ms=300_000):
        with ended(Job(made, checkpoint, ALWAYS, QUICK).start()) as job:
            job.until_live()
            (faults / "hold").write_text("killed")
            made.send(beats_of("killed", MEMBERS))
            job.wait_for(lambda: list(faults.glob("held-*")), "a shard held once its files are written")
            job.kill()
        (faults / "hold").unlink()
        orphans = _files(checkpoint, newest_batch(checkpoint, "offsets"))
        assert orphans
        with ended(Job(made, checkpoint, ALWAYS, QUICK).start()) as job:
            job.until_expired([f"killed-m{number}" for number in range(MEMBERS)])
            job.wait_for(lambda: not orphans & _files(checkpoint), "the files of the killed batch to be deleted")
            made.send(beats_of("later", MEMBERS, session_ms=300_000))
            job.until_clock(int(time.time() * 1000))
            assert job.stop() == 0
        assert _inspected(checkpoint)["later"] == MEMBERS
    assert_exact(job, due=["killed"], members=MEMBERS)
