"""Groups by the status rows of their shards: those to which nothing happened, and how a rebalance stands by now."""

from __future__ import annotations

import msgspec
import pytest

from heartwheel.readers.live.group_list import GroupFilter, list_groups
from heartwheel.readers.live.groups import Group, group_detail
from heartwheel.readers.live.now import View, now_of
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.storms import StormRule
from heartwheel.wire.status import ListedGroup, RebalancingGroup, StatusRow
from heartwheel.wire.verdict_rows import TriggerRow
from support.output_rows import T0, Row, begun, expired, joined, status, topic_rows

RULE = StormRule()


def listed(*names: str, state: str = "Stable", members: int = 4) -> tuple[ListedGroup, ...]:
    """Make a page of groups."""
    return tuple(ListedGroup(group_id=name, kind="classic", state=state, members=members) for name in names)


def row(batch_ms: int, *rebalancing: RebalancingGroup, page: tuple[ListedGroup, ...] = ()) -> StatusRow:
    """Make the status row of a batch."""
    return msgspec.structs.replace(status(batch_ms=batch_ms), listed=page, rebalancing=rebalancing)


def standing(group_id: str, state: str, *awaiting: str) -> RebalancingGroup:
    """Make how a rebalance stands."""
    return RebalancingGroup(
        group_id=group_id,
        state=state,
        members=4,
        deadline_ms=T0 + 60_000,
        awaiting=awaiting,
        awaiting_count=len(awaiting),
    )


def completed(at_ms: int) -> TriggerRow:
    """Make the completed rebalance of a classic group, decided in the batch one second later."""
    return msgspec.structs.replace(joined("g", "a", at_ms=at_ms), leader="a", group_kind="classic")


def shown(picture: Picture) -> list[Group]:
    """List all groups."""
    return list_groups(picture, GroupFilter(), RULE, now_ms=T0).rows


def states(*rows: StatusRow | TriggerRow) -> list[str]:
    """List the state of the one group after each row."""
    picture, found = Picture(), []
    for each in rows:
        picture.apply(topic_rows(each), now_ms=T0)
        found.append(shown(picture)[0].state.value)
    return found


def test_groups_to_which_nothing_happened_are_listed() -> None:
    """They come after all others, with kind, state, members and shard; there is nothing that happened last."""
    picture = Picture()
    picture.apply(topic_rows(row(T0, page=listed("quiet", "later"))), now_ms=T0)
    picture.apply(topic_rows(begun("busy", "a"), row(T0 + 1_000, page=listed("quiet", members=5))), now_ms=T0)
    busy, quiet, later = shown(picture)
    assert [busy.group_id, quiet.group_id, later.group_id] == ["busy", "quiet", "later"]
    assert (quiet.kind, quiet.state, quiet.members, quiet.shard, quiet.last) == ("classic", "Stable", 5, 0, None)
    first = list_groups(picture, GroupFilter(), RULE, now_ms=T0, limit=2)
    assert first.next is not None
    rest = list_groups(picture, GroupFilter(), RULE, now_ms=T0, before=int(first.next))
    assert [group.group_id for group in rest.rows] == ["later"]
    detail = group_detail(picture, "later", RULE, now_ms=T0)
    assert detail is not None
    assert (detail.timeline, detail.blocked, detail.generation_id) == ([], None, -1)


def test_p6_listed_groups_take_no_room_of_those_that_are_known() -> None:
    """P6: when as many groups are known as may be, those to which nothing happened are left out."""
    picture = Picture(groups_max=3)
    picture.apply(topic_rows(begun("one"), begun("two"), row(T0, page=listed("a", "b", "c"))), now_ms=T0)
    assert [group.group_id for group in shown(picture)] == ["two", "one", "a"]
    picture.apply(topic_rows(begun("three")), now_ms=T0)
    assert [group.group_id for group in shown(picture)] == ["three", "two", "one"]


