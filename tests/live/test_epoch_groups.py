"""Groups that go by member epochs, from the rows that the engine writes to what people are shown."""

from __future__ import annotations

import msgspec
import pytest

from heartwheel.proof.testing import LogBuilder, run_shard
from heartwheel.readers.live.group_list import GroupFilter, list_groups
from heartwheel.readers.live.groups import group_detail
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.states import ShownState
from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.live.why import why
from heartwheel.wire.group_heartbeats import GroupHeartbeat, HeartbeatType
from heartwheel.wire.status import RebalancingGroup
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow, row_of
from heartwheel.wire.verdicts import topic_of
from support.epoch_beats import EPOCHS_CONFIG
from support.heartbeat_logs import T0
from support.output_rows import status, topic_rows

RULE = StormRule(3, 60_000)
SESSION_MS = EPOCHS_CONFIG.group_consumer_session_timeout_ms


def _rows(log: LogBuilder, until_ms: int) -> list[ExpirationRow | TriggerRow]:
    verdicts = run_shard(log, clock_ms=until_ms, config=EPOCHS_CONFIG)
    return [row_of(each, shard=0, detected_ms=each.time_ms + 100) for each in verdicts if topic_of(each) is not None]


def _pictured(*rows: object) -> Picture:
    picture = Picture()
    picture.apply(topic_rows(*rows), now_ms=T0)  # type: ignore[arg-type]
    return picture


def _two(kind: HeartbeatType = HeartbeatType.CONSUMER) -> LogBuilder:
    """Let `a` and `b` join, and `b` beat once more than `a`."""
    log = LogBuilder()
    log.group_beat(T0, "g", "a", 0, answer=2, kind=kind)
    log.group_beat(T0 + 400, "g", "b", 0, answer=3, kind=kind)
    log.group_beat(T0 + 800, "g", "b", 3, answer=3, kind=kind)
    return log


@pytest.mark.parametrize("kind", list(HeartbeatType))
def test_group_shows_its_kind_and_its_epoch(kind: HeartbeatType) -> None:
    """The page of a group names the kind and the epoch, and that nobody is waited for; without members it is Empty."""
    picture = _pictured(*_rows(_two(kind), T0 + 900))
    (group,) = list_groups(picture, GroupFilter(), RULE, now_ms=T0).rows
    assert (group.kind, group.generation_id, group.members) == (kind.value.removesuffix("_heartbeat"), 3, 2)
    assert (group.state, group.blocked) == (ShownState.STABLE, None)
    assert "no member has to stop" in group.state_words
    picture = _pictured(*_rows(_two(kind), T0 + 60_000))
    (group,) = list_groups(picture, GroupFilter(), RULE, now_ms=T0).rows
    assert (group.state, group.members, group.generation_id) == (ShownState.EMPTY, 0, 5)


def test_timeline_tells_who_came_and_went_in_order() -> None:
    """Each epoch is a line with who made it; the expiry stands before the epoch that it caused."""
    picture = _pictured(*_rows(_two(), T0 + SESSION_MS + 100))
    detail = group_detail(picture, "g", RULE, now_ms=T0)
    assert detail is not None
    assert [line["text"] for line in reversed(detail.timeline)] == [
        "a: member joined, 1 member there, epoch 2",
        "b: member joined, 2 members there, epoch 3",
        "a expired: session timeout, silent for 1.3 s",
        "a: member expired, 1 member there, epoch 4",
    ]


def test_a_member_that_joins_again_has_come_back() -> None:
    """An expired member whose join makes a new epoch is back, as after a rebalance of the classic protocol."""
    log = _two()
    log.group_beat(T0 + SESSION_MS + 500, "g", "a", 0, answer=5)
    rows = _rows(log, T0 + SESSION_MS + 600)
    picture = _pictured(*rows)
    detail = group_detail(picture, "g", RULE, now_ms=T0)
    assert detail is not None
    (expired,) = [each for each in detail.expirations if each.member_id == "a"]
    assert expired.returned_ms == T0 + SESSION_MS + 500


def test_who_holds_up_an_epoch_is_named() -> None:
    """A status row names who has not given partitions back, and until when it may."""
    standing = RebalancingGroup(
        group_id="g", state="Reconciling", members=2, deadline_ms=T0 + 9_000, awaiting=("a",), awaiting_count=1
    )
    told = msgspec.structs.replace(status(batch_ms=T0 + 5_000), rebalancing=(standing,))
    picture = _pictured(*_rows(_two(), T0 + 900), told)
    (group,) = list_groups(picture, GroupFilter(), RULE, now_ms=T0).rows
    assert group.state is ShownState.RECONCILING
    assert group.blocked is not None
    assert (group.blocked.awaiting, group.blocked.to, group.blocked.deadline_ms) == (["a"], "reconcile", T0 + 9_000)


def test_explanation_names_the_brokers_setting() -> None:
    """Its session is no setting of the client, so the sentences say where it is set."""
    (row,) = [row for row in _rows(_two(), T0 + SESSION_MS + 1) if isinstance(row, ExpirationRow)]
    said = " ".join(why(row))
    assert "group.consumer.session.timeout.ms" in said
    assert "kafka-configs.sh --entity-type groups" in said


def test_explanation_of_a_static_member_that_stayed_away() -> None:
    """A static member that had left for a while did not fall silent: it did not come back."""
    log = LogBuilder()
    for at_ms, epoch in ((0, 0), (500, -2)):
        beat = GroupHeartbeat(
            type=HeartbeatType.CONSUMER, group_id="g", member_id="a", member_epoch=epoch, group_instance_id="i"
        )
        log.add(T0 + at_ms, beat)
    (row,) = [row for row in _rows(log, T0 + SESSION_MS + 1) if isinstance(row, ExpirationRow)]
    assert (row.member_epoch, row.deadline_ms) == (-2, T0 + SESSION_MS)
    assert "left for a while" in why(row)[0]
