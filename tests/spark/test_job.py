"""The job on a real broker: what people rely on when it runs, stops, crashes and starts again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from heartwheel.events import Event, EventType, Protocol
from heartwheel.kafka.embedded import EmbeddedKafka
from heartwheel.kafka.judge import Beats
from heartwheel.verdicts import ExpirationRow
from support.job import Job, Topics, running

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SESSION_MS = 1_500


@pytest.fixture
def engine_topics(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> Topics:
    """Make the engine's topics for one test."""
    return Topics(kafka_broker.bootstrap, topics)


def _beats(group: str, members: int, *, session_ms: int = SESSION_MS) -> list[Event]:
    return [
        Event(group_id=group, member_id=f"{group}-m{i}", session_timeout_ms=session_ms, client_id="c", client_host="/h")
        for i in range(members)
    ]


def _now_ms() -> int:
    return int(time.time() * 1000)


def test_heartbeats_in_expirations_and_triggers_out(engine_topics: Topics, tmp_path: Path) -> None:
    """A silent member is expired after its session, not before, with the documented row, key and headers."""
    with running(engine_topics, tmp_path / "checkpoint") as job:
        job.until_live()
        engine_topics.send(_beats("orders", 2))
        job.wait_for(lambda: len(engine_topics.expired()) == 2, "two expirations")
        assert job.stop() == 0
    record = engine_topics.read("expirations")[0]
    row = msgspec.json.decode(record.value or b"", type=ExpirationRow)
    beat = engine_topics.read("heartbeats")[0]
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
    triggers = engine_topics.rows("triggers")
    assert triggers[-1]["type"] == "group_empty"
    assert "2 expired" in job.log or job.log.count("1 expired") == 2


def test_f1_killed_in_mid_batch_loses_and_invents_nothing(engine_topics: Topics, tmp_path: Path) -> None:
    """F1, P3: killed again and again in mid-batch: every silence once, the living never, repeats by the same id."""
    checkpoint = tmp_path / "checkpoint"
    dying = [beat for group in ("a", "b", "c", "d") for beat in _beats(group, 50, session_ms=4_000)]
    living = _beats("alive", 20, session_ms=600_000)
    engine_topics.send(dying + living)
    for crash in range(3):
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
    """F9, I2: nothing is sent any more, and the job is started anew: the members still expire."""
    checkpoint = tmp_path / "checkpoint"
    with running(engine_topics, checkpoint) as job:
        job.until_live()
        engine_topics.send(_beats("late", 3, session_ms=5_000))
        job.wait_for(lambda: "3 members" in job.log, "the members to be known")
        assert job.stop() == 0
    assert engine_topics.expired() == []
    with running(engine_topics, checkpoint) as job:
        job.wait_for(lambda: len(engine_topics.expired()) == 3, "expirations without a heartbeat")
        # Without any record the clock goes on, so that whoever comes next is judged as well.
        job.until_clock(_now_ms())


def test_i1_bad_records_are_kept_and_counted(engine_topics: Topics, tmp_path: Path) -> None:
    """I1: six kinds of garbage go to the rejects topic with their place and cause, and the good ones are handled."""
    garbage: list[bytes | None] = [
        b"\x00\x01 not json",
        b'{"group_id":"g","member_id":7}',
        b'{"group_id":"g","member_id":"m","type":"dance"}',
        b'{"member_id":"m"}',
        None,
        b'{"group_id":"g","member_id":"' + b"m" * 2_000 + b'"}',
    ]
    engine_topics.send([*garbage, *_beats("good", 10), *garbage])
    with running(engine_topics, tmp_path / "checkpoint") as job:
        job.wait_for(lambda: len(engine_topics.expired()) == 10, "the good ones")
        job.stop()
    rejects = engine_topics.rows("rejects")
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
        for record in engine_topics.read("heartbeats")
        if b"good" in (record.value or b"")
    }
    assert len(places) == 12
    assert not places & good
    totals = Counter[str]()
    for row in engine_topics.rows("status"):
        totals.update({name: n for name, n in row["counts"].items() if name.startswith("rejected_")})
    assert totals == {f"rejected_{cause}": n for cause, n in causes.items()}


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


def test_joins_and_leaves_reach_the_triggers(engine_topics: Topics, tmp_path: Path) -> None:
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
    engine_topics.send([first, join])
    with running(engine_topics, tmp_path / "checkpoint", "coordinator.group_initial_rebalance_delay=100ms") as job:
        job.wait_for(lambda: len(engine_topics.rows("triggers")) >= 2, "a join phase")
        job.stop()
    started, completed = engine_topics.rows("triggers")[:2]
    assert (started["type"], started["cause"], started["generation_id"]) == ("rebalance_triggered", "member_joined", 0)
    assert (completed["type"], completed["generation_id"], completed["leader"]) == ("rebalance_completed", 1, "m1")


def test_ctrl_c_ends_the_job_in_order(engine_topics: Topics, tmp_path: Path) -> None:
    """Ctrl-C, which a terminal sends to the whole process group, finishes the running batch and exits with 0."""
    with running(engine_topics, tmp_path / "checkpoint") as job:
        job.until_live()
        engine_topics.send(_beats("orders", 2, session_ms=600_000))
        job.wait_for(lambda: "2 members" in job.log, "a live batch")
        assert job.interrupt() == 0
    assert "Traceback" not in job.log
    assert job.log.rstrip().endswith("stopped")
