"""The state of one group at its coordinator: plain data without rules.

A `Group` is the whole state of its machine, so storing and reading it back (see `GroupMachine`) loses nothing. The
names are those of Kafka's `ClassicGroup` and `ClassicGroupMember`.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from heartwheel.wire.events import Protocol

NO_HEARTBEAT: Final = msgspec.Raw()
"""The heartbeat of a member that has none. msgspec omits a field that holds this very object."""

NEVER: Final = 2**63 - 1
"""The deadline of a timer that is not armed, milliseconds. It is later than every time that can be stored."""


class GroupKind(enum.StrEnum):
    """How much of a group's life was seen, which decides the rules that apply to it.

    `NEW` is a group of which nothing was seen yet: its first event decides its kind. The last three use member epochs
    (`consumer_model.GroupType`).
    """

    NEW = "new"
    CLASSIC = "classic"
    LOADED = "loaded"
    PRESENCE = "presence"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class GroupState(enum.StrEnum):
    """The state of a group, as Kafka's `ClassicGroupState` and `ConsumerGroupState` name it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"


class TimerKind(enum.StrEnum):
    """What a member's one timer is for at the moment."""

    NONE = "none"
    SESSION = "session"
    NEW_MEMBER = "new_member"
    PENDING = "pending"


class Member(msgspec.Struct, omit_defaults=True):
    """One member of a group, or one pending member that only has its id (KIP-394).

    Args:
        seq: position in the order in which the members of the group joined.
        group_instance_id: the instance id of a static member, else `None`.
        session_timeout_ms: how long the member may be silent, ms; 0 while that is unknown, and no session runs.
        rebalance_timeout_ms: how long the group waits for the member to join again, ms; 0 while that is unknown.
        protocols: what it offered when it last joined; empty for a member whose join was not seen.
        deadline_ms: when its timer fires, epoch ms; `NEVER` if it has none.
        timer_ms: the length with which that timer was armed, ms.
        last_seen_ms: effective time of the last event that kept it alive, epoch ms.
        pending: it got its id and has not joined with it yet.
        is_new: it waits in its first join phase, during which a parked join does not count as being alive.
        awaiting_join: its JoinGroup is parked.
        awaiting_sync: its SyncGroup is parked.
        pending_sync: the group waits for its SyncGroup of this generation.
        stored: it is unchanged from the group record that a coordinator would read at a load.
        fingerprint: fingerprint of the heartbeat that may be repeated without applying a rule; 0 means none. An event
            with this fingerprint, with nothing but such events since, only sets `last_seen_ms = t` and `deadline_ms = t
            + session_timeout_ms` (held by `test_fingerprint_promises_a_plain_reset`).
        fingerprint_generation: the generation that heartbeat carried.
        heartbeat: the fields of that heartbeat other than the ids. Only code that stores members uses it; the rules
            never see it.
        incarnation: the start of the worker that it is (`incarnations`); `None` if its last heartbeat named none.
        earlier_since_ms: since when only heartbeats of an earlier incarnation have kept it alive, epoch ms; -1 if the
            last one was of its own.
    """

    member_id: str
    seq: int
    group_instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0
    protocols: tuple[Protocol, ...] = ()
    deadline_ms: int = NEVER
    timer: TimerKind = TimerKind.NONE
    timer_ms: int = 0
    last_seen_ms: int = 0
    pending: bool = False
    is_new: bool = False
    awaiting_join: bool = False
    awaiting_sync: bool = False
    pending_sync: bool = False
    stored: bool = False
    fingerprint: int = 0
    fingerprint_generation: int = -1
    heartbeat: msgspec.Raw = NO_HEARTBEAT
    incarnation: int | None = None
    earlier_since_ms: int = -1


