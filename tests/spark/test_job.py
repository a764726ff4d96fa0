"""The job on a real broker: what people rely on when it runs, stops, crashes and starts again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from heartwheel.events import Event, EventType, Protocol
from heartwheel.kafka.embedded import EmbeddedKafka
from heartwheel.kafka.judge import Beats
from heartwheel.kafka.readback import LogRecord
from heartwheel.verdicts import ExpirationRow
from support.job import Job, Topics, running

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SESSION_MS = 1_500


@pytest.fixture
def engine_topics(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> Topics:
    """Make the engine's topics for one test."""
    return Topics(kafka_broker.bootstrap, topics)


@pytest.fixture(scope="module")
def live(kafka_broker: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """Run one job for the tests that only feed it; each has groups of its own."""
    topics = Topics(kafka_broker.bootstrap, lambda name: f"{name}-live")
    with running(topics, tmp_path_factory.mktemp("live") / "checkpoint") as job:
        job.until_live()
        yield job


def _beats(group: str, members: int, *, session_ms: int = SESSION_MS) -> list[Event]:
    return [
        Event(group_id=group, member_id=f"{group}-m{i}", session_timeout_ms=session_ms, client_id="c", client_host="/h")
        for i in range(members)
    ]


def _now_ms() -> int:
    return int(time.time() * 1000)


def _of_group(topics: Topics, topic: str, group: str) -> list[LogRecord]:
    return [record for record in topics.read(topic) if record.key == group.encode()]


def test_heartbeats_in_expirations_and_triggers_out(live: Job) -> None:
    """A silent member is expired after its session, not before, with the documented row, key and headers."""
    live.topics.send(_beats("orders", 2))
    live.wait_for(lambda: len(_of_group(live.topics, "expirations", "orders")) == 2, "two expirations")
    record = _of_group(live.topics, "expirations", "orders")[0]
    row = msgspec.json.decode(record.value or b"", type=ExpirationRow)
    beat = _of_group(live.topics, "heartbeats", "orders")[0]
    assert (row.group_id, row.reason, row.client_host) == ("orders", "session_timeout", "/h")
    assert row.deadline_ms == beat.append_ms + SESSION_MS == row.last_seen_ms + SESSION_MS
    assert 0 <= row.detected_ms - row.deadline_ms == row.lateness_ms
    assert record.append_ms >= row.deadline_ms
    assert record.key == b"orders"
    headers = {name: value.decode() for name, value in record.headers}
    assert headers["ce_specversion"] == "1.0"
    assert headers["ce_id"] == row.id
    assert headers["ce_type"] == "heartwheel.member.expired.v1"
    assert headers["content-type"] == "application/json"
    last = msgspec.json.decode(_of_group(live.topics, "triggers", "orders")[-1].value or b"")
    assert last["type"] == "group_empty"
    live.wait_for(lambda: "2 expired" in live.log or live.log.count("1 expired") == 2, "the line that says so")


def test_i1_bad_records_are_kept_and_counted(live: Job) -> None:
    """I1: six kinds of garbage go to the rejects topic with their place and cause, and the good ones are handled."""
    garbage: list[bytes | None] = [
        b"\x00\x01 not json",
        b'{"group_id":"g","member_id":7}',
        b'{"group_id":"g","member_id":"m","type":"dance"}',
        b'{"member_id":"m"}',
        None,
        b'{"group_id":"g","member_id":"' + b"m" * 2_000 + b'"}',
    ]
    live.topics.send([*garbage, *_beats("good", 10), *garbage])
    live.wait_for(lambda: len(_of_group(live.topics, "expirations", "good")) == 10, "the good ones")
    rejects = live.topics.rows("rejects")
    causes = Counter(row["cause"] for row in rejects)
    assert causes == {
        "not_json": 2,
        "bad_field": 2,
        "unknown_type": 2,
        "missing_field": 2,
        "tombstone": 2,
        "id_too_long": 2,
    }
    places = {(row["partition"], row["offset"]) for row in rejects}
    good = {
        (record.partition, record.offset)
        for record in live.topics.read("heartbeats")
        if b"good" in (record.value or b"")
    }
    assert len(places) == 12
    assert not places & good
    totals = Counter[str]()
    for row in live.topics.rows("status"):
        totals.update({name: n for name, n in row["counts"].items() if name.startswith("rejected_")})
    assert totals == {f"rejected_{cause}": n for cause, n in causes.items()}


def test_joins_reach_the_triggers(live: Job) -> None:
    """A classic group's join phase comes out as triggers with generation, cause and leader, keyed by the group."""
    join = Event(
        type=EventType.JOIN,
        group_id="classic",
        member_id="m1",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=(Protocol("range"),),
    )
    first = msgspec.structs.replace(join, member_id="", assigned_member_id="m1")
    live.topics.send([first, join])
    live.wait_for(lambda: len(_of_group(live.topics, "triggers", "classic")) >= 2, "a join phase")
    rows = [msgspec.json.decode(record.value or b"") for record in _of_group(live.topics, "triggers", "classic")]
    started, completed = rows[:2]
    assert (started["type"], started["cause"], started["generation_id"]) == ("rebalance_triggered", "member_joined", 0)
    assert (completed["type"], completed["generation_id"], completed["leader"]) == ("rebalance_completed", 1, "m1")


def test_f1_killed_in_mid_batch_loses_and_invents_nothing(engine_topics: Topics, tmp_path: Path) -> None:
    """F1, P3: killed again and again in mid-batch: every silence once, the living never, repeats by the same id."""
    checkpoint = tmp_path / "checkpoint"
    dying = [beat for group in ("a", "b", "c", "d") for beat in _beats(group, 50, session_ms=4_000)]
    living = _beats("alive", 20, session_ms=600_000)
    engine_topics.send(dying + living)
    for crash in range(2):
        with running(engine_topics, checkpoint) as job:
            before = job.log.count("heartbeats, ")
            # The first life is killed in the catch-up phase, later ones in some live batch.
            job.wait_for(lambda n=before + 2 * crash: job.log.count("heartbeats, ") >= n, "some batches")
            engine_topics.send(living)
            job.kill()
    with running(engine_topics, checkpoint) as job:
        job.until_clock(_now_ms())
        job.stop()
    rows = engine_topics.rows("expirations")
    assert sorted({row["member_id"] for row in rows}) == sorted(beat.member_id for beat in dying)
    by_id = {row["id"]: (row["member_id"], row["deadline_ms"]) for row in rows}
    assert len(set(by_id.values())) == len(by_id) == len(dying)
    assert all(by_id[row["id"]] == (row["member_id"], row["deadline_ms"]) for row in rows)


def test_f9_i2_members_expire_on_a_topic_that_stays_silent(engine_topics: Topics, tmp_path: Path) -> None:
    """F9, I2: nothing is sent any more, and the job is started anew after a Ctrl-C: the members still expire."""
    checkpoint = tmp_path / "checkpoint"
    with running(engine_topics, checkpoint) as job:
        job.until_live()
        engine_topics.send(_beats("late", 3, session_ms=5_000))
        job.wait_for(lambda: "3 members" in job.log, "the members to be known")
        assert job.interrupt() == 0
        assert job.log.rstrip().endswith("stopped")
        assert "Traceback" not in job.log
    assert engine_topics.expired() == []
    with running(engine_topics, checkpoint) as job:
        job.wait_for(lambda: len(engine_topics.expired()) == 3, "expirations without a heartbeat")
        # Without any record the clock goes on, so that whoever comes next is judged as well.
        job.until_clock(_now_ms())
        assert job.stop() == 0


def test_p5_down_time_is_not_silence(engine_topics: Topics, tmp_path: Path) -> None:
    """P5: killed while members beat on: on its return exactly those are expired whose silence stands in the log."""
    checkpoint = tmp_path / "checkpoint"
    steady, dies = _beats("steady", 5, session_ms=8_000), _beats("dies", 1, session_ms=1_000)
    with running(engine_topics, checkpoint) as job:
        job.until_live()
        engine_topics.send(steady + dies)
        job.wait_for(lambda: "6 members" in job.log, "the members to be known")
        job.kill()
    # Down for longer than the sessions, by the time of the log.
    down_since_ms = _now_ms()
    while max(record.append_ms for record in engine_topics.read("heartbeats")) < down_since_ms + 9_000:
        engine_topics.send(steady)
        time.sleep(0.5)
    with running(engine_topics, checkpoint) as job:
        job.until_clock(down_since_ms + 9_000)
        job.kill()
    beats = Beats(default_session_timeout_ms=45_000)
    for record in engine_topics.read("heartbeats"):
        beats.add(record)
    expired = {(row["member_id"], row["deadline_ms"]) for row in engine_topics.rows("expirations")}
    silences = {(silence.member_id, silence.deadline_ms) for silence in beats.silences()}
    assert "dies-m0" in {member for member, _ in expired}
    assert expired <= silences
    assert {s for s in silences if s[1] < down_since_ms + 9_000} <= expired


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
    manifest = {"format": 1, "shards": 2, "shuffle_partitions": 2, "topic": engine_topics.names["heartbeats"]}
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
