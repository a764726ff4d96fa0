"""Streams groups (KIP-1071), rule by rule, and what differs between Kafka 4.3 and 4.4.

`tests/tap/test_streams_versions.py` sends such requests to real brokers of both versions.
"""

from __future__ import annotations

from typing import Any

import pytest

from heartwheel.engine.rules.config import CoordinatorConfig
from support.epoch_logs import SESSION_MS, EpochLog

ENDS = ("member_expired", "member_fenced_rebalance_timeout")
AT_HOME: dict[str, Any] = {"process_id": "p", "client_tags": {"zone": "a"}, "topology_epoch": 0}

both_versions = pytest.mark.parametrize("version", ["4.3", "4.4"])


def _log(version: str = "4.4", **settings: Any) -> EpochLog:
    """Begin a log of a streams group whose first target is computed at once."""
    return EpochLog("streams", kafka_version=version, group_streams_initial_rebalance_delay_ms=0, **settings)


def _static(log: EpochLog, at_ms: int, member: str, epoch: int, **fields: Any) -> None:
    log.beat(at_ms, member, epoch, group_instance_id="i", **fields)


# Static members (KAFKA-20169)


def test_static_member_keeps_its_place_until_its_session_ends() -> None:
    """It leaves for a while and is fenced a session after its last heartbeat (`streamsGroupStaticMemberGroupLeave`)."""
    log = _log()
    _static(log, 0, "a", 0, **AT_HOME)
    _static(log, 1_000, "a", 2)
    _static(log, 1_500, "a", -2)
    _static(log, 2_000, "a", 2)  # FENCED_MEMBER_EPOCH: it is away
    left = [("static_left", "a", 1_500), ("member_expired", "a", 1_000 + SESSION_MS)]
    assert log.said(10_000, "static_left", *ENDS) == left


def test_static_member_returns_under_another_id_without_a_bump() -> None:
    """The new id takes the place of the old one, which is fenced from then on (`replaceStreamsMember`)."""
    log = _log()
    _static(log, 0, "a", 0, **AT_HOME)
    _static(log, 1_000, "a", -2)
    _static(log, 1_500, "b", 0, **AT_HOME)
    _static(log, 2_000, "a", 2)  # FENCED_INSTANCE_ID
    _static(log, 2_500, "b", 2)
    assert log.said(10_000, "static_replaced", *ENDS) == [
        ("static_replaced", "a", 1_500),
        ("member_expired", "b", 2_500 + SESSION_MS),
    ]
    assert log.bumps(2_600) == [("member_joined", 2)]


@pytest.mark.parametrize("member", ["a", "b"])
def test_instance_id_that_is_held_lets_nobody_join(member: str) -> None:
    """Not even its holder, while it has not left (`throwIfInstanceIdIsUnreleased`)."""
    log = _log()
    _static(log, 0, "a", 0, **AT_HOME)
    _static(log, 1_000, member, 0, **AT_HOME)
    assert log.said(10_000, "static_replaced", *ENDS) == [("member_expired", "a", SESSION_MS)]


def test_words_are_those_of_kafka() -> None:
    """Lines of streams groups name the member first, and no protocol but for a return."""
    log = _log()
    log.beat(0, "d", 0, **AT_HOME)
    _static(log, 10, "a", 0, **AT_HOME)
    _static(log, 1_000, "a", -2)
    _static(log, 1_500, "b", 0, **(AT_HOME | {"process_id": "q"}))
    _static(log, 1_600, "b", -1)
    log.beat(1_700, "d", -1)
    returned = (
        "[GroupId g][MemberId b] Static member with instance id i re-joins the streams group using the streams"
        " protocol. Created a new member b to replace the existing member a."
    )
    told = [v.reason for v in log.verdicts(1_800) if v.kind.value != "target_computed"]
    assert told == [
        "[GroupId g][MemberId d] Member joins the streams group.",
        "[GroupId g][MemberId d] Bumped streams group epoch to 2.",
        "[GroupId g][MemberId a] Static member a with instance id i joins the streams group.",
        "[GroupId g][MemberId a] Bumped streams group epoch to 3.",
        "[GroupId g][MemberId a] Static member a with instance id i temporarily left the streams group.",
        returned,
        "[GroupId g][MemberId b] Bumped streams group epoch to 4.",
        "[GroupId g][MemberId b] Static member b with instance id i left the streams group.",
        "[GroupId g][MemberId d] Member d left the streams group.",
    ]


