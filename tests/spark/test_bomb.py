"""The real bomb: 32 KiB that unpack to a gigabyte end the job; it says what ended it, and gets past exactly that."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.topic_specs import TopicSpec
from heartwheel.kafka.topics import ensure_topics
from heartwheel.wire.partitioner import partition_of
from support.bombs import MIB, blow_up, bomb
from support.checkpoints import MOUNT, mounted
from support.job import Job, Topics, beats_of, ended
from support.verdicts import assert_exact

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof]


@pytest.fixture
def open_topics(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> Topics:
    """Make the engine's topics, that of the heartbeats as a broker makes it by default: it looks at no batch."""
    spec = TopicSpec(topics("heartbeats"), 2, {"message.timestamp.type": "LogAppendTime"})
    ensure_topics(kafka_broker.bootstrap, [spec])
    return Topics(kafka_broker.bootstrap, topics)


def _dies(job: Job, words: str) -> str:
    before = len(job.log)
    with ended(job.start()):
        assert job.end() == 1
    said = job.log[before:]
    assert words in said, said[-3000:]
    return said


def _command(job: Job, *words: str) -> subprocess.CompletedProcess[str]:
    flags = [word for flag in job.flags for word in ("--set", flag)]
    command = [sys.executable, "-m", "heartwheel", *words, *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kept_at", ["folder", "address"])
def test_p6_f_a_bomb_is_named_at_the_third_start_and_passed_over(
    open_topics: Topics, tmp_path: Path, kept_at: str
) -> None:
    """P6: a gigabyte in 32 KiB ends the JVM twice; the third start names it, a skip gets past it and nothing else."""
    topics, folder = open_topics, tmp_path / "checkpoint"
    checkpoint = str(folder) if kept_at == "folder" else f"{MOUNT}/checkpoint"
    before, after, other = "before", "after", "other"
    hit = partition_of(before.encode(), 2)
    assert partition_of(after.encode(), 2) == hit != partition_of(other.encode(), 2)
    job = Job(topics, folder, mounted(tmp_path)).keep_at(checkpoint)
    with ended(job.start()):
        job.until_live()
        topics.send(beats_of("steady", 10, session_ms=600_000))
        job.wait_for(lambda: "10 members" in job.log, "the members to be known")
        assert job.stop() == 0
    topics.send(beats_of(before, 10))
    data = bomb("zstd", 1024 * MIB)
    assert len(data) < 33_000
    blow_up(topics.bootstrap, topics.names["heartbeats"], hit, data)
    topics.send([*beats_of(after, 10), *beats_of(other, 10)])
    place = sum(record.partition == hit for record in topics.read("heartbeats")) - 10

    # A plan that the first run has left unfinished counts as a start on it, so that one death may be enough.
    _dies(job, "ran out of memory")
    started_s, said = time.monotonic(), _dies(job, "")
    if "times on the same batch" not in said:
        assert "ran out of memory" in said
        started_s, said = time.monotonic(), _dies(job, "")
    assert "the job has ended 2 times on the same batch" in said
    assert time.monotonic() - started_s < 60
    assert f"partition {hit} offsets {place} to {place}: a record batch of {len(data):,} bytes" in said
    words = f"--partition {hit} --offset {place} --to {place} --reason"
    assert f"hint: heartwheel skip --checkpoint {checkpoint} {words}" in said

    read_already = ("--partition", str(1 - hit), "--offset", "0", "--reason", "x")
    wrong = _command(job, "skip", "--checkpoint", checkpoint, *read_already)
    assert (wrong.returncode, "not in what is planned" in wrong.stderr) == (1, True), wrong
    skip = ("--partition", str(hit), "--offset", str(place), "--reason", "a bomb, INC-7")
    done = _command(job, "skip", "--checkpoint", checkpoint, *skip)
    assert done.returncode == 0, done.stderr
    with ended(job.start()):
        job.wait_for(lambda: len(set(topics.expired())) == 30, "all three groups to be expired")
        job.until_clock(int(time.time() * 1000))
        assert job.stop() == 0
    (reject,) = topics.rows("rejects")
    assert (reject["topic"], reject["partition"], reject["offset"]) == (topics.names["heartbeats"], hit, place)
    assert (reject["cause"], reject["value_base64"], reject["value_bytes"]) == ("skipped", None, None)
    assert "a bomb, INC-7" in reject["detail"]
    assert not (folder / "heartwheel-skip.json").exists()
    assert_exact(job, due=[before, after, other], members=10)
