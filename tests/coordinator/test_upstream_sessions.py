"""The scripts of Kafka's `GroupMetadataManagerTest` about sessions, new and pending members, and heartbeats."""

import pytest

from coordinator.group_script import STABLE_A, STABLE_AB, play

SCRIPTS = {
    "testClassicGroupMemberSessionTimeout": STABLE_A
    + """
    +4999
    !
    +1
    ! member_expired A, rebalance_started, group_empty
    = Empty 2
    A beat -> UNKNOWN_MEMBER_ID
    """,
    "testClassicGroupMemberHeartbeatMaintainsSession": STABLE_A
    + """
    +2500
    A beat -> NONE
    +2500
    A beat -> NONE
    !
    """,
    "testClassicGroupMemberSessionTimeoutDuringRebalance": STABLE_A
    + """
    B first -> PARKED
    ! rebalance_started
    +2500
    A beat -> REBALANCE_IN_PROGRESS
    +5000                                # nobody else is missing, so A's expiry ends the join phase
    ! member_expired A, rebalance_completed
    = CompletingRebalance 2 B
    A beat -> UNKNOWN_MEMBER_ID
    """,
    "testSecondMemberPartiallyJoinAndTimeout": STABLE_A
    + """
    B new -> MEMBER_ID_REQUIRED
    = Stable 1 A | B
    +2500
    A beat -> NONE
    +2499
    A beat -> NONE
    +1
    ! pending_member_expired B
    = Stable 1 A
    """,
    "testHeartbeatExpirationShouldRemovePendingMember": """
    A new s=1000 -> MEMBER_ID_REQUIRED
    = Empty 0 | A
    +1000
    = Empty 0
    ! pending_member_expired A
    """,
    "testNewMemberTimeoutCompletion": """
    A first s=305000 -> PARKED
    +3000
    = CompletingRebalance 1 A
    A sync -> NONE
    ! rebalance_started, rebalance_completed, assignment_received A
    +300000                              # the new-member timer was replaced by the session when the join completed
    = Stable 1 A
    !
    +5000
    ! member_expired A, rebalance_started, group_empty
    = Empty 2
    """,
    "testNewMemberFailureAfterJoinGroupCompletion": STABLE_A
    + """
    B first -> PARKED
    A join -> PARKED
    = CompletingRebalance 2 A B
    ! rebalance_started, rebalance_completed
    +5000
    ! member_expired A, rebalance_started, member_expired B, group_empty
    = Empty 3
    """,
    "testNewMemberFailureAfterSyncGroupCompletion": STABLE_AB
    + """
    +5000
    ! member_expired A, rebalance_started, member_expired B, group_empty
    = Empty 3
    """,
    "testHeartbeatDuringPreparingRebalance": """
    A first -> PARKED
    A beat -> REBALANCE_IN_PROGRESS
    """,
    "testHeartbeatDuringCompletingRebalance": """
    A first -> PARKED
    +3000
    = CompletingRebalance 1 A
    A beat -> NONE
    """,
    "testHeartbeatIllegalGeneration": STABLE_A
    + """
    A beat g=0 -> ILLEGAL_GENERATION
    A beat g=2 -> ILLEGAL_GENERATION
    """,
    "testHeartbeatDeadGroup": STABLE_A
    + """
    - unload
    A beat -> NOT_COORDINATOR            # a group that the coordinator has given up is not told apart from one it lost
    """,
    "testHeartbeatEmptyGroup": STABLE_A
    + """
    A leave -> NONE
    = Empty 2
    A beat -> UNKNOWN_MEMBER_ID
    """,
    "testHeartbeatUnknownMemberExistingGroup": STABLE_A
    + """
    B beat -> UNKNOWN_MEMBER_ID
    """,
    "testHeartbeatDuringRebalanceCausesRebalanceInProgress": """
    A first -> PARKED
    +3000
    = CompletingRebalance 1 A
    B first -> PARKED
    = PreparingRebalance 1 A B
    A beat -> REBALANCE_IN_PROGRESS
    """,
    "testGenericGroupOffsetCommitMaintainsSession": STABLE_A
    + """
    +2500
    A commit -> NONE
    +2500
    !
    +2500
    ! member_expired A, rebalance_started, group_empty
    """,
    "testCommitMaintainsSession": STABLE_A
    + """
    +3000
    A commit -> NONE
    +3000
    A beat -> NONE
    !
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_sessions_as_upstream(name: str) -> None:
    """Sessions start, are kept and end as in the upstream test of that name."""
    play(SCRIPTS[name])


def test_heartbeat_expiration_should_remove_member() -> None:
    """A parked first join is given up after five minutes (`testHeartbeatExpirationShouldRemoveMember`)."""
    play(
        """
        A first s=600000 r=1200000 -> PARKED
        +299999
        = PreparingRebalance 0 A
        +1
        = Empty 1
        ! rebalance_started, member_expired A, group_empty
        """,
        group_initial_rebalance_delay_ms=600_000,
    )


def test_new_member_join_expiration() -> None:
    """Only the new member that waits too long is removed (`testNewMemberJoinExpiration`)."""
    stage = play(
        """
        A first s=305000 r=600000 -> PARKED
        +3000
        A sync -> NONE
        B first s=305000 r=600000 -> PARKED
        ! rebalance_started, rebalance_completed, assignment_received A, rebalance_started
        +299999
        !
        +1
        ! member_expired B
        = PreparingRebalance 1 A
        """
    )
    assert stage.verdicts[-1].expiry_reason == "new_member_timeout"
    assert stage.verdicts[-1].session_timeout_ms == 300_000


def test_heartbeat_unknown_group() -> None:
    """The first heartbeat of an unknown group makes it a loaded one, where upstream refuses it.

    `testHeartbeatUnknownGroup` expects UNKNOWN_MEMBER_ID: Kafka knows all its groups, a job that starts today does not.
    """
    play("A beat g=1 -> NONE\n = Stable 1 A\n !")


def test_rebalance_completes_before_member_joins() -> None:
    """A static member that never joins again stays until its session ends (`testRebalanceCompletesBeforeMemberJoins`).

    Join timer and session tie at 10,000 ms and the join timer is first. Upstream's clock jumps from 5000 to 13,000 and
    re-arms from there, so that its static member lives until 18,000; exactly, it ends at 15,000.
    """
    play(
        """
        A static i=x -> PARKED
        +3000
        A sync -> NONE
        B first s=2500 -> PARKED
        ! rebalance_started, rebalance_completed, assignment_received A, rebalance_started
        +2500
        A beat -> REBALANCE_IN_PROGRESS
        +2500
        A beat -> REBALANCE_IN_PROGRESS
        +5000
        ! rebalance_completed
        = CompletingRebalance 2 A B
        B sync -> NONE
        = Stable 2 A B
        A beat g=1 -> ILLEGAL_GENERATION
        +2000
        B beat -> NONE
        +2000
        B beat -> NONE
        +1000
        ! assignment_received B, member_expired A, rebalance_started
        B beat -> REBALANCE_IN_PROGRESS
        B join -> PARKED
        = CompletingRebalance 3 B
        B sync -> NONE
        """
        + "+2000\nB beat -> NONE\n" * 20
        + """
        = Stable 3 B
        ! rebalance_completed, assignment_received B
        """
    )
