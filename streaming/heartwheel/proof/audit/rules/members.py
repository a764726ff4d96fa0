"""The members of a group: adding, removing and replacing them, the leader, and the selected protocol.

Facts of Kafka's `ClassicGroup`, version 4.
"""

from __future__ import annotations

from collections.abc import Iterable

from heartwheel.proof.audit.rules.java import buckets_for, walk
from heartwheel.proof.audit.rules.model import EMPTY, AuditedGroup, AuditedMember
from heartwheel.wire.events import Event


def put(group: AuditedGroup, member: AuditedMember) -> None:
    """Add a member."""
    group.pending.pop(member.member_id, None)
    group.members[member.member_id] = member
    group.buckets = buckets_for(len(group.members), group.buckets)
    if member.instance_id is not None:
        group.static[member.instance_id] = member.member_id


def remove(group: AuditedGroup, member_id: str) -> AuditedMember | None:
    """Remove a member or pending member; the first in Java's order succeeds a leader."""
    member = group.members.pop(member_id, None)
    if member is not None and member.instance_id is not None:
        del group.static[member.instance_id]
    if group.leader == member_id:
        group.leader = first_of(group, group.members)
    group.unsynced.pop(member_id, None)
    return member or group.pending.pop(member_id, None)


def replace_static(group: AuditedGroup, old: AuditedMember, new_id: str) -> AuditedMember:
    """Replace a static member's id; the group still waits for a sync of the old id if it did before."""
    del group.members[old.member_id]
    new = AuditedMember(
        member_id=new_id,
        seq=take_seq(group),
        session_ms=old.session_ms,
        rebalance_ms=old.rebalance_ms,
        instance_id=old.instance_id,
        client_id=old.client_id,
        client_host=old.client_host,
        protocols=old.protocols,
    )
    put(group, new)
    if group.leader == old.member_id:
        group.leader = new_id
    return new


def take_seq(group: AuditedGroup) -> int:
    """Return the next place in the join order."""
    group.next_seq += 1
    return group.next_seq


def first_of(group: AuditedGroup, member_ids: Iterable[str]) -> str | None:
    """Return the first of some members in the order of Java's map."""
    return next(iter(walk(member_ids, group.buckets or 16)), None)


def refusal(group: AuditedGroup, member_id: str, instance_id: str | None) -> str:
    """Return Kafka's error if a request does not come from a member; empty if it does."""
    if instance_id is not None:
        holder = group.static.get(instance_id)
        if holder is not None and holder != member_id:
            return "FENCED_INSTANCE_ID"
        if holder is None:
            return "UNKNOWN_MEMBER_ID"
    return "" if member_id in group.members else "UNKNOWN_MEMBER_ID"


def absent(group: AuditedGroup) -> list[AuditedMember]:
    """Return the members that have not joined again in this join phase."""
    return [member for member in group.members.values() if not member.joining]


def all_joined(group: AuditedGroup) -> bool:
    """Return whether every member waits for the end of the join phase, and none is pending.

    As long as there may be unknown members, this is certain only for a group without known members.
    """
    if group.unproven and group.members:
        return False
    return not group.pending and not absent(group)


def patience_ms(group: AuditedGroup) -> int | None:
    """Return how long the group waits for its members: the longest of their rebalance timeouts, ms.

    It is `None` if one of them is unknown, or if there may be unknown members.
    """
    known = [member.rebalance_ms for member in group.members.values()]
    if group.unproven or not all(known):
        return None
    return max(known, default=0)


def elect(group: AuditedGroup) -> bool:
    """Make a joined member the leader; return whether any has joined."""
    leader = group.members.get(group.leader or "")
    if leader is not None and leader.joining:
        return True
    joined = first_of(group, [member.member_id for member in group.members.values() if member.joining])
    if joined is not None:
        group.leader = joined
    return joined is not None


def shares_protocol(group: AuditedGroup, event: Event) -> bool:
    """Return whether a join has the group's type, and a protocol in common with all members that list any.

    A join that lists nothing is accepted, which is heartwheel's own rule: sources may not know protocols.
    """
    if event.protocol_type is None and not event.protocols:
        return True
    if group.state == EMPTY:
        return bool(event.protocol_type) and bool(event.protocols)
    if group.protocol_type is not None and group.protocol_type != event.protocol_type:
        return False
    return bool({protocol.name for protocol in event.protocols} & _common(group, event))


def _common(group: AuditedGroup, event: Event | None = None) -> set[str]:
    offers = [{name for name, _ in member.protocols} for member in group.members.values() if member.protocols]
    if not offers:
        return {protocol.name for protocol in event.protocols} if event is not None else set()
    return set.intersection(*offers)


def vote(group: AuditedGroup) -> str | None:
    """Return the protocol that most members prefer among those that all offer; Java's order breaks ties."""
    common = _common(group)
    votes: dict[str, int] = {}
    for member_id in walk(group.members, group.buckets or 16):
        liked = next((name for name, _ in group.members[member_id].protocols if name in common), None)
        if liked is not None:
            votes[liked] = votes.get(liked, 0) + 1
    ranked = walk(votes, buckets_for(len(votes)))
    return max(ranked, key=lambda name: votes[name], default=None)
