"""The scripts of Kafka's `GroupMetadataManagerTest` about the sync phase, static members, and loading."""

import pytest

from coordinator.group_script import STABLE_A, STATIC_AB, play

THREE_COMPLETING = (
    STABLE_A.replace("A join", "A join r=5000")
    + """
    B first r=5000 -> PARKED
    C first r=5000 -> PARKED
    A join -> PARKED
    = CompletingRebalance 2 A B C
    ! rebalance_started, rebalance_completed
    """
)
"""Three members with 5 s of session and of rebalance timeout, none of which has sent its SyncGroup yet."""

SCRIPTS = {
    "testRebalanceTimesOutWhenSyncRequestIsNotReceived": THREE_COMPLETING
    + """
    +2500
    A beat -> NONE
    B beat -> NONE
    C beat -> NONE
    +2500
    ! sync_timeout A, sync_timeout B, sync_timeout C, rebalance_started, group_empty
    = Empty 3
    A beat -> UNKNOWN_MEMBER_ID
    """,
    "testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromFollowers": THREE_COMPLETING
    + """
    A sync -> NONE
    = Stable 2 A B C
    ! assignment_received A
    +2500
    A beat -> NONE
    B beat -> NONE
    C beat -> NONE
    +2500
    ! sync_timeout B, sync_timeout C, rebalance_started
    A beat -> REBALANCE_IN_PROGRESS
    B beat -> UNKNOWN_MEMBER_ID
    = PreparingRebalance 2 A
    """,
    "testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromLeaders": THREE_COMPLETING
    + """
    B sync -> PARKED
    C sync -> PARKED
    +2500
    A beat -> NONE
    +2500
    ! sync_timeout A, rebalance_started
    = PreparingRebalance 2 B C
    A beat -> UNKNOWN_MEMBER_ID
    B beat -> REBALANCE_IN_PROGRESS
    """,
    "testRebalanceDoesNotTimeOutWhenAllSyncAreReceived": THREE_COMPLETING
    + """
    A sync -> NONE
    B sync -> NONE
    C sync -> NONE
    ! assignment_received A
    +2500
    A beat -> NONE
    B beat -> NONE
    C beat -> NONE
    +2500
    A beat -> NONE
    = Stable 2 A B C
    !
    """,
    "testSyncGroupFollowerAfterLeader": STABLE_A + "B first\nA join\nA sync -> NONE\nB sync -> NONE",
    "testSyncGroupLeaderAfterFollower": STABLE_A + "B first\nA join\nB sync -> PARKED\nA sync -> NONE\n= Stable 2 A B",
    "testSyncGroupNotCoordinatorError": STABLE_A + "- unload\nA sync -> NOT_COORDINATOR",
    "testSyncGroupEmptyGroup": STABLE_A + "A leave\nA sync -> UNKNOWN_MEMBER_ID",
    "testSyncGroupUnknownMember": STABLE_A + "B sync -> UNKNOWN_MEMBER_ID",
    "testSyncGroupIllegalGeneration": STABLE_A + "A sync g=2 -> ILLEGAL_GENERATION",
    "testJoinGroupFromUnchangedLeaderInCompletingRebalance": """
    A first -> PARKED
    +3000
    A join -> NONE                       # it may have missed the answer: the assignment is still to come
    = CompletingRebalance 1 A
    """,
    "testStaticMemberRejoinAsFollowerWithUnknownMemberId": STATIC_AB
    + """
    C static i=y p=range/roundrobin -> NONE
    = Stable 1 A C
    ! static_replaced B
    B beat i=y -> FENCED_INSTANCE_ID
    C beat -> NONE
    """,
    "testStaticMemberRejoinWithLeaderIdAndUnknownMemberId": STATIC_AB
    + """
    C static i=x p=range/roundrobin -> NONE
    ! static_replaced A
    = Stable 1 B C
    C join -> PARKED                     # it leads now, so its next join is a leader's
    = PreparingRebalance 1 B C
    """,
    "testStaticMemberHeartbeatLeaderWithInvalidMemberId": STATIC_AB + "B beat i=x -> FENCED_INSTANCE_ID",
    "testStaticMemberSyncAsLeaderWithInvalidMemberId": STATIC_AB + "B sync i=x -> FENCED_INSTANCE_ID",
    "testStaticMemberFenceDuplicateRejoinedFollower": STATIC_AB
    + """
    A join -> PARKED
    B join -> PARKED
    ! rebalance_started, rebalance_completed
    C static i=y p=range/roundrobin -> PARKED
    ! static_replaced B, rebalance_started
    = PreparingRebalance 2 A C
    B join -> FENCED_INSTANCE_ID
    """,
    "testStaticMemberRejoinWithUnknownMemberIdAndChangeOfProtocol": STATIC_AB
    + """
    C static i=y p=roundrobin -> PARKED
    ! static_replaced B, rebalance_started
    = PreparingRebalance 1 A C
    """,
    "testStaticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectedProtocolUnchanged": STATIC_AB
    + """
    C static i=y p=range -> NONE
    ! static_replaced B
    = Stable 1 A C
    """,
    "testOnLoadedSchedulesClassicGroupMemberHeartbeats": STABLE_A
    + """
    +4000
    - unload
    +60000
    - load
    = Stable 1 A
    !
    +4999
    !
    +1
    ! member_expired A, rebalance_started, group_empty
    """,
    "testClassicGroupOnUnloadedEmptyAndPreparingRebalance": STABLE_A
    + """
    B first -> PARKED
    ! rebalance_started
    - unload
    A join -> NOT_COORDINATOR
    +600000
    !
    """,
    "testClassicGroupOnUnloadedCompletingRebalance": STABLE_A
    + """
    B first
    A join
    B sync -> PARKED
    - unload
    B sync -> NOT_COORDINATOR
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_syncs_and_static_members_as_upstream(name: str) -> None:
    """Assignments, static members and loads go as in the upstream test of that name."""
    play(SCRIPTS[name])


def test_leader_failure_in_sync_group() -> None:
    """A leader that dies before its assignment sends those who wait back to join (`testLeaderFailureInSyncGroup`).

    Upstream jumps to 10,000 in one step and finds the follower alive; exactly, its session is re-armed at 5000 and, as
    it never joins again, it expires at 10,000 as well.
    """
    play(
        STABLE_A
        + """
        B first -> PARKED
        A join -> PARKED
        B sync -> PARKED
        ! rebalance_started, rebalance_completed
        +5000
        ! member_expired A, rebalance_started
        = PreparingRebalance 2 B
        +4999
        !
        +1
        ! member_expired B, group_empty
        """
    )


def test_on_loaded_exceed_group_max_size_triggers_rebalance() -> None:
    """A group that is loaded with more members than allowed has to rebalance.

    That is `testOnLoadedExceedGroupMaxSizeTriggersRebalance`.
    """
    stage = play(STATIC_AB + "- unload")
    smaller = play("", group_max_size=1)
    smaller.machine = type(stage.machine)(stage.group, smaller.config, smaller.verdicts.append)
    smaller.now_ms = stage.now_ms
    smaller.run("- load\n! rebalance_started\n= PreparingRebalance 1 A B")
    assert smaller.verdicts[0].reason == (
        "Freshly-loaded group g (size 2) is over capacity 1. "
        "Rebalancing in order to give a chance for consumers to commit offsets"
    )
    assert smaller.verdicts[0].cause == "over_capacity"


def test_complete_join_phase_in_empty_state_skips_rebalance() -> None:
    """A join phase whose coordinator went away never completes (`testCompleteJoinPhaseInEmptyStateSkipsRebalance`)."""
    play("A first -> PARKED\n- unload\n+3000\n- load\n= Empty 0\n! rebalance_started")
