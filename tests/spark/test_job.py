"""The job on a real broker: what people rely on when it runs, stops, crashes and starts again."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from kafka.structs import TopicPartition

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import admin_client
from heartwheel.kafka.topics import count_partitions
from heartwheel.wire.events import Event
from heartwheel.wire.partitioner import partition_of
from support.beating import Beating
from support.checkpoints import MOUNT, mounted
from support.job import Job, Topics, beats_of, ended, running, wait_for
from support.processes import command_of, descendants_of
from support.verdicts import silences_in

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture
def engine_topics(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> Topics:
    """Make the engine's topics for one test."""
    return Topics(kafka_broker.bootstrap, topics)


def _now_ms() -> int:
    return int(time.time() * 1000)


def test_f9_i2_members_expire_on_a_topic_that_stays_silent(engine_topics: Topics, tmp_path: Path) -> None:
    """F9, I2: nothing is sent any more, and the job is started anew after a Ctrl-C: the members still expire."""
    checkpoint = tmp_path / "checkpoint"
    # They beat until the job has ended: however slow it is, none of them is silent for its session before that.
    with Beating(engine_topics, session_ms=5_000, group="late"), running(engine_topics, checkpoint) as job:
        job.until_live()
        job.wait_for(lambda: "10 members" in job.log, "the members to be known")
        assert job.interrupt() == 0
    assert job.log.rstrip().endswith("stopped")
    assert "Traceback" not in job.log
    assert engine_topics.rows("job")[-1]["phase"] == "stopped"
    assert engine_topics.expired() == []
    with running(engine_topics, checkpoint) as job:
        job.wait_for(lambda: len(engine_topics.expired()) == 10, "expirations without a heartbeat")
        # Without any record the clock goes on, so that whoever comes next is judged as well.
        job.until_clock(_now_ms())
        assert job.stop() == 0
    _check_headers(engine_topics, "expirations", "member.expired", "deadline_ms")
    _check_headers(engine_topics, "triggers", "group_empty", "time_ms")
    _check_headers(engine_topics, "status", "shard.status", "batch_ms")


def _check_headers(topics: Topics, name: str, kind: str, time_field: str) -> None:
    """A record is a CloudEvent in binary mode, in the words and in the order that readers know."""
    records = [(record, msgspec.json.decode(record.value or b"")) for record in topics.read(name)]
    record, row = next((record, row) for record, row in records if row.get("type", kind) == kind)
    assert record.headers == [
        ("ce_specversion", b"1.0"),
        ("ce_id", str(row.get("id", f"{row.get('shard')}/{row.get('batch_ms')}")).encode()),
        ("ce_source", b"/heartwheel"),
        ("ce_type", f"heartwheel.{kind}.v1".encode()),
        ("ce_time", _rfc3339(row[time_field])),
        ("content-type", b"application/json"),
    ]


