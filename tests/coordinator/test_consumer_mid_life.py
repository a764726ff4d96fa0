"""Consumer groups that the log meets in the middle of their life, with members of the classic protocol in them.

Kafka knows all members; here a member is known from the first request of it that the log has. Each test names the
method of Kafka's whose answer the request had.

| what is seen of a classic member | Kafka's `GroupMetadataManager` | here |
|---|---|---|
| heartbeat, sync | `validateConsumerGroupMember`: it is one | `consumer_takeover.take_over_classic` |
| its session | `scheduleConsumerGroupSessionTimeout`, as it joined | `default_session_timeout_ms` |
| it has to join again | `scheduleConsumerGroupJoinTimeoutIfAbsent`, as it joined | no timer, the session is all |
| generation after a join | `throwIfGenerationIdUnmatched` | `consumer_takeover.take_generation` |
| join under an id of before | `hasMemberSubscriptionChanged`: no bump | `consumer_takeover.joined_before_log` |
| heartbeat of the new protocol, in a seeming classic group | accepted: a consumer group | `recognize_consumer_group` |
| last member of the new protocol goes | `convertToClassicGroup` | `convert_to_classic_group`, unconfirmed |
"""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.group_stage import T0, Stage
from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.epochs.model import EpochGroup, TimerName
from heartwheel.engine.rules.model import Group, GroupKind, GroupState
from heartwheel.wire.events import EventType, Leaving
from heartwheel.wire.verdicts import Kind
from support.epoch_logs import EpochLog

ENDS = (
    Kind.MEMBER_EXPIRED,
    Kind.CLASSIC_MEMBER_JOIN_TIMEOUT,
    Kind.CLASSIC_MEMBER_SYNC_TIMEOUT,
    Kind.MEMBER_REMOVED_AT_JOIN,
)
SESSION_MS = 45_000
LONG: dict[str, Any] = {"group_consumer_session_timeout_ms": 10_000_000}


def _met(**settings: Any) -> Stage:
    """Meet a group at epoch 7 by a heartbeat of a member `n` of the new protocol, as a broker answered it."""
    stage = Stage(**{**LONG, **settings})
    assert stage.beat(0, "n", 7, answer_member_epoch=7) is Answer.NONE
    return stage


def _beat(stage: Stage, at_ms: int, member: str, generation: int, **fields: Any) -> Answer:
    return stage.event(at_ms, EventType.HEARTBEAT, member, generation_id=generation, **fields)


def _sync(stage: Stage, at_ms: int, member: str, generation: int, **fields: Any) -> Answer:
    return stage.event(at_ms, EventType.SYNC, member, generation_id=generation, **fields)


def _rejoin(stage: Stage, at_ms: int, member: str, **fields: Any) -> Answer:
    return stage.join(at_ms, member, sender=member, api_version=9, **fields)


def _epochs(stage: Stage) -> EpochGroup:
    assert isinstance(stage.group, EpochGroup)
    return stage.group


# Heartbeats of members whose join was not seen


@pytest.mark.parametrize("kind", [EventType.HEARTBEAT, EventType.SYNC])
@pytest.mark.parametrize("instance", [None, "i"])
def test_classic_member_of_a_known_consumer_group_is_taken_over(kind: EventType, instance: str | None) -> None:
    """`classicGroupHeartbeatToConsumerGroup`, `classicGroupSyncToConsumerGroup`: silently, with the assumed session."""
    stage = _met()
    before = len(stage.verdicts)
    assert stage.event(1_000, kind, "c", generation_id=7, group_instance_id=instance) is Answer.NONE
    assert (list(_epochs(stage).members), len(stage.verdicts)) == (["n", "c"], before)
    stage.manager.advance(T0 + 100_000)
    assert stage.said(*ENDS) == [("member_expired", "c", 1_000 + SESSION_MS)]
    assert stage.said(Kind.EPOCH_BUMPED)[-1] == ("epoch_bumped", None, 1_000 + SESSION_MS)


def test_commit_brings_nobody() -> None:
    """It does not say which protocol its sender speaks, and keeps nobody alive (`OffsetMetadataManager`)."""
    stage = _met()
    stage.event(1_000, EventType.COMMIT, "c", generation_id=7)
    assert list(_epochs(stage).members) == ["n"]


