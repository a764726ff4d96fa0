"""The three kinds of group and the moves between them: a job started in mid-life neither storms nor misses."""

from coordinator.group_script import play
from heartwheel.wire.verdicts import Kind, verdict_id

LOADED = "A beat g=7 -> NONE\nB beat g=7 -> NONE\n= Stable 7 A B\n!\n"
"""A group that was met in the middle of its life, at generation 7."""

PRESENT = (
    "A beat g=-1 -> NONE\nB beat g=-1 -> NONE\n= Stable 2 A B\n"
    "! rebalance_started, rebalance_completed, rebalance_started, rebalance_completed\n"
)
"""Two workers that know no protocol."""

SESSION_MS = 45_000


# Loaded groups


def test_loaded_group_takes_its_members_over_in_silence() -> None:
    """Members that are met at the group's generation are taken over without a verdict, with default timeouts."""
    stage = play(LOADED)
    assert stage.group.kind == "loaded"
    assert [m.deadline_ms for m in stage.group.members.values()] == [SESSION_MS, SESSION_MS]


def test_loaded_group_is_also_met_by_a_sync_or_a_commit() -> None:
    """Any request that carries a generation tells that the group is there."""
    play("A commit g=7 -> NONE\n= Stable 7 A\n!")
    play("A sync g=7 -> NONE\n= Stable 7 A\n!")


def test_loaded_expiry_triggers_and_stays_stable() -> None:
    """An expiry has a verdict, and so has the rebalance; as joins are not seen, the group stays where it is."""
    stage = play(LOADED + "+1\nB beat g=7\n+44999\n! member_expired A, rebalance_started\n= Stable 7 B")
    expired, started = stage.verdicts[-2:]
    assert (expired.time_ms, expired.last_seen_ms, expired.session_timeout_ms) == (SESSION_MS, 0, SESSION_MS)
    assert (started.generation_id, started.cause) == (7, "member_expired")


def test_loaded_group_is_told_to_rebalance_once_a_generation() -> None:
    """A second expiry before the group has moved on does not trigger a second rebalance, as in Kafka."""
    play(
        LOADED
        + """
        C beat g=7
        +1
        C beat g=7
        +44999
        ! member_expired A, rebalance_started, member_expired B
        C beat g=8 -> NONE
        ! rebalance_completed
        +45000
        ! member_expired C, group_empty
        = Empty 9
        """
    )


def test_loaded_group_moves_on_with_a_later_generation() -> None:
    """A heartbeat of a later generation proves a rebalance that was missed; the other members keep their time."""
    stage = play(LOADED + "+1000\nB beat g=9 -> NONE\n= Stable 9 A B\n! rebalance_completed")
    assert stage.verdicts[-1].cause == "generation_advanced"
    assert stage.group.members["A"].deadline_ms == SESSION_MS
    stage.run("A beat g=9 -> NONE\n!")


def test_loaded_group_refuses_an_earlier_generation() -> None:
    """A heartbeat of an earlier generation does not reset the session."""
    stage = play(LOADED + "+1000\nA beat g=6 -> ILLEGAL_GENERATION\n!")
    assert stage.group.members["A"].deadline_ms == SESSION_MS


def test_loaded_sync_does_not_reset_a_known_session() -> None:
    """As in a Stable classic group, a sync is no sign of life."""
    assert play(LOADED + "+1000\nA sync -> NONE").group.members["A"].deadline_ms == SESSION_MS
    assert play(LOADED + "+1000\nA commit -> NONE").group.members["A"].deadline_ms == SESSION_MS + 1000


def test_loaded_leave_removes_and_triggers() -> None:
    """A leave is seen, so the member is removed and the group has to rebalance; the last one leaves it Empty."""
    stage = play(
        LOADED + "A leave -> NONE\n! member_left A, rebalance_started\n= Stable 7 B\nC leave -> UNKNOWN_MEMBER_ID"
    )
    stage.run("B leave -> NONE\n! member_left B, group_empty\n= Empty 8\nA beat g=7 -> ILLEGAL_GENERATION")


def test_loaded_static_member_is_followed_to_its_new_id() -> None:
    """A static member that comes back unseen takes the place of its old id, so that the old one does not expire."""
    play("A beat g=7 i=x -> NONE\n+1000\nB beat g=7 i=x -> NONE\n= Stable 7 B\n+44999\nB beat\n!")


def test_member_that_turns_out_to_be_static_is_one_from_then_on() -> None:
    """A member that was met without its instance id is known by it as soon as it says it."""
    play("A beat g=7 -> NONE\nA beat g=7 i=x -> NONE\nB beat g=7 i=x -> NONE\n= Stable 7 B\n!")


def test_loaded_group_has_a_limit_of_members() -> None:
    """A group never holds more members than `group_max_size`."""
    play("A beat g=7 -> NONE\nB beat g=7 -> GROUP_MAX_SIZE_REACHED\n= Stable 7 A", group_max_size=1)