def _rfc3339(time_ms: int) -> bytes:
    at = datetime.fromtimestamp(time_ms // 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03}Z".encode()


def test_sigterm_while_spark_starts_ends_the_job(engine_topics: Topics, tmp_path: Path) -> None:
    """A supervisor that changes its mind within the seconds of a start has not to wait or to kill: it ends in order."""
    with running(engine_topics, tmp_path / "checkpoint") as job:
        job.wait_for(lambda: any("java" in command_of(pid) for pid in descendants_of(job.pid)), "the JVM to be started")
        assert "Spark is up" not in job.log
        assert job.stop() == 0
    assert job.log.rstrip().endswith("stopped")
    assert "Traceback" not in job.log


@pytest.mark.proof
def test_p1_p5_a_topic_that_grew_while_the_job_was_down_is_read_in_order(engine_topics: Topics, tmp_path: Path) -> None:
    """P1, P5: killed while members beat on, into new partitions: on its return exactly the silent ones are expired."""
    checkpoint = tmp_path / "checkpoint"
    steady, dies = beats_of("steady", 5, session_ms=4_000), beats_of("dies", 1, session_ms=1_000)
    crowd = beats_of("crowd", 1, session_ms=300_000) * 3_000
    assert [partition_of(b"steady", count) for count in (2, 5)] == [0, 2]
    assert partition_of(b"crowd", 2) == 0
    with running(engine_topics, checkpoint) as job:
        job.until_live()
        engine_topics.send(steady + dies)
        # By their groups: a slow batch may find some of the sessions over that it has just read the beginning of.
        job.wait_for(lambda: "in 2 groups" in job.log, "the members to be known")
        job.kill()
    # Down for longer than the sessions, by the time of the log. Read in batches of a thousand, what the old partition
    # holds of the steady members comes after what the new one holds of them.
    engine_topics.send(crowd)
    down_since_ms = _now_ms()
    _beat_until(engine_topics, steady, down_since_ms + 3_500)
    _grow(engine_topics, partitions=5)
    _beat_until(engine_topics, steady, down_since_ms + 9_000)
    with ended(Job(engine_topics, checkpoint, "engine.catch_up_max_records=1000", mounted(tmp_path))) as job:
        # By an address now that only Spark can reach.
        job.keep_at(f"{MOUNT}/checkpoint").start().until_clock(down_since_ms + 9_000)
        job.kill()
    silences = silences_in(engine_topics)
    expired = {(row["member_id"], row["deadline_ms"]) for row in engine_topics.rows("expirations")}
    assert "dies-m0" in {member for member, _ in expired}
    assert expired <= silences
    assert {s for s in silences if s[1] < down_since_ms + 9_000} <= expired


def _beat_until(topics: Topics, beats: list[Event], append_ms: int) -> None:
    while max(record.append_ms for record in topics.read("heartbeats")) < append_ms:
        topics.send(beats)
        time.sleep(0.5)


def _grow(topics: Topics, *, partitions: int) -> None:
    name = topics.names["heartbeats"]
    with admin_client(topics.bootstrap) as admin:
        admin.create_partitions({name: partitions})
    wait_for(lambda: count_partitions(topics.bootstrap, name) == partitions, "the new partitions")


@pytest.mark.proof
def test_f3_unread_records_that_are_gone_end_the_job(engine_topics: Topics, tmp_path: Path) -> None:
    """F3: retention took what was not read: the job says so and ends, and goes on when told that it may."""
    checkpoint = tmp_path / "checkpoint"
    with running(engine_topics, checkpoint) as job:
        job.until_live()
        engine_topics.send(beats_of("kept", 2, session_ms=300_000))
        job.wait_for(lambda: "2 members" in job.log, "the members to be known")
        job.kill()
    engine_topics.send(beats_of("gone", 3))
    heartbeats = TopicPartition(engine_topics.names["heartbeats"], partition_of(b"gone", 2))
    with admin_client(engine_topics.bootstrap) as admin:
        admin.delete_records({heartbeats: -1})
    engine_topics.send(beats_of("gone", 1))
    job = Job(engine_topics, checkpoint).start()
    assert job.end() == 1
    assert "error: unread heartbeats are gone from the topic" in job.log
    assert "run with --set kafka.fail_on_data_loss=false" in job.log
    assert engine_topics.expired() == []
    with running(engine_topics, checkpoint, "kafka.fail_on_data_loss=false") as job:
        job.wait_for(lambda: engine_topics.expired() == ["gone-m0"], "the one whose heartbeat is there")
        job.kill()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("engine.shards=3",), "engine.shards is 3, the checkpoint has 2"),
        (("kafka.topics.heartbeats=heartwheel-no-such-topic",), "heartwheel-no-such-topic"),
        (("kafka.bootstrap_servers=127.0.0.1:1",), "127.0.0.1:1"),
    ],
)
def test_a_job_that_can_not_run_says_why(
    engine_topics: Topics, tmp_path: Path, settings: tuple[str, ...], words: str
) -> None:
    """Another configuration's checkpoint, a missing topic, no broker: exit 1, the reason and a hint, no traceback."""
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    manifest = {"format": 4, "shards": 2, "shuffle_partitions": 2, "topic": engine_topics.names["heartbeats"]}
    (checkpoint / "heartwheel.json").write_bytes(msgspec.json.encode(manifest))
    job = Job(engine_topics, checkpoint)
    if "bootstrap" in settings[0]:
        job.command[job.command.index("--bootstrap-servers") + 1] = settings[0].partition("=")[2]
    else:
        job.command += ["--set", settings[0]]
    assert job.start().end() == 1
    assert words in job.log
    assert "error: " in job.log
    assert "hint: " in job.log
    assert "Traceback" not in job.log
