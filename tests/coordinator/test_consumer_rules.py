"""Groups that go by member epochs, rule by rule; each test names the method of Kafka's that it mirrors.

| rule | Kafka's `GroupMetadataManager` | here |
|---|---|---|
| session armed by each accepted heartbeat | `scheduleConsumerGroupSessionTimeout` | `EpochContext.arm_session` |
| length of a session | `consumerGroupSessionTimeoutMs` | `EpochConfig.session_timeout_ms` |
| commits keep nobody alive | `OffsetMetadataManager.commitOffset` | `replay.epoch_lane` |
| epochs | `throwIfConsumerGroupMemberEpochIsInvalid` | `consumer_epochs.check_epoch` |
| epochs of share groups | `throwIfShareGroupMemberEpochIsInvalid` | `consumer_epochs.check_epoch` |
| instance ids | `throwIfInstanceIdIsUnreleased`, `throwIfInstanceIdIsFenced` | `consumer_epochs` |
| joins | `getOrMaybeSubscribeDynamicConsumerGroupMember` | `consumer_heartbeat` |
| static members | `getOrMaybeSubscribeStaticConsumerGroupMember`, `replaceMember` | `consumer_heartbeat` |
| leaves | `consumerGroupLeave`, `consumerGroupStaticMemberGroupLeave`, `shareGroupLeave` | `consumer_leave` |
| fences | `consumerGroupFenceMember`, `shareGroupFenceMember` | `consumer_leave.fence_member` |
| revocation | `maybeReconcile`, `scheduleConsumerGroupRebalanceTimeout` | `consumer_reconcile` |
| epoch bumps | `hasMemberSubscriptionChanged`, `maybeUpdateRegularExpressions` | `consumer_target` |
| target assignments | `updateTargetAssignment` | `consumer_target` |
| classic members | `classicGroupJoinToConsumerGroup` and its twins | `consumer_classic` |
| their timers | `scheduleConsumerGroupJoinTimeoutIfAbsent`, `scheduleConsumerGroupSyncTimeout` | `consumer_classic` |
| conversions | `convertToConsumerGroup`, `convertToClassicGroup` | `consumer_migration` |
| loads | `onLoaded`, `onUnloaded` | `consumer_loading` |
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from heartwheel.engine.rules.config import GroupOverride
from heartwheel.engine.rules.epochs import classic as consumer_classic
from heartwheel.engine.rules.epochs import config as consumer_config
from heartwheel.engine.rules.epochs import context as consumer_context
from heartwheel.engine.rules.epochs import epochs as consumer_epochs
from heartwheel.engine.rules.epochs import heartbeat as consumer_heartbeat
from heartwheel.engine.rules.epochs import leave as consumer_leave
from heartwheel.engine.rules.epochs import loading as consumer_loading
from heartwheel.engine.rules.epochs import migration as consumer_migration
from heartwheel.engine.rules.epochs import reconcile as consumer_reconcile
from heartwheel.engine.rules.epochs import target as consumer_target
from heartwheel.engine.rules.epochs.target import CATCH_UP_MAX
from heartwheel.wire.events import RejectedError
from heartwheel.wire.group_heartbeats import decode_group_heartbeat
from support.epoch_logs import SESSION_MS, START_MS, EpochLog

RULES = (
    consumer_classic,
    consumer_config,
    consumer_context,
    consumer_epochs,
    consumer_heartbeat,
    consumer_leave,
    consumer_loading,
    consumer_migration,
    consumer_reconcile,
    consumer_target,
)
ALL, HALF = {"t": [0, 1, 2, 3]}, {"t": [0, 1]}
ENDS = (
    "member_expired",
    "member_fenced_rebalance_timeout",
    "classic_member_join_timeout",
    "classic_member_sync_timeout",
)


def test_table_names_what_the_rules_name() -> None:
    """Every method of the table stands in the docstring of the rule that mirrors it."""
    text = "\n".join(inspect.getsource(module) for module in RULES)
    table = (__doc__ or "").partition("|---|")[2]
    named = [name for row in table.splitlines()[1:-1] for name in re.findall(r"`(\w+)`", row.split("|")[2])]
    assert len(named) > 20
    assert [name for name in named if name not in text] == []


def _joined(log: EpochLog, *members: str, **fields: object) -> None:
    """Let members join one after the other, 10 ms apart, with everything assigned to the first."""
    for number, member in enumerate(members):
        assignment = ALL if number == 0 else {}
        log.ok(number * 10, member, 0, 2, subscribed_topics=["t"], owned={}, assignment=assignment, **fields)


# 1. Sessions


def test_session_runs_from_the_last_accepted_heartbeat() -> None:
    """A refused heartbeat and a commit keep nobody alive (`scheduleConsumerGroupSessionTimeout`)."""
    log = EpochLog()
    _joined(log, "a")
    log.ok(1_000, "a", 2, 2)
    log.beat(1_500, "a", 1, error="FENCED_MEMBER_EPOCH")
    log.beat(1_600, "a", 2, error="INVALID_REGULAR_EXPRESSION", subscribed_regex="(")
    log.line(1_700, type="offset_commit", member_id="a", member_epoch=2, error="NONE")
    log.line(1_800, type="commit", member_id="a", generation_id=2, error="NONE")
    assert log.said(10_000, *ENDS) == [("member_expired", "a", 1_000 + SESSION_MS)]


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_sessions_of_each_kind_of_group_have_their_own_setting(kind: str) -> None:
    """A share or a streams group does not go by the setting of consumer groups."""
    setting: dict[str, Any] = {f"group_{kind}_session_timeout_ms": 7_000}
    log = EpochLog(kind, **setting)
    _joined(log, "a")
    assert log.said(10_000, *ENDS) == [("member_expired", "a", 7_000)]


def test_changed_setting_does_not_touch_a_running_timer() -> None:
    """The length is the one that holds as the timer is armed (`consumerGroupSessionTimeoutMs`)."""
    name = "consumer.session.timeout.ms"
    overrides = (GroupOverride("g", name, 8_000, START_MS + 500), GroupOverride("g", name, None, START_MS + 2_000))
    log = EpochLog(overrides=overrides)
    _joined(log, "a", "b", "c")
    log.ok(1_000, "b", 2, 2)
    log.ok(1_000, "c", 2, 2)
    log.ok(2_500, "c", 2, 2)
    ends = [("member_expired", "a", 3_000), ("member_expired", "c", 5_500), ("member_expired", "b", 9_000)]
    assert log.said(20_000, *ENDS) == ends


# 2. Epoch 0 of a known member


def test_epoch_0_of_a_known_member_says_joins_again_and_nothing_more() -> None:
    """It stays the same member, no epoch moves, and the session is armed anew."""
    log = EpochLog()
    _joined(log, "a")
    log.ok(1_000, "a", 0, 2, subscribed_topics=["t"], owned={}, assignment=ALL)
    assert log.said(4_000) == [
        ("member_joined", "a", 0),
        ("epoch_bumped", 2, 0),
        ("target_computed", 2, 0),
        ("member_joined", "a", 1_000),
        ("member_expired", "a", 4_000),
        ("epoch_bumped", 3, 4_000),
    ]


def test_epoch_0_of_a_held_instance_id_is_refused_even_to_its_holder() -> None:
    """UNRELEASED_INSTANCE_ID until the holder has left for a while (`throwIfInstanceIdIsUnreleased`)."""
    log = EpochLog()
    for at_ms, member in ((0, "a"), (1_000, "a"), (2_000, "b")):
        log.beat(at_ms, member, 0, group_instance_id="i", subscribed_topics=["t"])
    assert log.said(10_000, "member_joined", "static_replaced", *ENDS) == [
        ("member_joined", "a", 0),
        ("member_expired", "a", SESSION_MS),
    ]


# 3. Epochs


@pytest.mark.parametrize(
    ("epoch", "owned", "is_heard"),
    [(3, None, True), (2, HALF, True), (2, None, False), (2, {"t": [9]}, False), (4, None, False), (1, HALF, False)],
)
def test_previous_epoch_needs_owned_inside_assigned(epoch: int, owned: dict[str, list[int]], is_heard: bool) -> None:  # noqa: FBT001 - a column of the table
    """A lost answer is forgiven, anything else is FENCED_MEMBER_EPOCH (`throwIfConsumerGroupMemberEpochIsInvalid`)."""
    log = EpochLog()
    _joined(log, "a")
    log.ok(1_000, "a", 2, 3)
    log.beat(2_000, "a", epoch, owned=owned)
    assert log.said(10_000, *ENDS) == [("member_expired", "a", (2_000 if is_heard else 1_000) + SESSION_MS)]


def test_previous_epoch_is_enough_in_a_share_group() -> None:
    """A share member says nothing of what it owns (`throwIfShareGroupMemberEpochIsInvalid`)."""
    log = EpochLog("share")
    _joined(log, "a")
    log.ok(1_000, "a", 2, 3)
    log.beat(2_000, "a", 2)
    assert log.said(10_000, *ENDS) == [("member_expired", "a", 5_000)]


def test_heartbeat_of_nobody_makes_no_member() -> None:
    """UNKNOWN_MEMBER_ID to who was fenced or never joined."""
    log = EpochLog()
    _joined(log, "a")
    log.beat(500, "b", 2)
    log.ok(2_900, "a", 2, 2)
    log.beat(7_000, "a", 2)
    assert log.said(20_000, *ENDS) == [("member_expired", "a", 5_900)]


# 4. Revocation


def _revoking(at_ms: int = 1_000, **fields: object) -> EpochLog:
    """Let `a` be asked to give half of its partitions back."""
    log = EpochLog(group_consumer_session_timeout_ms=100_000)
    _joined(log, "a", "b", rebalance_timeout_ms=2_000)
    log.ok(500, "a", 2, 2, owned=ALL)
    log.ok(at_ms, "a", 2, 2, **{"assignment": HALF, **fields})
    return log


def test_who_keeps_what_was_taken_is_fenced() -> None:
    """The timer starts with the answer that takes away; heartbeats and new epochs do not restart it."""
    log = _revoking()
    log.ok(1_500, "a", 2, 2)
    log.ok(1_600, "c", 0, 3, subscribed_topics=["t"], owned={}, assignment={})
    log.ok(1_900, "a", 2, 2, owned=ALL)
    [fenced] = [v for v in log.verdicts(10_000) if v.kind.value in ENDS]
    assert (fenced.kind.value, fenced.member_id, fenced.epoch) == ("member_fenced_rebalance_timeout", "a", 2)
    assert (fenced.time_ms - START_MS, fenced.timeout_ms) == (3_000, 2_000)
    assert fenced.reason == "it failed to transition from epoch 2 within 2000ms"


def test_revocation_is_acknowledged_by_owned() -> None:
    """`owned` without the partitions ends it (`ownsRevokedPartitions`)."""
    log = _revoking()
    log.ok(1_500, "a", 2, 3, owned=HALF)
    assert log.said(10_000, *ENDS) == []


def test_next_revocation_gets_a_new_timer_at_the_same_epoch() -> None:
    """An answer that acknowledges and takes away again starts the timer anew."""
    log = _revoking()
    log.ok(1_500, "a", 2, 2, owned=HALF, assignment={"t": [0]})
    assert log.said(10_000, *ENDS) == [("member_fenced_rebalance_timeout", "a", 3_500)]


def test_who_does_not_own_what_is_taken_gets_no_timer() -> None:
    """A member that reports less than it was assigned owes nothing."""
    assert _revoking(owned=HALF).said(10_000, *ENDS) == []


def test_revocation_takes_the_last_rebalance_timeout() -> None:
    """Not only the first one counts; -1 leaves it as it is."""
    log = EpochLog(group_consumer_session_timeout_ms=100_000)
    _joined(log, "a", rebalance_timeout_ms=2_000)
    log.ok(100, "a", 2, 2, owned=ALL, rebalance_timeout_ms=5_000)
    log.ok(1_000, "a", 2, 2, assignment=HALF, rebalance_timeout_ms=-1)
    assert log.said(20_000, *ENDS) == [("member_fenced_rebalance_timeout", "a", 6_000)]


def test_joining_again_acknowledges() -> None:
    """Who joins again owns nothing."""
    log = _revoking()
    log.ok(1_500, "a", 0, 3, owned={}, assignment=HALF, subscribed_topics=["t"])
    assert log.said(10_000, *ENDS) == []


def test_sources_that_know_no_partitions_say_revoking() -> None:
    """`revoking` alone starts and ends the timer."""
    log = EpochLog(group_consumer_session_timeout_ms=100_000)
    for member in ("a", "b"):
        log.ok(0, member, 0, 2, rebalance_timeout_ms=2_000)
        log.ok(1_000, member, 2, 2, revoking=True)
    log.ok(1_500, "a", 2, 2, revoking=True)
    log.ok(1_500, "b", 2, 3, revoking=False)
    assert log.said(10_000, *ENDS) == [("member_fenced_rebalance_timeout", "a", 3_000)]


def test_share_groups_have_no_revocation_timer() -> None:
    """Share groups take partitions away at once: the session is their only timer."""
    log = EpochLog("share", group_share_session_timeout_ms=100_000)
    _joined(log, "a", rebalance_timeout_ms=2_000)
    log.ok(1_000, "a", 2, 2, assignment=HALF)
    assert log.said(20_000, *ENDS) == []


def test_of_equal_deadlines_the_revocation_goes_first() -> None:
    """A heartbeat arms it before the session."""
    log = EpochLog(group_consumer_session_timeout_ms=2_000)
    _joined(log, "a", rebalance_timeout_ms=2_000)
    log.ok(1_000, "a", 2, 2, assignment=HALF)
    assert log.said(20_000, *ENDS) == [("member_fenced_rebalance_timeout", "a", 3_000)]


# 5. Static members


def _static_away(*, leaves_ms: int = 1_000) -> EpochLog:
    log = EpochLog()
    log.ok(0, "a", 0, 2, group_instance_id="i", subscribed_topics=["t"], owned={}, assignment=ALL)
    log.ok(leaves_ms, "a", -2, -2, group_instance_id="i")
    return log


def test_static_member_that_stays_away_expires_one_session_after_its_last_heartbeat() -> None:
    """Neither leaving for a while, nor doing so twice, nor a heartbeat afterwards moves the deadline."""
    log = _static_away()
    log.beat(1_500, "a", -2, group_instance_id="i")
    log.beat(2_000, "a", 2, group_instance_id="i")
    assert log.said(10_000, "static_left", *ENDS) == [
        ("static_left", "a", 1_000),
        ("static_left", "a", 1_500),
        ("member_expired", "a", SESSION_MS),
    ]


@pytest.mark.parametrize("new_id", ["b", "a"])
def test_static_member_returns_in_its_place(new_id: str) -> None:
    """No epoch moves; the old id's session ends for nobody, and the id may be the same (`replaceMember`)."""
    log = _static_away()
    log.ok(2_000, new_id, 0, 2, group_instance_id="i", subscribed_topics=["t"], owned={}, assignment=ALL)
    said = log.verdicts(4_000)
    [replaced] = [v for v in said if v.kind.value == "static_replaced"]
    assert (replaced.member_id, replaced.new_member_id) == ("a", new_id)
    assert [v.epoch for v in said if v.kind.value == "epoch_bumped"] == [2]
    assert log.said(10_000, *ENDS) == [("member_expired", new_id, 5_000)]


