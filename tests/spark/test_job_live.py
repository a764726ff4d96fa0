"""One live job on a real broker, fed with heartbeats, garbage and joins: what comes out of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.node_process import free_port
from heartwheel.kafka.readback import LogRecord
from heartwheel.readers.canary.canary import Canary
from heartwheel.readers.canary.judge import CanaryOutcome
from heartwheel.readers.canary.plan import groups_of
from heartwheel.readers.metrics.catalogue import CATALOGUE, LOGS, SECTIONS
from heartwheel.readers.metrics.catalogue.verdicts import GROUP_TROUBLE, GROUPS_IN_TROUBLE
from heartwheel.readers.metrics.metric import MetricKind
from heartwheel.settings import Settings
from heartwheel.wire.events import Event, EventType, Protocol
from heartwheel.wire.group_heartbeats import GroupHeartbeat, HeartbeatType
from heartwheel.wire.job import JobRow, Phase
from heartwheel.wire.verdict_rows import ExpirationRow
from support.beating import Beating
from support.job import SESSION_MS, Job, Topics, beats_of, running

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(scope="module")
def live(kafka_broker: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """Run one job for the tests that only feed it; each has groups of its own.

    A batch a second is enough for all of them.
    """
    topics = Topics(kafka_broker.bootstrap, lambda name: f"{name}-live")
    sessions = [f"coordinator.group_{kind}_session_timeout={SESSION_MS}ms" for kind in ("consumer", "share", "streams")]
    folder = tmp_path_factory.mktemp("live")
    more = ["engine.trigger_interval=1s", f"metrics.port={free_port()}"]
    with running(topics, folder / "checkpoint", *more, *sessions) as job:
        job.until_live()
        yield job


def _of_group(topics: Topics, topic: str, group: str) -> list[LogRecord]:
    return [record for record in topics.read(topic) if record.key == group.encode()]


def test_heartbeats_in_expirations_and_triggers_out(live: Job) -> None:
    """A silent member is expired after its session, not before, with the documented row, key and headers."""
    live.topics.send(beats_of("orders", 2))
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


@pytest.mark.parametrize("kind", list(HeartbeatType))
def test_members_that_go_by_epochs_are_expired_by_the_brokers_session(live: Job, kind: HeartbeatType) -> None:
    """Consumer, share and streams groups: who falls silent is expired after the session of the job's configuration."""
    group = kind.value
    members = [GroupHeartbeat(type=kind, group_id=group, member_id=name, member_epoch=0) for name in ("a", "b")]
    live.topics.send(members)
    live.wait_for(lambda: len(_of_group(live.topics, "expirations", group)) == 2, "two expirations")
    beats = [record.append_ms for record in _of_group(live.topics, "heartbeats", group)]
    rows = [
        msgspec.json.decode(record.value or b"", type=ExpirationRow)
        for record in _of_group(live.topics, "expirations", group)
    ]
    assert [row.deadline_ms - SESSION_MS for row in rows] == beats
    assert {(row.group_kind, row.reason) for row in rows} == {
        (kind.value.removesuffix("_heartbeat"), "session_timeout")
    }
    triggers = [msgspec.json.decode(record.value or b"") for record in _of_group(live.topics, "triggers", group)]
    assert [(row["type"], row["generation_id"], row["member_count"]) for row in triggers] == [
        ("epoch_bumped", 2, 1),
        ("epoch_bumped", 3, 2),
        ("epoch_bumped", 4, 1),
        ("epoch_bumped", 5, 0),
    ]


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
    live.topics.send([*garbage, *beats_of("good", 10), *garbage])
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


@pytest.mark.proof
def test_p1_a_job_that_was_frozen_expires_nobody_who_beats(live: Job) -> None:
    """P1: stopped in its tracks for longer than sessions last, as on a paused machine, it expires the silent alone.

    In a partition where nobody else writes the pause cannot be told from an outage, so that one session more may pass.
    """
    topics = live.topics
    with Beating(topics, session_ms=3_000, group="frozen"):
        live.wait_for(lambda: _newest_ms(topics, "frozen"), "the first heartbeats")
        topics.send(beats_of("frozen-dies", 1))
        live.freeze()
        try:
            thaw_ms = _newest_ms(topics, "frozen") + 8_000
            live.wait_for(lambda: _newest_ms(topics, "frozen") >= thaw_ms, "sessions to end")
        finally:
            live.thaw()
        live.until_clock(thaw_ms)
        live.wait_for(lambda: "frozen-dies-m0" in topics.expired(), "the silent one to be expired")
        rows = [row for row in topics.rows("expirations") if row["group_id"].startswith("frozen")]
        assert {row["member_id"] for row in rows} == {"frozen-dies-m0"}


