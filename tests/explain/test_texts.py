"""The coordinator's sentences of each version, read into facts."""

from __future__ import annotations

from typing import Any

import pytest

from heartwheel.sources.explain.facts import FactKind
from heartwheel.sources.explain.texts import read
from heartwheel.sources.explain.trigger_causes import names_of, triggered_by

M = "app-1-9c0f6a3e-1f7b-4c4e-9a55-0d9a3b3d1c11"
N = "app-2-1c0f6a3e-1f7b-4c4e-9a55-0d9a3b3d1c22"
OLD = "[GroupCoordinator 3]: "
NEW = "[GroupCoordinator id=3 topic=__consumer_offsets partition=17] "
K848 = "Yk3yQq0TSVuRW1yU3oCQeg"

TEXTS: list[tuple[str, str, dict[str, Any]]] = [
    # session expiry
    (OLD, f"Member {M} in group orders has failed, removing it from the group", {"kind": FactKind.FAILED, "member_id": M}),
    (NEW, f"Member {M} in group orders has failed, removing it from the group.", {"kind": FactKind.FAILED, "member_id": M}),
    # pending members
    (OLD, f"Pending member {M} in group orders has been removed after session timeout expiration.", {"kind": FactKind.PENDING_EXPIRED, "member_id": M}),
    (OLD, f"Pending member {M} is leaving group orders.", {"kind": FactKind.PENDING_LEFT, "member_id": M}),
    (OLD, f"Pending member with memberId={M} has left group orders through explicit `LeaveGroup` request", {"kind": FactKind.PENDING_LEFT, "member_id": M}),
    (NEW, f"[Group orders] Pending member {M} has left group through explicit `LeaveGroup` request; client reason: bye.", {"kind": FactKind.PENDING_LEFT, "words": "bye."}),
    (OLD, f"Pending dynamic member with id {M} joins group orders in Empty state. Adding to the group now.", {"kind": FactKind.JOINED, "member_id": M}),
    # triggers
    (OLD, "Preparing to rebalance group orders with old generation 4 (__consumer_offsets-17)", {"kind": FactKind.TRIGGER, "number": 4}),
    (OLD, f"Preparing to rebalance group orders in state PreparingRebalance with old generation 4 (__consumer_offsets-17) (reason: removing member {M} on heartbeat expiration)", {"kind": FactKind.TRIGGER, "number": 4, "words": f"removing member {M} on heartbeat expiration"}),
    (NEW, f"Preparing to rebalance group orders in state PreparingRebalance with old generation 4 (reason: explicit `LeaveGroup` request for ({M}) members.).", {"kind": FactKind.TRIGGER, "number": 4, "words": f"explicit `LeaveGroup` request for ({M}) members."}),
    # barrier
    (OLD, f"Group orders removed dynamic members who haven't joined: Set({M}, {N})", {"kind": FactKind.REMOVED_AT_BARRIER, "members": (M, N)}),
    (NEW, f"Group orders removed dynamic members who haven't joined: [{M}]", {"kind": FactKind.REMOVED_AT_BARRIER, "members": (M,)}),
    (OLD, f"Group orders removed dynamic members who haven't joined: HashSet({M})", {"kind": FactKind.REMOVED_AT_BARRIER, "members": (M,)}),
    # done
    (OLD, "Stabilized group orders generation 5 (__consumer_offsets-17)", {"kind": FactKind.STABILIZED, "number": 5, "size": None}),
    (OLD, "Stabilized group orders generation 5 (__consumer_offsets-17) with 3 members", {"kind": FactKind.STABILIZED, "number": 5, "size": 3}),
    (NEW, "Stabilized group orders generation 5 with 3 members.", {"kind": FactKind.STABILIZED, "number": 5, "size": 3}),
    (OLD, "Assignment received from leader for group orders for generation 5", {"kind": FactKind.ASSIGNED, "number": 5, "member_id": ""}),
    (OLD, "Assignment received from leader for group orders for generation 5. The group has 3 members, 0 of which are static.", {"kind": FactKind.ASSIGNED, "size": 3}),
    (NEW, f"Assignment received from leader {M} for group orders for generation 5. The group has 3 members, 0 of which are static.", {"kind": FactKind.ASSIGNED, "member_id": M, "number": 5}),
    (OLD, "Group orders with generation 6 is now empty (__consumer_offsets-17)", {"kind": FactKind.EMPTY, "number": 6}),
    (NEW, "Group orders with generation 6 is now empty.", {"kind": FactKind.EMPTY, "number": 6}),
    # leaves
    (OLD, f"Member[group.instance.id None, member.id {M}] in group orders has left, removing it from the group", {"kind": FactKind.LEFT, "member_id": M, "group_instance_id": ""}),
    (OLD, f"Member[group.instance.id Some(null), member.id {M}] in group orders has left, removing it from the group", {"kind": FactKind.LEFT, "group_instance_id": ""}),
    (OLD, f"Member[group.instance.id Some(i-1), member.id {M}] in group orders has left, removing it from the group", {"kind": FactKind.LEFT, "group_instance_id": "i-1"}),
    (OLD, f"Member MemberMetadata(memberId={M}, groupInstanceId=None, clientId=app-1, clientHost=/10.0.0.7, sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, supportedProtocols=List(range, cooperative-sticky)) has left group orders through explicit `LeaveGroup`; client reason: consumer poll timeout has expired.", {"kind": FactKind.LEFT, "member_id": M, "client_id": "app-1", "client_host": "/10.0.0.7", "session_timeout_ms": 45_000, "rebalance_timeout_ms": 300_000, "words": "consumer poll timeout has expired."}),
    (OLD, f"Member MemberMetadata(memberId={M}, groupInstanceId=Some(i-1), clientId=app-1, clientHost=/10.0.0.7, sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, supportedProtocols=List(range)) has left group orders through explicit `LeaveGroup`; client reason: not provided", {"kind": FactKind.LEFT, "group_instance_id": "i-1", "words": "not provided"}),
    (NEW, f"[Group orders] Member {M} has left group through explicit `LeaveGroup` request; client reason: the consumer is being closed", {"kind": FactKind.LEFT, "member_id": M, "words": "the consumer is being closed"}),
    (NEW, f"[GroupId orders] Dynamic member {K848} has left group through explicit `LeaveGroup` request; client reason: not provided", {"kind": FactKind.LEFT, "member_id": K848}),
    (NEW, f"[Group orders] Dynamic Member {K848} has left group through explicit `LeaveGroup` request; client reason: x", {"kind": FactKind.LEFT, "member_id": K848}),
    (NEW, f"[GroupId orders] Static member {K848} with instance id i-1 has left group through explicit `LeaveGroup` request; client reason: x", {"kind": FactKind.LEFT, "member_id": K848, "group_instance_id": "i-1"}),
    # the newer group types
    (NEW, f"[GroupId orders] Member {K848} fenced from the group because the member session expired.", {"kind": FactKind.FENCED, "member_id": K848, "words": "the member session expired"}),
    (NEW, f"[GroupId orders] Member {K848} fenced from the group because the member session expired..", {"kind": FactKind.FENCED, "words": "the member session expired"}),
    (NEW, f"[GroupId orders] Member {K848} fenced from the group because it failed to transition from epoch 7 within 5000ms.", {"kind": FactKind.FENCED, "words": "it failed to transition from epoch 7 within 5000ms"}),
    (NEW, f"[GroupId orders] Streams member {K848} fenced from the group because the member session expired.", {"kind": FactKind.FENCED, "member_id": K848, "protocol": "streams"}),
    (NEW, f"[GroupId orders] Member {K848} left the consumer group.", {"kind": FactKind.LEFT, "member_id": K848, "protocol": "consumer"}),
    (NEW, f"[GroupId orders] Member {K848} left the share group.", {"kind": FactKind.LEFT, "protocol": "share"}),
    (NEW, f"[GroupId orders][MemberId {K848}] Member {K848} left the streams group.", {"kind": FactKind.LEFT, "member_id": K848, "protocol": "streams"}),
    (NEW, f"[GroupId orders] Static Member {K848} with instance id i-1 temporarily left the consumer group.", {"kind": FactKind.TEMPORARILY_LEFT, "member_id": K848, "group_instance_id": "i-1"}),
    (NEW, f"[GroupId orders] Static member {K848} with instance id i-1 temporarily left the consumer group.", {"kind": FactKind.TEMPORARILY_LEFT, "member_id": K848}),
    (NEW, f"[GroupId orders] Static member {K848} with instance id i-1 left the consumer group.", {"kind": FactKind.LEFT, "group_instance_id": "i-1"}),
    (NEW, "[GroupId orders] Bumped group epoch to 3.", {"kind": FactKind.BUMPED, "number": 3}),
    (NEW, "[GroupId orders] Bumped group epoch to 3 with metadata hash -818178.", {"kind": FactKind.BUMPED, "number": 3}),
    (NEW, f"[GroupId orders][MemberId {K848}] Bumped streams group epoch to 3 with metadata hash 1 and validated topic epoch 0.", {"kind": FactKind.BUMPED, "number": 3, "protocol": "streams"}),
    (NEW, f"[GroupId orders] Member {K848} joins the consumer group using the consumer protocol.", {"kind": FactKind.JOINED, "member_id": K848, "protocol": "consumer"}),
    (NEW, f"[GroupId orders] Member {K848} joins the consumer group using the classic protocol.", {"kind": FactKind.JOINED}),
    (NEW, f"[GroupId orders] Member {K848} joins the share group using the share protocol.", {"kind": FactKind.JOINED, "protocol": "share"}),
    (NEW, f"[GroupId orders][MemberId {K848}] Member joins the streams group.", {"kind": FactKind.JOINED, "member_id": K848, "protocol": "streams"}),
    # static members of streams groups, from 4.4 on
    (NEW, f"[GroupId orders][MemberId {K848}] Static member {K848} with instance id i-1 joins the streams group.", {"kind": FactKind.JOINED, "member_id": K848, "group_instance_id": "i-1", "protocol": "streams"}),
    (NEW, f"[GroupId orders][MemberId {K848}] Static member {K848} with instance id i-1 temporarily left the streams group.", {"kind": FactKind.TEMPORARILY_LEFT, "member_id": K848, "group_instance_id": "i-1", "protocol": "streams"}),
    (NEW, f"[GroupId orders][MemberId {K848}] Static member {K848} with instance id i-1 left the streams group.", {"kind": FactKind.LEFT, "member_id": K848, "group_instance_id": "i-1", "protocol": "streams"}),
    (NEW, f"[GroupId orders][MemberId {K848}] Static member with instance id i-1 re-joins the streams group using the streams protocol. Created a new member {K848} to replace the existing member {M}.", {"kind": FactKind.REPLACED, "member_id": M, "new_member_id": K848, "group_instance_id": "i-1", "protocol": "streams"}),
    (NEW, f"[GroupId orders] Static member {K848} with instance id i-1 joins the consumer group using the consumer protocol.", {"kind": FactKind.JOINED, "group_instance_id": "i-1"}),
    (NEW, f"[GroupId orders] Static member with instance id i-1 re-joins the consumer group using the consumer protocol. Created a new member {N} to replace the existing member {M}.", {"kind": FactKind.REPLACED, "member_id": M, "new_member_id": N, "group_instance_id": "i-1"}),
    (NEW, f"[GroupId orders] Member {K848} new assignment state: epoch=4, previousEpoch=3, state=STABLE, assignedPartitions=[] and revokedPartitions=[].", {"kind": FactKind.REACHED, "number": 4, "state": "STABLE"}),
    # static members
    (OLD, f"Static member Some(i-1) of group orders with unknown member id rejoins, assigning new member id {N}, while old member id {M} will be removed.", {"kind": FactKind.REPLACED, "member_id": M, "new_member_id": N, "group_instance_id": "i-1"}),
    (OLD, f"Static member with groupInstanceId=i-1 and unknown member id joins group orders in Stable state. Replacing previously mapped member {M} with this groupInstanceId.", {"kind": FactKind.REPLACED, "member_id": M, "group_instance_id": "i-1"}),
    (NEW, f"Static member with groupInstanceId=i-1 and unknown member id joins group orders in Empty state. Created a new member id {M} for this member and added to the group.", {"kind": FactKind.JOINED, "member_id": M, "group_instance_id": "i-1"}),
    (OLD, f"Adding new static member Some(i-1) to group orders with member id {M}.", {"kind": FactKind.JOINED, "member_id": M, "group_instance_id": "i-1"}),
    (OLD, f"Static Member with unknown member id joins group orders in Stable state. Created a new member id {M} for this member and add to the group.", {"kind": FactKind.JOINED, "member_id": M}),
    # dynamic members
    (OLD, f"Dynamic member with unknown member id joins group orders in Empty state. Created a new member id {M} and request the member to rejoin with this id.", {"kind": FactKind.NEW_ID, "member_id": M}),
    (NEW, f"Dynamic member with unknown member id joins group orders in Empty state. Created a new member id {M} and requesting the member to rejoin with this id.", {"kind": FactKind.NEW_ID, "member_id": M}),
    (OLD, f"Dynamic Member with unknown member id joins group orders in Empty state. Created a new member id {M} for this member and add to the group.", {"kind": FactKind.JOINED, "member_id": M}),
    # coordinators
    (OLD, "Loading group metadata for orders with generation 4", {"kind": FactKind.LOADED, "number": 4}),
    (NEW, "Loaded classic group orders with 3 members.", {"kind": FactKind.LOADED, "size": 3, "protocol": "classic"}),
    (NEW, "Loaded streams group orders with 3 members.", {"kind": FactKind.LOADED, "protocol": "streams"}),
    (OLD, "Unloading group metadata for orders with generation 4", {"kind": FactKind.UNLOADED, "number": 4}),
    (NEW, "[GroupId=orders] Unloading group metadata for generation 4.", {"kind": FactKind.UNLOADED, "number": 4}),
    (NEW, "[GroupId=orders] Unloaded group metadata for group epoch 4.", {"kind": FactKind.UNLOADED, "number": 4}),
]  # fmt: skip