def test_static_member_that_was_fenced_joins_anew() -> None:
    """Kafka refuses a join under the id of who has not left. An accepted one comes after a fence, and replaces nobody.

    The fence is in no request; the epoch of the answer shows that the group moved on for it.
    """
    log = EpochLog()
    log.ok(0, "a", 0, 2, group_instance_id="i", subscribed_topics=["t"], owned={}, assignment=ALL)
    log.ok(2_000, "a", 0, 4, group_instance_id="i", subscribed_topics=["t"], owned={}, assignment=ALL)
    said = log.said(20_000, "member_joined", "static_replaced", "epoch_bumped", *ENDS)
    assert [(kind, who) for kind, who, _ in said if kind != "epoch_bumped"] == [
        ("member_joined", "a"),
        ("member_joined", "a"),
        ("member_expired", "a"),
    ]
    assert [epoch for kind, epoch, at_ms in said if kind == "epoch_bumped"] == [2, 3, 4, 5]


def test_a_join_that_was_passed_on_twice_replaces_nobody_else() -> None:
    """The group is at the epoch of the answer already: no fence moved it, so nothing moves."""
    log = EpochLog()
    for _ in range(2):
        log.ok(0, "a", 0, 2, group_instance_id="i", subscribed_topics=["t"], owned={}, assignment=ALL)
    assert [v.epoch for v in log.verdicts(1_000) if v.kind.value == "epoch_bumped"] == [2]


