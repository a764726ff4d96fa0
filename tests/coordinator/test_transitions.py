"""Every row of Kafka's table of group states: what moves a group, what it says, and which timers that leaves."""

import pytest

from coordinator.group_script import STABLE_A, STABLE_AB, STATIC_AB, play
from heartwheel.engine.rules import messages
from heartwheel.engine.rules.java_map import bucket_of
from heartwheel.engine.rules.model import NEVER

STARTS = {
    "new member": (
        STABLE_A + "B first why=scaling",
        "Adding new member B with group instance id null; client reason: scaling",
        "member_joined",
    ),
    "new static member": (
        STABLE_A + "B static i=y",
        "Adding new member B with group instance id y; client reason: not provided",
        "member_joined",
    ),
    "changed protocols while Stable": (
        STABLE_AB + "B join p=range:v2",
        "Updating metadata for member B during Stable; client reason: not provided",
        "member_updated",
    ),
    "changed protocols while CompletingRebalance": (
        STABLE_AB + "A join\nB join\n! rebalance_started, rebalance_completed\nB join p=range:v2",
        "Updating metadata for member B during CompletingRebalance; client reason: not provided",
        "member_updated",
    ),
    "leader joins again": (
        STABLE_AB + "A join why=topics",
        "Leader A re-joining group during Stable; client reason: topics",
        "leader_rejoined",
    ),
    "leave": (STABLE_AB + "B leave", "explicit `LeaveGroup` request for (B) members.", "member_left"),
    "batch leave": (
        STABLE_AB + "C first\nA join\nB join\nA sync\nB+C leave",
        "explicit `LeaveGroup` request for (B, C) members.",
        "member_left",
    ),
    "leave by instance id": (STATIC_AB + "- leave i=y", "explicit `LeaveGroup` request for () members.", "member_left"),
    "leave of a pending member": (
        STABLE_A + "B new\nB leave",
        "explicit `LeaveGroup` request for (B) members.",
        "member_left",
    ),
    "session expiry": (STABLE_AB + "+1\nA beat\n+4999", "removing member B on heartbeat expiration.", "member_expired"),
    "sync expiry": (
        STABLE_A + "B first\nA join\nA sync\n+4000\nA beat\nB beat\n+4000\nA beat\nB beat\n+2000",
        "Removing [B] on pending sync request expiration",
        "sync_expired",
    ),
    "static member returns before the assignment": (
        STATIC_AB + "A join\nB join\nC static i=y why=moved",
        "Updating metadata for static member C with instance id y; client reason: moved",
        "static_member_updated",
    ),
    "static member returns with another protocol": (
        STATIC_AB + "C static i=y p=roundrobin why=new",
        messages.static_changes_protocol("C", "y", "new"),
        "static_member_updated",
    ),
}


@pytest.mark.parametrize("name", STARTS)
def test_every_trigger_starts_a_join_phase_in_kafkas_words(name: str) -> None:
    """Whatever makes a Stable or CompletingRebalance group rebalance is named by Kafka's words and by a cause."""
    script, reason, cause = STARTS[name]
    stage = play(script)
    started = [v for v in stage.verdicts if v.kind == "rebalance_started"][-1]
    assert (started.reason, started.cause) == (reason, cause)
    assert stage.group.sync_deadline_ms == NEVER or stage.group.state == "CompletingRebalance"


def test_empty_to_preparing_arms_the_initial_delay() -> None:
    """The first member of an Empty group starts a join phase of the initial delay, up to its rebalance timeout."""
    group = play("A first r=10000 -> PARKED").group
    assert (group.join_deadline_ms, group.join_remaining_ms, group.join_is_initial) == (3000, 7000, True)


def test_preparing_waits_for_the_longest_rebalance_timeout() -> None:
    """A join phase that is not the initial one may take as long as the most patient member allows."""
    stage = play(STABLE_A + "B first r=20000 -> PARKED")
    assert stage.group.join_deadline_ms == stage.now_ms + 20_000
    assert stage.verdicts[-1].deadline_ms == stage.now_ms + 20_000
    assert stage.verdicts[-1].awaiting == ("A",)


def test_parked_syncs_are_sent_back_with_a_fresh_session() -> None:
    """A rebalance in the sync phase resets the sessions of those that were parked in it."""
    stage = play(STABLE_A + "B first\nA join\nB sync -> PARKED\n+4000\nC first\n= PreparingRebalance 2 A B C")
    assert stage.group.members["B"].deadline_ms == stage.now_ms + 5_000
    assert stage.group.members["A"].deadline_ms == stage.now_ms + 1_000


def test_completion_removes_dynamic_absentees_and_keeps_static_ones() -> None:
    """At the end of the join phase an absent dynamic member is removed, an absent static one stays."""
    stage = play(
        STATIC_AB.replace("p=", "s=15000 p=")
        + """
        C first s=15000 p=range -> PARKED
        A join -> PARKED
        B join -> PARKED
        A sync
        B sync
        C sync
        ! rebalance_started, rebalance_completed, assignment_received A
        A join -> PARKED
        +10000
        ! rebalance_started, member_removed_at_join C, rebalance_completed
        = CompletingRebalance 3 A B
        """
    )
    removed, completed = stage.verdicts[-2:]
    assert removed.reason == "Group g removed dynamic members who haven't joined: [C]"
    assert removed.expiry_reason == "rebalance_timeout"
    assert completed.removed == ("C",)
    assert completed.reason == "Stabilized group g generation 3 with 2 members."
    assert completed.cause == "join_timeout"
    assert completed.duration_ms == 10_000