@pytest.mark.parametrize(("prefix", "text", "fields"), TEXTS)
@pytest.mark.parametrize("group", ["orders", "the orders of 2026", "a.b-c_d"])
def test_each_version_is_read(prefix: str, text: str, fields: dict[str, Any], group: str) -> None:
    """What a line says, of which group and member, is the same whichever version's words say it."""
    fact = read(prefix + text.replace("orders", group))
    assert fact is not None
    assert fact.group_id == group
    assert fact.broker_id == 3
    assert {name: getattr(fact, name) for name in fields} == fields


def test_24_leaves_out_the_group_of_a_replaced_static_member() -> None:
    """Kafka 2.4 names both members and no group."""
    text = f"Static member Some(i-1) with unknown member id rejoins, assigning new member id {N}, while old member {M} will be removed."
    fact = read(OLD + text)
    assert fact is not None
    assert (fact.kind, fact.group_id, fact.member_id, fact.new_member_id) == (FactKind.REPLACED, "", M, N)


REFUSED = [
    f"Request memberId={M} for static member with groupInstanceId=i-1 is fenced by current memberId={N} during operation heartbeat",
    f"Request memberId={M} for static member with groupInstanceId=i-1 is fenced by existing memberId={N} during operation leave-group",
    f"given member.id {M} is identified as a known static member i-1, but not matching the expected member.id {N}",
    f"[GroupId orders] Static member {M} with instance id i-1 is fenced by existing member {N}.",
    f"[GroupId orders] Static member {M} with instance id i-1 cannot join the group because the instance id is owned by member {N}.",
]