def test_old_id_of_a_replaced_member_is_fenced() -> None:
    """FENCED_INSTANCE_ID to whoever speaks with an instance id that is another's: it cannot even leave."""
    log = _static_away()
    log.ok(2_000, "b", 0, 2, group_instance_id="i", subscribed_topics=["t"], owned={}, assignment=ALL)
    log.beat(2_500, "a", -1, group_instance_id="i")
    log.beat(2_600, "a", 2, group_instance_id="i")
    assert log.said(10_000, "member_left", *ENDS) == [("member_expired", "b", 5_000)]


def test_static_member_may_leave_for_good() -> None:
    """Epoch -1 removes it like anybody."""
    log = EpochLog()
    log.ok(0, "a", 0, 2, group_instance_id="i", subscribed_topics=["t"])
    log.ok(1_000, "a", -1, -1, group_instance_id="i")
    assert log.said(10_000, "member_left", "epoch_bumped", *ENDS)[1:] == [
        ("member_left", "a", 1_000),
        ("epoch_bumped", 3, 1_000),
    ]


def test_revocation_timer_of_who_left_for_a_while_is_harmless() -> None:
    """It is guarded by the epoch that it was armed at (`scheduleConsumerGroupRebalanceTimeout`)."""
    log = EpochLog(group_consumer_session_timeout_ms=10_000)
    log.ok(0, "a", 0, 2, group_instance_id="i", subscribed_topics=["t"], assignment=ALL, rebalance_timeout_ms=2_000)
    log.ok(1_000, "a", 2, 2, group_instance_id="i", assignment=HALF)
    log.ok(1_500, "a", -2, -2, group_instance_id="i")
    assert log.said(20_000, *ENDS) == [("member_expired", "a", 11_000)]