class Group(msgspec.Struct, omit_defaults=True):
    """One group.

    Args:
        kind: how much of its life was seen.
        previous_state: the state before. `Empty` marks a join phase as an initial rebalance.
        generation: the number of the last completed join phase.
        protocol_type: such as `consumer`.
        protocol_name: the assignor that the members agreed on.
        members: those that joined, in join order.
        pending: those that only got their id (KIP-394), in that order.
        next_seq: the `Member.seq` that the next one gets.
        table_size: capacity of the `java.util.HashMap` that Kafka would hold the members in; it never shrinks.
        armed_table_size: that capacity when all sessions were last armed together, in the map's order; 0 if never.
        orphaned_syncs: ids of replaced static members whose SyncGroup the group still waits for, as Kafka does.
        join_deadline_ms: when the join phase ends at the latest, epoch ms.
        join_armed_ms: when that timer was armed, epoch ms.
        join_delay_ms: length of the running part of the initial rebalance delay, ms.
        join_remaining_ms: how much the initial rebalance may still be extended, ms.
        join_is_initial: the running join timer is one of the initial rebalance.
        new_member_added: a member joined since the initial rebalance delay was armed.
        rebalance_started_ms: when the running or last join phase began, epoch ms.
        sync_deadline_ms: when members that have not synced are removed, epoch ms.
        sync_armed_ms: when that timer was armed, epoch ms.
        store_deadline_ms: when the leader's assignment is stored and the group turns Stable, epoch ms.
        store_armed_ms: when the leader's assignment arrived, epoch ms.
        forget_deadline_ms: when an Empty (or unloaded) group is forgotten, epoch ms.
        last_event_ms: effective time of the last event or timer; effective time never goes back.
        partition: the partition of the heartbeat topic it was last seen in, `-1` if none; kept for the shard.
        unloaded: its coordinator went away: no timer runs and no request counts until it is loaded again.
        confirmed: whether a request at the group's own generation was accepted since it became classic. If so, its
            beginning was seen or caught up with.
        taken_over: whether members may exist that were not seen yet, because the job started in mid-life of the group.
        awaits_proof: the same, for a source that knows the coordinator's answers. A join phase then ends when an
            accepted request shows its generation, and not before.
        unseen_until_ms: until when a static member may exist that such a source has not seen, epoch ms.
        triggered_generation: the generation at which a rebalance of a loaded group was last triggered.
        stored_generation: generation of the record that a coordinator would read at a load.
        departed: members of that record that have left or changed since, as they were in the record.
        loaded_ms: effective time of its last load, epoch ms.
        loads: the number of loads in that millisecond.
        ended: the incarnations of workers that have left or failed (`incarnations`), as hashes, and when they did,
            epoch ms; the oldest first.
    """

    group_id: str
    kind: GroupKind = GroupKind.NEW
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.DEAD
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, Member] = {}
    pending: dict[str, Member] = {}
    next_seq: int = 0
    table_size: int = 0
    armed_table_size: int = 0
    orphaned_syncs: tuple[str, ...] = ()
    join_deadline_ms: int = NEVER
    join_armed_ms: int = 0
    join_delay_ms: int = 0
    join_remaining_ms: int = 0
    join_is_initial: bool = False
    new_member_added: bool = False
    rebalance_started_ms: int = 0
    sync_deadline_ms: int = NEVER
    sync_armed_ms: int = 0
    store_deadline_ms: int = NEVER
    store_armed_ms: int = 0
    forget_deadline_ms: int = NEVER
    last_event_ms: int = 0
    partition: int = -1
    unloaded: bool = False
    confirmed: bool = False
    taken_over: bool = False
    awaits_proof: bool = False
    unseen_until_ms: int = 0
    triggered_generation: int = -1
    stored_generation: int = 0
    stored_leader: str | None = None
    stored_protocol_name: str | None = None
    departed: dict[str, Member] = {}
    loaded_ms: int = 0
    loads: int = 0
    ended: dict[int, int] = {}

    def all_members(self) -> list[Member]:
        """Return the members in join order, then the pending ones in the order in which they got their id."""
        return [*self.members.values(), *self.pending.values()]


def postponed_by(renewed_ms: int, member: Member, now_ms: int) -> int | None:
    """Return which outage postponed a member's own timer that runs out now.

    Args:
        renewed_ms: end of the newest outage that has renewed the group's sessions, epoch ms.
        now_ms: when the timer runs out, epoch ms.

    Returns:
        The end of the outage, epoch ms; `None` if the outage did not start the timer, or the member was seen since.
    """
    return renewed_ms if member.last_seen_ms < now_ms - member.timer_ms == renewed_ms else None
