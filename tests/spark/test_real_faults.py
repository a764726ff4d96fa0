"""Real faults on real processes: the job is killed at named points of a batch, and what it stands on is taken away.

All tests share one broker, one set of topics and one checkpoint, and leave them as they are to the next; each also runs
alone. Members beat all the time, and for each fault a group falls silent. What the topics hold after all of it is held
against the log at the end: every silence once, by one id, and nobody else.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support.beating import Beating
from support.checkpoints import newest_batch
from support.job import Job, Topics, beats_of, ended, wait_for
from support.verdicts import assert_exact

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(1_800)]

OUTAGE_S = 60
FAULTY = Path(__file__).parents[1] / "support" / "faulty"


class World:
    """What all tests share.

    Args:
        broker: one that may be killed.
        folder: for everything that is no checkpoint.
        small_disk: whether it lies on a small disk of its own.
    """

    def __init__(self, broker: EmbeddedKafka, folder: Path, checkpoint: Path, *, small_disk: bool) -> None:
        self.broker = broker
        self.checkpoint = checkpoint
        self.folder = folder
        self.small_disk = small_disk
        self.faults = folder / "faults"
        self.faults.mkdir()
        self.topics = Topics(broker.bootstrap, lambda name: f"{name}-faults")
        self.filler = checkpoint.parent / "filler"
        self.dead: list[str] = []
        self._last: Job | None = None

    def job(self, *settings: str) -> Job:
        """Make the one job on the one checkpoint; what was left of the one before is killed."""
        if self._last is not None:
            self._last.kill()
        job = self._last = self.one_more_job(*settings)
        return job

    def one_more_job(self, *settings: str) -> Job:
        """Make a job on the one checkpoint beside the one that may be running."""
        two = "spark.shuffle_partitions=2"  # a kill may come between the states of two partitions
        place = self.folder / f"run-{time.monotonic_ns()}"
        return Job(self.topics, place, two, *settings).keep_at(str(self.checkpoint))

    def silence(self, group: str) -> None:
        """Let ten members beat once and never again."""
        self.topics.send(beats_of(group, 10, session_ms=1_000))
        self.dead.append(group)

    def hold(self, group: str = "") -> None:
        """Let the state function wait from now on, with expirations of a group in hand, or always."""
        for held in self.faults.glob("held-*"):
            held.unlink()
        draft = self.faults / "draft"
        draft.write_text(group)
        draft.rename(self.faults / "hold")

    def held(self) -> list[tuple[int, int]]:
        """List the workers that wait inside the state function, and the timestamp of their batch, epoch ms."""
        found = [(int(file.name[5:]), file.read_text()) for file in self.faults.glob("held-*")]
        return [(pid, int(text)) for pid, text in found if text]

    def release(self) -> None:
        """Let those who wait go on."""
        (self.faults / "hold").unlink(missing_ok=True)

    def mend(self) -> None:
        """Take back every fault, so that a test that failed leaves none to the next."""
        self.release()
        (self.faults / "bloat").unlink(missing_ok=True)
        self.filler.unlink(missing_ok=True)
        if not self.broker.running:
            self.broker.start()

    def newest(self, kind: Literal["offsets", "commits"]) -> int:
        """Tell the newest batch planned (`offsets`) or finished (`commits`)."""
        return newest_batch(self.checkpoint, kind)

    def planned_ms(self) -> int:
        """Tell the timestamp of the newest planned batch, epoch ms."""
        lines = (self.checkpoint / "offsets" / str(self.newest("offsets"))).read_text().splitlines()
        return int(json.loads(lines[1])["batchTimestampMs"])

    def states_of(self, batch: int) -> int:
        """Count the state partitions that have committed what a batch made of them."""
        return len(list((self.checkpoint / "state" / "0").glob(f"*/{batch + 1}.delta")))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run the broker and the members that beat all the time; the checkpoint gets a small disk where root runs this."""
    folder = tmp_path_factory.mktemp("faults")
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedKafka(folder / "kafka"))
        disk = folder / "disk"
        disk.mkdir()
        small = os.geteuid() == 0 and _mount(disk)
        if small:
            stack.callback(lambda: subprocess.run(["umount", "--lazy", disk], check=True))
        made = World(broker, folder, disk / "checkpoint", small_disk=small)
        stack.enter_context(Beating(made.topics, session_ms=300_000))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("HEARTWHEEL_TEST_FAULTS", str(made.faults))
        patch.setenv("PYTHONPATH", str(FAULTY), prepend=os.pathsep)
        yield made


@pytest.fixture(autouse=True)
def mended(world: World) -> Iterator[None]:
    """Take back every fault after each test."""
    yield
    world.mend()


