"""Two brokers, a tap on each: groups that move from one coordinator to the other, taps and brokers that die.

Real consumers of real groups, the job, and the logs of both brokers as the judge. The tests share one cluster, and go
on where the one before has ended.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

import pytest

from heartwheel.base.wall_clock import wall_ms
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import admin_client
from heartwheel.wire.partitioner import shard_of
from kafka import TopicPartition
from support.both_sides import BothSides
from support.group_members import GroupMember
from support.job import Job, Topics, running, wait_for
from support.second_broker import second_broker
from support.tap_process import TapProcess
from support.verdicts import assert_audit_is_clean

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(600)]

SESSION_MS: Final = 4_000
OFFSETS: Final = "__consumer_offsets"
_PREFERRED: Final = 0  # an election of the first replica, by Kafka's protocol
LEADERS: Final[Mapping[int, int]] = {0: 1, 1: 2, 2: 1, 3: 2}
"""Which broker coordinates the groups of each partition of the offsets topic at the begin."""

CONFIG: Final = {
    "offsets.topic.num.partitions": str(len(LEADERS)),
    "group.initial.rebalance.delay.ms": "1000",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "400",
}
RULES: Final = (
    "engine.feeds=one,two",
    "coordinator.group_initial_rebalance_delay=1s",
    "coordinator.group_min_session_timeout=1s",
    f"coordinator.group_consumer_session_timeout={SESSION_MS}ms",
)


def _group_in(partition: int, name: str) -> str:
    names = (f"{name}-{number}" for number in range(1_000))
    return next(each for each in names if shard_of(each, len(LEADERS)) == partition)


class Groups(NamedTuple):
    """The groups' ids, by where they are coordinated: on broker 1, on broker 2, from 1 to 2, from 2 to 1."""

    near: str = _group_in(0, "near")
    far: str = _group_in(1, "far")
    going: str = _group_in(2, "going")
    going_new: str = _group_in(2, "going-new")
    coming: str = _group_in(3, "coming")
    coming_new: str = _group_in(3, "coming-new")


GROUPS: Final = Groups()
CAST: Final[Mapping[str, tuple[str, int]]] = {
    GROUPS.near: ("classic", 2),
    GROUPS.far: ("consumer", 3),
    GROUPS.going: ("classic", 3),
    GROUPS.going_new: ("consumer", 2),
    GROUPS.coming: ("classic", 2),
    GROUPS.coming_new: ("consumer", 2),
}
"""The protocol of each group, and how many members it has at the begin."""


class World(NamedTuple):
    """What the tests share."""

    brokers: tuple[EmbeddedKafka, EmbeddedKafka]
    job: Job
    taps: tuple[TapProcess, TapProcess]
    members: dict[str, list[GroupMember]]
    sides: BothSides
    killed: set[str]

    def kill_one_of(self, group: str) -> str:
        """Kill a member of a group; return its id."""
        member = self.members[group].pop(0)
        member_id = member.member_ids[-1]
        member.kill()
        self.killed.add(member_id)
        return member_id

    def until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait for a condition while the job runs."""
        self.job.wait_for(condition, what)

    def until_both_know(self, *members: str) -> None:
        """Wait until both sides have removed some members."""
        self.until(lambda: set(members) <= self.sides.removed_by_both(), f"both sides to remove {members}")

    def move(self, leaders: Mapping[int, int]) -> None:
        """Have other brokers lead partitions of the offsets topic, and so coordinate their groups."""
        with admin_client(self.brokers[0].bootstrap) as admin:
            places = {TopicPartition(OFFSETS, number): [to, 3 - to] for number, to in leaders.items()}
            assert set(admin.alter_partition_reassignments(places).values()) == {None}
            admin.elect_leaders(_PREFERRED, {OFFSETS: list(leaders)})
            wait_for(lambda: leaders.items() <= _leaders(admin).items(), f"{leaders} to lead")


def _leaders(admin: Any) -> dict[int, int]:
    topic = admin.describe_topics([OFFSETS])[0]
    return {part["partition_index"]: part["leader_id"] for part in topic["partitions"]}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run two brokers, a tap on each, the job, and the consumers of all groups."""
    folder = tmp_path_factory.mktemp("taps")
    with ExitStack() as stack:
        first = stack.enter_context(EmbeddedKafka(folder / "first", config=CONFIG, request_log=True))
        topics = Topics(first.bootstrap, lambda name: name)
        second = stack.enter_context(second_broker(first, folder / "second", config=CONFIG, request_log=True))
        with admin_client(first.bootstrap) as admin:
            both = {number: [leader, 3 - leader] for number, leader in LEADERS.items()}
            compacted = {"cleanup.policy": "compact"}
            admin.create_topics({OFFSETS: {"assignments": both, "configs": compacted}, "work": {"num_partitions": 4}})
            wait_for(lambda: _leaders(admin) == LEADERS, "the groups' coordinators")
        job = stack.enter_context(running(topics, folder / "checkpoint", *RULES))
        taps = (TapProcess(job, first, 1, "one", folder), TapProcess(job, second, 2, "two", folder))
        for tap in taps:
            stack.enter_context(tap)
        members: dict[str, list[GroupMember]] = {}
        for group, (protocol, count) in CAST.items():
            library = "kafka-python" if protocol == "classic" else "librdkafka"
            plan = {"library": library, "protocol": protocol, "session_ms": SESSION_MS}
            members[group] = [GroupMember(first, "work", group, f"{group}-c{n}", **plan) for n in range(count)]
            for member in members[group]:
                stack.callback(member.end)
        for member in (each for group in members.values() for each in group):
            member.wait_joined()
        told = first.log_file.read_text() + second.log_file.read_text()
        for group in CAST:
            pattern = rf"topic={OFFSETS} partition={shard_of(group, len(LEADERS))}\] .*{group}\b"
            assert re.search(pattern, told), f"{group} is coordinated elsewhere"
        job.until_live()
        yield World((first, second), job, taps, members, BothSides((first, second), job, CAST), set())