def test_heartbeat_without_generation_brings_nobody() -> None:
    """A worker without a protocol is no member of a consumer group."""
    stage = _met()
    assert _beat(stage, 1_000, "w", -1) is Answer.UNKNOWN_MEMBER_ID


def test_who_has_gone_is_not_met_again() -> None:
    """A heartbeat of a member that has expired is refused, as Kafka refuses it: it has to join."""
    stage = _met()
    _beat(stage, 1_000, "c", 7)
    stage.manager.advance(T0 + 60_000)
    assert _beat(stage, 60_100, "c", 7) is Answer.UNKNOWN_MEMBER_ID


def test_full_group_refuses_a_member_met_in_mid_life() -> None:
    """A group never holds more members than `group_consumer_max_size`."""
    stage = _met(group_consumer_max_size=2)
    assert _beat(stage, 100, "c", 7) is Answer.NONE
    assert _beat(stage, 200, "d", 7) is Answer.GROUP_MAX_SIZE_REACHED


def test_group_whose_beginning_was_seen_has_no_unseen_members() -> None:
    """UNKNOWN_MEMBER_ID to a stranger, as Kafka says it (`validateConsumerGroupMember`)."""
    stage = Stage()
    stage.beat(0, "n", 0, answer_member_epoch=2)
    assert _beat(stage, 1_000, "c", 2) is Answer.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("answer", "is_older"), [(2, False), (3, True), (8, True)])
def test_first_join_shows_by_its_answer_that_a_group_is_older(answer: int, *, is_older: bool) -> None:
    """A new group answers its first join with 2; a later one is no storm of new epochs but a group in mid-life."""
    stage = Stage()
    stage.beat(0, "n", 0, answer_member_epoch=answer)
    assert [v.epoch for v in stage.verdicts if v.kind is Kind.EPOCH_BUMPED] == [answer]
    heard = _beat(stage, 100, "c", answer)
    assert heard is (Answer.NONE if is_older else Answer.UNKNOWN_MEMBER_ID)


# Rebalances


def test_member_met_while_it_has_to_join_again_has_its_session_alone() -> None:
    """Its rebalance timeout came with a join that was not seen: who beats, however long, is not ended by a guess."""
    stage = _met()
    for at_ms in range(0, 1_000_000, 5_000):
        answer = _beat(stage, at_ms, "c", 6)
        assert answer is Answer.REBALANCE_IN_PROGRESS
    assert set(_epochs(stage).members["c"].timers) == {TimerName.SESSION}
    assert stage.said(*ENDS) == []


def test_join_that_is_seen_brings_its_timeouts() -> None:
    """`classicGroupJoinToConsumerGroup`: from the first join on nothing of the member is assumed."""
    stage = _met()
    _beat(stage, 1_000, "c", 6)
    assert _rejoin(stage, 2_000, "c") is Answer.NONE
    assert _sync(stage, 2_100, "c", 7) is Answer.NONE
    stage.beat(2_200, "n2", 0, answer_member_epoch=8)
    assert _beat(stage, 3_000, "c", 7) is Answer.REBALANCE_IN_PROGRESS
    assert _epochs(stage).members["c"].timers[TimerName.JOIN].deadline_ms == T0 + 5_000
    stage.manager.advance(T0 + 20_000)
    assert stage.said(*ENDS) == [("classic_member_join_timeout", "c", 5_000)]


def test_member_that_joins_again_and_does_not_sync_is_fenced() -> None:
    """`scheduleConsumerGroupSyncTimeout`: the first thing seen of it is the join, which has the rebalance timeout."""
    stage = _met()
    assert _rejoin(stage, 1_000, "c") is Answer.NONE
    stage.manager.advance(T0 + 20_000)
    assert stage.said(*ENDS) == [("classic_member_sync_timeout", "c", 3_000)]


@pytest.mark.parametrize("instance", [None, "i"])
def test_join_under_an_id_of_before_moves_no_epoch(instance: str | None) -> None:
    """`hasMemberSubscriptionChanged`: it is a member already; were the epoch to move, all others would owe a join."""
    stage = _met()
    assert _rejoin(stage, 1_000, "c", group_instance_id=instance) is Answer.NONE
    assert (_epochs(stage).epoch, stage.said(Kind.EPOCH_BUMPED)) == (7, [])
    assert stage.said(Kind.MEMBER_JOINED)[-1] == ("member_joined", "c", 1_000)


