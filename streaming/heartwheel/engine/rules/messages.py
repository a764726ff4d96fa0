"""Kafka's own texts: the log lines and rebalance reasons of `GroupMetadataManager`.

People search for these lines, and a replay is compared with a broker's log by them, so they are exact copies.
"""

from __future__ import annotations

from collections.abc import Iterable

_NO_REASON = "not provided"


def join_reason(reason: str | None) -> str:
    """Return the client's reason of a JoinGroup; an empty one counts as none (`JoinGroupRequest.joinReason`)."""
    return reason or _NO_REASON


def leave_reason(reason: str | None) -> str:
    """Return the client's reason of a LeaveGroup; an empty one stays empty."""
    return _NO_REASON if reason is None else reason


def adding(member_id: str, group_instance_id: str | None, reason: str | None) -> str:
    """Return the reason why a new member triggers a rebalance."""
    instance = "null" if group_instance_id is None else group_instance_id
    return f"Adding new member {member_id} with group instance id {instance}; client reason: {join_reason(reason)}"


def joining(member_id: str, state: str, reason: str | None) -> str:
    """Return the log line of a member that joins during a running join phase."""
    return f"Member {member_id} is joining group during {state}; client reason: {join_reason(reason)}"


def updating(member_id: str, state: str, reason: str | None) -> str:
    """Return the reason why a member with changed protocols triggers a rebalance."""
    return f"Updating metadata for member {member_id} during {state}; client reason: {join_reason(reason)}"


def leader_rejoining(member_id: str, state: str, reason: str | None) -> str:
    """Return the reason why the leader of a Stable group triggers a rebalance by joining again."""
    return f"Leader {member_id} re-joining group during {state}; client reason: {join_reason(reason)}"


def static_updating(member_id: str, group_instance_id: str | None, reason: str | None) -> str:
    """Return the reason why a static member that comes back before the assignment triggers a rebalance."""
    return (
        f"Updating metadata for static member {member_id} with instance id {group_instance_id}; "
        f"client reason: {join_reason(reason)}"
    )


def static_changes_protocol(member_id: str, group_instance_id: str | None, reason: str | None) -> str:
    """Return the reason why a static member that comes back with another protocol triggers a rebalance."""
    return (
        f"Group's selectedProtocol will change because static member {member_id} with instance id "
        f"{group_instance_id} joined with change of protocol; client reason: {join_reason(reason)}"
    )


def static_replaced(group_id: str, state: str, group_instance_id: str | None, old_id: str) -> str:
    """Return the log line of a static member that came back under a new id."""
    return (
        f"Static member with groupInstanceId={group_instance_id} and unknown member id joins group {group_id} in "
        f"{state} state. Replacing previously mapped member {old_id} with this groupInstanceId."
    )


def failed(group_id: str, member_id: str) -> str:
    """Return the log line of a member whose timer ran out."""
    return f"Member {member_id} in group {group_id} has failed, removing it from the group."


def pending_failed(group_id: str, member_id: str) -> str:
    """Return the log line of a pending member that never joined."""
    return f"Pending member {member_id} in group {group_id} has been removed after session timeout expiration."


def removing_failed(member_id: str) -> str:
    """Return the reason why an expired member triggers a rebalance."""
    return f"removing member {member_id} on heartbeat expiration."


def worker_failed(member_id: str, failure: str) -> str:
    """Return heartwheel's own text for a worker that failed, with the failure if it was given."""
    return f"Worker {member_id} failed: {failure}" if failure else f"Worker {member_id} failed"


def removed_at_join(group_id: str, member_ids: Iterable[str]) -> str:
    """Return the log line of members that were removed because they did not join again in time."""
    return f"Group {group_id} removed dynamic members who haven't joined: [{', '.join(member_ids)}]"


def removing_unsynced(member_ids: Iterable[str]) -> str:
    """Return the reason why members without SyncGroup trigger a rebalance."""
    return f"Removing [{', '.join(member_ids)}] on pending sync request expiration"


def leaving(member_ids: Iterable[str]) -> str:
    """Return the reason why leaving members trigger a rebalance; one that left by its instance id has no id here."""
    return f"explicit `LeaveGroup` request for ({', '.join(member_ids)}) members."


def stabilized(group_id: str, generation: int, members: int) -> str:
    """Return the log line of a completed join phase."""
    return f"Stabilized group {group_id} generation {generation} with {members} members."


def empty(group_id: str, generation: int) -> str:
    """Return the log line of a group that has no members left."""
    return f"Group {group_id} with generation {generation} is now empty."


def nobody_joined(group_id: str) -> str:
    """Return the log line of a join phase that is extended."""
    return f"Group {group_id} could not complete rebalance because no members rejoined."


def assignment_received(member_id: str, group_id: str, generation: int, members: int, static: int) -> str:
    """Return the log line of the leader's assignment."""
    return (
        f"Assignment received from leader {member_id} for group {group_id} for generation {generation}. "
        f"The group has {members} members, {static} of which are static."
    )


def over_capacity(group_id: str, members: int, group_max_size: int) -> str:
    """Return the reason why a group that was loaded with too many members triggers a rebalance."""
    return (
        f"Freshly-loaded group {group_id} (size {members}) is over capacity {group_max_size}. "
        "Rebalancing in order to give a chance for consumers to commit offsets"
    )


def let_in(member_id: str, generation: int) -> str:
    """Return heartwheel's own text for a rebalance that a join shows by the next generation in its answer."""
    return f"Member {member_id} was let into generation {generation}; why the group rebalanced is in no request."


def shown(group_id: str, generation: int) -> str:
    """Return heartwheel's own text for a group whose generation differs from the expected one, as an answer shows."""
    return f"Group {group_id} is at generation {generation}, as a request that its coordinator accepted shows."


def caught_up(group_id: str, generation: int, seen: int) -> str:
    """Return heartwheel's own text for a missed rebalance: a member names a later generation."""
    return f"Group {group_id} moved on from generation {generation} to {seen}, as a request at that generation shows."