def test_completion_resets_every_session_and_waits_for_every_sync() -> None:
    """A completed join phase gives all members a whole session, makes them old, and arms the sync timer."""
    stage = play(STABLE_A + "B first r=7000\nA join -> PARKED\n= CompletingRebalance 2 A B")
    members = stage.group.members.values()
    assert {m.deadline_ms for m in members} == {stage.now_ms + 5_000}
    assert all(m.pending_sync and not m.is_new and not m.awaiting_join for m in members)
    assert stage.group.sync_deadline_ms == stage.now_ms + 10_000


def test_nobody_joined_extends_without_a_new_generation() -> None:
    """While only static absentees are left the phase is extended, and the generation stays."""
    stage = play(
        STATIC_AB.replace("p=", "s=60000 p=") + "C new\nC leave\n+10000\n= PreparingRebalance 1 A B\n"
        "A join\n+10000\n= CompletingRebalance 2 A B"
    )
    extended = next(v for v in stage.verdicts if v.kind == "join_extended")
    assert extended.reason == "Group g could not complete rebalance because no members rejoined."
    assert extended.generation_id == 1


def test_last_member_gone_moves_to_empty_with_a_new_generation() -> None:
    """A join phase that ends without members counts as a generation."""
    stage = play(STABLE_A + "A leave\n= Empty 2\n! member_left A, rebalance_started, group_empty")
    assert stage.verdicts[-1].reason == "Group g with generation 2 is now empty."
    assert stage.verdicts[-1].group_state == "PreparingRebalance"


def test_assignment_moves_to_stable_and_resets_parked_sessions() -> None:
    """The leader's assignment answers every parked sync, which resets those sessions and no others."""
    stage = play(
        STABLE_A
        + """
        B first
        C first
        A join
        B sync -> PARKED
        +1000
        A sync -> NONE
        = Stable 2 A B C
        """
    )
    now = stage.now_ms
    assert {m.member_id: m.deadline_ms - now for m in stage.group.members.values()} == {"A": 5000, "B": 5000, "C": 4000}
    assert stage.verdicts[-1].reason == (
        "Assignment received from leader A for group g for generation 2. "
        "The group has 3 members, 0 of which are static."
    )


def test_generation_is_not_bumped_by_syncs_heartbeats_or_a_static_return() -> None:
    """Only the end of a join phase counts a generation."""
    play(STATIC_AB + "A sync\nA beat\nB commit\nC static i=y p=range/roundrobin\n= Stable 1 A C")


def test_initial_phase_ends_early_only_by_an_expiry() -> None:
    """In the initial join phase the expiry of a pending member may end it early, its leave does not."""
    play("A first -> PARKED\nB new s=1000\n+1000\n= CompletingRebalance 1 A")
    play("A first -> PARKED\nB new s=1000\n+500\nB leave -> NONE\n+600\n= PreparingRebalance 0 A")


def test_group_left_without_members_takes_any_protocol_of_its_type() -> None:
    """In a join phase that has lost all its members any protocol of the group's type is accepted."""
    play(
        "A first\nA leave\n= PreparingRebalance 0\nB first type=connect -> INCONSISTENT_GROUP_PROTOCOL\n"
        "B first type=consumer p=sticky -> PARKED"
    )


def test_leader_is_elected_in_the_order_of_javas_map() -> None:
    """When the leader is gone the first member that a Java HashMap yields leads, whoever joined first."""
    ids = ["Aa-1", "q", "BB-1", "c"]  # "Aa" and "BB" collide; the buckets of 16 are c: 3, Aa and BB: 13 each, q: 1
    stage = play("\n".join(f"{i} first" for i in ["L", *ids]) + "\n+6000\nL sync\nL leave")
    assert stage.group.leader == min(ids, key=lambda i: bucket_of(i, 16))
    assert [m for m in sorted(ids, key=lambda i: bucket_of(i, 16)) if m in ("Aa-1", "BB-1")] == ["Aa-1", "BB-1"]


def test_static_replacement_leaves_the_old_id_to_be_waited_for() -> None:
    """A static member that comes back before its sync leaves its old id pending, and at the end the group rebalances.

    Nobody is expired by it: the old id is nobody's any more.
    """
    stage = play(
        STATIC_AB
        + """
        A join
        B join
        A sync -> NONE
        ! rebalance_started, rebalance_completed, assignment_received A
        C static i=y p=range/roundrobin -> NONE
        C sync -> NONE
        ! static_replaced B
        +4000
        A beat
        C beat
        +4000
        A beat
        C beat
        +2000
        ! sync_timeout B, rebalance_started
        = PreparingRebalance 2 A C
        """
    )
    assert stage.verdicts[-2].expiry_reason is None
    assert stage.verdicts[-1].reason == "Removing [B] on pending sync request expiration"


def test_changed_protocol_is_told_in_kafkas_words() -> None:
    """The reason of a static member's change of protocol is Kafka's to the letter."""
    assert messages.static_changes_protocol("C", "y", None) == (
        "Group's selectedProtocol will change because static member C with instance id y joined with change of "
        "protocol; client reason: not provided"
    )
