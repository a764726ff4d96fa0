"""Kafka stands still under a thousand living members: paused, killed, and behind open transactions.

All tests share one broker, one job and its members, and leave them as they are to the next; each also runs alone.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.wire.event_codec import encode_event
from heartwheel.wire.events import Event
from heartwheel.wire.partitioner import partition_of
from support.job import Job, Topics, beats_of, running, wait_for
from support.living import Living
from support.rawfeed import RawMembers
from support.verdicts import assert_audit_is_clean

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(900)]

PARTITIONS = 4
SESSION_MS = 8_000
GROUPS = 100
LIVING = 1_000
PAUSE_S = 20.0
ABSENCE_S = 60.0
TRANSACTION_S = 60.0
GROUPS_OF_THE_DEAD = 8
MEMBERS_OF_THE_DEAD = 5


class World(NamedTuple):
    """What all tests share."""

    broker: EmbeddedKafka
    topics: Topics
    job: Job

    def die(self, name: str) -> list[str]:
        """Let members beat once and never again: in groups of their own, and among the living.

        Returns:
            Their ids, sorted.
        """
        alone = [beat for i in range(GROUPS_OF_THE_DEAD) for beat in beats(f"{name}-{i}")]
        among = [beat(f"group-{i}", f"{name}-among-{i}") for i in range(GROUPS_OF_THE_DEAD)]
        dead = [*alone, *among]
        self.topics.send(dead)
        return sorted(event.member_id for event in dead)

    def expirations(self, members: Sequence[str]) -> list[dict[str, Any]]:
        """List the expirations of some members."""
        wanted = set(members)
        return [row for row in self.topics.rows("expirations") if row["member_id"] in wanted]


def beat(group: str, member: str) -> Event:
    """Make one heartbeat."""
    return Event(group_id=group, member_id=member, session_timeout_ms=SESSION_MS, client_id="c", client_host="/h")


def beats(group: str) -> list[Event]:
    """Make one heartbeat of each member of a group of those who die."""
    return beats_of(group, MEMBERS_OF_THE_DEAD, session_ms=SESSION_MS)


def home_of(group: str) -> int:
    """Tell which partition a group's heartbeats are in."""
    return partition_of(group.encode(), PARTITIONS)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run the broker, the job, and the members that live through everything."""
    folder = tmp_path_factory.mktemp("outages")
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedKafka(folder / "kafka"))
        topics = Topics(broker.bootstrap, lambda name: name, partitions=PARTITIONS)
        job = stack.enter_context(running(topics, folder / "checkpoint"))
        who = RawMembers(members=LIVING, groups=GROUPS, session_timeout_ms=SESSION_MS)
        # A broker that is started on a busy machine answers seldom for longer than a session. The first record that it
        # takes ends the outage of a partition, so all who live have to be in it.
        stack.enter_context(Living(topics, who, records_per_batch=LIVING))
        job.until_live()
        job.wait_for(lambda: f" {LIVING:,} members" in job.log, "the members to be known")
        yield World(broker, topics, job)


def gap_ends(topics: Topics, longer_than_ms: int, since_ms: int) -> dict[int, list[int]]:
    """List the append times of the first records after each gap of a partition, by the log alone, epoch ms."""
    times: dict[int, list[int]] = {}
    for record in topics.read("heartbeats"):
        times.setdefault(record.partition, []).append(record.append_ms)
    return {
        partition: [
            after for before, after in itertools.pairwise(of) if after - before > longer_than_ms and after > since_ms
        ]
        for partition, of in times.items()
    }


@pytest.mark.parametrize(
    ("name", "seconds", "stop", "go_on"),
    [
        ("paused", PAUSE_S, EmbeddedKafka.pause, EmbeddedKafka.resume),
        ("killed", ABSENCE_S, EmbeddedKafka.kill, EmbeddedKafka.start),
    ],
)
def test_p1_an_outage_expires_nobody_who_lives(
    name: str,
    seconds: float,
    stop: Callable[[EmbeddedKafka], Any],
    go_on: Callable[[EmbeddedKafka], Any],
    world: World,
) -> None:
    """P1: Kafka is away for longer than a session: the living stay, the dead are expired one session after its end."""
    began_ms = int(time.time() * 1000)
    dead = world.die(name)
    stop(world.broker)
    time.sleep(seconds)
    go_on(world.broker)
    rows = world.job.until_expired(dead)
    world.job.until_clock(int(time.time() * 1000))

    assert_audit_is_clean(world.job)  # first, as it tells a wrong expiration from members who were late in the log
    assert {row["member_id"] for row in world.topics.rows("expirations") if row["last_seen_ms"] >= began_ms} == set(
        dead
    )
    assert not [row for row in world.topics.rows("expirations") if row["member_id"].startswith("member-")]
    ends = gap_ends(world.topics, int(seconds * 900), began_ms)
    assert {partition: len(of) for partition, of in ends.items()} == dict.fromkeys(range(PARTITIONS), 1)
    assert {row["member_id"]: row["deadline_ms"] for row in rows} == {
        row["member_id"]: ends[home_of(row["group_id"])][0] + SESSION_MS for row in rows
    }
    assert all(row["deadline_ms"] == row["renewed_ms"] + SESSION_MS for row in rows)
    told = world.topics.rows("job")[-1]
    assert told["last_outage"]["duration_ms"] >= seconds * 900
    assert told["sessions_renewed"] >= LIVING


def _producer(world: World, name: str) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": world.topics.bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": 300_000,
            "log_level": 0,
        }
    )
    made.init_transactions(30)
    made.begin_transaction()
    return made


def _write(world: World, producer: Producer, event: Event, partition: int) -> None:
    topic = world.topics.names["heartbeats"]
    producer.produce(topic, encode_event(event), event.group_id.encode(), partition)
    assert producer.flush(30) == 0


def _groups_in(partition: int, name: str) -> list[str]:
    found = (f"{name}-{i}" for i in itertools.count())
    return list(itertools.islice((group for group in found if home_of(group) == partition), 3))


def test_p1_open_transactions_stop_time_and_expire_nobody(world: World) -> None:
    """P1: transactions stay open for a minute on two of four partitions: these wait, the others go on; none is lost."""
    committed, aborted, free = 0, 1, 2
    producers = [_producer(world, f"held-{partition}") for partition in (committed, aborted)]
    inside = [beat(_groups_in(partition, "inside")[0], f"inside-{partition}") for partition in (committed, aborted)]
    began_ms = int(time.time() * 1000)
    opened = time.monotonic()
    for producer, event, partition in zip(producers, inside, (committed, aborted), strict=True):
        _write(world, producer, event, partition)
    dead = {
        partition: [each for group in _groups_in(partition, "open") for each in beats(group)]
        for partition in (committed, aborted, free)
    }
    world.topics.send([event for of in dead.values() for event in of])
    names = {partition: [event.member_id for event in of] for partition, of in dead.items()}

    assert len(world.job.until_expired(names[free])) == len(names[free])
    assert time.monotonic() - opened < TRANSACTION_S, "the machine is too slow for this test"
    wait_for(lambda: world.topics.rows("job")[-1]["standing"] >= 2, "both partitions to be named")
    time.sleep(max(0.0, TRANSACTION_S - (time.monotonic() - opened)))  # the transactions themselves
    held = world.expirations(names[committed] + names[aborted] + ["inside-0", "inside-1"])
    assert held == []
    producers[0].commit_transaction(30)
    producers[1].abort_transaction(30)

    due = names[committed] + names[aborted] + ["inside-0"]
    rows = world.job.until_expired(due)
    world.job.until_clock(int(time.time() * 1000))
    # Nothing was an outage: ticks were written behind the transactions, so the deadlines are the true ones.
    assert {row["deadline_ms"] - row["last_seen_ms"] for row in rows} == {SESSION_MS}
    assert {row["renewed_ms"] for row in rows} == {None}
    assert all(row["deadline_ms"] < began_ms + 2 * SESSION_MS for row in rows)
    assert world.expirations(["inside-1"]) == []
    assert not [row for row in world.topics.rows("expirations") if row["member_id"].startswith("member-")]
    assert_audit_is_clean(world.job)
