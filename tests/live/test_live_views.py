"""What is shown of a picture: tables, pages, groups, storms, charts, the wheel, who is next, how things stand."""

from __future__ import annotations

import msgspec
import pytest

from heartwheel.readers.live.at_risk import at_risk
from heartwheel.readers.live.expirations import ExpirationFilter, expiration_detail, list_expirations
from heartwheel.readers.live.figures import lateness_of
from heartwheel.readers.live.group_list import GroupFilter, GroupOrder, list_groups
from heartwheel.readers.live.groups import storms
from heartwheel.readers.live.now import View, now_of
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.series import newest_step, series_of
from heartwheel.readers.live.states import STATE_WORDS, ShownState
from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.live.ticks import Ticks
from heartwheel.readers.live.wheel import wheel_of
from heartwheel.wire.status import AtRiskMember, WheelLevel
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow
from support.dashboard_scene import canary_figures
from support.output_rows import T0, begun, expired, job, joined, status, topic_rows

RULE = StormRule(3, 60_000)


def pictured(*rows: object) -> Picture:
    """Make a picture of rows."""
    picture = Picture()
    picture.apply(topic_rows(*rows), now_ms=T0)  # type: ignore[arg-type]
    return picture


def rows_of(picture: Picture, **wanted: object) -> list[str]:
    """List the members of the expirations that match."""
    page = list_expirations(picture, ExpirationFilter(**wanted))  # type: ignore[arg-type]
    return [row.member_id for row in page.rows]


def test_pages_follow_each_other() -> None:
    """Page after page by `next` shows each row once, newest first, also while new rows come in between."""
    picture = pictured(*(expired("g", f"m{i}", T0 + i) for i in range(7)))
    first = list_expirations(picture, ExpirationFilter(), limit=3)
    picture.apply(topic_rows(expired("g", "new", T0 + 9)), now_ms=T0)
    assert first.next is not None
    second = list_expirations(picture, ExpirationFilter(), before=int(first.next), limit=3)
    assert second.next is not None
    third = list_expirations(picture, ExpirationFilter(), before=int(second.next), limit=3)
    shown = [row.member_id for page in (first, second, third) for row in page.rows]
    assert shown == [f"m{i}" for i in range(6, -1, -1)]
    assert (third.next, third.matched, third.total) == (None, 8, 8)


def test_filters() -> None:
    """Each filter leaves what it names: words anywhere in ids, client and host, reasons, group, member, time."""
    picture = pictured(
        expired("orders", "A-1", client_host="/10.0.0.9"),
        expired("orders", "b-2", T0 + 5_000, reason="sync_timeout", client_id="billing"),
        expired("heartwheel-canary-1", "c"),
    )
    assert rows_of(picture) == ["b-2", "A-1"]
    assert rows_of(picture, text="a-1 ORDERS") == ["A-1"]
    assert rows_of(picture, text="0.9") == ["A-1"]
    assert rows_of(picture, text="billing") == ["b-2"]
    assert rows_of(picture, reasons=frozenset({"sync_timeout"})) == ["b-2"]
    assert rows_of(picture, member="A") == []
    assert rows_of(picture, group="orders", member="A-1") == ["A-1"]
    assert rows_of(picture, since_ms=T0 + 5_000) == ["b-2"]
    assert rows_of(picture, canary=True) == ["c", "b-2", "A-1"]


def test_detail_tells_why_what_it_caused_and_how_often() -> None:
    """An expiration in detail: sentences, the rebalance of its moment, and the same worker's other expirations."""
    picture = pictured(
        expired("g", "old", T0 - 50_000, client_id="app", client_host="/h"),
        expired("g", "other", T0 - 40_000, client_id="app", client_host="/elsewhere"),
        expired("g", "new", T0, client_id="app", client_host="/h"),
        begun("g", "n", at_ms=T0),
        joined("g", "x", at_ms=T0 + 3_000),
    )
    detail = expiration_detail(picture, f"g/new/{T0}")
    assert detail is not None
    assert (detail.again, detail.silent_ms, detail.known_late_ms) == (1, 7_200, 1_200)
    assert detail.trigger is not None
    assert (detail.trigger.type, detail.trigger.time_ms) == ("rebalance_triggered", T0)
    assert len(detail.why) > 2
    assert expiration_detail(picture, "nobody") is None