def test_join_under_an_id_that_was_just_handed_out_is_a_new_member() -> None:
    """The first join without an id is answered with one (KIP-394), so who joins with it was no member before."""
    stage = _met()
    assert stage.join(1_000, "c", api_version=9) is Answer.MEMBER_ID_REQUIRED
    assert _beat(stage, 1_010, "c", 7) is Answer.UNKNOWN_MEMBER_ID
    assert _rejoin(stage, 1_020, "c") is Answer.NONE
    assert (_epochs(stage).epoch, stage.said(Kind.EPOCH_BUMPED)) == (8, [("epoch_bumped", None, 1_020)])


def test_static_member_that_returns_without_its_id_moves_no_epoch() -> None:
    """Whom it replaces was not seen; `replaceMember` moves none either."""
    stage = _met()
    assert stage.join(1_000, "c2", group_instance_id="i", api_version=9) is Answer.NONE
    assert (_epochs(stage).epoch, list(stage.group.members)) == (7, ["n", "c2"])


# The generation after a join, which no event says


@pytest.mark.parametrize(
    ("generation", "epoch", "why"),
    [
        (7, 7, "the target's epoch"),
        (6, 6, "it has to give partitions back first: UNREVOKED_PARTITIONS"),
        (9, 9, "the topics had changed, which no request shows"),
    ],
)
def test_what_a_member_says_after_its_join_tells_its_epoch(generation: int, epoch: int, why: str) -> None:
    """`throwIfGenerationIdUnmatched` lets only that one through, so the sync ends the wait for it."""
    stage = _met()
    _beat(stage, 500, "c", 6)
    _rejoin(stage, 1_000, "c")
    assert _sync(stage, 1_100, "c", generation) is Answer.NONE, why
    member = _epochs(stage).members["c"]
    assert (member.epoch, TimerName.SYNC in member.timers, member.unrevoked) == (epoch, False, generation == 6)
    assert _epochs(stage).epoch == max(7, generation)


def test_earlier_generation_than_the_one_before_is_stale() -> None:
    """A member cannot fall behind the epoch that it had: such a sync keeps nobody alive."""
    stage = _met()
    _beat(stage, 500, "c", 6)
    _rejoin(stage, 1_000, "c")
    assert _sync(stage, 1_100, "c", 5) is Answer.ILLEGAL_GENERATION


@pytest.mark.parametrize(("generation", "answer"), [(6, Answer.ILLEGAL_GENERATION), (8, Answer.NONE)])
def test_later_generation_shows_a_join_that_was_not_seen(generation: int, answer: Answer) -> None:
    """A gap of the feed may hide one; an earlier generation is stale."""
    stage = _met()
    _beat(stage, 500, "c", 7)
    assert _beat(stage, 1_000, "c", generation) is answer


def test_group_followed_from_its_beginning_believes_generations_up_to_its_epoch() -> None:
    """A member cannot be at an epoch that the group has not had (`throwIfGenerationIdUnmatched`)."""
    stage = Stage(**LONG)
    stage.beat(0, "n", 0, answer_member_epoch=2)
    stage.join(100, "c")
    _sync(stage, 200, "c", 3)
    stage.beat(300, "n", 2, answer_member_epoch=4)
    assert _beat(stage, 400, "c", 5) is Answer.ILLEGAL_GENERATION
    assert _beat(stage, 500, "c", 4) is Answer.NONE


# The order in which the protocols are heard


def test_classic_heartbeats_first_then_the_new_protocol() -> None:
    """Accepted above epoch 0, so a consumer group all the time: nothing is said, and sessions run on as they were."""
    stage = Stage(**LONG)
    _beat(stage, 0, "c", 6)
    _beat(stage, 1_000, "d", 7)
    said = len(stage.verdicts)
    assert stage.beat(2_000, "n", 7, answer_member_epoch=7) is Answer.NONE
    assert (list(_epochs(stage).members), _epochs(stage).epoch) == (["c", "d", "n"], 7)
    assert [v.kind for v in stage.verdicts[said:]] == []
    stage.manager.advance(T0 + 100_000)
    assert stage.said(*ENDS) == [("member_expired", "c", SESSION_MS), ("member_expired", "d", 1_000 + SESSION_MS)]