def test_a_completed_rebalance_waits_for_its_assignment() -> None:
    """Between the last join and the assignment a group is CompletingRebalance, as its shard's rows say; then Stable."""
    at_ms = T0 + 10_000
    found = states(
        row(at_ms, standing("g", "PreparingRebalance", "a")),
        completed(at_ms),
        row(at_ms + 1_000, standing("g", "CompletingRebalance", "b")),
        row(at_ms + 2_000),
    )
    assert found == ["PreparingRebalance", "CompletingRebalance", "CompletingRebalance", "Stable"]


@pytest.mark.parametrize("is_over", [True, False])
def test_the_order_in_which_topics_are_read_does_not_matter(is_over: bool) -> None:  # noqa: FBT001 - a parameter
    """A status row of the same batch, or of a later one, that was read first says how the rebalance stands."""
    after = row(T0 + 11_000) if is_over else row(T0 + 11_000, standing("g", "CompletingRebalance", "b"))
    picture = Picture()
    picture.apply(topic_rows(after, completed(T0 + 10_000)), now_ms=T0)
    assert [group.state for group in shown(picture)] == ["Stable" if is_over else "CompletingRebalance"]


def test_a_job_that_tells_of_no_rebalances_is_read_as_before() -> None:
    """The rows of an earlier release name no groups: a completed rebalance makes Stable with the next status row."""
    assert states(completed(T0), status(batch_ms=T0 + 1_000)) == ["CompletingRebalance", "Stable"]


def test_who_blocks_is_who_has_not_joined_by_now() -> None:
    """Not all who had to join when it began: the shard tells who is still missing, and who has not synced."""
    picture = Picture()
    began = msgspec.structs.replace(begun("g", "a", "b", "c"), group_kind="classic", detected_ms=T0 + 1_000)
    picture.apply(topic_rows(began), now_ms=T0)
    first = shown(picture)[0].blocked
    assert first is not None
    assert (first.awaiting, first.to) == (["a", "b", "c"], "join")
    picture.apply(topic_rows(row(T0 + 2_000, standing("g", "PreparingRebalance", "b"))), now_ms=T0)
    second = shown(picture)[0].blocked
    assert second is not None
    assert (second.awaiting, second.awaiting_count, second.to) == (["b"], 1, "join")
    assert second.since_ms == began.time_ms
    picture.apply(topic_rows(row(T0 + 3_000, standing("g", "CompletingRebalance", "c"))), now_ms=T0)
    third = shown(picture)[0].blocked
    assert third is not None
    assert (third.awaiting, third.to) == (["c"], "sync")


def test_a_group_whose_rebalance_stands_still_is_told_once() -> None:
    """Listeners hear of a group when what is known of it changes, not with every row that says the same."""
    picture = Picture()
    picture.apply(topic_rows(row(T0, standing("g", "PreparingRebalance", "b"), page=listed("quiet"))), now_ms=T0)
    before = picture.groups.version
    picture.apply(
        topic_rows(row(T0 + 1_000, standing("g", "PreparingRebalance", "b"), page=listed("quiet"))), now_ms=T0
    )
    assert picture.groups.version == before
    picture.apply(topic_rows(row(T0 + 2_000)), now_ms=T0)
    assert [entry.group_id for entry in picture.groups.changed_after(before)] == ["g"]


def test_the_canary_is_in_no_figure() -> None:
    """Its groups and members are in the sums of the shards, and in none that is shown, unless asked for."""
    picture = Picture()
    canary = "heartwheel-canary-1"
    places = (*listed("g"), *listed("heartwheel-canary-2"))
    rows: list[Row] = [joined(canary, "c"), expired(canary, "c"), row(T0, page=places)]
    picture.apply(topic_rows(*rows), now_ms=T0)
    now = now_of(picture, View(), now_ms=T0)
    # Of nine members in three groups one is the canary's that came, and four are those that were listed.
    assert (now.members, now.groups, now.groups_by_kind) == (4, 1, {"presence": 1})
    page = list_groups(picture, GroupFilter(), RULE, now_ms=T0)
    assert ([group.group_id for group in page.rows], page.total, page.note) == (["g"], 1, "")
    everything = now_of(picture, View(show_canary=True), now_ms=T0)
    assert (everything.members, everything.groups) == (9, 3)
