"""The members of a group: the bookkeeping of Kafka's `ClassicGroup`, without the timers.

The group's own fields are the truth. What can be counted from them (which members wait in a join, which protocols they
offer, which member has which instance id) is counted once when the roster is made and kept up to date from then on, so
no rule walks through all members for a single event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.java_map import bucket_of, grown_table_size, in_map_order, in_set_order
from heartwheel.engine.rules.model import Group, GroupState, Member
from heartwheel.wire.events import Protocol


class Roster:
    """The members of one group; the methods are named after `ClassicGroup`'s."""

    def __init__(self, group: Group) -> None:
        self._group = group
        members = group.members.values()
        self._static = {m.group_instance_id: m.member_id for m in members if m.group_instance_id is not None}
        self._offered: Counter[str] = Counter()
        self._silent = 0
        for member in members:
            self._count_protocols(member, 1)
        self.awaiting_join = sum(m.awaiting_join for m in members)
        self._pending_sync = sum(m.pending_sync for m in members)

    def new_seq(self) -> int:
        """Return the next position in the join order."""
        self._group.next_seq += 1
        return self._group.next_seq - 1

    def add(self, member: Member, protocol_type: str | None, *, awaiting_join: bool) -> None:
        """Add a member that joined, whether or not it was pending before: `ClassicGroup.add`."""
        group = self._group
        group.pending.pop(member.member_id, None)
        if not group.members or group.protocol_type is None:
            group.protocol_type = protocol_type
        if group.leader is None:
            group.leader = member.member_id
        self._put(member)
        self._count_protocols(member, 1)
        self.set_awaiting_join(member, awaiting=awaiting_join)

    def remove(self, member_id: str) -> Member | None:
        """Remove a member or pending member; if it was the leader, the first that Java's map yields leads."""
        group = self._group
        member = group.members.pop(member_id, None)
        if member is not None:
            self._forget(member)
            if member.group_instance_id is not None:
                del self._static[member.group_instance_id]
        if group.leader == member_id:
            group.leader = self._first(group.members)
        if member_id in group.orphaned_syncs:
            group.orphaned_syncs = tuple(i for i in group.orphaned_syncs if i != member_id)
        return member if member is not None else group.pending.pop(member_id, None)

    def replace_static_member(self, old: Member, new_id: str) -> Member:
        """Give a static member a new id: `ClassicGroup.replaceStaticMember`.

        The old id's parked join or sync is answered FENCED_INSTANCE_ID, and its timer runs on without effect. If the
        group waits for its SyncGroup, it keeps waiting for the *old* id.
        """
        group = self._group
        del group.members[old.member_id]
        self._forget(old)
        if old.pending_sync:
            group.orphaned_syncs += (old.member_id,)
        new = Member(
            member_id=new_id,
            seq=self.new_seq(),
            group_instance_id=old.group_instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            session_timeout_ms=old.session_timeout_ms,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            protocols=old.protocols,
        )
        self._put(new)
        self._count_protocols(new, 1)
        if group.leader == old.member_id:
            group.leader = new_id
        return new

    def make_static(self, member: Member, group_instance_id: str) -> None:
        """Assign an unused instance id to a member."""
        member.group_instance_id = group_instance_id
        self._static[group_instance_id] = member.member_id

    def update_protocols(self, member: Member, protocols: tuple[Protocol, ...]) -> None:
        """Replace the protocols that a member offers: the first half of `ClassicGroup.updateMember`."""
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)

    def set_awaiting_join(self, member: Member, *, awaiting: bool) -> None:
        """Park a member's JoinGroup, or clear it when it was answered."""
        self.awaiting_join += awaiting - member.awaiting_join
        member.awaiting_join = awaiting

    def set_pending_sync(self, member: Member, *, pending: bool) -> None:
        """Wait for a member's SyncGroup, or clear that when it came."""
        self._pending_sync += pending - member.pending_sync
        member.pending_sync = pending

    def clear_pending_sync(self) -> None:
        """Stop waiting for any SyncGroup."""
        if self._pending_sync:
            for member in self._group.members.values():
                member.pending_sync = False
        self._pending_sync = 0
        self._group.orphaned_syncs = ()

    def pending_sync_ids(self) -> list[str]:
        """Return the members whose SyncGroup the group still waits for, in the order of Java's set."""
        waiting = [m.member_id for m in self._group.members.values() if m.pending_sync]
        # `expirePendingSync` copies the set, and the copy's table is as large as that of the members.
        return in_set_order(self.in_map_order([*waiting, *self._group.orphaned_syncs]))

    def has_received_sync_from_all_members(self) -> bool:
        """Return whether no SyncGroup is missing."""
        return self._pending_sync == 0 and not self._group.orphaned_syncs

    def has_all_members_joined(self) -> bool:
        """Return whether every member waits in the join phase and none is pending.

        If unseen members may exist, this is known only for a group that has none left.
        """
        if self._group.awaits_proof and self._group.members:
            return False
        return len(self._group.members) == self.awaiting_join and not self._group.pending

    def not_yet_rejoined(self) -> list[Member]:
        """Return the members that have not sent their JoinGroup in this join phase."""
        return [m for m in self._group.members.values() if not m.awaiting_join]

    def in_map_order(self, member_ids: Iterable[str]) -> list[str]:
        """Sort ids of members, given in join order, into the iteration order of Java's map of the members."""
        return in_map_order(member_ids, max(self._group.table_size, 1))

    def maybe_elect_new_joined_leader(self) -> bool:
        """Elect a leader that joined if needed; return whether there is one: `maybeElectNewJoinedLeader`."""
        group = self._group
        leader = group.members.get(group.leader) if group.leader is not None else None
        if leader is not None and leader.awaiting_join:
            return True
        joined = self._first(m.member_id for m in group.members.values() if m.awaiting_join)
        if joined is None:
            return False
        group.leader = joined
        return True

    def rebalance_timeout_ms(self) -> int | None:
        """Return the time the group waits: its members' longest rebalance timeout, ms; `None` if one is unknown."""
        timeouts_ms = [member.rebalance_timeout_ms for member in self._group.members.values()]
        return None if 0 in timeouts_ms or self._group.awaits_proof else max(timeouts_ms, default=0)

    def static_member_id(self, group_instance_id: str) -> str | None:
        """Return the id of the member with an instance id."""
        return self._static.get(group_instance_id)

    def static_count(self) -> int:
        """Return the number of static members."""
        return len(self._static)

    def validate_member(self, member_id: str, group_instance_id: str | None) -> Answer:
        """Check that a request comes from a member, and from the one that holds its instance id: `validateMember`."""
        if group_instance_id is not None:
            holder = self._static.get(group_instance_id)
            if holder is None:
                return Answer.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return Answer.FENCED_INSTANCE_ID
        return Answer.NONE if member_id in self._group.members else Answer.UNKNOWN_MEMBER_ID

    def supports_protocols(self, protocol_type: str | None, protocols: tuple[Protocol, ...]) -> bool:
        """Return whether a joining member has a protocol in common with all others: `supportsProtocols`.

        A group left without members accepts any protocol of its type. Beyond Kafka, a join that names no protocols is
        accepted, and members whose join was not seen are not counted.
        """
        group = self._group
        if protocol_type is None and not protocols:
            return True
        if group.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if group.protocol_type is not None and group.protocol_type != protocol_type:
            return False
        speaking = len(group.members) - self._silent
        return any(self._offered[protocol.name] == speaking for protocol in protocols)

    def select_protocol(self) -> str | None:
        """Return the protocol with most votes; each member votes for its first that all support: `selectProtocol`."""
        speaking = len(self._group.members) - self._silent
        candidates = {name for name, count in self._offered.items() if count == speaking}
        votes = Counter(vote for member in self._group.members.values() if (vote := _vote(member, candidates)))
        most = max(votes.values(), default=0)
        tied = [name for name, count in votes.items() if count == most]
        if len(tied) > 1:
            # The first of several wins, in the order of Java's map of votes, which was filled in the order of the
            # members.
            filled = dict.fromkeys(
                _vote(self._group.members[i], candidates) for i in self.in_map_order(self._group.members)
            )
            tied = [name for name in in_set_order(name for name in filled if name) if votes[name] == most]
        return next(iter(tied), None)

    def _put(self, member: Member) -> None:
        group = self._group
        group.members[member.member_id] = member
        group.table_size = grown_table_size(len(group.members), group.table_size)
        if member.group_instance_id is not None:
            self._static[member.group_instance_id] = member.member_id

    def _forget(self, member: Member) -> None:
        self._count_protocols(member, -1)
        self._pending_sync -= member.pending_sync
        self.set_awaiting_join(member, awaiting=False)
        if member.stored:
            self._group.departed[member.member_id] = member

    def _count_protocols(self, member: Member, sign: int) -> None:
        self._silent += sign * (not member.protocols)
        for protocol in member.protocols:
            self._offered[protocol.name] += sign

    def _first(self, member_ids: Iterable[str]) -> str | None:
        table_size = self._group.table_size
        return min(member_ids, key=lambda member_id: bucket_of(member_id, table_size), default=None)


def _vote(member: Member, candidates: set[str]) -> str | None:
    return next((protocol.name for protocol in member.protocols if protocol.name in candidates), None)