# 6. Epochs of the group, and its targets


def test_target_waits_for_the_interval() -> None:
    """It is computed at the first heartbeat a second after the last one (`updateTargetAssignment`)."""
    log = EpochLog(group_consumer_session_timeout_ms=100_000)
    log.ok(0, "a", 0, 2, subscribed_topics=["t"])
    log.ok(400, "b", 0, 2, subscribed_topics=["t"])
    log.ok(900, "a", 2, 2)
    log.ok(1_100, "b", 2, 3)
    log.ok(1_500, "b", -1, -1)
    log.ok(2_000, "a", 2, 2)
    log.ok(2_200, "a", 2, 4)
    assert log.said(3_000, "epoch_bumped", "target_computed") == [
        ("epoch_bumped", 2, 0),
        ("target_computed", 2, 0),
        ("epoch_bumped", 3, 400),
        ("target_computed", 3, 1_100),
        ("epoch_bumped", 4, 1_500),
        ("target_computed", 4, 2_200),
    ]


def test_changed_subscription_moves_the_epoch() -> None:
    """The same topics in another order do not (`hasMemberSubscriptionChanged`)."""
    log = EpochLog()
    log.ok(0, "a", 0, 2, subscribed_topics=["t", "u"])
    log.ok(500, "a", 2, 2, subscribed_topics=["u", "t"])
    log.ok(1_000, "a", 2, 2, subscribed_topics=["t"])
    assert log.said(2_000, "epoch_bumped") == [("epoch_bumped", 2, 0), ("epoch_bumped", 3, 1_000)]


