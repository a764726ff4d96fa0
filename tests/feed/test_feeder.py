"""A feed reaches the broker as planned, and its truth agrees with the log."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.readback import LogRecord, read_topic
from heartwheel.kafka.topic_specs import TopicSpec
from heartwheel.kafka.topics import ensure_topics
from heartwheel.proof.members.feeder import Feeder
from heartwheel.proof.members.schedule import Action, FeedPlan, steps
from heartwheel.proof.members.truth import LifeLine, Summary, TruthWriter, Turn, read_truth
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import RejectedError
from support.silences import SentHeartbeats, Silence

PLAN = FeedPlan(
    groups=3,
    members_per_group=8,
    heartbeat_interval_ms=100,
    session_timeout_ms=500,
    duration_ms=2500,
    kill_rate=10.0,
    pause_rate=10.0,
    leave_rate=5.0,
    return_share=0.8,
    garbage_share=0.05,
)


@pytest.fixture
def topic(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> str:
    """Make a heartbeat topic for one test."""
    name = topics("heartbeats")
    ensure_topics(kafka_broker.bootstrap, [TopicSpec(name, 3, {"message.timestamp.type": "LogAppendTime"})])
    return name


def rejected(record: LogRecord) -> str:
    """Name the cause why a record is bad, or nothing."""
    try:
        decode_event(record.value)
    except RejectedError as error:
        return error.cause.value
    return ""


@pytest.mark.kafka
def test_truth_agrees_with_the_log(kafka_broker: EmbeddedKafka, topic: str, tmp_path: Path) -> None:
    """All that was planned is in the log once; each turn carries the stamp of a record of its member; kills show."""
    summary = Feeder(PLAN, kafka_broker.bootstrap, topic, tmp_path / "truth.jsonl").run()
    lines = list(read_truth(tmp_path / "truth.jsonl"))
    records = list(read_topic(kafka_broker.bootstrap, topic))
    planned = Counter(step.action for step in steps(PLAN))
    silent = planned[Action.KILL] + planned[Action.PAUSE]
    assert summary.sent == summary.acknowledged == len(records) == planned.total() - silent
    assert lines[-1] == summary
    assert Counter(filter(None, map(rejected, records))) == Counter(summary.garbage)
    assert sum(summary.garbage.values()) == planned[Action.GARBAGE]
    at = {(record.partition, record.offset): record for record in records}
    turns = [line for line in lines if isinstance(line, LifeLine)]
    assert Counter(line.turn.value for line in turns) == Counter(summary.turns)
    for line in turns:
        record = at[line.partition or 0, line.offset or 0]
        assert record.append_ms == line.last_beat_ms
        assert decode_event(record.value).member_id == line.member_id
    beats = SentHeartbeats()
    for record in records:
        beats.add(record)
    killed = [line for line in turns if line.turn is Turn.KILLED]
    assert len(killed) == planned[Action.KILL] > 0
    over = {
        Silence(line.group_id, line.member_id, (line.last_beat_ms or 0) + line.session_timeout_ms) for line in killed
    }
    assert over < beats.silences()


@pytest.mark.kafka
def test_group_stays_in_one_partition(kafka_broker: EmbeddedKafka, topic: str, tmp_path: Path) -> None:
    """One group, one partition: the key is the group id, for garbage and goodbyes as well."""
    Feeder(PLAN, kafka_broker.bootstrap, topic, tmp_path / "truth.jsonl").run()
    partitions = defaultdict(set)
    for record in read_topic(kafka_broker.bootstrap, topic):
        partitions[record.key].add(record.partition)
    assert len(partitions) == PLAN.groups
    assert {len(found) for found in partitions.values()} == {1}


@pytest.mark.kafka
def test_stopped_feed_can_say_goodbye(kafka_broker: EmbeddedKafka, topic: str, tmp_path: Path) -> None:
    """A stop ends an endless feed at once; with `leave_at_end` nobody is left to expire."""
    endless = FeedPlan(groups=2, members_per_group=3, kill_rate=0, pause_rate=0, leave_rate=0, leave_at_end=True)
    stop = threading.Event()
    feeder = Feeder(endless, kafka_broker.bootstrap, topic, tmp_path / "truth.jsonl")
    summaries: list[Summary] = []
    thread = threading.Thread(target=lambda: summaries.append(feeder.run(stop)))
    thread.start()
    while feeder.sent < endless.members:
        thread.join(0.01)
    stop.set()
    thread.join()
    assert summaries[0].turns == {"started": endless.members, "left": endless.members}
    beats = SentHeartbeats()
    for record in read_topic(kafka_broker.bootstrap, topic):
        beats.add(record)
    assert beats.members == endless.members
    assert beats.silences() == set()


def test_truth_cut_off_by_a_crash_is_readable(tmp_path: Path) -> None:
    """Whole lines are read, a last half line is left out."""
    line = LifeLine(turn=Turn.KILLED, group_id="g", member_id="m", session_timeout_ms=1, at_ms=2)
    with TruthWriter(tmp_path / "new" / "truth.jsonl") as truth:
        truth.write(line)
        truth.write(line)
    file = tmp_path / "new" / "truth.jsonl"
    file.write_bytes(file.read_bytes()[:-5])
    assert list(read_truth(file)) == [line]