def test_members_of_groups_on_either_broker_are_removed_as_their_coordinators_do(world: World) -> None:
    """Each broker has groups of its own; who dies in one is told by that broker's tap."""
    world.until_both_know(world.kill_one_of(GROUPS.going), world.kill_one_of(GROUPS.coming_new))


def test_who_dies_while_the_group_moves_is_removed_by_its_new_coordinator(world: World) -> None:
    """The new coordinator gives everybody a session from its load on; heartbeats come from the other feed then."""
    dead = [world.kill_one_of(GROUPS.going_new), world.kill_one_of(GROUPS.coming)]
    world.move({2: 2, 3: 1})
    world.until_both_know(*dead)
    world.until_both_know(world.kill_one_of(GROUPS.going))


def test_tap_that_is_away_is_no_silence(world: World) -> None:
    """While one tap is dead nobody whom it alone hears is expired, not even of a group that has moved to its broker.

    What the other one passes on goes on meanwhile; when the tap is back, all is said with the times of the broker.
    """
    world.taps[0].kill()
    near, far = world.kill_one_of(GROUPS.near), world.kill_one_of(GROUPS.far)
    world.move({2: 1})
    world.until(lambda: {near, far} <= world.sides.removed_by_kafka(), "both coordinators to remove them")
    moved_ms = wall_ms()
    world.until(lambda: far in world.sides.removed_by_engine(), "the tap that lives to tell")
    world.until(lambda: world.job.topics.clock_ms() > moved_ms + SESSION_MS, "a session to go by")
    assert world.sides.removed_by_engine() <= world.sides.removed_by_kafka() - {near}
    world.taps[0].start()
    world.until_both_know(near)


def test_broker_that_dies_hands_its_groups_over(world: World) -> None:
    """Its groups are loaded by the other broker, whose word it is from then on; it comes back and leads none."""
    second = world.brokers[1]
    second.kill()
    far = world.kill_one_of(GROUPS.far)
    world.until(lambda: far in world.sides.removed_by_kafka(), "the other broker to remove it")
    second.start()
    world.until_both_know(far)


def test_both_sides_have_removed_the_same(world: World) -> None:
    """P1, P3: every removal in the brokers' logs is a verdict and the other way round, at the same moment."""
    now_ms = wall_ms()
    world.until(lambda: world.sides.relayed_ms() >= now_ms, "both taps to be up to now")
    world.until(lambda: not world.sides.agreement().waiting, "both sides to know of everybody")
    agreement = world.sides.agreement()
    assert agreement.ok, agreement.differ
    assert world.killed <= world.sides.removed_by_both()
    assert_audit_is_clean(world.job)