@pytest.mark.parametrize("kind", ["share", "streams"])
def test_removals_of_share_and_streams_groups_move_the_epoch_silently(kind: str) -> None:
    """The epoch moves, which the next join shows, but nothing is logged (`shareGroupFenceMember`)."""
    log = EpochLog(kind)
    log.ok(0, "a", 0, 2, subscribed_topics=["t"])
    log.ok(1_000, "a", -1, -1)
    log.beat(2_000, "b", 0, subscribed_topics=["t"])
    assert log.said(2_500, "epoch_bumped") == [("epoch_bumped", 2, 0), ("epoch_bumped", 4, 2_000)]


def test_answer_shows_an_epoch_that_no_request_caused() -> None:
    """Topics that changed, or a share group whose state is ready: seen by the answer."""
    log = EpochLog("share")
    log.ok(0, "a", 0, 2, subscribed_topics=["t"])
    log.ok(1_500, "a", 2, 3)
    assert log.said(2_000, "epoch_bumped", "target_computed")[2:] == [
        ("epoch_bumped", 3, 1_500),
        ("target_computed", 3, 1_500),
    ]


def test_first_target_of_a_streams_group_waits_for_company() -> None:
    """Nothing is computed before `group.streams.initial.rebalance.delay.ms` is over."""
    log = EpochLog("streams", group_streams_session_timeout_ms=100_000)
    log.beat(0, "a", 0, subscribed_topics=["t"])
    log.beat(1_000, "b", 0, subscribed_topics=["t"])
    assert log.said(5_000, "target_computed") == [("target_computed", 3, 3_000)]


# 7. Patterns


