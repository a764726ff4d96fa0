"""How many tasks read the topic: one while little comes, all under load, and no verdict depends on it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from heartwheel.engine.runtime.driver.map_tasks import BUSY_BATCHES, BUSY_RECORDS_MIN, CALM_S, MapTasks
from heartwheel.engine.runtime.driver.progress import Progress
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support.job import Topics, beats_of, running
from support.rawfeed import RawFeed, RawMembers


def _batch(heartbeats: int = 0, *, held: bool = False) -> Progress:
    counts = dict.fromkeys(
        ("batch_id", "behind", "members", "groups", "expired", "triggers", "rejected", "duration_ms", "read_ms"), 0
    )
    return Progress(held=held, heartbeats=heartbeats, **counts)


BUSY, CALM, BACKLOG = _batch(BUSY_RECORDS_MIN), _batch(BUSY_RECORDS_MIN - 1), _batch(held=True)


class _Clock:
    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def test_one_task_reads_until_there_is_a_backlog() -> None:
    """A quiet topic is read by one task, a backlog by one a core."""
    tasks = MapTasks(4, state_partitions=1)
    tasks.look([CALM] * 100)
    assert tasks.tasks == 1
    tasks.look([BACKLOG])
    assert tasks.tasks == 4


def test_a_burst_is_not_worth_a_restart_and_a_lasting_load_is() -> None:
    """Only busy batches one after the other count."""
    tasks = MapTasks(4, state_partitions=1)
    for _ in range(3):
        tasks.look([BUSY] * (BUSY_BATCHES - 1))
        tasks.look([CALM])
    assert tasks.tasks == 1
    for _ in range(BUSY_BATCHES):
        tasks.look([BUSY])
    assert tasks.tasks == 4


def test_one_task_reads_again_after_a_calm_that_doubles() -> None:
    """A load that comes and goes restarts the query ever more rarely."""
    clock = _Clock()
    tasks = MapTasks(2, state_partitions=1, clock_s=clock)
    calm_s = CALM_S
    for _ in range(3):
        tasks.look([BACKLOG])
        clock.now_s += calm_s - 1
        tasks.look([CALM])
        assert tasks.tasks == 2
        clock.now_s += 1
        tasks.look([CALM])
        assert tasks.tasks == 1
        calm_s *= 2


def test_with_several_state_partitions_nothing_changes() -> None:
    """There is a shuffle then, and all tasks read from the first batch on."""
    clock = _Clock()
    tasks = MapTasks(2, state_partitions=2, clock_s=clock)
    clock.now_s += 10 * CALM_S
    tasks.look([CALM])
    assert tasks.tasks == 2
    tasks.look([BACKLOG])
    assert tasks.tasks == 2


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.proof
def test_a_backlog_is_read_by_all_cores_and_each_is_expired_once(kafka_broker: EmbeddedKafka, tmp_path: Path) -> None:
    """The query starts again with two tasks for a backlog and with one after it; nobody is lost or named twice."""
    topics = Topics(kafka_broker.bootstrap, lambda name: f"{name}-map-tasks")
    members = RawMembers(members=400, groups=400, session_timeout_ms=10_000)
    with RawFeed(kafka_broker.bootstrap, topics.names["heartbeats"], members, records_per_batch=400) as feed:
        feed.run(records=8 * BUSY_RECORDS_MIN)
    with running(topics, tmp_path / "job", f"engine.catch_up_max_records={BUSY_RECORDS_MIN}") as job:
        job.wait_for(lambda: "read by 2 tasks" in job.log, "all tasks")
        job.wait_for(lambda: len(topics.expired()) >= members.members, "the silent members")
        job.wait_for(lambda: "read by 1 task" in job.log, "one task")
        topics.send(beats_of("late", 3))
        job.wait_for(lambda: len(topics.expired()) >= members.members + 3, "those who came later")
    assert re.findall(r"read by (\d) tasks? from", job.log) == ["2", "1"]
    assert set(Counter(topics.expired()).values()) == {1}
    assert len(topics.expired()) == members.members + 3