def _mount(folder: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _wait_held(world: World, job: Job) -> list[tuple[int, int]]:
    held: list[tuple[int, int]] = job.wait_for(world.held, "a shard held inside the state function")
    # The proof that this is the batch that Spark has planned and not finished.
    assert {batch_ms for _, batch_ms in held} == {world.planned_ms()}
    assert world.newest("offsets") == world.newest("commits") + 1
    return held


def test_f1_killed_in_the_state_function_of_the_first_batch(world: World) -> None:
    """F1: killed while the first batch of the catch-up phase is inside the state function: nothing of it remains."""
    world.silence("first")
    world.hold()
    with ended(world.job().start()) as job:
        _wait_held(world, job)
        job.kill()
        world.release()
    assert world.newest("commits") == -1
    assert world.states_of(0) == 0
    assert world.topics.rows("status") == []


def test_f1_killed_before_planning(world: World) -> None:
    """F1: killed between two batches, as members fall silent."""
    with ended(world.job().start()) as job:
        job.until_live()
        world.silence("before-planning")

        def frozen_between_batches() -> bool:
            job.freeze()
            if world.newest("offsets") == world.newest("commits"):
                return True
            job.thaw()
            return False

        job.wait_for(frozen_between_batches, "a moment between two batches")
        job.kill()
    assert world.newest("offsets") == world.newest("commits")


def test_f1_killed_after_the_state_commit_and_before_the_sink(world: World) -> None:
    """F1, P3: the state says that members were expired, Kafka never heard of it: the next start tells Kafka."""
    with ended(world.job().start()) as job:
        job.until_live()
        # A producer that has never written to a topic asks the broker about it first, and would wait there.
        world.silence("before-state-only")
        job.until_expired(["before-state-only-m0"])
        world.hold("state-only")
        world.silence("state-only")
        _wait_held(world, job)
        world.broker.kill()
        world.release()
        batch = world.newest("offsets")
        job.wait_for(lambda: world.states_of(batch) == 2, "the state of both partitions")
        job.kill()
    assert world.newest("commits") == batch - 1
    world.broker.start()
    assert "state-only-m0" not in world.topics.expired()


def test_f1_killed_after_the_sink_and_before_the_commit(world: World) -> None:
    """F1, P3: Kafka has the expirations, Spark does not know that the batch is done: repeated by the same ids."""
    commits, away = world.checkpoint / "commits", world.checkpoint / "commits-away"
    with ended(world.job().start()) as job:
        job.until_live()
        world.hold("sink-only")
        world.silence("sink-only")
        ((_, batch_ms),) = _wait_held(world, job)
        # Where the folder was is a file: the batch runs to its end and cannot be written down as done.
        commits.rename(away)
        commits.write_text("")
        world.release()
        job.wait_for(lambda: "trying again" in job.log, "the batch that is not written down")
        job.kill()
    commits.unlink()
    away.rename(commits)
    assert world.newest("commits") == world.newest("offsets") - 1
    assert sorted(row["shard"] for row in world.topics.rows("status") if row["batch_ms"] == batch_ms) == [0, 1]
    assert "sink-only-m0" in world.topics.expired()


def test_f6_a_deleted_checkpoint_tells_the_same_again(world: World) -> None:
    """F6, P3: without its checkpoint the job reads the topic again and comes to the same verdicts, by the same ids.

    Before any outage: a new checkpoint has no evidence of those that an older one lived through (docs/guarantees.md).
    """
    before = {row["id"] for row in world.topics.rows("expirations")}
    shutil.rmtree(world.checkpoint, ignore_errors=True)
    now_ms = int(time.time() * 1000)
    with ended(world.job().start()) as job:
        job.until_live()
        job.wait_for(lambda: _fired_since(world, now_ms), "the clock")
        assert job.stop() == 0
    rows = world.topics.rows("expirations")
    assert {row["id"] for row in rows} == before
    assert len(rows) >= 2 * len(before)
    assert_exact(job, due=world.dead, members=10)


@pytest.fixture(scope="module")
def enduring(world: World) -> Iterator[Job]:
    """Run one job, with the least heap that is allowed, for the faults that it must live through."""
    with ended(world.job("spark.driver_memory=512MiB").start()) as job:
        job.until_live()
        yield job


def test_f5_a_python_worker_dies(world: World, enduring: Job) -> None:
    """F5: a worker is killed inside the state function: the batch is done again, and the job says what happened."""
    world.hold("worker")
    world.silence("worker")
    ((pid, _),) = _wait_held(world, enduring)
    os.kill(pid, signal.SIGKILL)
    world.release()
    enduring.until_expired(["worker-m0"])
    assert "a Python worker has died" in enduring.log


def test_i3_the_broker_is_away(world: World, enduring: Job) -> None:
    """I3: the broker is killed and comes back: the job goes on by itself."""
    world.silence("outage")
    world.broker.kill()
    time.sleep(OUTAGE_S)  # the outage itself
    world.broker.start()
    enduring.until_expired(["outage-m0"])
    before = world.newest("commits")
    enduring.wait_for(lambda: world.newest("commits") > before + 1, "batches after the outage")


def test_f7_the_disk_of_the_checkpoint_is_full(world: World, enduring: Job) -> None:
    """F7: the disk of the checkpoint fills up: the job says so, waits, and goes on once there is room."""
    if not world.small_disk:
        pytest.skip("a full disk: only root can mount a small one")
    world.silence("full-disk")
    with world.filler.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(bytes(4096))
    enduring.wait_for(lambda: "the disk of the checkpoint is full" in enduring.log, "the job to say that it is full")
    world.filler.unlink()
    enduring.until_expired(["full-disk-m0"])


def test_the_jvm_runs_out_of_memory(world: World, enduring: Job) -> None:
    """More than the heap holds: the job ends with exit 1, says that memory ran out and what to set, no traceback."""
    world.silence("memory")
    (world.faults / "bloat").touch()
    assert enduring.end() == 1
    (world.faults / "bloat").unlink()
    assert "error: Spark's JVM ran out of memory; it had 512MiB" in enduring.log
    assert "raise spark.driver_memory" in enduring.log
    assert "Traceback" not in enduring.log


def test_two_jobs_on_one_checkpoint_end_as_one(world: World) -> None:
    """P3: somebody starts a second job on the checkpoint: one of them ends by name, the other goes on."""
    with ended(world.job().start()) as one, ended(world.one_more_job().start()) as other:
        (loser,) = wait_for(lambda: [job for job in (one, other) if not job.running], "one of two jobs to end")
        assert loser.end() == 1
        assert "error: another job runs on the same checkpoint" in loser.log
        assert "hint: stop one of them" in loser.log
        world.silence("two-jobs")
        (other if loser is one else one).until_expired(["two-jobs-m0"])


def _is_newer(world: World, batch: int) -> bool:
    return world.newest("commits") > batch


def test_f4_restarts_in_a_row(world: World) -> None:
    """F4: eight times killed as soon as it has done a batch: no session is renewed, none is lost."""
    for _ in range(8):
        before = world.newest("commits")
        with ended(world.job().start()) as job:
            job.wait_for(functools.partial(_is_newer, world, before), "a batch")
            job.kill()


def test_f6_damaged_checkpoints_are_refused_by_name(world: World) -> None:
    """F6: state or offsets cut off or missing: each start ends at once, by name, with what to do."""
    if world.newest("commits") < 0:
        with ended(world.job().start()) as job:
            job.until_live()
    damages: dict[str, Callable[[Path], object]] = {
        "delta-cut": lambda root: list(map(_cut, _newest_deltas(root))),
        "delta-gone": lambda root: list(map(Path.unlink, _newest_deltas(root))),
        "state-gone": lambda root: shutil.rmtree(root / "state"),
        "offsets-cut": lambda root: _cut(root / "offsets" / str(newest_batch(root, "offsets"))),
        "offsets-newer": lambda root: _newer(root / "offsets" / str(newest_batch(root, "offsets"))),
        "metadata-gone": lambda root: (root / "metadata").unlink(),
    }
    for name, damage in damages.items():
        shutil.copytree(world.checkpoint, world.folder / name)
        damage(world.folder / name)
    ends = _starts(world, [world.folder / name for name in damages])
    for name, end in zip(damages, ends, strict=True):
        words = (
            "offsets in the checkpoint are damaged" if "offsets" in name else "the state in the checkpoint is damaged"
        )
        assert words in end, (name, end)
        assert "hint: restore the checkpoint" in end


def _newest_deltas(root: Path) -> list[Path]:
    version = newest_batch(root, "commits") + 1
    return list((root / "state" / "0").glob(f"*/{version}.delta"))


def _cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)
    _forget_checksum(file)


