"""One partition without time: ticks are withheld from it, or its leader is gone; its groups wait, and are not lost.

The tests share one job on a cluster of two brokers, the second of which leads one partition of three.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from kafka.admin import NewPartitions

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import admin_client
from heartwheel.wire.partitioner import partition_of
from support.job import Job, Topics, beats_of, running
from support.second_broker import NODE_ID, second_broker
from support.signs import doctor_of, metrics_of, page_of
from support.verdicts import assert_audit_is_clean

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(600)]

FAULTY = Path(__file__).parents[1] / "support" / "faulty"
PARTITIONS = 3
FAR = 2
"""The partition that the second broker leads."""
DEAD = 5


class World(NamedTuple):
    """What the tests share."""

    topics: Topics
    job: Job
    second: EmbeddedKafka
    faults: Path

    def die_in(self, partition: int, name: str) -> list[str]:
        """Let the members of a group of a partition beat once and never again."""
        names = (f"{name}-{i}" for i in itertools.count())
        group = next(each for each in names if partition_of(each.encode(), PARTITIONS) == partition)
        beats = beats_of(group, DEAD)
        self.topics.send(beats)
        return [beat.member_id for beat in beats]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run two brokers and the job; nobody but the ticker writes all the time."""
    folder = tmp_path_factory.mktemp("leader")
    faults = folder / "faults"
    faults.mkdir()
    with ExitStack() as stack:
        first = stack.enter_context(EmbeddedKafka(folder / "first"))
        topics = Topics(first.bootstrap, lambda name: name, partitions=PARTITIONS - 1)
        second = stack.enter_context(second_broker(first, folder / "second"))
        with admin_client(first.bootstrap) as admin:
            admin.create_partitions({topics.names["heartbeats"]: NewPartitions(PARTITIONS, [[NODE_ID]])})
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("HEARTWHEEL_TEST_FAULTS", str(faults))
        patch.setenv("PYTHONPATH", str(FAULTY), prepend=os.pathsep)
        job = stack.enter_context(running(topics, folder / "checkpoint"))
        job.until_live()
        yield World(topics, job, second, faults)


def test_ticks_withheld_from_one_partition_hold_its_groups_alone(world: World) -> None:
    """A partition in which nothing is written: the silent in it wait, and no others, until it goes on."""
    withhold = world.faults / "withhold"
    withhold.write_text("0")
    world.job.wait_for(lambda: "Time has stopped in 1 partition" in page_of(world.topics).sentence, "the page to say")
    waiting = world.die_in(0, "withheld")
    world.job.until_expired(world.die_in(1, "not-withheld"))
    assert set(world.topics.expired()).isdisjoint(waiting)
    withhold.unlink()
    world.job.until_expired(waiting)
    assert_audit_is_clean(world.job)


def test_without_the_leader_of_a_partition_nobody_is_expired_or_forgotten(world: World) -> None:
    """The broker that leads one partition dies: page, metrics and doctor say why; nothing is lost when it is back.

    Spark plans no batch while it cannot learn where a partition ends, so no group goes on meanwhile.
    """
    waiting = world.die_in(FAR, "led-by-nobody")
    world.second.kill()
    why = "the partition has no leader"
    world.job.wait_for(lambda: _says(world, f"partition {FAR}: {why}"), "the page to say why")
    assert f'heartwheel_tickless_reason{{reason="{why}"}} 1.0' in metrics_of(world.topics)
    ticks = doctor_of(world.job)["ticks"]
    assert (ticks["status"], ticks["detail"]) == ("bad", f"no tick could be written to partition {FAR}: {why}")
    assert "kafka-topics.sh --describe" in ticks["hint"]
    waiting += world.die_in(1, "led-by-the-other")
    assert set(world.topics.expired()).isdisjoint(waiting)
    world.second.start()
    world.job.until_expired(waiting)
    world.job.wait_for(lambda: page_of(world.topics).sentence.startswith("Healthy"), "the page to be healthy")
    assert_audit_is_clean(world.job)


def _says(world: World, why: str) -> bool:
    sentence = page_of(world.topics).sentence
    return sentence.startswith("Time has stopped") and why in sentence
