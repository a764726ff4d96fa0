"""What a coordinator knows of a group that goes by member epochs: plain data, without a rule in it.

The names are those of Kafka's `ModernGroup`, `ConsumerGroup` and `ConsumerGroupMember`; share and streams groups have
the same shape with fewer or the same timers.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from heartwheel.wire.events import Protocol
from heartwheel.wire.group_heartbeats import HeartbeatType

FIRST_EPOCH: Final = 1
"""The epoch of a group that was just made, so that its first bump says 2."""


class GroupType(enum.StrEnum):
    """Name the protocol of a group as Kafka's `Group.GroupType` does."""

    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


TYPE_OF: Final = {
    HeartbeatType.CONSUMER: GroupType.CONSUMER,
    HeartbeatType.SHARE: GroupType.SHARE,
    HeartbeatType.STREAMS: GroupType.STREAMS,
}


class TimerName(enum.StrEnum):
    """Name a timer of one member, after the key that Kafka files it under."""

    SESSION = "session"
    REBALANCE = "rebalance"
    JOIN = "join"
    SYNC = "sync"


class ArmedTimer(msgspec.Struct, frozen=True):
    """Hold one armed timer.

    Args:
        deadline_ms: when it fires, epoch ms.
        length_ms: the length it was armed with, ms.
        seq: position in the order in which the timers of the group were armed; equal deadlines fire in this order.
        epoch: the member's epoch as it was armed, by which a rebalance timer is guarded.
    """

    deadline_ms: int
    length_ms: int
    seq: int
    epoch: int


class ClassicProtocol(msgspec.Struct, frozen=True):
    """Hold what a member of the classic protocol inside a consumer group joined with.

    Args:
        session_timeout_ms: its own session timeout, ms.
        protocols: what it offers.
    """

    session_timeout_ms: int
    protocols: tuple[Protocol, ...] = ()


class EpochMember(msgspec.Struct, omit_defaults=True):
    """Hold one member.

    Args:
        member_id: its id.
        group_instance_id: the instance id of a static member, else `None`.
        client_id: shown to people.
        client_host: shown to people.
        epoch: its epoch; -2 while a static member is away.
        previous_epoch: its epoch before, which is accepted too while its answer may have been lost.
        epoch_is_known: the epoch was in an answer; else it is the last one that the member spoke of, and a later one
            is taken for what an answer gave it.
        rebalance_timeout_ms: how long it may take to give partitions back, ms; -1 if it has not said.
        topics: the topics it subscribes to, sorted.
        regex: the pattern it subscribes to, empty if none.
        assigned: its partitions by the last answer, `None` if not known.
        revoking: the partitions it was asked to give back and has not.
        unrevoked: it is in the state UNREVOKED_PARTITIONS.
        classic: set for a member of the classic protocol.
        last_seen_ms: effective time of the last request that kept it alive, epoch ms.
        timers: its armed timers.
    """

    member_id: str
    group_instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    epoch: int = 0
    previous_epoch: int = 0
    epoch_is_known: bool = False
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] = ()
    regex: str = ""
    assigned: dict[str, tuple[int, ...]] | None = None
    revoking: dict[str, tuple[int, ...]] = {}
    unrevoked: bool = False
    classic: ClassicProtocol | None = None
    last_seen_ms: int = 0
    timers: dict[TimerName, ArmedTimer] = {}


class EpochGroup(msgspec.Struct, omit_defaults=True):
    """Hold one group.

    Args:
        group_id: its name.
        type: its protocol.
        epoch: the group's epoch.
        target_epoch: the epoch of its last target assignment.
        target_ms: when that was computed, epoch ms; -1 if never.
        target_due_ms: when the first target of a streams group is computed, epoch ms; -1 if no timer runs for it.
        members: in the order in which they joined.
        resolving: patterns whose topics are being looked up, and when the bump that ends that is due, epoch ms.
        next_seq: the `ArmedTimer.seq` that the next timer gets.
        last_event_ms: effective time of the last event or timer; effective time never goes back.
        unloaded: its coordinator went away.
        taken_over: the log began in the middle of its life, so members may exist that were not seen yet.
        gone: members of such a group that are known to be no more.
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
    gone: list[str] = []

    def static_member(self, instance_id: str) -> EpochMember | None:
        """Find who holds an instance id: `ConsumerGroup.staticMember`."""
        return next((m for m in self.members.values() if m.group_instance_id == instance_id), None)

    def all_use_classic_except(self, member_id: str) -> bool:
        """Tell whether everybody else speaks the classic protocol: `allMembersUseClassicProtocolExcept`."""
        return all(m.classic is not None for m in self.members.values() if m.member_id != member_id)
