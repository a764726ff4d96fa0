"""Groups that change their kind while they are run: whose rules hold, and what stays of the group."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.group_stage import T0, Stage
from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.epochs.model import EpochGroup
from heartwheel.engine.rules.model import Group, GroupKind, GroupState
from heartwheel.wire.events import EventType, Protocol
from heartwheel.wire.verdicts import Kind


def test_a_timer_that_makes_a_group_classic_again_is_followed_at_once() -> None:
    """The session of the last new member ends, and the classic one that does not join then is removed in its turn."""
    stage = Stage(group_consumer_session_timeout_ms=3_000)
    stage.classic()
    stage.beat(1_000, "n", 0)
    stage.event(3_000, EventType.HEARTBEAT, "c", generation_id=1)
    stage.manager.advance(T0 + 20_000)
    assert stage.said(Kind.MEMBER_EXPIRED, Kind.GROUP_DOWNGRADED, Kind.MEMBER_REMOVED_AT_JOIN)[:2] == [
        ("member_expired", "n", 4_000),
        ("group_downgraded", None, 4_000),
    ]
    assert not stage.group.members


def test_downgraded_group_is_there_after_a_load() -> None:
    """The conversion writes the group's record, so its members are read when the coordinator comes back."""
    stage = Stage()
    stage.classic()
    stage.beat(1_000, "n", 0)
    stage.beat(2_000, "n", -1)
    stage.event(2_100, EventType.UNLOAD)
    stage.event(2_200, EventType.LOAD)
    group = stage.group
    assert isinstance(group, Group)
    assert (list(group.members), group.generation, group.state) == (["c"], 2, GroupState.STABLE)


@pytest.mark.parametrize(
    ("settings", "kind", "epoch", "why"),
    [
        ({"group_consumer_migration_policy": "disabled"}, "consumer", 0, "the policy forbids it"),
        ({}, "share", 0, "it is no share group"),
        ({}, "consumer", 3, "a heartbeat that does not join converts nothing"),
        ({"group_consumer_max_size": 1}, "consumer", 0, "there is no room"),
    ],
)
def test_a_refused_heartbeat_leaves_a_classic_group_as_it_is(
    settings: dict[str, Any], kind: str, epoch: int, why: str
) -> None:
    """Kafka throws before it writes a record: nothing is said, and the classic member keeps its session."""
    stage = Stage(**settings)
    stage.classic()
    said = len(stage.verdicts)
    assert stage.beat(1_000, "n", epoch, kind) is not Answer.NONE, why
    assert isinstance(stage.group, Group)
    assert (list(stage.group.members), len(stage.verdicts)) == (["c"], said)


def test_members_of_a_group_met_in_mid_life_may_speak_both_protocols() -> None:
    """A loaded group whose next heartbeat is of the new protocol was a consumer group all the time."""
    stage = Stage()
    stage.event(0, EventType.HEARTBEAT, "c", generation_id=7)
    assert stage.beat(100, "n", 7) is Answer.NONE
    group = stage.group
    assert isinstance(group, EpochGroup)
    assert (list(group.members), group.epoch) == (["c", "n"], 7)
    assert stage.event(200, EventType.HEARTBEAT, "c", generation_id=7) is Answer.NONE


def test_workers_without_a_protocol_take_over_an_empty_group_and_no_other() -> None:
    """A heartbeat that names no generation makes a presence group where nobody is left, else it is refused."""
    stage = Stage()
    stage.beat(0, "n", 0)
    assert stage.event(100, EventType.HEARTBEAT, "w") is Answer.UNKNOWN_MEMBER_ID
    stage.beat(200, "n", -1)
    assert stage.event(300, EventType.HEARTBEAT, "w") is Answer.NONE
    assert isinstance(stage.group, Group)
    assert stage.group.kind is GroupKind.PRESENCE


def test_a_leave_begins_no_group() -> None:
    """Who leaves a group of which nothing was seen leaves nothing behind, also if a broker has accepted it."""
    stage = Stage()
    assert stage.beat(0, "n", -1, answer_member_epoch=-1) is not Answer.NONE
    assert stage.manager.is_forgettable()
    assert not stage.verdicts


