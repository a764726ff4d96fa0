"""Classic members inside a consumer group, and groups that change their protocol and change it back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from heartwheel.engine.rules.epochs.config import EpochConfig
from support.epoch_logs import EpochLog

PROTOCOLS = [{"name": "range", "metadata_sha1": "1"}]
ENDS = (
    "member_expired",
    "member_fenced_rebalance_timeout",
    "classic_member_join_timeout",
    "classic_member_sync_timeout",
)


def _classic(log: EpochLog, at_ms: int, kind: str, member: str, **fields: Any) -> None:
    log.line(at_ms, **{"type": kind, "member_id": member, "error": "NONE", "api_version": 9, **fields})


def _join(log: EpochLog, at_ms: int, member: str, generation: int, session_ms: int = 6_000, **fields: Any) -> None:
    _classic(
        log,
        at_ms,
        "join",
        member,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=2_000,
        protocol_type="consumer",
        protocols=PROTOCOLS,
        response_generation_id=generation,
        **fields,
    )


def _upgraded() -> EpochLog:
    """Let a classic group of `c1` become a consumer group as `n1` joins, 5 s after its start."""
    log = EpochLog(group_consumer_session_timeout_ms=100_000, group_initial_rebalance_delay_ms=0)
    _join(log, 0, "", -1, error="MEMBER_ID_REQUIRED", assigned_member_id="c1")
    _join(log, 10, "c1", 1, leader="c1", answer_ms=log_ms(20))
    _classic(log, 30, "sync", "c1", generation_id=1, protocol_type="consumer", protocol_name="range")
    _classic(log, 4_000, "heartbeat", "c1", generation_id=1)
    log.ok(5_000, "n1", 0, 2, subscribed_topics=["t"], owned={}, assignment={}, rebalance_timeout_ms=2_000)
    return log


def log_ms(at_ms: int) -> int:
    """Tell the epoch milliseconds of a moment of a log."""
    log = EpochLog()
    log.line(at_ms)
    moment: int = log.lines[0]["t_ms"]
    return moment


def test_upgrade_gives_classic_members_a_fresh_session_of_their_own_length() -> None:
    """The generation is everybody's epoch; the member of the new protocol bumps it (`convertToConsumerGroup`)."""
    log = _upgraded()
    assert log.said(20_000, "group_upgraded", "member_joined", "epoch_bumped", *ENDS)[:4] == [
        ("group_upgraded", 1, 5_000),
        ("member_joined", "n1", 5_000),
        ("epoch_bumped", 2, 5_000),
        ("member_expired", "c1", 11_000),
    ]


def test_heartbeat_that_is_told_to_rejoin_keeps_alive_and_arms_the_join_timer_once() -> None:
    """`classicGroupHeartbeatToConsumerGroup`: the second REBALANCE_IN_PROGRESS does not restart the timer."""
    log = _upgraded()
    for at_ms in (6_000, 7_000, 7_500):
        _classic(log, at_ms, "heartbeat", "c1", generation_id=1, error="REBALANCE_IN_PROGRESS")
    [end] = [v for v in log.verdicts(20_000) if v.kind.value in ENDS]
    assert (end.kind.value, end.member_id, end.time_ms - log_ms(0)) == ("classic_member_join_timeout", "c1", 8_000)
    assert end.reason == "the classic member failed to join within the rebalance timeout"


def test_join_stops_the_join_timer_and_starts_the_sync_timer() -> None:
    """`classicGroupJoinToConsumerGroup`; each join is logged."""
    log = _upgraded()
    _classic(log, 6_000, "heartbeat", "c1", generation_id=1, error="REBALANCE_IN_PROGRESS")
    _join(log, 6_500, "c1", 2)
    [end] = [v for v in log.verdicts(20_000) if v.kind.value in ENDS]
    assert (end.kind.value, end.member_id, end.time_ms - log_ms(0)) == ("classic_member_sync_timeout", "c1", 8_500)
    joined = [v for v in log.verdicts(20_000) if v.kind.value == "member_joined"]
    assert joined[-1].reason == "[GroupId g] Member c1 joins the consumer group using the classic protocol."


def test_sync_stops_the_sync_timer_and_keeps_alive() -> None:
    """`classicGroupSyncToConsumerGroup`: then the session of the member itself is all that runs."""
    log = _upgraded()
    _classic(log, 6_000, "heartbeat", "c1", generation_id=1, error="REBALANCE_IN_PROGRESS")
    _join(log, 6_500, "c1", 2)
    _classic(log, 6_600, "sync", "c1", generation_id=2)
    assert log.said(20_000, *ENDS) == [("member_expired", "c1", 12_600)]


def test_classic_rules_decide_without_answers() -> None:
    """A stale generation keeps nobody alive, and a member behind the group is asked to join again."""
    log = _upgraded()
    log.line(7_000, type="heartbeat", member_id="c1", generation_id=9)
    log.line(8_000, type="heartbeat", member_id="c1", generation_id=1)
    assert log.said(20_000, *ENDS) == [("classic_member_join_timeout", "c1", 10_000)]