def test_new_pattern_moves_the_epoch_when_it_is_resolved() -> None:
    """Not at the heartbeat but 10 to 50 ms later; a pattern that is known does so at once."""
    log = EpochLog()
    log.ok(0, "a", 0, 1, subscribed_regex="t.*")
    log.ok(500, "b", 0, 2, subscribed_regex="t.*")
    assert log.said(1_000, "epoch_bumped") == [("epoch_bumped", 2, 25), ("epoch_bumped", 3, 500)]


# 9. Loads


def test_load_gives_whole_timers_to_all() -> None:
    """Static members that are away too; a pending revocation gets a whole rebalance timeout (`onLoaded`)."""
    log = EpochLog(group_consumer_session_timeout_ms=5_000)
    log.ok(0, "s", 0, 2, group_instance_id="i", subscribed_topics=["t"])
    log.ok(0, "a", 0, 2, subscribed_topics=["t"], assignment=ALL, rebalance_timeout_ms=2_000)
    log.ok(500, "s", -2, -2, group_instance_id="i")
    log.ok(1_000, "a", 2, 2, assignment=HALF)
    log.line(1_500, type="unload")
    log.beat(2_500, "a", 2)
    log.line(9_000, type="load")
    assert log.said(30_000, *ENDS) == [
        ("member_fenced_rebalance_timeout", "a", 11_000),
        ("member_expired", "s", 14_000),
    ]


# 10. Poll timeouts


def test_poll_timeout_is_a_leave_and_a_return_under_the_same_id() -> None:
    """A dynamic member leaves by -1 and joins again with its id."""
    log = EpochLog()
    _joined(log, "a")
    log.ok(1_000, "a", -1, -1)
    log.ok(1_500, "a", 0, 4, subscribed_topics=["t"])
    assert log.said(4_000, "member_joined", "member_left", "epoch_bumped", *ENDS) == [
        ("member_joined", "a", 0),
        ("epoch_bumped", 2, 0),
        ("member_left", "a", 1_000),
        ("epoch_bumped", 3, 1_000),
        ("member_joined", "a", 1_500),
        ("epoch_bumped", 4, 1_500),
    ]


def test_group_that_is_met_in_mid_life_is_taken_over() -> None:
    """Members of whom no join was seen expire like others; the log alone does not know the group's epoch before."""
    log = EpochLog()
    log.beat(0, "a", 7)
    log.beat(100, "b", 7)
    log.beat(2_000, "b", 7)
    assert log.said(20_000) == [
        ("member_expired", "a", 3_000),
        ("epoch_bumped", 8, 3_000),
        ("member_expired", "b", 5_000),
        ("epoch_bumped", 9, 5_000),
    ]


@pytest.mark.parametrize(("late_ms", "ends_ms"), [(10, 3_010 + SESSION_MS), (60, SESSION_MS)])
def test_broker_that_fired_late_is_believed(late_ms: int, ends_ms: int) -> None:
    """A heartbeat that was accepted just after the session's end proves that the timer had not acted; later is new."""
    log = EpochLog()
    _joined(log, "a")
    log.beat(SESSION_MS + late_ms, "a", 2, error="NONE" if late_ms < 25 else "UNKNOWN_MEMBER_ID")
    assert log.said(20_000, *ENDS) == [("member_expired", "a", ends_ms)]


@pytest.mark.parametrize(
    ("shown", "epochs"),
    [
        (2 + CATCH_UP_MAX, [*range(3, 3 + CATCH_UP_MAX)]),
        (3 + CATCH_UP_MAX, [3 + CATCH_UP_MAX]),
        (2**31 - 1, [2**31 - 1]),
    ],
)
def test_p6_an_answer_makes_few_rows_whatever_epoch_it_shows(shown: int, epochs: list[int]) -> None:
    """P6: so many epochs at once are said one by one, as a broker says each, and more of them as one."""
    log = EpochLog()
    log.ok(0, "a", 0, 2, subscribed_topics=["t"])
    log.ok(1_000, "a", 2, shown)
    assert [v.epoch for v in log.verdicts(1_500) if v.kind.value == "epoch_bumped"] == [2, *epochs]


def test_p6_an_answer_with_an_epoch_that_kafka_cannot_have_is_rejected() -> None:
    """P6: Kafka's protocol carries epochs as INT32."""
    value = b'{"type":"consumer_heartbeat","group_id":"g","member_id":"a","member_epoch":1,"answer_member_epoch":%d}'
    assert decode_group_heartbeat(value % (2**31 - 1)).answer_member_epoch == 2**31 - 1
    with pytest.raises(RejectedError, match="bad_field"):
        decode_group_heartbeat(value % 2**31)