def test_older_broker_has_no_static_members() -> None:
    """Kafka 4.3 refuses every request with an instance id: "Static membership is not yet supported."."""
    log = _log("4.3")
    _static(log, 0, "a", 0, **AT_HOME)
    _static(log, 100, "a", 2)
    _static(log, 200, "a", -2)
    _static(log, 300, "a", -1)
    assert log.said(10_000) == []
    log.beat(400, "d", 0, **AT_HOME)
    _static(log, 500, "a", 0, **AT_HOME)
    assert log.said(10_000, "member_joined", *ENDS) == [("member_joined", "d", 400), ("member_expired", "d", 3_400)]


def test_answer_counts_more_than_the_version() -> None:
    """A static member that a broker accepted is one, whatever version the settings name."""
    log = _log("4.3")
    log.ok(0, "a", 0, 2, group_instance_id="i", **AT_HOME)
    assert log.said(10_000, *ENDS) == [("member_expired", "a", SESSION_MS)]


# What a member says of itself (KAFKA-19233)


@both_versions
def test_known_dynamic_member_joins_again(version: str) -> None:
    """Its epoch 0 is accepted, keeps it alive, and bumps nothing (`hasStreamsMemberMetadataChanged`)."""
    log = _log(version)
    log.beat(0, "a", 0, rebalance_timeout_ms=5_000, **AT_HOME)
    log.beat(2_000, "a", 0, rebalance_timeout_ms=5_000, **AT_HOME)
    log.beat(2_100, "a", 0)
    assert log.said(10_000, *ENDS) == [("member_expired", "a", 2_100 + SESSION_MS)]
    assert log.bumps(3_000) == [("member_joined", 2)]


CHANGES: list[dict[str, Any]] = [
    {"process_id": "q"},
    {"rack_id": "r"},
    {"client_tags": {}},
    {"topology_epoch": 1},
    {"rebalance_timeout_ms": 6_000},
    {"client_id": "other"},
    {"client_host": "/10.0.0.9"},
]


@pytest.mark.parametrize("epoch", [0, 2])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_dynamic_member_that_says_something_else_bumps_the_epoch(change: dict[str, Any], epoch: int) -> None:
    """Whatever it changes, and at whatever epoch."""
    log = _log()
    log.beat(0, "a", 0, rebalance_timeout_ms=5_000, client_id="c", client_host="/10.0.0.1", **AT_HOME)
    log.beat(1_500, "a", epoch, **change)
    log.beat(1_600, "a", epoch, **change)
    assert log.bumps(1_700) == [("member_joined", 2), ("member_updated", 3)]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_static_member_returns_with_a_bump_only_if_tasks_may_move(change: dict[str, Any]) -> None:
    """Another rack, process, topology or other tags; not another client (`hasEpochRelevantMemberConfigChanged`)."""
    log = _log()
    _static(log, 0, "a", 0, rebalance_timeout_ms=5_000, client_id="c", client_host="/10.0.0.1", **AT_HOME)
    _static(log, 1_000, "a", -2)
    _static(log, 1_500, "b", 0, **(AT_HOME | change))
    moves = next(iter(change)) in ("process_id", "rack_id", "client_tags", "topology_epoch")
    assert log.bumps(1_700) == [("member_joined", 2), *[("member_updated", 3)] * moves]


def test_source_that_does_not_have_it_shows_no_change() -> None:
    """What a member says for the first time was not different before; a bump is then shown by an answer alone."""
    log = _log()
    log.beat(0, "a", 0)
    log.beat(1_500, "a", 2, **AT_HOME)
    assert log.bumps(1_700) == [("member_joined", 2)]


# Tasks


@pytest.mark.parametrize("kind", ["activeTasks", "warmupTasks"])
def test_standby_task_in_another_role_is_not_revoked(kind: str) -> None:
    """Kafka 4.4 makes it active in the answer that takes it away (`applyPromotionsToActive`): no timer runs."""
    log = _log()
    log.ok(0, "a", 0, 2, rebalance_timeout_ms=500, assignment={"standbyTasks/0": [1, 2]})
    promoted = {"standbyTasks/0": [1], f"{kind}/0": [2]}
    log.ok(1_000, "a", 2, 2, owned={"standbyTasks/0": [1, 2]}, assignment=promoted)
    log.ok(1_800, "a", 2, 2)
    assert log.said(10_000, *ENDS) == [("member_expired", "a", 1_800 + SESSION_MS)]


