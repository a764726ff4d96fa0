"""A coordinator that goes away and comes back: what is read from the log, and what is forgotten."""

from coordinator.group_script import STABLE_A, STABLE_AB, STATIC_AB, play
from heartwheel.wire.verdicts import Kind, verdict_id

GONE = "- unload\n+1000\n- load\n"


def test_unload_stops_every_timer() -> None:
    """No timer runs while the coordinator is away, and the only deadline is that of being forgotten."""
    stage = play(STABLE_AB + "C new\nC join\nD new\n! rebalance_started\n- unload\n+80000000\n!")
    assert stage.machine.next_deadline_ms() == stage.group.forget_deadline_ms


def test_load_gives_everybody_a_fresh_session() -> None:
    """After a load every member has a whole session, however little was left of it."""
    stage = play(STABLE_AB + "+4999\n" + GONE)
    assert [m.deadline_ms - stage.now_ms for m in stage.group.members.values()] == [5000, 5000]
    assert [m.member_id for m in stage.group.members.values()] == ["A", "B"]


def test_load_without_unload_is_a_crash() -> None:
    """A coordinator that crashed is only seen to come back; that is the same load."""
    stage = play(STABLE_AB + "+4000\n- load")
    assert [m.deadline_ms - stage.now_ms for m in stage.group.members.values()] == [5000, 5000]


def test_pending_members_are_forgotten() -> None:
    """A pending member is in no record."""
    play(STABLE_A + "B new\n" + GONE + "= Stable 1 A\nB join -> UNKNOWN_MEMBER_ID")


def test_unfinished_join_phase_is_forgotten() -> None:
    """A rebalance that was going on never happened: who joined in it is gone, who was removed by it is back."""
    play(
        STABLE_AB
        + "B leave\nC first\n= PreparingRebalance 2 A C\n"
        + GONE
        + "= Stable 2 A B\nC join -> UNKNOWN_MEMBER_ID"
    )


def test_what_a_member_asked_in_an_unfinished_rebalance_is_forgotten() -> None:
    """Timeouts and metadata of a join whose generation was never assigned stand in no record."""
    stage = play(
        STABLE_AB + "A join\nB join s=900 r=7000 p=range:other\nA join s=800\n= CompletingRebalance 3 A B\n" + GONE
    )
    members = stage.group.members.values()
    assert [(m.session_timeout_ms, m.rebalance_timeout_ms) for m in members] == [(5000, 10_000)] * 2
    assert [m.deadline_ms - stage.now_ms for m in members] == [5000, 5000]
    stage.run("B join -> PARKED\n= PreparingRebalance 2 A B")  # as its metadata differs from what is recorded


def test_what_a_member_asked_is_written_down_with_the_assignment() -> None:
    """The leader's sync writes down what all have asked for."""
    stage = play(STABLE_AB + "A join s=800\nB join s=900\nA sync\n" + GONE)
    assert [m.deadline_ms - stage.now_ms for m in stage.group.members.values()] == [800, 900]


def test_who_changed_and_then_left_comes_back_as_recorded() -> None:
    """A member that asked for another timeout, and left the rebalance it asked in, is read as it was before."""
    stage = play(
        STABLE_AB + "B join s=900 p=range:other\nB leave\n= PreparingRebalance 2 A\n" + GONE + "= Stable 2 A B"
    )
    assert stage.group.members["B"].session_timeout_ms == 5000


def test_generation_without_assignment_is_forgotten() -> None:
    """A generation is written down with its assignment; before that the coordinator comes back at the one before."""
    play(
        STABLE_AB
        + "A join\nB join\n= CompletingRebalance 3 A B\n"
        + GONE
        + "= Stable 2 A B\nA beat g=3 -> ILLEGAL_GENERATION"
    )


def test_group_without_any_record_is_empty_after_a_load() -> None:
    """A group that never got an assignment is read as an Empty one."""
    play("A first\n+3000\n= CompletingRebalance 1 A\n" + GONE + "= Empty 0")


def test_empty_group_is_loaded_with_its_generation() -> None:
    """An Empty group is written down too."""
    play(STABLE_A + "A leave\n= Empty 2\n" + GONE + "= Empty 2")


def test_static_return_is_written_down() -> None:
    """A static member that came back to a Stable group is read under its new id."""
    play(STATIC_AB + "C static i=y p=range/roundrobin\n" + GONE + "= Stable 1 A C")


def test_record_holds_the_selected_protocol_alone() -> None:
    """After a load a follower that offers more than the selected protocol looks changed, and its join rebalances."""
    play(
        "A first p=range/roundrobin\nB first p=range/roundrobin\n+6000\nA sync\nB sync\nB join -> NONE\n"
        + GONE
        + "B join -> PARKED\n= PreparingRebalance 1 A B"
    )


def test_members_are_loaded_in_the_order_of_javas_map() -> None:
    """The record lists the members as Java's map yields them, which is then the order in which equal sessions end."""
    stage = play("q first\nc first\nb first\n+6000\nq sync\n" + GONE)
    assert list(stage.group.members) == ["q", "b", "c"]  # of 16 buckets: q 1, b 2, c 3
    stage.run("+5000")
    assert [v.member_id for v in stage.verdicts if v.kind == "member_expired"] == ["q", "b", "c"]


def test_many_loads_in_a_row_expire_nobody_and_keep_nobody_for_ever() -> None:
    """Each load gives a fresh session; once they stop, a dead member expires."""
    play(STABLE_A + "- load\n+4999\n" * 20 + "!\n+1\n! member_expired A, rebalance_started, group_empty")


def test_record_begins_when_a_group_becomes_classic() -> None:
    """What was recorded before a group was lost sight of does not come back beside those who took its place."""
    stage = play(
        """
        A beat g=0 i=x
        A join
        B beat g=2 i=x -> NONE
        = Stable 2 B
        B join
        - load
        = Stable 2 B
        """
    )
    assert stage.group.departed == {}


def test_loaded_and_presence_groups_keep_their_members() -> None:
    """Groups that are not classic have no record; they come back as they were, with fresh sessions."""
    stage = play("A beat g=7\n+44999\n" + GONE + "= Stable 7 A")
    assert stage.group.members["A"].deadline_ms == stage.now_ms + 45_000
    play("A beat g=-1\n+44999\n" + GONE + "= Stable 1 A\nA beat g=-1 -> NONE")


def test_p3_what_begins_again_after_a_load_in_the_same_millisecond_has_another_id() -> None:
    """While append times stand still, a load takes a group back, and the next joiner starts the same rebalance anew."""
    stage = play(STABLE_AB + "C new\nC join\n- load\nD new\nD join\n- load\nC new\nC join\n+1\n- load\nC new\nC join")
    started = [verdict for verdict in stage.verdicts if verdict.kind is Kind.REBALANCE_STARTED][-4:]
    assert [(one.generation_id, one.cause) for one in started] == [(2, "member_joined")] * 4
    assert len({verdict_id(one) for one in started}) == 4
    assert [one.loads for one in started] == [0, 1, 2, 1]