def test_a_loaded_group_may_rebalance_twice_in_a_millisecond_as_it_turns_classic() -> None:
    """P3: two rebalances of one generation, before and after the first join, are two rows with two ids."""
    stage = play(LOADED + "A leave -> NONE\nC new -> MEMBER_ID_REQUIRED\nB leave -> NONE")
    started = [one for one in stage.verdicts if one.kind is Kind.REBALANCE_STARTED]
    assert [(one.generation_id, one.time_ms, one.loads) for one in started] == [
        (7, started[0].time_ms, n) for n in (0, 1)
    ]
    assert len({verdict_id(one) for one in started}) == 2


def test_first_join_makes_a_loaded_group_classic() -> None:
    """With the first join the protocol is followed from there: members that were there have to join again."""
    stage = play(
        LOADED
        + """
        C new -> MEMBER_ID_REQUIRED
        = Stable 7 A B | C
        C join -> PARKED
        = PreparingRebalance 7 A B C
        A join -> PARKED
        B join -> PARKED
        ! rebalance_started, rebalance_completed
        = CompletingRebalance 8 A B C
        """
    )
    assert stage.group.kind == "classic"


def test_members_not_yet_seen_take_part_in_the_first_join_phase() -> None:
    """A member of a loaded group whose first sign is a join, or a heartbeat in the join phase, is one all the same."""
    play(LOADED + "C join -> PARKED\n= PreparingRebalance 7 A B C")
    stage = play(LOADED + "C new\nC join\nD beat g=7 -> REBALANCE_IN_PROGRESS\n= PreparingRebalance 7 A B C D")
    stage.run("A join\nB join\nD join -> PARKED\n= CompletingRebalance 8 A B C D\nE join -> UNKNOWN_MEMBER_ID")


def test_expiry_after_the_move_to_classic_starts_a_join_phase() -> None:
    """Members taken over keep the time that they had, and a classic group rebalances when one expires."""
    play(
        LOADED
        + "C new s=600000\n+1\nB beat\n+44999\n! member_expired A, rebalance_started\n= PreparingRebalance 7 B | C"
    )


# A classic group that is older than its first join that was seen


def test_group_met_by_a_join_in_mid_life_catches_up() -> None:
    """A later generation shows that the group is older than it seemed: nobody is refused, nobody expires falsely."""
    stage = play(
        """
        X new
        A beat g=7 -> NONE
        = Stable 7 A
        X beat g=8 -> NONE
        B beat g=8 -> NONE
        A beat g=8 -> NONE
        = Stable 8 A X B
        """
    )
    assert stage.group.kind == "loaded"


def test_join_phase_seen_from_the_middle_is_over_when_a_member_says_so() -> None:
    """Members that were parked in a join phase that must be over get a whole session each."""
    stage = play(
        """
        X first s=5000 -> PARKED
        +1000
        A sync g=8 -> NONE
        = Stable 8 X A
        ! rebalance_started, rebalance_completed
        """
    )
    assert stage.group.members["X"].deadline_ms == stage.now_ms + 5_000


def test_confirmed_classic_group_refuses_a_later_generation() -> None:
    """Once a member has agreed with the group's generation, a later one is a mistake, as it is for Kafka."""
    play("A first\n+3000\nA sync -> NONE\nA beat g=2 -> ILLEGAL_GENERATION\n= Stable 1 A")


# Presence groups


def test_first_heartbeat_without_generation_is_an_arrival() -> None:
    """Each arrival changes the generation at once and triggers."""
    stage = play(PRESENT)
    assert stage.group.kind == "presence"
    assert [(v.kind.value, v.generation_id) for v in stage.verdicts] == [
        ("rebalance_started", 0),
        ("rebalance_completed", 1),
        ("rebalance_started", 1),
        ("rebalance_completed", 2),
    ]


def test_presence_heartbeat_is_silent_and_keeps_alive() -> None:
    """A heartbeat of a worker that is there says nothing."""
    play(PRESENT + "+44999\nA beat g=-1 -> NONE\nB beat g=-1 -> NONE\n!\n+44999\n!")


def test_silence_of_a_worker_is_its_departure() -> None:
    """An expiry comes before the change of generation that it causes, and the last one leaves the group Empty."""
    stage = play(
        PRESENT + "+1\nB beat g=-1\n+44999\n! member_expired A, rebalance_started, rebalance_completed\n= Stable 3 B"
    )
    assert stage.verdicts[-1].removed == ("A",)
    stage.run("+1\n! member_expired B, group_empty\n= Empty 4")
    stage.run("B beat g=-1 -> NONE\n! rebalance_started, rebalance_completed\n= Stable 5 B")