@pytest.mark.parametrize("text", REFUSED)
def test_a_refused_request_removes_nobody(text: str) -> None:
    """What is called fenced there is a request, not a membership."""
    fact = read(OLD + text)
    assert fact is not None
    assert fact.kind is FactKind.REFUSED


NOTHING = [
    "Elected as the group coordinator for partition 13 in epoch 0",
    "Resigned as the group coordinator for partition 13 in epoch OptionalInt[1]",
    "Startup complete.",
    f"Loaded member MemberMetadata(memberId={M}, groupInstanceId=None, clientId=app-1) in group orders with generation 3.",
    "Static member which joins during Stable stage and doesn't affect selectProtocol will not trigger rebalance.",
    "Static member joins during Stable stage will not trigger rebalance.",
    "Setting empty assignments for members Set() of orders for generation 4.",
    f"Group leader [member.id: {M}, group.instance.id: Some(i-1)] failed to join before rebalance timeout, while new leader {N} was elected.",
    f"[GroupId orders] Member {K848} updated its subscribed topics to: [orders].",
    "[GroupId orders] Computed a new target assignment for epoch 4 with 'uniform' assignor in 1ms: {}.",
    "[GroupId orders] Computed new metadata hash: 17.",
    "[GroupId orders] Converted the empty classic group to a consumer group.",
    "Finished loading of metadata from __consumer_offsets-17 with epoch 0 in 3ms where 1ms was spent in the scheduler. Loaded 4 records which total to 700 bytes.",
    "Scheduling loading of metadata from __consumer_offsets-17 with epoch 0",
    "Group orders removed members who haven't sent their sync requests: [a]",
    "Group orders could not complete rebalance because no members rejoined",
    "Received unexpected notification of sync expiration after group orders already transitioned to the Stable state.",
    "The following groups were deleted: orders. A total of 3 offsets were removed.",
    "Creating simple consumer group orders via manual offset commit.",
    f"[GroupId orders][MemberId {K848}] Member initialized the topology with epoch 0",
    f"[GroupId orders][MemberId {K848}] Member joined with stale topology epoch 0",
    f"[GroupId orders][MemberId {K848}] Valid topic configuration found in 4ms, topology epoch 0 is now initialized.",
    f"[GroupId orders][MemberId {K848}] Valid topic configuration found in 4ms, but internal topics are missing for topology epoch 0: [a]",
    f"[GroupId orders][MemberId {K848}] Topic configuration failed for topology epoch 0 in 4ms: MISSING_SOURCE_TOPICS",
    f"[GroupId orders][MemberId {K848}] Assignment configurations changed to {{num.standby.replicas=1}}. Triggering rebalance.",
    f"[GroupId orders][MemberId {K848}] Shutdown requested for the streams application.",
    "[GroupId orders] The configured task assignor 'mine' is not available; falling back to the default assignor 'sticky'.",
    "[GroupId orders] Requested topology description push at topology epoch 0.",
]


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_about_no_member_is_known(text: str) -> None:
    """Lines that say nothing of members or rebalances are no unknown ones: those would hide a new wording."""
    fact = read(NEW + text)
    assert fact is not None
    assert fact.kind is FactKind.NOTHING


