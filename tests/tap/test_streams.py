"""A real Kafka Streams application through a tap: streams groups (KIP-1071), judged beside Kafka's own coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from heartwheel.base.wall_clock import wall_ms
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.kafka.client import admin_client
from support.both_sides import BothSides
from support.job import Job, Topics, running, wait_for
from support.streams_member import StreamsMember
from support.tap_process import TapProcess
from support.verdicts import assert_audit_is_clean

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(600)]

SESSION_MS: Final = 4_000
POLL_MS: Final = 6_000
"""How long members may take to give tasks back."""
APPLICATION: Final = "copier"
CONFIG: Final = {
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": str(SESSION_MS),
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "400",
    "group.streams.initial.rebalance.delay.ms": "500",
}
RULES: Final = (
    "engine.feeds=tap",
    "coordinator.group_initial_rebalance_delay=0s",
    f"coordinator.group_streams_session_timeout={SESSION_MS}ms",
    "coordinator.group_streams_initial_rebalance_delay=500ms",
)


class World(NamedTuple):
    """What the tests share."""

    job: Job
    tap: TapProcess
    members: tuple[StreamsMember, StreamsMember]
    sides: BothSides

    def beats_of(self, member_id: str) -> list[dict[str, Any]]:
        """Return the heartbeats of a member that were passed on."""
        return [row for row in self.job.topics.rows("heartbeats") if row.get("member_id") == member_id]

    def id_of(self, member: StreamsMember) -> str:
        """Return the id under which a member beats, as the tap has passed it on; empty before."""
        beats = (row for row in self.job.topics.rows("heartbeats") if row.get("type") == "streams_heartbeat")
        ids = {beat["member_id"] for beat in beats if str(beat.get("client_id")).startswith(member.client)}
        assert len(ids) <= 1
        return next(iter(ids), "")


class Version(NamedTuple):
    """A version of Kafka: its name in the settings, its sets of jars, and whether the members are static."""

    name: str
    broker: str
    streams: str
    static: bool


def _member(stack: ExitStack, broker: EmbeddedKafka, version: Version, client: str, folder: Path) -> StreamsMember:
    member = StreamsMember(
        broker.bootstrap,
        APPLICATION,
        client,
        folder,
        source="words",
        sink="copies",
        poll_ms=POLL_MS,
        instance_id=f"instance-{client}" if version.static else None,
        jars=(version.streams, version.broker),
    )
    stack.callback(member.kill)
    wait_for(lambda: member.state == "RUNNING", f"{client} to have tasks")
    return member


@pytest.fixture(
    scope="module",
    params=[
        Version("4.3", "broker-4.3", "streams-4.3", static=False),
        Version("4.4", "broker", "streams", static=True),
    ],
    ids=["4.3.1", "4.4.0"],
)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run a broker with a tap, the job, and two instances of an application; static members where there are any."""
    version: Version = request.param
    folder = tmp_path_factory.mktemp("streams")
    with ExitStack() as stack:
        jars = fetch_jars(version.broker)
        broker = stack.enter_context(EmbeddedKafka(folder / "broker", config=CONFIG, jars=jars, request_log=True))
        topics = Topics(broker.bootstrap, lambda name: name)
        with admin_client(broker.bootstrap) as admin:
            admin.create_topics({name: {"num_partitions": 4} for name in ("words", "copies")})
        job = stack.enter_context(
            running(topics, folder / "checkpoint", *RULES, f"coordinator.kafka_version={version.name}")
        )
        tap = stack.enter_context(TapProcess(job, broker, 1, "tap", folder))
        # The second one comes when the first has all tasks, which then has to give some back.
        first = _member(stack, broker, version, "copier-a", folder)
        second = _member(stack, broker, version, "copier-b", folder)
        job.until_live()
        yield World(job, tap, (first, second), BothSides([broker], job, [APPLICATION]))


def test_member_that_is_killed_is_removed_by_both(world: World) -> None:
    """Its heartbeats come through the tap; the engine's verdict is the coordinator's, and the other member lives on.

    That one gave tasks back when the second came: nobody is fenced for keeping them.
    """
    world.job.wait_for(lambda: all(map(world.id_of, world.members)), "both to be heard of")
    stays, goes = world.members
    alive, dead = map(world.id_of, world.members)
    assert _has_lost_tasks(world.beats_of(alive))
    goes.kill()
    world.job.wait_for(lambda: dead in world.sides.removed_by_both(), "both sides to remove it")
    after_ms = wall_ms() + POLL_MS
    world.job.wait_for(lambda: world.sides.relayed_ms() > after_ms, "the time for giving tasks back to go by")
    agreement = world.sides.agreement()
    assert (agreement.ok, agreement.by_reason) == (True, {"session_timeout": 1}), agreement.differ
    assert world.sides.removed_by_kafka() == {dead}
    assert (stays.state, world.id_of(stays)) == ("RUNNING", alive)
    assert "unreadable" not in world.tap.said
    assert_audit_is_clean(world.job)


def _has_lost_tasks(beats: list[dict[str, Any]]) -> bool:
    """Tell whether an answer gave a member fewer tasks than one before it."""
    given = [sum(map(len, beat["assignment"].values())) for beat in beats if beat.get("assignment") is not None]
    return any(later < earlier for earlier, later in pairwise(given))