def test_members_that_were_heard_at_different_generations_are_all_kept_alive() -> None:
    """Each is at an epoch of its own; a loaded group knows one generation, a consumer group does not."""
    stage = Stage(**LONG)
    _beat(stage, 0, "c", 6)
    _beat(stage, 1_000, "d", 8)
    stage.beat(2_000, "n", 8, answer_member_epoch=8)
    assert _beat(stage, 3_000, "c", 6) is Answer.REBALANCE_IN_PROGRESS
    assert _beat(stage, 3_000, "d", 8) is Answer.NONE
    ends = {name: m.timers[TimerName.SESSION].deadline_ms - T0 for name, m in _epochs(stage).members.items()}
    assert (ends["c"], ends["d"]) == (3_000 + SESSION_MS, 3_000 + SESSION_MS)


def test_join_of_the_new_protocol_is_an_upgrade_of_a_loaded_group() -> None:
    """A heartbeat at epoch 0 proves nothing of before: by `convertToConsumerGroup` it is the first of its protocol."""
    stage = Stage(**LONG)
    _beat(stage, 0, "c", 7)
    stage.beat(1_000, "n", 0, answer_member_epoch=8)
    assert stage.said(Kind.GROUP_UPGRADED, Kind.EPOCH_BUMPED) == [
        ("group_upgraded", None, 1_000),
        ("epoch_bumped", None, 1_000),
    ]
    assert _beat(stage, 2_000, "c", 7) is Answer.REBALANCE_IN_PROGRESS
    stage.manager.advance(T0 + 2_000 + SESSION_MS)
    assert stage.said(*ENDS) == [("member_expired", "c", 2_000 + SESSION_MS)]


def test_group_met_by_a_classic_join_is_recognized_by_an_accepted_heartbeat() -> None:
    """It seemed a new classic group with a join phase, of which there was none: who was parked has a whole session."""
    stage = Stage(**LONG, group_initial_rebalance_delay_ms=3_000)
    stage.join(0, "c")
    assert isinstance(stage.group, Group)
    assert stage.beat(1_000, "n", 7) is Answer.GROUP_ID_NOT_FOUND
    assert stage.beat(1_000, "n", 7, answer_member_epoch=7) is Answer.NONE
    assert stage.said(Kind.GROUP_UPGRADED) == []
    assert _sync(stage, 1_100, "c", 7) is Answer.NONE
    assert _epochs(stage).members["c"].timers[TimerName.SESSION].length_ms == 6_000


def test_accepted_heartbeat_in_a_classic_group_that_was_followed_shows_a_missed_upgrade() -> None:
    """Kafka accepts none above epoch 0 in a classic group (`GROUP_ID_NOT_FOUND`), so it has become a consumer group."""
    stage = Stage(**LONG)
    stage.classic()
    assert stage.beat(1_000, "n", 3, answer_member_epoch=3) is Answer.NONE
    assert stage.said(Kind.GROUP_UPGRADED) == [("group_upgraded", None, 1_000)]


# Leaves, and the way back


def test_leave_of_a_member_met_in_mid_life() -> None:
    """`classicGroupLeaveToConsumerGroup`: the epoch moves. Of a member that was not seen the leave changes nothing."""
    stage = _met()
    _beat(stage, 1_000, "c", 7)
    assert stage.event(2_000, EventType.LEAVE, "d") is Answer.UNKNOWN_MEMBER_ID
    assert stage.event(2_000, EventType.LEAVE, leaving=(Leaving("c"),)) is Answer.NONE
    assert stage.said(Kind.MEMBER_LEFT, Kind.EPOCH_BUMPED) == [
        ("member_left", "c", 2_000),
        ("epoch_bumped", None, 2_000),
    ]


def test_administrator_removes_members_of_either_protocol() -> None:
    """`classicGroupLeaveToConsumerGroup` takes out whom it names; if only classic ones stay, the group is classic."""
    stage = _met()
    _beat(stage, 1_000, "c", 7)
    assert stage.event(2_000, EventType.LEAVE, leaving=(Leaving("n"),)) is Answer.NONE
    assert stage.said(Kind.MEMBER_LEFT, Kind.GROUP_DOWNGRADED, Kind.EPOCH_BUMPED) == [
        ("member_left", "n", 2_000),
        ("group_downgraded", None, 2_000),
    ]