def test_a_new_wording_is_unknown() -> None:
    """A text that no pattern knows is not guessed."""
    assert read(NEW + f"Member {M} of group orders was evicted.") is None
    assert read(NEW + "[GroupId orders] Evicted member x from the group because of age.") is None


REASONS = [
    (f"removing member {M} on heartbeat expiration.", "member_expired", [M], ""),
    (f"removing member {M} on LeaveGroup", "member_left", [M], ""),
    (f"Removing member {M} on LeaveGroup; client reason: bye", "member_left", [M], "bye"),
    (f"explicit `LeaveGroup` request for ({M}, {N}) members.", "member_left", [M, N], ""),
    (f"Adding new member {M} with group instanceid None", "member_joined", [M], ""),
    (f"Adding new member {M} with group instance id Some(i-1); client reason: not provided", "member_joined", [M], "not provided"),
    (f"leader {M} re-joining group during Stable", "leader_rejoined", [M], ""),
    (f"Leader {M} re-joining group during Stable; client reason: x", "leader_rejoined", [M], "x"),
    (f"Updating metadata for member {M} during Stable; client reason: x", "member_updated", [M], "x"),
    (f"Updating metadata for member {M}", "member_updated", [M], ""),
    (f"Updating metadata for static member {M} with instance id i-1; client reason: x", "static_member_updated", [M], "x"),
    (f"Member {M} joining group during Stable", "member_rejoined", [M], ""),
    (f"Removing Set({M}, {N}) on pending sync request expiration", "sync_expired", [M, N], ""),
    (f"Removing HashSet({M}) on pending sync request expiration", "sync_expired", [M], ""),
    (f"Removing [{M}] on pending sync request expiration", "sync_expired", [M], ""),
    ("Freshly-loaded group orders (size 9) is over capacity 8. Rebalancing in order to ...", "over_capacity", [], ""),
    ("Downgrade group orders from consumer to classic for member leaving.", "downgraded", [], ""),
]  # fmt: skip


@pytest.mark.parametrize(("words", "cause", "members", "client"), REASONS)
def test_reasons_of_rebalances(words: str, cause: str, members: list[str], client: str) -> None:
    """The reason of a rebalance names its cause, the members behind it, and what the client said."""
    assert triggered_by(words) == (cause, members, client)


def test_lists_of_scala_and_java() -> None:
    """Both print a set of members in their own way; an empty one names nobody."""
    assert names_of("Set(a, b)") == names_of("[a, b]") == names_of("[a, b].") == ["a", "b"]
    assert names_of("Set()") == names_of("[]") == []


def test_a_group_is_read_whole_whatever_is_in_its_id() -> None:
    """Kafka takes any character in an id of a group."""
    fact = read("[GroupCoordinator 1]: Member m-1 in group a\0b has failed, removing it from the group")
    assert fact is not None
    assert (fact.group_id, fact.member_id) == ("a\0b", "m-1")