def _newest_ms(topics: Topics, group: str) -> int:
    return max((record.append_ms for record in _of_group(topics, "heartbeats", group)), default=0)


def test_the_job_topic_says_how_the_job_stands(live: Job) -> None:
    """One row a batch, under one key: the newest says that the job lives, and what its last batch did."""
    live.wait_for(lambda: any(row.phase is Phase.LIVE for row in _jobs(live.topics)), "the job to say that it lives")
    before = _jobs(live.topics)[-1].records
    live.topics.send(beats_of("told", 3))
    row = live.wait_for(lambda: _job_after(live.topics, records=before + 3), "three records more in the job topic")
    assert row.last_batch.ended_ms <= row.at_ms
    assert (row.trigger_interval_ms, row.shards, row.fault) == (1_000, 2, None)
    assert {record.key for record in live.topics.read("job")} == {b"job"}


def test_p1_p2_a_canary_finds_the_engine_right(live: Job) -> None:
    """P1, P2: its members fall silent in every shard and are expired, the living never, each by the right shard."""
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": live.topics.bootstrap, "topics": live.topics.names},
            "engine": {"shards": 2},
            "coordinator": {"group_min_session_timeout": "100ms"},
            "canary": {
                "heartbeat_interval": "250ms",
                "period": "3s",
                "missed_after": "10m",
            },  # batches may take long here
        }
    )
    outcomes: list[tuple[int, CanaryOutcome]] = []
    with Canary(settings, on_judged=lambda probe, judged: outcomes.append((probe.shard, judged.outcome))) as canary:
        known = {CanaryOutcome.IN_TIME, CanaryOutcome.LATE}
        live.wait_for(lambda: {shard for shard, outcome in outcomes if outcome in known} == {0, 1}, "both shards")
        assert canary.figures().false_ == 0
    rows = [row for row in live.topics.rows("expirations") if row["group_id"].startswith("heartwheel-canary-")]
    assert {(row["group_id"], row["shard"]) for row in rows} == {
        (group, shard) for shard, group in enumerate(groups_of("heartwheel-canary", 2))
    }


def test_prometheus_can_ask_the_job(live: Job) -> None:
    """The job serves what it does: its batches at first hand, its verdicts as the topics have them, once each."""
    live.topics.send(beats_of("counted", 2))
    address = live.wait_for(lambda: re.search(r"metrics at http://127\.0\.0\.1:(\d+)/metrics", live.log), "the address")

    def told() -> str:
        with closing(HTTPConnection("127.0.0.1", int(address[1]), timeout=30)) as connection:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()

    live.wait_for(lambda: 'heartwheel_group_expirations_total{group="counted"} 2.0' in told(), "two expirations")
    samples = {sample.name for family in text_string_to_metric_families(told()) for sample in family.samples}
    ours = [metric for metric in CATALOGUE if metric not in SECTIONS[LOGS]]
    names = {metric.name for metric in ours if metric.kind is not MetricKind.HISTOGRAM}
    # Ticks come, so that there is no reason why they would not; canary and groups in trouble are the dashboard's.
    absent = {name for name in names - samples if not name.startswith("heartwheel_canary_")}
    absent -= {GROUP_TROUBLE.name, GROUPS_IN_TROUBLE.name}
    assert absent - {"heartwheel_tickless_reason"} == set()
    assert 'heartwheel_job_phase{phase="live"} 1.0' in told()


def _jobs(topics: Topics) -> list[JobRow]:
    return [msgspec.json.decode(record.value or b"", type=JobRow) for record in topics.read("job")]


def _job_after(topics: Topics, *, records: int) -> JobRow | None:
    return next((row for row in _jobs(topics) if row.last_batch and row.records >= records), None)