def test_who_blocks_a_rebalance() -> None:
    """A rebalance that runs names whom it waits for and until when; who was expired since is waited for no more."""
    picture = pictured(begun("g", "a", "b"), expired("g", "b", T0 + 4_000))
    (group,) = list_groups(picture, GroupFilter(), RULE, now_ms=T0).rows
    assert group.state is ShownState.PREPARING_REBALANCE
    assert "Eager consumers stop for it; cooperative ones continue" in group.state_words
    assert group.blocked is not None
    assert (group.blocked.awaiting, group.blocked.awaiting_count) == (["a"], 1)
    assert (group.blocked.since_ms, group.blocked.deadline_ms) == (T0, T0 + 30_000)
    assert group.last is not None
    assert (group.last.cause, group.last.duration_ms) == ("member_expired", None)


def test_a_completed_rebalance_tells_why_it_began() -> None:
    """How it ended is of less interest than what began it: the last change has the cause of its begin."""
    picture = pictured(begun("g", "a"), joined("g", "a"))
    (group,) = list_groups(picture, GroupFilter(), RULE, now_ms=T0).rows
    assert group.last is not None
    assert (group.state, group.blocked, group.last.cause) == (ShownState.STABLE, None, "member_expired")
    assert (group.kind, group.generation_id, group.members, group.last.duration_ms) == ("presence", 4, 1, 10)
    assert (group.last.began_ms, group.last.time_ms) == (T0 + 9_990, T0 + 10_000)


@pytest.mark.parametrize("state", ShownState)
def test_every_state_is_explained(state: ShownState) -> None:
    """Each state that is shown has its sentence."""
    assert STATE_WORDS[state].endswith(".")


def test_groups_are_found_and_counted() -> None:
    """Groups by text, state and storm; what no row has named yet is counted, and the note says so."""
    picture = pictured(begun("orders", "a"), expired("pay", "m"), expired("heartwheel-canary-1", "c"))
    picture.apply(topic_rows(msgspec.structs.replace(status(), groups=4)), now_ms=T0)
    page = list_groups(picture, GroupFilter(), RULE, now_ms=T0)
    assert [group.group_id for group in page.rows] == ["pay", "orders"]
    assert (page.total, page.known_total, page.matched) == (3, 2, 2)
    assert page.note.startswith("1 of 3 groups")
    assert [g.group_id for g in list_groups(picture, GroupFilter(text="ORD"), RULE, now_ms=T0).rows] == ["orders"]
    assert [g.group_id for g in list_groups(picture, GroupFilter(state="Unknown"), RULE, now_ms=T0).rows] == ["pay"]
    assert list_groups(picture, GroupFilter(storm=True), RULE, now_ms=T0).rows == []
    one = list_groups(picture, GroupFilter(), RULE, now_ms=T0, limit=1)
    assert one.next is not None
    rest = list_groups(picture, GroupFilter(), RULE, now_ms=T0, before=int(one.next), limit=1)
    assert ([g.group_id for g in rest.rows], rest.next) == (["orders"], None)


def test_a_storm_has_its_first_cause_and_offenders() -> None:
    """So many rebalances within so long are a storm, one less is none; who fell out more than once is named."""
    first = msgspec.structs.replace(begun("g", at_ms=T0 + 1), cause="member_left")
    rows: list[ExpirationRow | TriggerRow] = [begun("g", at_ms=T0 - 61_000), first, begun("g", at_ms=T0 + 2)]
    rows += [expired("g", "twice", T0 + 2), expired("g", "twice", T0 + 3), expired("g", "once", T0 + 4)]
    picture = pictured(*rows)
    assert storms(picture, RULE, now_ms=T0) == []
    picture.apply(topic_rows(begun("g", at_ms=T0 + 5)), now_ms=T0)
    ((group_id, storm),) = storms(picture, RULE, now_ms=T0)
    assert (group_id, storm.count, storm.first_cause) == ("g", 3, "member_left")
    assert [(each.member_id, each.count) for each in storm.offenders] == [("twice", 2)]


