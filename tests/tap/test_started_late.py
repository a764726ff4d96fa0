"""A tap that is started after the consumers: what it passes on, and what the job makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.epochs.config import EpochConfig
from heartwheel.engine.rules.manager import ClassicRules
from heartwheel.engine.rules.model import Group
from heartwheel.engine.shard.limits import ShardLimits
from heartwheel.engine.shard.shard import Shard
from heartwheel.proof.testing import OUTAGE_MIN_MS, LogBuilder, read_records
from heartwheel.wire.relayed import may_be_relayed, read_feed_fields, read_mark
from heartwheel.wire.requests import decode_request
from heartwheel.wire.verdicts import Verdict
from support.request_lines import T0, fetch, heartbeat, join, line
from support.tap_scene import TapScene


@pytest.fixture
def scene(tmp_path: Path) -> TapScene:
    """Set up logs and a topic."""
    return TapScene(tmp_path)


def sync(logged_ms: int, member: str, generation: int = 1, *, took_ms: float = 1.0) -> str:
    """Write an accepted sync of group `g`."""
    request = {"groupId": "g", "generationId": generation, "memberId": member, "groupInstanceId": None}
    request |= {"protocolType": "consumer", "protocolName": "range"}
    return line(logged_ms, 14, request, {"errorCode": 0}, took_ms=took_ms, version=5)


class Judged:
    """What the rules make of a topic, in the order of the times of the events."""

    def __init__(self, scene: TapScene, end_ms: int) -> None:
        self.verdicts: list[Verdict] = []
        self.manager = ClassicRules(Group("g"), _config(), self.verdicts.append)
        events = [
            (passed.at_ms, decode_request(value))
            for value in scene.topic.values
            if read_mark(value) is None and may_be_relayed(value) and (passed := read_feed_fields(value)) is not None
        ]
        for at_ms, event in sorted(events, key=lambda each: each[0]):
            self.manager.apply(event, at_ms)
        self.manager.advance(end_ms)

    @property
    def expired(self) -> list[tuple[str | None, int]]:
        """Who was expired, and how long after the begin, ms."""
        return [(each.member_id, each.time_ms - T0) for each in self.verdicts if each.expiry_reason is not None]


def _config() -> EpochConfig:
    return EpochConfig(CoordinatorConfig())


def _one_of_three_dies(scene: TapScene, *, broker_log: bool) -> None:
    """Write what a broker logs of three members with sessions of 6 s that joined before, one of which dies at 1 s."""
    beats = [heartbeat(T0 + at_ms, member) for at_ms in (0, 500, 1_000) for member in ("m1", "m2", "m3")]
    beats += [heartbeat(T0 + at_ms, member) for at_ms in range(1_500, 7_000, 500) for member in ("m1", "m2")]
    scene.write(*beats)
    if broker_log:
        scene.say(T0 + 6_999, "Member m3 in group g has failed, removing it from the group")
    scene.write(*(heartbeat(T0 + 7_000, member, error=27) for member in ("m1", "m2")))
    scene.write(*(join(T0 + 7_020, member, generation=2, took_ms=took) for member, took in (("m1", 10), ("m2", 5))))
    scene.write(*(sync(T0 + 7_030, member, 2) for member in ("m1", "m2")))
    scene.write(*(heartbeat(T0 + ms, m, generation=2) for ms in range(7_500, 200_000, 500) for m in ("m1", "m2")))
    scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms > T0 + 199_000)


@pytest.mark.parametrize("broker_log", [False, True])
def test_p1_members_that_joined_before_the_tap_are_not_expired_by_a_guess(scene: TapScene, broker_log: bool) -> None:  # noqa: FBT001
    """One member of three is killed; the living go on in the next generation, and the dead one is named if known.

    The expiry is dated 2 ms before its line in the coordinator's own log.
    """
    _one_of_three_dies(scene, broker_log=broker_log)
    judged = Judged(scene, T0 + 199_500)
    assert judged.expired == ([("m3", 6_997)] if broker_log else [])
    group = judged.manager.group
    assert (set(group.members), group.state, group.generation) == ({"m1", "m2"}, "Stable", 2)  # type: ignore[union-attr]


def test_who_joined_before_the_tap_is_unknown_until_it_joins_again(scene: TapScene) -> None:
    """After the first join that is seen a member is judged as any other: it dies, and is expired by its own session."""
    _one_of_three_dies(scene, broker_log=False)
    judged = Judged(scene, T0 + 250_000)
    assert dict(judged.expired) == {"m1": 205_499, "m2": 205_499}


@pytest.mark.parametrize("synced_ms", [2, 1, 0])
def test_p3_expiry_that_ended_a_join_phase_comes_before_the_syncs_of_the_next(scene: TapScene, synced_ms: int) -> None:
    """A silent member's expiry answers the parked joins, and a sync follows within its millisecond.

    Both logs truncate times, and a request is dated by when its answer was logged, less how long it took.
    """
    scene.write(*(heartbeat(T0 + at_ms, member) for at_ms in (0, 500, 1_000) for member in ("m1", "m2")))
    scene.write(*(heartbeat(T0 + at_ms) for at_ms in range(1_500, 5_000, 500)), heartbeat(T0 + 5_000, error=27))
    scene.say(T0 + 6_999, "Member m2 in group g has failed, removing it from the group")
    scene.write(join(T0 + 6_999, generation=2, took_ms=1_900), sync(T0 + 6_999 + synced_ms, "m1", 2, took_ms=0.5))
    scene.write(*(heartbeat(T0 + at_ms, generation=2) for at_ms in range(7_500, 20_000, 500)))
    scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms > T0 + 19_000)
    judged = Judged(scene, T0 + 19_500)
    assert [(member, round(at_ms, -1)) for member, at_ms in judged.expired] == [("m2", 7_000)]
    assert list(judged.manager.group.members) == ["m1"]


def test_silent_members_of_unknown_sessions_are_listed_as_unknown(scene: TapScene) -> None:
    """Two members joined before the tap and fall silent: nobody is expired, and the shard lists them as unknown."""
    scene.write(heartbeat(T0), heartbeat(T0, "m2"), *(fetch(T0 + ms) for ms in range(500, 120_000, 500)))
    scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms > T0 + 119_000)
    log = LogBuilder()
    for value in scene.topic.values:
        log.add(T0 + 120_000, value)
    shard = Shard(coordinator=CoordinatorConfig(), limits=ShardLimits(), outage_min_ms=OUTAGE_MIN_MS)
    outcome = shard.apply(*read_records(log.records, feeds=("tap",)))
    assert [verdict for verdict in outcome.verdicts if verdict.expiry_reason is not None] == []
    assert [(each.members, each.unknown_sessions) for each in shard.listed(10)] == [(2, 2)]


def test_answers_are_passed_on(scene: TapScene) -> None:
    """What the coordinator answered goes with each request: the error, and the generation and the leader of a join."""
    scene.write(heartbeat(T0, error=27), join(T0 + 10, generation=3))
    scene.run(lambda: len(scene.topic.ids) == 2)
    beat, joined = (decode_request(value) for value in scene.topic.values if read_mark(value) is None)
    assert (beat.error_code, beat.session_timeout_ms) == (27, None)  # type: ignore[union-attr]
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 3, "m1")  # type: ignore[union-attr]


def test_begin_of_a_join_phase_that_was_not_seen_is_not_guessed(scene: TapScene) -> None:
    """A member joined 2 s before the tap began, and falls silent: the first join phase ended when nobody knows."""
    scene.write(join(T0, "", given="m1", took_ms=2_000), *(fetch(T0 + ms) for ms in range(500, 120_000, 500)))
    scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms > T0 + 119_000)
    judged = Judged(scene, T0 + 119_500)
    assert (judged.expired, list(judged.manager.group.members)) == ([], ["m1"])


def test_first_join_that_was_seen_to_begin_is_one(scene: TapScene) -> None:
    """The same after the tap began is a new group, whose initial join phase the rules time."""
    scene.write(*(fetch(T0 + ms) for ms in range(0, 3_500, 500)), join(T0 + 3_500, "", given="m1", took_ms=3_000))
    scene.run(lambda: len(scene.topic.ids) == 1)
    (joined,) = (decode_request(value) for value in scene.topic.values if read_mark(value) is None)
    assert joined.member_id == ""
