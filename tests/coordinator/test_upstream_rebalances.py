"""The scripts of Kafka's `GroupMetadataManagerTest` about the join phase, leaving, and the size of a group."""

import pytest

from coordinator.group_script import STABLE_A, STABLE_AB, STATIC_AB, play

PENDING_THIRD = (
    STABLE_AB
    + """
    A join -> PARKED
    C new s=2500 -> MEMBER_ID_REQUIRED
    B join -> PARKED
    = PreparingRebalance 2 A B | C
    ! rebalance_started
    """
)
"""Kafka's `setupGroupWithPendingMember`: two members have joined again, a third was only given its id."""

SCRIPTS = {
    "testJoinGroupCompletionWhenPendingMemberJoins": PENDING_THIRD
    + """
    C join -> PARKED
    = CompletingRebalance 3 A B C
    ! rebalance_completed
    """,
    "testJoinGroupCompletionWhenPendingMemberTimesOut": PENDING_THIRD
    + """
    +2499
    !
    +1
    ! pending_member_expired C, rebalance_completed
    = CompletingRebalance 3 A B
    """,
    "testPendingMembersLeaveGroup": PENDING_THIRD
    + """
    C leave -> NONE
    ! pending_member_left C, rebalance_completed
    = CompletingRebalance 3 A B
    """,
    "testGenerationIdIncrementsOnRebalance": STABLE_A
    + """
    A join -> PARKED
    = CompletingRebalance 2 A
    ! rebalance_started, rebalance_completed
    """,
    "testDelayInitialRebalanceByGroupInitialRebalanceDelayOnEmptyGroup": """
    A first -> PARKED
    +1500
    = PreparingRebalance 0 A
    +1501
    = CompletingRebalance 1 A
    """,
    "testResetRebalanceDelayWhenNewMemberJoinsGroupDuringInitialRebalance": """
    A first r=9000 -> PARKED
    +2999
    B first r=9000 -> PARKED
    +2
    = PreparingRebalance 0 A B
    +1501
    = PreparingRebalance 0 A B
    +1498                                # upstream's 1 ms jump past the first deadline adds one here
    = CompletingRebalance 1 A B
    """,
    "testCompleteJoinRemoveNotYetRejoinedDynamicMembers": """
    A first s=1000 r=1000 -> PARKED
    +1000
    B first s=1000 r=1000 -> PARKED
    +2000
    = CompletingRebalance 1 A B          # the initial delay is 3000: nothing extends it past the rebalance timeout
    A sync -> NONE
    B sync -> NONE
    +500
    A beat -> NONE
    ! rebalance_started, rebalance_completed, assignment_received A
    B join p=range/roundrobin -> PARKED
    +999
    A beat -> REBALANCE_IN_PROGRESS
    +1
    ! rebalance_started, member_removed_at_join A, rebalance_completed
    = CompletingRebalance 2 B
    """,
    "testCompleteJoinPhaseNoMembersRejoinedExtendsJoinPhase": """
    A static i=x s=30000 -> PARKED
    +3000
    A sync -> NONE
    B static i=y s=30000 -> PARKED
    A join -> PARKED
    = CompletingRebalance 2 A B
    A sync -> NONE
    C new s=30000 -> MEMBER_ID_REQUIRED
    C leave -> NONE                      # upstream calls prepareRebalance by hand; this triggers the same
    = PreparingRebalance 2 A B
    ! rebalance_started, rebalance_completed, assignment_received A, rebalance_started, rebalance_completed, \
assignment_received A, pending_member_left C, rebalance_started
    +10000
    ! join_extended
    +10000
    ! join_extended
    = PreparingRebalance 2 A B
    A join -> PARKED
    B join -> PARKED
    ! rebalance_completed
    = CompletingRebalance 3 A B
    """,
    "testStaticMemberFollowerFailToRejoinBeforeRebalanceTimeout": STATIC_AB.replace("p=", "s=15000 p=")
    + """
    C static i=z s=15000 p=range/roundrobin -> PARKED
    A join -> PARKED
    +10000
    ! rebalance_started, rebalance_completed
    = CompletingRebalance 2 A B C
    A sync -> NONE
    ! assignment_received A
    """,
    "testStaticMemberLeaderFailToRejoinBeforeRebalanceTimeout": STATIC_AB.replace("p=", "s=15000 p=")
    + """
    C static i=z s=15000 p=range/roundrobin -> PARKED
    B join -> PARKED
    +10000
    = CompletingRebalance 2 A B C
    B sync -> NONE                       # the absentee led; a member that joined does now
    ! rebalance_started, rebalance_completed, assignment_received B
    """,
    "testGroupStuckInRebalanceTimeoutDueToNonjoinedStaticMember": STATIC_AB.replace("p=", "s=10000 r=5000 p=")
    + """
    C first s=10000 r=5000 -> PARKED
    +5000
    ! rebalance_started, rebalance_completed
    = CompletingRebalance 2 A B C
    B leave -> NONE
    ! member_left B, rebalance_started
    +4999
    A beat g=2 -> REBALANCE_IN_PROGRESS
    +1
    ! member_removed_at_join C, join_extended
    = PreparingRebalance 2 A
    """,
    "testJoinGroupFromUnchangedFollowerDoesNotRebalance": STABLE_AB
    + """
    B join -> NONE
    = Stable 2 A B
    !
    """,
    "testLeaderJoinGroupShouldRebalance": STABLE_AB
    + """
    A join -> PARKED
    B join -> PARKED
    = CompletingRebalance 3 A B
    """,
    "testValidLeaveGroup": STABLE_A
    + """
    A leave -> NONE
    ! member_left A, rebalance_started, group_empty
    = Empty 2
    """,
    "testLeaveGroupUnknownGroup": "A leave -> UNKNOWN_MEMBER_ID",
    "testLeaveGroupUnknownMemberIdExistingGroup": STABLE_A + "C leave -> UNKNOWN_MEMBER_ID\n!",
    "testStaticMembersValidBatchLeaveGroup": STATIC_AB
    + """
    A+B leave -> NONE
    ! member_left A, member_left B, rebalance_started, group_empty
    = Empty 2
    """,
    "testStaticMembersLeaveUnknownGroup": STATIC_AB + "- leave i=w -> UNKNOWN_MEMBER_ID\n!",
    "testStaticMembersFencedInstanceLeaveGroup": STATIC_AB + "B leave i=x -> FENCED_INSTANCE_ID\n!",
    "testPendingMemberBatchLeaveGroup": PENDING_THIRD + "C+D leave -> NONE\n= CompletingRebalance 3 A B",
    "testJoinGroupInconsistentGroupProtocol": STABLE_A + "B first p=roundrobin -> INCONSISTENT_GROUP_PROTOCOL",
    "testJoinGroupInconsistentProtocolType": STABLE_A + "B first type=connect -> INCONSISTENT_GROUP_PROTOCOL",
    "testJoinGroupSecondJoinInconsistentProtocol": "A first -> PARKED\nA join p= -> INCONSISTENT_GROUP_PROTOCOL",
    "testJoinGroupUnknownMemberNewGroup": "A join -> UNKNOWN_MEMBER_ID",
    "testJoinGroupUnknownConsumerExistingGroup": STABLE_A + "B join -> UNKNOWN_MEMBER_ID",
    "testJoinGroupReturnsARebalanceInProgressError": STABLE_A
    + """
    B first -> PARKED
    A sync -> REBALANCE_IN_PROGRESS
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_rebalances_as_upstream(name: str) -> None:
    """A join phase starts, is extended and ends as in the upstream test of that name."""
    play(SCRIPTS[name])


def test_delay_rebalance_up_to_rebalance_timeout() -> None:
    """The initial delay is extended by new members, up to the rebalance timeout and not beyond.

    `testDelayRebalanceUptoRebalanceTimeout` completes at 6001, because its clock jumps from 0 to 3001 before the first
    timer fires and is re-armed; exactly, it is 6000.
    """
    play(
        """
        A first r=6000 -> PARKED
        B first r=6000 -> PARKED
        +3001
        C first r=6000 -> PARKED
        +2998
        = PreparingRebalance 0 A B C
        +1
        = CompletingRebalance 1 A B C
        """
    )


def test_last_joining_members_are_kicked_out_of_a_group_that_is_too_big() -> None:
    """Of a group over its size the last to join again are removed.

    That is `testLastJoiningMembersAreKickedOutWhenRejoiningGroupWithMaxSize`.
    """
    stage = play("A first -> PARKED\nB first -> PARKED\nC first -> PARKED\n+6000\nA sync -> NONE", group_max_size=3)
    smaller = play("", group_max_size=2)
    smaller.machine = type(stage.machine)(stage.group, smaller.config, smaller.verdicts.append)
    smaller.now_ms = stage.now_ms
    smaller.run(
        """
        A join -> PARKED
        B join -> PARKED
        C join -> GROUP_MAX_SIZE_REACHED
        = PreparingRebalance 1 A B
        +10000
        = CompletingRebalance 2 A B
        """
    )


def test_max_size_refuses_new_members_of_a_stable_group() -> None:
    """A Stable group at its size takes no new member, pending ones are not counted (`testGroupMaxSize...`)."""
    play(
        STABLE_A
        + """
        B first -> GROUP_MAX_SIZE_REACHED
        A beat -> NONE
        A join -> PARKED
        !  rebalance_started, rebalance_completed
        """,
        group_max_size=1,
    )


def test_join_group_invalid_session_timeout() -> None:
    """A session timeout outside the bounds is refused, one on them is not (`testJoinGroupInvalidSessionTimeout`)."""
    bounds = {"group_min_session_timeout_ms": 120, "group_max_session_timeout_ms": 50_000}
    play("A new s=119 -> INVALID_SESSION_TIMEOUT\nA new s=120 -> MEMBER_ID_REQUIRED", **bounds)
    play("A new s=50001 -> INVALID_SESSION_TIMEOUT\nA new s=50000 -> MEMBER_ID_REQUIRED", **bounds)
