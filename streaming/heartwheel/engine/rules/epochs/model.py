"""The state of an epoch group at its coordinator: plain data without rules.

The names are those of Kafka's `ModernGroup`, `ConsumerGroup` and `ConsumerGroupMember`. Share and streams groups have
the same shape with fewer or the same timers.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from heartwheel.engine.rules.model import NEVER, NO_HEARTBEAT, GroupState
from heartwheel.wire.events import Protocol
from heartwheel.wire.group_heartbeats import HeartbeatType

NON_MEMBERS_MAX: Final = 1_000
"""The number of ids that are remembered as no member's, of a group that was first seen in mid-life."""

LEFT_MAX: Final = 200
"""The number of members that left and are remembered, so that the return of one is recognised."""

FIRST_EPOCH: Final = 1
"""The epoch of a new group, so that its first bump is to 2."""


class GroupType(enum.StrEnum):
    """The protocol of a group, named as in Kafka's `Group.GroupType`."""

    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


TYPE_OF: Final = {
    HeartbeatType.CONSUMER: GroupType.CONSUMER,
    HeartbeatType.SHARE: GroupType.SHARE,
    HeartbeatType.STREAMS: GroupType.STREAMS,
}


class TimerName(enum.StrEnum):
    """The timers of one member, named after the key under which Kafka files them."""

    SESSION = "session"
    REBALANCE = "rebalance"
    JOIN = "join"
    SYNC = "sync"


class ArmedTimer(msgspec.Struct, frozen=True):
    """One armed timer.

    Args:
        seq: position in the order in which the timers of the group were armed; equal deadlines fire in this order.
        epoch: the member's epoch when it was armed, which guards a rebalance timer.
    """

    deadline_ms: int
    length_ms: int
    seq: int
    epoch: int


class ClassicProtocol(msgspec.Struct, frozen=True):
    """The data with which a classic member inside a consumer group joined.

    Args:
        session_timeout_ms: its own session timeout, ms; 0 while that is unknown.
        protocols: what it offers.
    """

    session_timeout_ms: int
    protocols: tuple[Protocol, ...] = ()


class StreamsMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a streams member said of itself; a change of it makes a new assignment (`StreamsGroupMember`)."""

    rack_id: str | None = None
    process_id: str | None = None
    client_tags: dict[str, str] | None = None
    topology_epoch: int | None = None


class EpochMember(msgspec.Struct, omit_defaults=True):
    """One member of an epoch group.

    Args:
        seq: position in the order in which the members of the group joined.
        group_instance_id: the instance id of a static member, else `None`.
        epoch: its epoch; -2 while a static member is away.
        previous_epoch: its epoch before, which is accepted too while its answer may have been lost.
        epoch_is_known: the epoch was in an answer. Otherwise it is the last one that the member named, and a later one
            is assumed to come from an answer.
        rebalance_timeout_ms: how long it may take to give partitions back, or a classic member to join again, ms; -1 if
            unknown.
        regex: the pattern it subscribes to, empty if none.
        metadata: what a streams member said of itself; `None` if its source does not have that.
        assigned: its partitions in the last answer, `None` if not known.
        revoking: the partitions that it was asked to give back and has not given back.
        unrevoked: it is in the state UNREVOKED_PARTITIONS.
        last_seen_ms: effective time of the last request that kept it alive, epoch ms.
        fingerprint: fingerprint of the heartbeat that may be repeated without applying a rule; 0 means none. It is
            valid while the member has only its session and the group's target is that of its epoch
            (`EpochMachine.apply`).
        heartbeat: the fields of that heartbeat other than the ids, if it is one of the classic protocol. Only code that
            stores members uses it; the rules never see it.
    """

    member_id: str
    seq: int = 0
    group_instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    epoch: int = 0
    previous_epoch: int = 0
    epoch_is_known: bool = False
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] = ()
    regex: str = ""
    metadata: StreamsMetadata | None = None
    assigned: dict[str, tuple[int, ...]] | None = None
    revoking: dict[str, tuple[int, ...]] = {}
    unrevoked: bool = False
    classic: ClassicProtocol | None = None
    last_seen_ms: int = 0
    timers: dict[TimerName, ArmedTimer] = {}
    fingerprint: int = 0
    heartbeat: msgspec.Raw = NO_HEARTBEAT

    @property
    def deadline_ms(self) -> int:
        """When the first of its timers fires, epoch ms; `NEVER` if none is armed."""
        return min((timer.deadline_ms for timer in self.timers.values()), default=NEVER)

    @property
    def session_ms(self) -> int:
        """The length of its session, ms; 0 while none is armed."""
        timer = self.timers.get(TimerName.SESSION)
        return 0 if timer is None else timer.length_ms


class Departure(msgspec.Struct, frozen=True):
    """How a member left by itself.

    Args:
        epoch: the epoch of its heartbeat: -1, or -2 of a static member.
    """

    time_ms: int
    epoch: int


class EpochGroup(msgspec.Struct, omit_defaults=True):
    """One group of the new protocols.

    Args:
        target_epoch: the epoch of its last target assignment.
        target_ms: when that was computed, epoch ms; -1 if never.
        target_due_ms: when the first target of a streams group is computed, epoch ms; -1 if no timer runs for it.
        resolving: patterns whose topics are being looked up, and when the bump after that is due, epoch ms.
        next_seq: the `ArmedTimer.seq` that the next timer gets, or the `EpochMember.seq` of the next member.
        last_event_ms: effective time of the last event or timer; effective time never goes back.
        unloaded: its coordinator is elsewhere.
        taken_over: the log began in the middle of its life, so members may exist that were not seen yet.
        non_members: the last ids of such a group that are known to be no member's, at most `NON_MEMBERS_MAX`: those of
            former members, and those that classic members just got.
        left: the last members that left by themselves and were not seen since, by id, at most `LEFT_MAX`.
        forget_deadline_ms: when a group without members (or an unloaded one) is forgotten, epoch ms.
    """

    group_id: str
    type: GroupType = GroupType.CONSUMER
    epoch: int = FIRST_EPOCH
    target_epoch: int = FIRST_EPOCH
    target_ms: int = -1
    target_due_ms: int = -1
    members: dict[str, EpochMember] = {}
    resolving: dict[str, int] = {}
    next_seq: int = 0
    last_event_ms: int = 0
    unloaded: bool = False
    taken_over: bool = False
    non_members: list[str] = []
    left: dict[str, Departure] = {}
    forget_deadline_ms: int = NEVER

    def all_members(self) -> list[EpochMember]:
        """Return the members in join order, as `Group.all_members` does."""
        return [*self.members.values()]

    @property
    def target_is_current(self) -> bool:
        """Whether no heartbeat can start a new target assignment: it is the epoch's, or a timer will start it."""
        return self.epoch <= self.target_epoch or self.target_due_ms >= 0

    @property
    def timer_ms(self) -> int:
        """When the first of the group's own timers fires, epoch ms; `NEVER` if none is armed."""
        target_ms = self.target_due_ms if self.target_due_ms >= 0 and not self.unloaded else NEVER
        resolved_ms = NEVER if self.unloaded else min(self.resolving.values(), default=NEVER)
        return min(target_ms, resolved_ms, self.forget_deadline_ms)

    def state(self) -> GroupState:
        """Return the state of the group: `ConsumerGroup.maybeUpdateGroupState` and its twins.

        A member without a known answer counts as having adopted its assignment.
        """
        if not self.members:
            return GroupState.EMPTY
        if self.type is GroupType.SHARE:
            return GroupState.STABLE
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        reconciled = all(member_is_reconciled(member, self.target_epoch) for member in self.members.values())
        return GroupState.STABLE if reconciled else GroupState.RECONCILING


def member_is_reconciled(member: EpochMember, target_epoch: int) -> bool:
    """Return whether a member has its target assignment: `isReconciledTo`. A member that is away has it."""
    if member.unrevoked:
        return False
    return not member.epoch_is_known or member.epoch < 0 or member.epoch == target_epoch
