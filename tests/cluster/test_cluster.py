"""The job on a cluster of real processes whose Python has never heard of heartwheel, while parts of it are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support.beating import Beating
from support.checkpoints import MOUNT, mounted, newest_batch
from support.cluster import Cluster, cluster, python_archive
from support.job import Job, Topics, beats_of, ended
from support.processes import command_of
from support.verdicts import assert_exact

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(1_800)]

STEADY_MS = 20_000
"""Session timeout of members that beat all the time; far longer than a stall of this test."""


def _settings(made: Cluster, archive: Path) -> tuple[str, ...]:
    return (
        f"spark.master={made.address}",
        f"spark.auth_secret=file:{made.secret}",
        "spark.shuffle_partitions=2",
        "spark.executor_python=environment/bin/python",
        f"spark.conf.spark.archives={archive}#environment",
        "spark.conf.spark.driver.host=127.0.0.1",
        "spark.conf.spark.executor.memory=512m",
        "spark.conf.spark.executor.cores=1",
        "spark.conf.spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1",
    )


def _job(topics: Topics, folder: Path, *settings: str) -> Job:
    return Job(topics, folder / "checkpoint", *settings, mounted(folder)).keep_at(f"{MOUNT}/checkpoint")


def _kill_executor_in_mid_batch(job: Job, made: Cluster, checkpoint: Path) -> None:
    """Kill an executor while a batch is under way; the batch is still under way when it is dead."""

    def killed() -> bool:
        executor = made.workers[0].executor()
        planned = newest_batch(checkpoint, "offsets")
        if executor is None or planned <= newest_batch(checkpoint, "commits"):
            return False
        os.kill(executor, signal.SIGKILL)
        return newest_batch(checkpoint, "commits") < planned

    end = time.monotonic() + 60
    while not killed():
        assert time.monotonic() < end, job.log[-3000:]
        time.sleep(0.01)


def _batches_on(job: Job, checkpoint: Path, count: int) -> None:
    goal = newest_batch(checkpoint, "commits") + count
    job.wait_for(lambda: newest_batch(checkpoint, "commits") >= goal, f"{count} more batches")


def _command_lines_with(secret: str, made: Cluster, job: Job) -> list[str]:
    """Give the command lines, of all processes of this machine that can be seen, in which a secret stands."""
    assert secret
    lines = [command_of(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    assert sum("CoarseGrainedExecutorBackend" in line for line in lines) >= len(made.workers)
    assert any("spark.network.crypto.enabled=true" in line for line in lines if "ExecutorBackend" in line)
    return [line for line in [*lines, job.log, made.master.log] if secret in line]


def test_the_executors_python_has_the_dependencies_and_no_heartwheel(tmp_path: Path) -> None:
    """What the executors of the test below start cannot import heartwheel unless the driver sends it."""
    python_archive(tmp_path)
    command = [str(tmp_path / "python"), "-c", "import msgspec, pyarrow, pydantic; import heartwheel"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={}, cwd=tmp_path)
    assert "No module named 'heartwheel'" in done.stderr


def test_p1_p3_a_cluster_loses_an_executor_and_a_machine(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path
) -> None:
    """P1, P3: an executor is killed in mid-batch, a machine dies and comes back: each silence once, nobody else."""
    made_topics = Topics(kafka_broker.bootstrap, topics)
    checkpoint = tmp_path / "checkpoint"
    archive = python_archive(tmp_path)
    with (
        cluster(tmp_path / "cluster") as made,
        Beating(made_topics, session_ms=STEADY_MS),
        ended(_job(made_topics, tmp_path, *_settings(made, archive)).start()) as job,
    ):
        job.until_live()
        assert _command_lines_with(made.secret.read_text(), made, job) == []
        for step in ("executor", "machine", "back"):
            made_topics.send(beats_of(f"dies-{step}", 20, session_ms=3_000))
            if step == "executor":
                _kill_executor_in_mid_batch(job, made, checkpoint)
            elif step == "machine":
                made.workers[0].kill()
            else:
                made.workers[0].start()
                job.wait_for(made.workers[0].executor, "an executor on the machine that came back")
            _batches_on(job, checkpoint, 3)
        job.until_clock(int(time.time() * 1000))
        assert job.stop() == 0
    assert not (Path.cwd() / "viewfs:").exists()
    # The manifest lies there too, and is looked at as soon as there is a session.
    other = _job(made_topics, tmp_path, "engine.shards=3")
    assert other.start().end() == 1
    assert "engine.shards is 3, the checkpoint has 2" in other.log
    assert "Traceback" not in other.log
    assert_exact(job, due=[f"dies-{step}" for step in ("executor", "machine", "back")], members=20)