def test_an_upgrade_is_no_sign_of_life() -> None:
    """Classic members get a whole session by it, and were last seen when they were."""
    stage = Stage()
    stage.classic()
    seen_ms = stage.group.members["c"].last_seen_ms
    stage.beat(3_000, "n", 0)
    assert stage.group.members["c"].last_seen_ms == seen_ms
    assert stage.group.members["c"].deadline_ms == T0 + 9_000


def test_static_classic_member_that_returns_moves_no_epoch() -> None:
    """Its successor subscribes to what it did: `replaceMember` copies that."""
    stage = Stage()
    stage.join(0, "c", group_instance_id="i")
    stage.event(
        10, EventType.SYNC, "c", group_instance_id="i", generation_id=1, protocol_type="consumer", protocol_name="range"
    )
    stage.beat(1_000, "n", 0)
    epochs = stage.said(Kind.EPOCH_BUMPED)
    stage.join(2_000, "d", group_instance_id="i")
    assert stage.said(Kind.EPOCH_BUMPED) == epochs
    assert list(stage.group.members) == ["n", "d"]


@pytest.mark.parametrize(
    ("protocol_type", "offers", "answer"),
    [
        ("consumer", ("range",), Answer.NONE),
        ("consumer", ("sticky", "range"), Answer.NONE),
        ("consumer", ("sticky",), Answer.INCONSISTENT_GROUP_PROTOCOL),
        ("consumer", (), Answer.INCONSISTENT_GROUP_PROTOCOL),
        ("connect", ("range",), Answer.INCONSISTENT_GROUP_PROTOCOL),
        (None, (), Answer.NONE),
    ],
)
def test_classic_join_of_a_consumer_group_has_a_protocol_in_common(
    protocol_type: str | None, offers: tuple[str, ...], answer: Answer
) -> None:
    """`throwIfClassicProtocolIsNotSupported`; a source that knows nothing of protocols says nothing of them."""
    stage = Stage()
    stage.classic()
    stage.beat(1_000, "n", 0)
    protocols = tuple(Protocol(name, "x") for name in offers)
    assert stage.join(2_000, "d", protocol_type=protocol_type, protocols=protocols) is answer
    assert list(stage.group.members) == (["c", "n", "d"] if answer is Answer.NONE else ["c", "n"])


@pytest.mark.parametrize(
    ("protocol_type", "name", "version", "answer"),
    [
        ("consumer", "range", 5, Answer.NONE),
        (None, None, 4, Answer.NONE),
        (None, None, 5, Answer.INCONSISTENT_GROUP_PROTOCOL),
        ("consumer", "sticky", 5, Answer.INCONSISTENT_GROUP_PROTOCOL),
        ("connect", "range", 5, Answer.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_sync_names_the_protocol_of_its_join(
    protocol_type: str | None, name: str | None, version: int, answer: Answer
) -> None:
    """`throwIfClassicProtocolUnmatched`: another one is refused, and the sync timer runs on."""
    stage = Stage(group_consumer_session_timeout_ms=100_000)
    stage.beat(0, "n", 0, answer_member_epoch=2)
    stage.join(1_000, "c")
    synced = stage.event(
        1_100,
        EventType.SYNC,
        "c",
        generation_id=3,
        protocol_type=protocol_type,
        protocol_name=name,
        api_version=version,
    )
    assert synced is answer
    stage.manager.advance(T0 + 4_000)
    assert len(stage.said(Kind.CLASSIC_MEMBER_SYNC_TIMEOUT)) == (answer is not Answer.NONE)


def test_full_consumer_group_hands_out_no_ids() -> None:
    """`throwIfConsumerGroupIsFull` comes before MEMBER_ID_REQUIRED."""
    stage = Stage(group_consumer_max_size=1)
    stage.beat(0, "n", 0, answer_member_epoch=2)
    assert stage.join(1_000, "c", api_version=9) is Answer.GROUP_MAX_SIZE_REACHED