@pytest.mark.parametrize("later", [{}, {"standbyTasks/0": [1]}])
def test_active_task_that_becomes_a_standby_task_is_revoked(later: dict[str, list[int]]) -> None:
    """A member that keeps it is fenced at its rebalance timeout (`scheduleStreamsGroupRebalanceTimeout`)."""
    log = _log()
    log.ok(0, "a", 0, 2, rebalance_timeout_ms=500, assignment={"activeTasks/0": [1]})
    log.ok(1_000, "a", 2, 2, owned={"activeTasks/0": [1]}, assignment=later)
    log.ok(1_400, "a", 2, 2, owned={"activeTasks/0": [1]})
    assert log.said(10_000, *ENDS) == [("member_fenced_rebalance_timeout", "a", 1_500)]


def test_standby_task_that_is_taken_away_is_revoked() -> None:
    """It has to be given back like an active one."""
    log = _log()
    log.ok(0, "a", 0, 2, rebalance_timeout_ms=500, assignment={"standbyTasks/0": [1], "activeTasks/1": [1]})
    log.ok(1_000, "a", 2, 2, owned={"standbyTasks/0": [1], "activeTasks/1": [1]}, assignment={"activeTasks/1": [1]})
    assert log.said(10_000, *ENDS) == [("member_fenced_rebalance_timeout", "a", 1_500)]


# Full and empty groups


@pytest.mark.parametrize(("version", "ends_ms"), [("4.3", SESSION_MS), ("4.4", 2_000 + SESSION_MS)])
def test_full_group_and_its_own_members(version: str, ends_ms: int) -> None:
    """Kafka 4.3 refuses their joins too, and 4.4 does not (`throwIfStreamsGroupIsFull`)."""
    log = _log(version, group_streams_max_size=1)
    log.beat(0, "a", 0, **AT_HOME)
    log.beat(1_000, "b", 0, **AT_HOME)
    log.beat(2_000, "a", 0, **AT_HOME)
    assert log.said(10_000, "member_joined", *ENDS)[-1] == ("member_expired", "a", ends_ms)
    assert {v.member_id for v in log.verdicts(10_000)} <= {"a", None}


@pytest.mark.parametrize(("version", "returns"), [("4.3", False), ("4.4", True)])
@pytest.mark.parametrize("kind", ["consumer", "streams"])
def test_full_group_and_the_return_of_a_static_member(kind: str, version: str, *, returns: bool) -> None:
    """From 4.4 on it finds its place under a new id (`throwIfConsumerGroupIsFull`)."""
    settings: dict[str, Any] = {f"group_{kind}_max_size": 1, "kafka_version": version}
    log = EpochLog(kind, **settings)
    log.ok(0, "a", 0, 2, group_instance_id="i")
    log.ok(500, "a", -2, -2, group_instance_id="i")
    log.beat(1_000, "b", 0, group_instance_id="i")
    replaced = [("static_replaced", "a", 1_000)] if returns else []
    assert log.said(2_000, "static_replaced") == replaced


@pytest.mark.parametrize(("version", "at_ms"), [("4.3", 1_000), ("4.4", 300)])
@pytest.mark.parametrize("kind", ["consumer", "streams"])
def test_empty_group_and_its_next_target(kind: str, version: str, at_ms: int) -> None:
    """From 4.4 on the next member has a target at once; before, not within the interval of the last one."""
    settings: dict[str, Any] = {"group_streams_initial_rebalance_delay_ms": 0, "kafka_version": version}
    log = EpochLog(kind, **settings)
    log.beat(0, "a", 0, subscribed_topics=["t"])
    log.beat(100, "a", -1)
    log.beat(300, "b", 0, subscribed_topics=["t"])
    log.beat(600, "b", 0, subscribed_topics=["t"])
    log.beat(1_000, "b", 0, subscribed_topics=["t"])
    assert log.said(2_000, "target_computed") == [("target_computed", 2, 0), ("target_computed", 4, at_ms)]


@both_versions
def test_delayed_target_of_a_group_whose_members_left(version: str) -> None:
    """Nothing is computed for nobody, and a member that comes meanwhile does not start the delay again."""
    settings: dict[str, Any] = {"group_streams_initial_rebalance_delay_ms": 1_000, "kafka_version": version}
    log = EpochLog("streams", **settings)
    log.beat(0, "a", 0)
    log.beat(100, "a", -1)
    assert log.said(2_000, "target_computed") == []
    log.beat(600, "b", 0)
    assert log.said(2_000, "target_computed") == [("target_computed", 4, 1_000)]


def test_unknown_version_is_refused() -> None:
    """The versions whose rules are known are named."""
    with pytest.raises(ValueError, match=r"kafka_version is 5\.0, it must be one of 4\.3, 4\.4"):
        CoordinatorConfig(kafka_version="5.0")