def test_leave_of_workers_is_one_change() -> None:
    """A batch of leaves changes the generation once."""
    play(PRESENT + "A leave -> NONE\n! member_left A, rebalance_started, rebalance_completed\n= Stable 3 B")
    play(PRESENT + "A+B leave -> NONE\n! member_left A, member_left B, group_empty\n= Empty 3")


def test_changed_session_timeout_of_a_worker_takes_effect_at_once() -> None:
    """A worker may name its session timeout in any heartbeat; it holds until it names another."""
    stage = play("A beat g=-1 s=10000")
    assert stage.group.members["A"].deadline_ms == 10_000
    stage.run("+5000\nA beat g=-1 s=20000\n+19999\n= Stable 1 A\n+1\n= Empty 2")
    assert stage.verdicts[-2].session_timeout_ms == 20_000


def test_session_timeout_out_of_bounds_is_refused() -> None:
    """A worker that asks for a session timeout outside the bounds does not arrive."""
    play("A beat g=-1 s=9 -> INVALID_SESSION_TIMEOUT\n= Empty 0\n!")


def test_static_worker_returns_under_another_id() -> None:
    """A static worker that comes back under another id is the same worker: no new generation."""
    play(
        "A beat g=-1 i=x\n! rebalance_started, rebalance_completed\n"
        "B beat g=-1 i=x -> NONE\n! static_replaced A\n= Stable 1 B"
    )


def test_commit_of_a_worker_keeps_it_alive_and_is_no_arrival() -> None:
    """Only a heartbeat is an arrival; a commit of a worker that is there keeps it alive."""
    play("A beat g=-1\n+44999\nA commit g=-1 -> NONE\n+44999\n= Stable 1 A\nB commit g=-1 -> UNKNOWN_MEMBER_ID")


def test_presence_group_has_a_limit_of_members() -> None:
    """A group never holds more workers than `group_max_size`."""
    play("A beat g=-1 -> NONE\nB beat g=-1 -> GROUP_MAX_SIZE_REACHED\n= Stable 1 A", group_max_size=1)


def test_first_join_makes_a_presence_group_classic() -> None:
    """Workers that begin to speak the protocol are members from their arrival on."""
    play(PRESENT + "A join -> PARKED\nB join -> PARKED\n= CompletingRebalance 3 A B")


def test_later_generation_makes_a_presence_group_loaded() -> None:
    """A generation that the group has never had comes from the real protocol; an earlier one is not looked at."""
    stage = play(
        PRESENT + "A beat g=1 -> NONE\n= Stable 2 A B\n!\nC beat g=9 -> NONE\n= Stable 9 A B C\n! rebalance_completed"
    )
    assert stage.group.kind == "loaded"


# New and forgotten groups


def test_requests_that_make_no_group_leave_nothing_behind() -> None:
    """A leave, an unchecked commit or sync, and a re-join do not make a group of an unknown name."""
    for line in ("A leave", "A commit g=-1", "A sync g=-1", "A join", "A new s=1"):
        assert play(line).machine.is_forgettable()


def test_empty_group_is_remembered_for_its_retention_and_then_forgotten() -> None:
    """Generations go on while an Empty group is remembered, and begin again after the retention."""
    stage = play(PRESENT + "A+B leave\n= Empty 3", empty_group_retention_ms=1000)
    assert not stage.machine.is_forgettable()
    stage.run("+999\nA beat g=-1\n= Stable 4 A\nA leave\n+999\n= Empty 5")
    assert stage.machine.next_deadline_ms() == stage.now_ms + 1
    stage.run("+1\n= Empty 0")
    assert stage.machine.is_forgettable()
    stage.run("A beat g=7\n= Stable 7 A")


def test_group_that_is_never_loaded_again_is_forgotten() -> None:
    """A group whose coordinator does not come back is another's; it is dropped after the retention."""
    stage = play("A beat g=7\n- unload\n+999", empty_group_retention_ms=1000)
    assert not stage.machine.is_forgettable()
    assert stage.run("+1").machine.is_forgettable()


# Who is new in a generation


def test_a_worker_that_comes_back_is_named_as_joined() -> None:
    """A generation names the worker whose arrival made it, also when it was expired before; departures name nobody."""
    stage = play("A beat g=-1\nB beat g=-1\n+1\nB beat g=-1\n+44999\nA beat g=-1")
    completed = [v.joined for v in stage.verdicts if v.kind == "rebalance_completed"]
    assert completed == [("A",), ("B",), (), ("A",)]


def test_joined_names_those_that_were_not_in_the_generation_before() -> None:
    """A completed join phase names its new members, not those that only joined again."""
    stage = play("A first\n+3000\nA sync\nB first\nA join")
    completed = [v.joined for v in stage.verdicts if v.kind == "rebalance_completed"]
    assert completed == [("A",), ("B",)]