def test_new_classic_member_moves_the_epoch() -> None:
    """A join into a consumer group is never parked, and the new member's subscription is new to the group."""
    log = _upgraded()
    _join(log, 6_000, "", -1, error="MEMBER_ID_REQUIRED", assigned_member_id="c2")
    _join(log, 6_100, "c2", 3)
    _classic(log, 6_200, "sync", "c2", generation_id=3)
    assert log.said(7_000, "member_joined", "epoch_bumped")[2:] == [
        ("member_joined", "c2", 6_100),
        ("epoch_bumped", 3, 6_100),
    ]


def test_classic_member_leaves_by_a_leave_of_its_own() -> None:
    """`classicGroupLeaveToConsumerGroup`, in the words of 4.3, and one bump for a batch."""
    log = _upgraded()
    _classic(log, 6_000, "leave", "", leaving=[{"member_id": "c1", "reason": "bye"}])
    [left] = [v for v in log.verdicts(7_000) if v.kind.value == "member_left"]
    assert left.reason == "[Group g] Member c1 has left group through explicit `LeaveGroup` request; client reason: bye"
    assert log.said(7_000, "epoch_bumped")[-1] == ("epoch_bumped", 3, 6_000)


def test_last_member_of_the_new_protocol_makes_the_group_classic_again() -> None:
    """A rebalance instead of a bump (`convertToClassicGroup`), and fresh sessions: `c1` has to join again."""
    log = _upgraded()
    _classic(log, 5_500, "heartbeat", "c1", generation_id=1, error="REBALANCE_IN_PROGRESS")
    log.ok(6_000, "n1", -1, -1)
    said = log.verdicts(30_000)
    kinds = [v.kind.value for v in said if v.time_ms - log_ms(0) >= 6_000]
    assert kinds[:3] == ["member_left", "group_downgraded", "rebalance_started"]
    started = next(v for v in said if v.kind.value == "rebalance_started" and v.time_ms == log_ms(6_000))
    assert (started.reason, started.generation_id) == ("Downgrade group g from consumer to classic.", 2)
    assert [v.epoch for v in said if v.kind.value == "epoch_bumped"] == [2]


def test_downgraded_group_goes_on_by_the_classic_rules() -> None:
    """The member joins the classic group, and is expired by its session there."""
    log = _upgraded()
    log.ok(6_000, "n1", -1, -1)
    _join(log, 6_500, "c1", 3, leader="c1", answer_ms=log_ms(6_501))
    _classic(log, 6_600, "sync", "c1", generation_id=3, protocol_type="consumer", protocol_name="range")
    said = [(v.kind.value, v.generation_id) for v in log.verdicts(30_000) if v.time_ms - log_ms(0) > 6_000]
    assert ("rebalance_completed", 3) in said
    assert ("member_expired", 3) in said


def test_policy_that_forbids_the_way_back_bumps_instead() -> None:
    """`group.consumer.migration.policy` says which ways are open."""
    log = _upgraded()
    log.epochs = EpochConfig(replace(log.config, group_consumer_migration_policy="upgrade"))
    log.ok(6_000, "n1", -1, -1)
    assert log.said(6_100, "group_downgraded", "epoch_bumped")[-1] == ("epoch_bumped", 3, 6_000)


def test_empty_group_takes_the_protocol_of_whom_it_meets_next() -> None:
    """An Empty classic group leaves nothing; the new group begins with the first epoch."""
    log = EpochLog(group_initial_rebalance_delay_ms=0)
    _join(log, 0, "", -1, error="MEMBER_ID_REQUIRED", assigned_member_id="c1")
    _join(log, 10, "c1", 1, leader="c1", answer_ms=log_ms(20))
    _classic(log, 30, "sync", "c1", generation_id=1, protocol_type="consumer", protocol_name="range")
    _classic(log, 40, "leave", "", leaving=[{"member_id": "c1"}])
    log.ok(1_000, "n1", 0, 2, subscribed_topics=["t"])
    assert log.said(2_000, "group_upgraded", "epoch_bumped") == [("epoch_bumped", 2, 1_000)]


def test_static_member_that_returns_as_a_classic_one_makes_the_group_classic_without_a_rebalance() -> None:
    """`validateOnlineDowngradeWithReplacedMemberId`: nobody went, so nobody has to join again."""
    log = EpochLog()
    log.ok(0, "n1", 0, 2, group_instance_id="i", subscribed_topics=["t"])
    log.ok(500, "n1", -2, -2, group_instance_id="i")
    _join(log, 1_000, "", 2, group_instance_id="i", assigned_member_id="c1")
    said = log.said(20_000)
    assert [kind for kind, _, at_ms in said if at_ms >= 1_000][:2] == ["static_replaced", "group_downgraded"]
    assert ("member_expired", "c1", 7_000) in said
