"""The guard of the topic: a topic that was made again is refused by name, and wrong settings are told while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from heartwheel.engine.runtime.driver.checkpoint import CheckpointError
from heartwheel.engine.runtime.driver.topic_guard import TOPIC, TopicGuard, problems_of
from heartwheel.kafka.client import KafkaUnreachableError
from heartwheel.kafka.topics import TopicState
from heartwheel.settings import Settings, load_settings
from heartwheel.wire.job import TopicProblem
from support.job import wait_for

RIGHT = {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete", "retention.ms": "43200000"}


class Cluster:
    """Answer as a cluster does that has one topic."""

    def __init__(self, topic_id: str = "first", **settings: str) -> None:
        self.state: TopicState | None = TopicState("beats", 1, 1, RIGHT | settings, topic_id)
        self.looks = 0

    def describe(self) -> TopicState | None:
        """Say what the topic is like, now and then only."""
        self.looks += 1
        if self.looks % 2 == 0:
            raise KafkaUnreachableError("no Kafka answers")
        return self.state


def _settings(folder: Path) -> Settings:
    # At the end of the topic its beginning is not looked at, which takes a broker.
    return load_settings(
        None, {}, [f"checkpoint.location={folder}", "kafka.topics.heartbeats=beats", "kafka.starting_offsets=latest"]
    ).settings


def _guard(folder: Path, cluster: Cluster, found: list[CheckpointError] | None = None) -> TopicGuard:
    ends = found if found is not None else []
    return TopicGuard(_settings(folder), "beats", on_recreated=ends.append, describe=cluster.describe, look_s=0.01)


def _check(folder: Path, topic_id: str) -> None:
    _guard(folder, Cluster(topic_id)).check(None)


def test_a_topic_that_was_made_again_is_refused_by_name(tmp_path: Path) -> None:
    """The first start takes the topic's id; from then on no other topic of that name is read."""
    _check(tmp_path, "first")
    assert (tmp_path / TOPIC).read_bytes() == b'{"id":"first"}'
    _check(tmp_path, "first")
    with pytest.raises(CheckpointError, match="beats was deleted and made again: its id is second") as refused:
        _check(tmp_path, "second")
    assert "start on a new checkpoint" in (refused.value.hint or "")


def test_a_cluster_that_tells_no_ids_is_taken_at_its_word(tmp_path: Path) -> None:
    """Brokers before Kafka 2.8 tell none; the first one that is told is taken."""
    _check(tmp_path, "")
    assert not (tmp_path / TOPIC).exists()
    _check(tmp_path, "first")
    _check(tmp_path, "")
    with pytest.raises(CheckpointError):
        _check(tmp_path, "second")


def test_an_id_that_cannot_be_read_is_no_id(tmp_path: Path) -> None:
    """A file that is damaged is named, and does not count as a checkpoint without one."""
    (tmp_path / TOPIC).write_bytes(b"{")
    with pytest.raises(CheckpointError, match="the id of its topic cannot be read"):
        _check(tmp_path, "first")


def test_a_topic_that_is_made_again_under_the_job_ends_it(tmp_path: Path) -> None:
    """Each look compares the id; a cluster that does not answer, or knows no such topic for a moment, is no other."""
    cluster = Cluster()
    found: list[CheckpointError] = []
    guard = _guard(tmp_path, cluster, found)
    guard.check(None)
    with guard:
        cluster.state = None
        wait_for(lambda: cluster.looks > 4, "looks at a topic that is gone")
        assert found == []
        cluster.state = Cluster("second").state
        wait_for(lambda: found, "the other topic to be found")
    assert "deleted and made again" in str(found[0])


def test_wrong_settings_are_told_while_the_job_runs_and_no_longer_when_they_are_right(tmp_path: Path) -> None:
    """Settings may be changed at any time: what is wrong now is what the row says."""
    cluster = Cluster()
    guard = _guard(tmp_path, cluster)
    guard.check(None)
    with guard:
        cluster.state = Cluster(**{"message.timestamp.type": "CreateTime"}).state
        wait_for(guard.problems, "the change to be seen")
        assert guard.problems() == (TopicProblem("beats", "message.timestamp.type", "CreateTime", "LogAppendTime"),)
        cluster.state = Cluster().state
        wait_for(lambda: not guard.problems(), "the change back to be seen")


@pytest.mark.parametrize(
    ("setting", "value", "wrong"),
    [
        ("message.timestamp.type", "CreateTime", True),
        ("cleanup.policy", "compact", True),
        ("cleanup.policy", "compact,delete", True),
        ("retention.ms", "3599999", True),
        ("retention.ms", "3600000", False),
        ("retention.ms", "-1", False),
    ],
)
def test_settings_that_are_wrong(setting: str, value: str, *, wrong: bool) -> None:
    """Producers' times, compaction, and a retention of less than an hour."""
    state = Cluster(**{setting: value}).state
    assert state is not None
    assert [(each.setting, each.found) for each in problems_of(state)] == ([(setting, value)] if wrong else [])