def _newer(file: Path) -> None:
    file.write_text(file.read_text().replace("v1", "v9", 1))
    _forget_checksum(file)


def _forget_checksum(file: Path) -> None:
    (file.with_name(f".{file.name}.crc")).unlink(missing_ok=True)


def _starts(world: World, checkpoints: list[Path]) -> list[str]:
    flags = Job(world.topics, world.folder / "damaged", "spark.shuffle_partitions=2").flags
    command = [
        *(sys.executable, "-m", "support.damaged"),
        str(world.folder / "damaged.log"),
        ",".join(map(str, checkpoints)),
        *flags,
    ]
    path = os.pathsep.join((str(Path(__file__).parents[1]), os.environ["PYTHONPATH"]))
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_p1_p3_after_all_of_it_every_silence_is_told_once(world: World) -> None:
    """P1, P3: after every fault above: each silence of the log has one id, and nobody who lived was expired."""
    with ended(world.job().start()) as job:
        world.silence("last")
        job.until_expired(["last-m0"])
        job.until_clock(int(time.time() * 1000))
        assert job.stop() == 0
    assert_exact(job, due=world.dead, members=10)


def _fired_since(world: World, now_ms: int) -> bool:
    clocks = [row["clock_ms"] for row in world.topics.rows("status") if row["batch_ms"] > now_ms and not row["held"]]
    return len(clocks) > 1 and max(clocks) > now_ms