def test_downgraded_group_is_followed_to_the_generation_that_it_has() -> None:
    """The epoch may have moved for a cause that is in no request: whoever syncs at a later one is alive."""
    stage = _met()
    _beat(stage, 1_000, "c", 7)
    stage.beat(2_000, "n", -1, answer_member_epoch=-1)
    group = stage.group
    assert isinstance(group, Group)
    assert (group.kind, group.state) == (GroupKind.CLASSIC, GroupState.PREPARING_REBALANCE)
    assert group.members["c"].rebalance_timeout_ms == 300_000
    _rejoin(stage, 2_500, "c")
    for at_ms in range(3_000, 100_000, 3_000):
        assert _beat(stage, at_ms, "c", 9) is Answer.NONE
    assert stage.said(*ENDS) == []


def test_member_not_seen_yet_takes_part_in_the_downgraded_group() -> None:
    """Its first sign is the join that the rebalance of the downgrade asks for."""
    stage = _met()
    _beat(stage, 1_000, "c", 7)
    stage.beat(2_000, "n", -1, answer_member_epoch=-1)
    assert _rejoin(stage, 2_100, "d") is Answer.PARKED
    assert list(stage.group.members) == ["c", "d"]


def test_classic_member_of_a_group_whose_others_have_all_gone_makes_it_a_loaded_one() -> None:
    """Who was last seen of the new protocol has left, so what the group is now, is a classic group in mid-life."""
    stage = _met()
    stage.beat(1_000, "n", -1, answer_member_epoch=-1)
    assert _beat(stage, 2_000, "c", 7) is Answer.NONE
    group = stage.group
    assert isinstance(group, Group)
    assert (group.kind, list(group.members)) == (GroupKind.LOADED, ["c"])


def test_static_classic_member_that_returns_does_not_make_the_group_classic() -> None:
    """`validateOnlineDowngradeWithReplacedMember`: only the return of one that spoke the new protocol does."""
    stage = _met()
    _beat(stage, 1_000, "c", 7, group_instance_id="i")
    _rejoin(stage, 1_500, "n")
    stage.join(2_000, "d", group_instance_id="i")
    assert stage.said(Kind.GROUP_DOWNGRADED) == []


# Replays of a broker's request log, which know the answers


@pytest.mark.parametrize("first", ["c", "n"])
def test_replay_meets_both_protocols_in_either_order(first: str) -> None:
    """Nothing is said as they are met; and who was answered REBALANCE_IN_PROGRESS is a member, too."""
    log = EpochLog(group_consumer_session_timeout_ms=10_000_000)
    for at_ms, member in ((0, first), (100, "n" if first == "c" else "c")):
        if member == "n":
            log.ok(at_ms, "n", 7, 7)
        else:
            log.line(at_ms, type="heartbeat", member_id="c", generation_id=7, error="NONE", api_version=4)
    log.line(200, type="heartbeat", member_id="d", generation_id=6, error="REBALANCE_IN_PROGRESS", api_version=4)
    log.line(3_000, type="heartbeat", member_id="c", generation_id=7, error="NONE", api_version=4)
    log.line(3_100, type="heartbeat", member_id="e", generation_id=5, error="UNKNOWN_MEMBER_ID", api_version=4)
    assert log.said(100_000) == [
        ("member_expired", "d", 200 + SESSION_MS),
        ("epoch_bumped", 8, 200 + SESSION_MS),
        ("member_expired", "c", 3_000 + SESSION_MS),
        ("epoch_bumped", 9, 3_000 + SESSION_MS),
    ]


def test_replay_knows_whose_id_was_just_handed_out() -> None:
    """A join under it is that of a new member, one under another id that of a member from before the log."""
    log = EpochLog(group_consumer_session_timeout_ms=10_000_000)
    log.ok(0, "n", 7, 7)
    join: dict[str, Any] = {"type": "join", "api_version": 9, "session_timeout_ms": 6_000, "protocol_type": "consumer"}
    join |= {"rebalance_timeout_ms": 2_000, "protocols": [{"name": "range", "metadata_sha1": "1"}]}
    log.line(100, **join, member_id="old", error="NONE", response_generation_id=7)
    log.line(200, **join, member_id="", assigned_member_id="new", error="MEMBER_ID_REQUIRED")
    log.line(300, **join, member_id="new", error="NONE", response_generation_id=8)
    bumped = [(v.epoch, v.joined) for v in log.verdicts(400) if v.kind is Kind.EPOCH_BUMPED]
    assert bumped == [(8, ("new",))]