def test_charts_have_a_value_for_each_step() -> None:
    """Lists of one length, aligned to steps; what nobody reported is null, and nothing happened is 0."""
    at_ms = T0 - T0 % 5_000
    picture = pictured(
        expired("g", "a", at_ms), expired("g", "b", at_ms + 100), status(batch_ms=at_ms + 1_000), job(at_ms + 1_000)
    )
    series = series_of(picture, now_ms=at_ms + 5_000, points=3)
    assert series.t_ms == [at_ms - 5_000, at_ms, at_ms + 5_000]
    assert series.expirations == [0, 2, 0]
    assert series.lateness_p99_ms == [None, 1_200, None]
    assert series.heartbeats_per_second == [None, 8.0, None]
    assert series.batch_ms == [None, 340, None]
    coarse = series_of(picture, now_ms=at_ms + 5_000, points=1, step_ms=60_000)
    assert (coarse.expirations, coarse.batch_ms) == ([2], [340])
    assert newest_step(picture, now_ms=at_ms + 4_999).expirations == 2


def test_samples_of_a_storm_are_bounded() -> None:
    """However many expire in a step, so many latenesses are kept, and the count stays true."""
    picture = Picture()
    picture.apply(topic_rows(*(expired("g", f"m{i}") for i in range(2_000))), now_ms=T0)
    ((_, tick),) = picture.ticks.steps(0, 2 * T0)
    assert (tick.expirations, len(tick.lateness_ms)) == (2_000, 500)


def test_steps_of_a_long_log_are_bounded() -> None:
    """Of a log of a month the steps of a day are kept, the newest."""
    ticks = Ticks(100 * 366 * 86_400_000)
    for minute in range(30 * 1_440):
        ticks.add_expiration(minute * 60_000, None)
    steps = ticks.steps(0, 30 * 86_400_000)
    assert len(steps) == 1_441
    assert steps[-1][0] == (30 * 1_440 - 1) * 60_000


def test_the_hand_points_to_the_slot_of_the_clock() -> None:
    """The wheel of a shard: spans, slots, and the slot of each level that the clock is in."""
    levels = (
        WheelLevel(tick_ms=100, entries=1, slots=(0, 1, *(0,) * 18)),
        WheelLevel(tick_ms=2_000, entries=0, slots=(0,) * 20),
    )
    row = msgspec.structs.replace(status(0), wheel=levels, clock_ms=4_250)
    wheel = wheel_of(pictured(row), 0)
    assert wheel is not None
    assert [(level.span_ms, level.hand) for level in wheel.levels] == [(2_000, 2), (40_000, 2)]
    assert (wheel.shards, wheel.tick_ms, wheel.size) == (1, 100, 20)
    assert wheel_of(pictured(), 0) is None
    still = wheel_of(pictured(msgspec.structs.replace(row, clock_ms=-1)), 0)
    assert still is not None
    assert [level.hand for level in still.levels] == [None, None]


def test_at_risk_has_the_length_of_each_session() -> None:
    """What is left is told of the member's own session; a shard of an earlier release does not tell it."""
    told = AtRiskMember(group_id="g", member_id="a", deadline_ms=T0 + 5_000, session_timeout_ms=45_000)
    untold = AtRiskMember(group_id="g", member_id="b", deadline_ms=T0 + 6_000)
    rows = at_risk(pictured(status(0, told, untold)), now_ms=T0).rows
    assert [row.session_timeout_ms for row in rows] == [45_000, None]


def test_groups_come_in_the_order_that_is_asked_for() -> None:
    """The worst come first, or by expirations, members or name; pages go on where the one before ended."""
    storm = [begun("storming", at_ms=T0 + i) for i in range(3)]
    rows = [joined("big", "a", "b", "c"), expired("dying", "x"), expired("dying", "y"), *storm]
    picture = pictured(*rows)

    def names(order: GroupOrder, **page: int | None) -> list[str]:
        found = list_groups(picture, GroupFilter(order=order), RULE, now_ms=T0, **page)  # type: ignore[arg-type]
        return [group.group_id for group in found.rows]

    assert names(GroupOrder.WORST) == ["storming", "dying", "big"]
    assert names(GroupOrder.EXPIRED) == ["dying", "big", "storming"]
    assert names(GroupOrder.MEMBERS) == ["big", "dying", "storming"]
    assert names(GroupOrder.NAME) == ["big", "dying", "storming"]
    first = list_groups(picture, GroupFilter(order=GroupOrder.NAME), RULE, now_ms=T0, limit=2)
    assert first.next == "2"
    assert names(GroupOrder.NAME, before=2, limit=2) == ["storming"]
    only = list_groups(picture, GroupFilter(trouble=True), RULE, now_ms=T0).rows
    assert [(group.group_id, [each.kind for each in group.troubles]) for group in only] == [("storming", ["storm"])]


