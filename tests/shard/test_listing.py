"""A status row names some groups of its shard, the next row others, and every group that rebalances."""

from __future__ import annotations

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.shard import Shard, ShardLimits
from heartwheel.engine.shard.batch import BatchResult
from heartwheel.engine.shard.status import AWAITING_MAX, LISTED_MAX, REBALANCING_MAX, status_of
from heartwheel.proof.testing import LogBuilder, read_records, until
from heartwheel.wire.events import Event, EventType, Protocol
from heartwheel.wire.status import StatusRow

SESSION_MS = 600_000


def status(shard: Shard, outcome: BatchResult) -> StatusRow:
    """Make the status row of a batch."""
    return status_of(shard, outcome, index=0, batch_ms=1, held=False, at_risk_count=3, state_bytes=0)


def shard_of(log: LogBuilder, clock_ms: int) -> tuple[Shard, StatusRow]:
    """Apply a log to a new shard."""
    shard = Shard(coordinator=CoordinatorConfig(), limits=ShardLimits())
    outcome = shard.apply(*read_records(log.records, clock_ms=clock_ms))
    return shard, status(shard, outcome)


def again(shard: Shard, clock_ms: int) -> tuple[Shard, StatusRow]:
    """Go through one more batch without records, from the state that the one before has left."""
    after = Shard(coordinator=CoordinatorConfig(), limits=ShardLimits(), blob=shard.encode())
    return after, status(after, after.apply([], until(clock_ms)))


def beats(groups: int) -> LogBuilder:
    """Let presence groups send a heartbeat of each member, the number of a group having so many members and one."""
    log = LogBuilder()
    for number in range(groups):
        for member in range(number % 3 + 1):
            log.beat(1_000, f"g{number:03}", f"m{member}", session_timeout_ms=SESSION_MS)
    return log


def join(group_id: str, member: str, *, is_new: bool = True, generation: int = -1) -> Event:
    """Make a join of a static member, which is let in at once, or its sync at a generation."""
    if generation >= 0:
        return Event(type=EventType.SYNC, group_id=group_id, member_id=member, generation_id=generation)
    return Event(
        type=EventType.JOIN,
        group_id=group_id,
        member_id="" if is_new else member,
        assigned_member_id=member if is_new else None,
        group_instance_id=f"i-{member}",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        protocol_type="consumer",
        protocols=(Protocol("range"),),
    )


def add(log: LogBuilder, at_ms: int, *events: Event) -> None:
    """Append events to a log."""
    for event in events:
        log.add(at_ms, event)


def test_every_group_is_named_after_some_rows() -> None:
    """Page after page each group is listed once a round, with kind, state and members, also over a restart."""
    groups = 2 * LISTED_MAX + 7
    shard, row = shard_of(beats(groups), 2_000)
    rows = [row]
    for batch in range(2):
        shard, row = again(shard, 3_000 + batch)
        rows.append(row)
    listed = [group for each in rows for group in each.listed]
    assert sorted(group.group_id for group in listed) == [f"g{number:03}" for number in range(groups)]
    assert max(len(each.listed) for each in rows) == LISTED_MAX
    assert {(group.kind, group.state) for group in listed} == {("presence", "Stable")}
    assert all(group.members == int(group.group_id[1:]) % 3 + 1 for group in listed)
    assert not any(each.rebalancing for each in rows)


def test_a_shard_without_groups_lists_none() -> None:
    """There is nothing to name before the first heartbeat."""
    _, row = shard_of(LogBuilder(), 2_000)
    assert (row.listed, row.rebalancing) == ((), ())


def test_a_rebalance_names_who_has_not_joined_by_now() -> None:
    """Not those who had not joined when it began: who is back since is waited for no more, and who syncs later is."""
    log = LogBuilder()
    add(log, 1_000, *(join("g", name) for name in "abc"))
    shard, row = shard_of(log, 2_000)
    (group,) = row.rebalancing
    assert (group.state, group.members, group.awaiting_count) == ("PreparingRebalance", 3, 0)
    shard, row = again(shard, 8_000)
    (group,) = row.rebalancing
    assert (group.state, group.awaiting, group.awaiting_count) == ("CompletingRebalance", ("a", "b", "c"), 3)
    log = LogBuilder()
    add(log, 8_100, *(join("g", name, generation=1) for name in "abc"))
    outcome = shard.apply(*read_records(log.records, clock_ms=9_000))
    assert status(shard, outcome).rebalancing == ()
    log = LogBuilder()
    add(log, 9_100, join("g", "d"), join("g", "a", is_new=False), join("g", "c", is_new=False))
    outcome = shard.apply(*read_records(log.records, clock_ms=9_500))
    (group,) = status(shard, outcome).rebalancing
    assert (group.state, group.awaiting, group.awaiting_count) == ("PreparingRebalance", ("b",), 1)
    assert group.deadline_ms == 9_100 + SESSION_MS
    assert [each.group_id for each in status(shard, outcome).listed] == ["g"]


def test_p6_rebalances_are_named_within_bounds() -> None:
    """P6: of many groups that rebalance the first are named, of many members some, and of a huge group none."""
    log = LogBuilder()
    for number in range(REBALANCING_MAX + 5):
        members = 1_200 if number == REBALANCING_MAX - 1 else 2 * AWAITING_MAX
        add(log, 1_000, *(join(f"g{number:03}", f"m{member:04}") for member in range(members)))
    _, row = shard_of(log, 8_000)
    assert len(row.rebalancing) == REBALANCING_MAX
    *small, huge = row.rebalancing
    assert {(len(group.awaiting), group.awaiting_count) for group in small} == {(AWAITING_MAX, 2 * AWAITING_MAX)}
    assert (huge.members, huge.awaiting, huge.awaiting_count) == (1_200, (), None)
    assert row.groups_by_state["CompletingRebalance"] == REBALANCING_MAX + 5
