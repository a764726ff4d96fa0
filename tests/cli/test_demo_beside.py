"""The demo on real groups: what both sides tell of a removal is put side by side, and what only one tells is seen."""

from __future__ import annotations

import pytest

from heartwheel.front.demo.beside import LEFT, Beside
from heartwheel.front.demo.lines import removal_line
from heartwheel.proof.audit.match.pairs import RemovalPair
from heartwheel.wire.explained import Evidence, ExplainedEvent, Happened
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

T0 = 1_795_239_795_000


def _kafka(kind: Happened = Happened.EXPIRED, at_ms: int = T0, member: str = "m", group: str = "g") -> ExplainedEvent:
    return ExplainedEvent(
        kind=kind, group_id=group, member_id=member, time_ms=at_ms, reason="", evidence=Evidence("server.log", 1)
    )


def _row(at_ms: int = T0, reason: str = "session_timeout", member: str = "m") -> ExpirationRow:
    return ExpirationRow(
        id=f"{member}{at_ms}",
        group_id="g",
        member_id=member,
        group_instance_id=None,
        client_id=None,
        client_host=None,
        generation_id=1,
        reason=reason,
        last_seen_ms=at_ms - 6_000,
        session_timeout_ms=6_000,
        deadline_ms=at_ms,
        detected_ms=at_ms,
        lateness_ms=0,
        group_state="Stable",
        shard=0,
    )


def _trigger(reason: str, at_ms: int = T0) -> TriggerRow:
    return TriggerRow(
        id="t",
        type="rebalance_triggered",
        group_id="g",
        generation_id=1,
        reason=reason,
        cause="member_left",
        time_ms=at_ms,
        deadline_ms=None,
        awaiting=(),
        awaiting_count=0,
        leader=None,
        member_count=1,
        removed=(),
        removed_count=0,
        duration_ms=None,
        detected_ms=at_ms,
        shard=0,
    )


def _line(pair: RemovalPair | None) -> str:
    assert pair is not None
    assert pair.there is not None
    assert pair.here is not None
    return removal_line(pair.there, pair.here).plain


def _counts(beside: Beside) -> tuple[int, int, int, int]:
    found = beside.agreement()
    assert found.ok == (found.different_reason == found.false == found.missed == 0)
    return found.agree, found.different_reason, found.false, found.missed


def test_removal_is_known_once_both_sides_have_told_it() -> None:
    """In whichever order they tell it; the line shows both moments."""
    beside = Beside(["g"])
    assert beside.add_event(_kafka(at_ms=T0 + 4)) is None
    pair = beside.add_expiration(_row(), T0 + 800)
    assert _counts(beside) == (1, 0, 0, 0)
    line = _line(pair)
    assert "heartwheel -4 ms, known 0.8 s after" in line
    other = Beside(["g"])
    assert other.add_expiration(_row(), T0 + 800) is None
    assert other.add_event(_kafka()) is not None


@pytest.mark.parametrize(
    ("kinds", "reason", "counts"),
    [
        (Happened.EXPIRED, "session_timeout", (1, 0, 0, 0)),
        (Happened.EXPIRED, "rebalance_timeout", (0, 1, 0, 0)),
        (Happened.REMOVED_AT_REBALANCE, "rebalance_timeout", (1, 0, 0, 0)),
        (Happened.POLL_TIMEOUT, "poll_timeout", (1, 0, 0, 0)),
    ],
)
def test_reasons_are_compared(kinds: Happened, reason: str, counts: tuple[int, int, int, int]) -> None:
    """A removal of which both sides tell another timer is none that they agree on."""
    beside = Beside(["g"])
    beside.add_event(_kafka(kinds))
    beside.add_expiration(_row(reason=reason), T0)
    assert _counts(beside) == counts


def test_what_one_side_alone_tells_is_false_or_missed() -> None:
    """An expiration without the coordinator's word is false, and one without the engine's is missed."""
    beside = Beside(["g"])
    beside.add_event(_kafka(member="a"))
    beside.add_expiration(_row(member="b"), T0)
    assert _counts(beside) == (0, 0, 1, 1)


@pytest.mark.parametrize(
    ("apart_ms", "counts"),
    [
        (-1_001, (0, 0, 1, 0)),
        (-1_000, (1, 0, 0, 0)),
        (1_001, (0, 0, 0, 1)),
    ],
)
def test_moment_that_is_far_off_is_no_agreement(apart_ms: int, counts: tuple[int, int, int, int]) -> None:
    """Long before the coordinator's moment it is false, for the member was alive; long after it, it was missed."""
    beside = Beside(["g"])
    beside.add_event(_kafka())
    beside.add_expiration(_row(T0 + apart_ms), T0)
    assert _counts(beside) == counts


def test_leaves_are_told_by_triggers() -> None:
    """Who left is named by the trigger of the rebalance, in Kafka's words."""
    beside = Beside(["g"])
    beside.add_event(_kafka(Happened.LEFT, member="a"))
    told = beside.add_trigger(_trigger("explicit `LeaveGroup` request for (a) members."), T0)
    assert [(pair.here.member_id, pair.here.reason) for pair in told if pair.here] == [("a", LEFT)]
    assert _counts(beside) == (1, 0, 0, 0)
    assert beside.add_trigger(_trigger("Adding new member b with group instance id null"), T0) == []


def test_member_that_is_removed_twice_is_two_removals() -> None:
    """A member that comes back under its id and is removed again is told twice by both sides; repetitions are none."""
    beside = Beside(["g"])
    for at_ms in (T0, T0 + 20_000):
        for _ in range(2):
            beside.add_event(_kafka(at_ms=at_ms))
            beside.add_expiration(_row(at_ms), at_ms)
    assert _counts(beside) == (2, 0, 0, 0)


def test_reports_of_one_removal_are_those_nearest_in_time() -> None:
    """A member that left as the last of its group is reported by the coordinator alone: its next removal is another."""
    beside = Beside(["g"])
    beside.add_event(_kafka(Happened.LEFT))
    beside.add_event(_kafka(at_ms=T0 + 20_000))
    beside.add_expiration(_row(T0 + 20_000), T0 + 20_800)
    assert _counts(beside) == (1, 0, 0, 0)


def test_other_groups_are_nobodys_business() -> None:
    """Groups that are none of the demo's do not count."""
    beside = Beside(["g"])
    beside.add_event(_kafka(group="canary"))
    assert _counts(beside) == (0, 0, 0, 0)