def test_at_risk_is_sorted_over_all_shards() -> None:
    """The nearest first, whichever shard names them, the canary left out unless asked for, no more than asked for."""
    members = [AtRiskMember(group_id=g, member_id="m", deadline_ms=T0 + at) for g, at in (("a", 30), ("b", 10))]
    canary = AtRiskMember(group_id="heartwheel-canary-3", member_id="c", deadline_ms=T0)
    picture = pictured(status(0, members[0], canary), status(1, members[1]))
    assert [row.group_id for row in at_risk(picture, now_ms=T0).rows] == ["b", "a"]
    assert [row.shard for row in at_risk(picture, now_ms=T0, limit=1).rows] == [1]
    assert len(at_risk(picture, now_ms=T0, canary=True).rows) == 3


def test_now_sums_up() -> None:
    """The one document of how things stand has the sums of all shards, the job's last batch and the objective.

    The canary's group and its member are in no sum.
    """
    picture = pictured(
        status(0),
        status(1, members=5),
        job(T0, shards=2),
        expired("g", "m"),
        joined("heartwheel-canary-0", "c"),
        expired("heartwheel-canary-0", "c"),
    )
    picture.link(True, now_ms=T0)
    now = now_of(picture, View(bootstrap="kafka:9092"), now_ms=T0 + 2_000)
    assert (now.members, now.groups, now.shards, now.shards_held) == (13, 5, 2, 0)
    assert (now.groups_by_state, now.groups_by_kind) == ({"Stable": 5}, {"presence": 5})
    assert (now.expirations_total, now.expirations_per_minute, now.window.expirations) == (1, 1, 2)
    assert (now.lateness_ms.p99, now.lateness_ms.count, now.lateness_ms.objective) == (1_200, 1, 2_300)
    assert (now.clock_ms, now.clock_behind_ms) == (T0 - 1_500, 3_500)
    assert now.last_batch is not None
    assert (now.last_batch.duration_ms, now.backlog) == (340, 0)
    assert now.health.state == "healthy"


def test_a_clock_is_known_when_every_shard_has_told_it() -> None:
    """With one shard of two silent nobody can say up to where all have decided."""
    now = now_of(pictured(status(0), job(T0, shards=2)), View(), now_ms=T0)
    assert (now.clock_ms, now.clock_behind_ms) == (-1, None)


def test_now_says_what_else_is_wrong() -> None:
    """Lateness over the objective, groups in two partitions and a canary that failed are reasons, in sentences."""
    late = [expired("g", f"m{i}", T0, detected_ms=T0 + 9_000) for i in range(5)]
    astray = msgspec.structs.replace(status(0), strays={"torn": 3})
    canary = msgspec.structs.replace(canary_figures(), missed=2, false_=1, late=4)
    now = now_of(pictured(*late, astray, job()), View(canary=canary), now_ms=T0)
    text = " ".join(now.health.reasons)
    assert [
        word for word in ("9.0 s", "2.3 s", "torn", "2 times:", "1 time ", "late 4 times:") if word not in text
    ] == []


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "The only expiration was known"),
        (19, "The slowest of 19 expirations was known"),
        (100, "One expiration in a hundred was known"),
    ],
)
def test_few_values_have_a_longest_and_no_percentile(number: int, words: str) -> None:
    """Of 19 expirations none is one in a hundred: the longest is called so."""
    late = [expired("g", f"m{i}", T0, detected_ms=T0 + 9_000) for i in range(number)]
    (reason,) = now_of(pictured(*late, job()), View(), now_ms=T0).health.reasons
    assert reason.startswith(f"{words} 9.0 s after its deadline")


def test_percentiles_of_nothing_are_zero() -> None:
    """Before anything was expired there is no lateness, and that is no error."""
    assert msgspec.structs.astuple(lateness_of([], None)) == (0, 0, 0, 0, None)
