"""The truth about a tap that is started after the consumers: real groups, and Kafka's own coordinator as the judge.

The tests share one broker, and go on where the one before has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

import pytest

from heartwheel.base.wall_clock import wall_ms
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import admin_client
from support.both_sides import BothSides
from support.group_members import GroupMember
from support.job import Job, Topics, running
from support.tap_process import TapProcess
from support.verdicts import assert_audit_is_clean

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(600)]

SESSION_MS: Final = 6_000
CONFIG: Final = {
    "group.initial.rebalance.delay.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "400",
}
RULES: Final = (
    "engine.feeds=late",
    "coordinator.group_initial_rebalance_delay=1s",
    f"coordinator.group_consumer_session_timeout={SESSION_MS}ms",
)
CAST: Final[dict[str, dict[str, Any]]] = {
    "python": {"library": "kafka-python", "protocol": "classic"},
    "librdkafka": {"library": "librdkafka", "protocol": "classic"},
    "static": {"library": "kafka-python", "protocol": "classic", "static": True},
    "newer": {"library": "librdkafka", "protocol": "consumer"},
    "java": {"library": "java", "protocol": "classic"},
    "java-static": {"library": "java", "protocol": "classic", "static": True},
    "java-newer": {"library": "java", "protocol": "consumer"},
}
"""The client of each group."""

MEMBERS: Final = 3


class World(NamedTuple):
    """What the tests share."""

    broker: EmbeddedKafka
    job: Job
    members: dict[str, list[GroupMember]]
    sides: BothSides
    stack: ExitStack

    def start(self, group: str) -> GroupMember:
        """Start one more member of a group, and wait until it has joined."""
        member = _member(self.broker, group, len(self.members[group]))
        self.stack.callback(member.end)
        member.wait_joined()
        self.members[group].append(member)
        return member

    def until_both_know(self, gone: list[str]) -> None:
        """Wait until both sides have removed some members."""
        self.job.wait_for(
            lambda: set(gone) <= self.sides.removed_by_both(),
            lambda: f"both sides to remove {set(gone) - self.sides.removed_by_both()}: {self.sides.agreement().differ}",
        )


def _member(broker: EmbeddedKafka, group: str, number: int) -> GroupMember:
    plan = {"session_ms": SESSION_MS, **CAST[group]}
    if plan.pop("static", False):
        plan["instance"] = f"{group}-i{number}"
    return GroupMember(broker, "work", group, f"{group}-c{number}", **plan)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Start the consumers, then the job, and the tap last of all."""
    folder = tmp_path_factory.mktemp("late")
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedKafka(folder / "broker", config=CONFIG, request_log=True))
        with admin_client(broker.bootstrap) as admin:
            admin.create_topics({"work": {"num_partitions": 4}})
        members = {group: [_member(broker, group, number) for number in range(MEMBERS)] for group in CAST}
        for member in (each for group in members.values() for each in group):
            stack.callback(member.end)
        for member in (each for group in members.values() for each in group):
            member.wait_joined()
        job = stack.enter_context(running(Topics(broker.bootstrap, lambda name: name), folder / "checkpoint", *RULES))
        started_ms = wall_ms()
        stack.enter_context(TapProcess(job, broker, 1, "late", folder, from_begin=False))
        before = BothSides([broker], job, CAST)
        job.wait_for(lambda: before.relayed_ms() > started_ms + 2_000, "the tap to pass on")
        # On a busy machine the coordinator may have removed a member before the tap has begun to read.
        sides = BothSides([broker], job, CAST, since_ms=wall_ms())
        yield World(broker, job, members, sides, stack)


def test_members_that_die_unknown_are_removed_when_the_coordinator_says_so(world: World) -> None:
    """One of each group is killed before it has joined again; nobody else is removed."""
    gone = []
    for members in world.members.values():
        dead = members.pop(0)
        gone.append(dead.member_ids[-1])
        dead.kill()
    world.until_both_know(gone)


def test_members_that_joined_again_are_judged(world: World) -> None:
    """The rebalance has shown every member; one of each group is frozen, and is removed by its own session."""
    gone = []
    for members in world.members.values():
        frozen = members.pop(0)
        gone.append(frozen.member_ids[-1])
        frozen.pause()
    world.until_both_know(gone)


def test_both_sides_have_removed_the_same_after_a_roll(world: World) -> None:
    """P1, P3: groups are rolled, a member in, one out in order; all removals are those of the coordinator's own log."""
    for group, members in world.members.items():
        world.start(group)
        members.pop(0).do("close")
    left_ms = wall_ms()
    world.job.wait_for(lambda: world.sides.relayed_ms() >= left_ms + 2 * SESSION_MS, "two sessions to go by")
    world.job.wait_for(
        lambda: not world.sides.agreement().waiting, lambda: f"both sides to agree on {world.sides.agreement().differ}"
    )
    agreement = world.sides.agreement()
    assert agreement.ok, agreement.differ
    assert_audit_is_clean(world.job)
