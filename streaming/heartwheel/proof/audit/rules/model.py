"""The audit's model of a group: plain records and a heap of deadlines."""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.proof.audit.rules.epoch_model import Modern

NEVER: Final = 2**63 - 1
"""The deadline of a timer that is not running."""

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = "Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"
"""Kafka's names of the states of a classic group; `DEAD` occurs only as the state before a load."""

NOBODY, CLASSIC, LOADED, PRESENCE = "", "classic", "loaded", "presence"
"""The kinds of group; `NOBODY` is the kind of an unknown group."""

JOIN, SYNC, MEMBER, FORGET = range(4)
"""The timers in a group's heap."""


class AuditedMember(msgspec.Struct):
    """One member, or a pending one, which was assigned its id and has not joined with it yet.

    Args:
        seq: its place in the join order.
        session_ms: its session timeout; 0 while it is unknown.
        rebalance_ms: its rebalance timeout; 0 while it is unknown.
        protocols: name and metadata digest of each protocol that it offers, in its order of preference.
        deadline_ms: when its timer ends, epoch ms.
        filed_ms: the earliest deadline under which it is filed in the heap, epoch ms.
        expiry: the reason of the expiry when its timer ends.
        timer_ms: length of the running timer.
        seen_ms: when an event last kept it alive, epoch ms.
        is_new: it joined, and has not been in a generation yet.
        joining: it waits for the answer to its join.
        syncing: it waits for the answer to its sync.
        incarnation: the start of the worker that holds it, if its heartbeats name one.
        older_from_ms: when the first heartbeat of an older start came after the holder's own last one, epoch ms;
            `NEVER` if none did.
    """

    member_id: str
    seq: int
    session_ms: int
    rebalance_ms: int
    instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    protocols: tuple[tuple[str, str], ...] = ()
    deadline_ms: int = NEVER
    filed_ms: int = NEVER
    expiry: str = ""
    timer_ms: int = 0
    seen_ms: int = 0
    is_new: bool = False
    joining: bool = False
    syncing: bool = False
    incarnation: int | None = None
    older_from_ms: int = NEVER


class CommittedGroup(msgspec.Struct):
    """The record of a classic group that a coordinator would read when it comes back."""

    generation: int = 0
    leader: str | None = None
    protocol: str | None = None
    members: dict[str, AuditedMember] = {}


class AuditedGroup(msgspec.Struct):
    """One group.

    Args:
        came_from: the state before this one.
        members: the members by id, in the join order.
        pending: members that were assigned an id and have not joined with it, likewise.
        static: the member id for each instance id.
        unsynced: ids whose sync the group waits for.
        leader: id of the leader; unknown in a loaded group.
        protocol_type: protocol type of its first member.
        buckets: size of the table that Java would keep its members in.
        walked_buckets: that size when Kafka last iterated over all members to start their sessions; 0 if it never did.
        next_seq: the last place in the join order.
        now_ms: effective time, epoch ms; it never goes back.
        join_ms: when the join phase ends or is extended, epoch ms.
        join_from_ms: when that timer was started, epoch ms.
        join_delay_ms: length of the present part of an initial join phase.
        join_left_ms: remainder of the rebalance timeout in an initial join phase.
        initial: whether the join phase is an initial one.
        more_came: whether a member joined since the initial join phase was last extended.
        phase_ms: when the rebalance began, epoch ms.
        sync_ms: when those without a sync are removed, epoch ms.
        sync_from_ms: when that timer was started, epoch ms.
        forget_ms: when the group is forgotten, epoch ms.
        rebalance_generation: the generation of a loaded group in which it was last sent to rebalance.
        met_late: whether it was a loaded group before its first join.
        unproven: whether, in addition, its source knows the coordinator's answers, so that only they show when all have
            joined.
        whole_ms: from when on such a group can have no unknown member, epoch ms.
        confirmed: whether a member of the classic group has agreed with its generation.
        record: the record that a load would read.
        read_ms: time of the last load, epoch ms.
        reads: number of loads in that millisecond.
        heap: (deadline, timer, seq, member id); members re-arm lazily. `ties` orders the timers that are due.
        renewed_ms: end of the newest outage that restarted its timers, epoch ms; -1 if there was none.
        modern: its epoch and members, if it is a group with member epochs.
        over: when starts of workers reported their end, epoch ms; the latest last.
    """

    group_id: str
    kind: str = NOBODY
    state: str = EMPTY
    came_from: str = EMPTY
    generation: int = 0
    members: dict[str, AuditedMember] = {}
    pending: dict[str, AuditedMember] = {}
    static: dict[str, str] = {}
    unsynced: dict[str, None] = {}
    leader: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    buckets: int = 0
    walked_buckets: int = 0
    next_seq: int = 0
    now_ms: int = 0
    join_ms: int = NEVER
    join_from_ms: int = 0
    join_delay_ms: int = 0
    join_left_ms: int = 0
    initial: bool = False
    more_came: bool = False
    phase_ms: int = 0
    sync_ms: int = NEVER
    sync_from_ms: int = 0
    forget_ms: int = NEVER
    rebalance_generation: int = -1
    met_late: bool = False
    unproven: bool = False
    whole_ms: int = 0
    confirmed: bool = False
    away: bool = False
    record: CommittedGroup = msgspec.field(default_factory=CommittedGroup)
    read_ms: int = 0
    reads: int = 0
    heap: list[tuple[int, int, int, str]] = []
    verdicts: int = 0
    renewed_ms: int = -1
    modern: Modern | None = None
    over: dict[str, int] = {}

    @property
    def size(self) -> int:
        """The number of members, pending ones included."""
        return len(self.members) + len(self.pending) + (len(self.modern.people) if self.modern is not None else 0)

    def note_read(self) -> None:
        """Count a load in this millisecond: verdicts may repeat after it."""
        if self.read_ms != self.now_ms:
            self.read_ms, self.reads = self.now_ms, 0
        self.reads += 1

    def holds(self, member_id: str, instance_id: str | None) -> bool:
        """Return whether the group has a member with this id or this instance id."""
        if self.modern is not None:
            return member_id in self.modern.people or instance_id in self.modern.static
        return member_id in self.members or member_id in self.pending or instance_id in self.static
