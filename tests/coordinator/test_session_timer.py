"""Every row of Kafka's table of what a request does to the session: a named test each."""

import pytest

from coordinator.group_script import STABLE_A, STABLE_AB, STATIC_AB, Stage, play
from heartwheel.engine.rules.model import TimerKind


def _left_ms(stage: Stage, member_id: str) -> int:
    group = stage.group
    deadline_ms: int = (group.members.get(member_id) or group.pending[member_id]).deadline_ms
    return deadline_ms - stage.now_ms


ROWS = {
    # what it is: (script, whose timer, ms that are left of it)
    "first join is pending for its session timeout": ("A new s=7000 -> MEMBER_ID_REQUIRED\n+1000", "A", 6000),
    "accepted new member gets five minutes": ("A new\n+1000\nA join -> PARKED\n+1000", "A", 299_000),
    "join of an existing member leaves it alone": (STABLE_AB + "+1000\nA join -> PARKED", "A", 4000),
    "completed join resets it": (STABLE_AB + "+1000\nA join\nB join -> PARKED", "A", 5000),
    "sync in CompletingRebalance leaves it alone": (STABLE_AB + "A join\nB join\n+1000\nB sync -> PARKED", "B", 4000),
    "answered sync resets it": (STABLE_AB + "A join\nB join\nB sync\n+1000\nA sync -> NONE", "B", 5000),
    "sync in Stable leaves it alone": (STABLE_A + "+1000\nA sync -> NONE", "A", 4000),
    "sync in PreparingRebalance leaves it alone": (
        STABLE_A + "B first\n+1000\nA sync -> REBALANCE_IN_PROGRESS", "A", 4000),
    "heartbeat in PreparingRebalance resets it": (
        STABLE_A + "B first\n+1000\nA beat -> REBALANCE_IN_PROGRESS", "A", 5000),
    "heartbeat in CompletingRebalance resets it": (STABLE_AB + "A join\nB join\n+1000\nB beat -> NONE", "B", 5000),
    "heartbeat in Stable resets it": (STABLE_A + "+1000\nA beat -> NONE", "A", 5000),
    "heartbeat of a later generation does not": (STABLE_A + "+1000\nA beat g=2 -> ILLEGAL_GENERATION", "A", 4000),
    "heartbeat of an earlier generation does not": (STABLE_AB + "+1000\nA beat g=1 -> ILLEGAL_GENERATION", "A", 4000),
    "heartbeat without a generation resets it": (STABLE_A + "+1000\nA beat g=-1 -> NONE", "A", 5000),
    "fenced heartbeat does not": (STATIC_AB + "+1000\nB beat i=x -> FENCED_INSTANCE_ID", "B", 4000),
    "heartbeat with an unknown instance does not": (STATIC_AB + "+1000\nB beat i=z -> UNKNOWN_MEMBER_ID", "B", 4000),
    "commit in Stable resets it": (STABLE_A + "+1000\nA commit -> NONE", "A", 5000),
    "commit in PreparingRebalance resets it": (STABLE_A + "B first\n+1000\nA commit -> NONE", "A", 5000),
    "commit in CompletingRebalance does not": (
        STABLE_AB + "A join\nB join\n+1000\nB commit -> REBALANCE_IN_PROGRESS", "B", 4000),
    "commit of a wrong generation does not": (STABLE_A + "+1000\nA commit g=0 -> ILLEGAL_GENERATION", "A", 4000),
    "leave of another member does not": (STABLE_AB + "+1000\nA leave", "B", 4000),
    "static return is armed with the old session timeout": (
        STATIC_AB + "+1000\nC static i=y s=9000 p=range/roundrobin -> NONE", "C", 5000),
    "the new session timeout of a static return holds from the next reset": (
        STATIC_AB + "C static i=y s=9000 p=range/roundrobin\n+1000\nC beat -> NONE", "C", 9000),
    "the new session timeout of a join holds from the completion": (
        STABLE_A + "A join s=8000 -> PARKED", "A", 8000),
    "load gives a whole session": (STABLE_A + "+4000\n- unload\n+100000\n- load", "A", 5000),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_session_timer(name: str) -> None:
    """A request resets the session exactly where Kafka's does."""
    script, member_id, left_ms = ROWS[name]
    assert _left_ms(play(script), member_id) == left_ms


def test_leave_cancels_the_timer() -> None:
    """A member that left does not expire as well."""
    play(
        STABLE_AB + "B leave\nA join\nA sync\n+4999\n! member_left B, rebalance_started, rebalance_completed, "
        "assignment_received A"
    )


def test_expiry_of_a_member_that_waits_is_ignored_and_not_re_armed() -> None:
    """A member that waits in a join phase has satisfied its heartbeat until the phase ends."""
    stage = play(
        STABLE_A + "B first\nC first\nA join\n! rebalance_started, rebalance_completed\n"
        "B sync -> PARKED\n+4999\nA beat\nC beat\n+1\n!"
    )
    assert stage.group.members["B"].deadline_ms > stage.now_ms + 10**9
    stage.run("+1000\nA sync -> NONE")
    assert _left_ms(stage, "B") == 5000


def test_parked_new_member_expires_even_while_it_waits() -> None:
    """A new member's waiting does not count as being alive: nobody knows whether it still does."""
    stage = play(
        "A first r=900000 s=400000\n+3000\nA sync\nB first r=900000\n+299999\n= PreparingRebalance 1 A B\n+1\n"
        "= PreparingRebalance 1 A"
    )
    assert stage.verdicts[-1].expiry_reason == "new_member_timeout"


def test_heartbeat_at_exactly_its_deadline_is_late() -> None:
    """A member is alive while now < deadline and expired at now >= deadline."""
    play(STABLE_A + "+4999\nA beat -> NONE")
    play(STABLE_A + "+5000\nA beat -> UNKNOWN_MEMBER_ID")


def test_heartbeat_of_a_parked_new_member_starts_its_session() -> None:
    """A new member that sends heartbeats although its join is parked is held to its session timeout."""
    stage = play("A new\nA join\n+1000\nA beat -> REBALANCE_IN_PROGRESS")
    assert _left_ms(stage, "A") == 5000
    assert stage.group.members["A"].timer is TimerKind.SESSION


def test_p4_time_never_goes_back_within_a_group() -> None:
    """P4: a request that is stamped before what its group has seen counts as at that time, and ends nothing sooner."""
    stage = play(STABLE_A + "+2000\nA beat -> NONE\n+-1500\nA beat -> NONE\nA beat why=again -> NONE")
    assert stage.group.members["A"].deadline_ms == 3_000 + 2_000 + 5_000
    assert stage.group.last_event_ms == 5_000
    assert stage.machine.clamped == 2
