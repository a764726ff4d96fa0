"""A group as the audit sees it: plain records, a heap of deadlines, and what was derived so far."""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.audit.derived import Derived
from heartwheel.audit.rules.epoch_model import Modern

NEVER: Final = 2**63 - 1
"""The deadline of a timer that is not running."""

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = "Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"
"""Kafka's names of the states of a classic group; `DEAD` is only what a loaded group came from."""

NOBODY, CLASSIC, LOADED, PRESENCE = "", "classic", "loaded", "presence"
"""The kinds of group; `NOBODY` is one of which nothing is known."""

JOIN, SYNC, MEMBER, FORGET = range(4)
"""Whose timer it is."""


class Member(msgspec.Struct):
    """Hold one member, or one that was given its id and has not joined with it yet.

    Args:
        member_id: who.
        seq: rises with every member that comes.
        session_ms: its session timeout; 0 while nobody knows it.
        rebalance_ms: its rebalance timeout; likewise.
        instance_id: its instance id, if it is static.
        client_id: shown to people.
        client_host: shown to people.
        protocols: name and metadata digest of each protocol that it offers, in its order of preference.
        deadline_ms: when its timer ends, epoch ms.
        filed_ms: the earliest deadline under which it is filed in the heap, epoch ms.
        expiry: the reason of expiry that the end of its timer stands for.
        timer_ms: length of the running timer.
        seen_ms: when an event last kept it alive, epoch ms.
        is_new: it joined, and has not been in a generation yet.
        joining: it waits for the answer to its join.
        syncing: it waits for the answer to its sync.
        incarnation: which start of a worker holds it, if its heartbeats say.
        older_from_ms: when the first heartbeat of an older start came since its holder's own last one, epoch ms;
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


class Record(msgspec.Struct):
    """Hold what a coordinator would read of a classic group when it comes back."""

    generation: int = 0
    leader: str | None = None
    protocol: str | None = None
    members: dict[str, Member] = {}


class Group(msgspec.Struct):
    """Hold one group.

    Args:
        group_id: which.
        kind: classic, loaded, presence, or nobody yet.
        state: by Kafka's name.
        came_from: the state before this one.
        generation: the present one.
        members: by id, in the order in which they came.
        pending: those that were given an id and have not joined with it, likewise.
        static: the member id that holds an instance id.
        unsynced: ids whose sync is waited for.
        leader: who leads; also of a loaded group, where it is unknown.
        protocol_type: of its first member.
        protocol: the one that was selected.
        buckets: size of the table that Java would keep its members in.
        walked_buckets: that size when Kafka last went through all members to start their sessions; 0 if it never did.
        next_seq: for the next member.
        now_ms: effective time, epoch ms; it never goes back.
        join_ms: when the join phase ends or is extended, epoch ms.
        join_from_ms: when that timer was started, epoch ms.
        join_delay_ms: length of the present part of an initial join phase.
        join_left_ms: how much of the rebalance timeout is left of an initial join phase.
        initial: whether the join phase is an initial one.
        more_came: whether somebody joined since the initial join phase was last extended.
        phase_ms: when the rebalance began, epoch ms.
        sync_ms: when those without a sync are removed, epoch ms.
        sync_from_ms: when that timer was started, epoch ms.
        forget_ms: when the group is forgotten, epoch ms.
        rebalance_generation: the generation of a loaded group that was sent to rebalance.
        met_late: whether it was a loaded group before its first join.
        unproven: whether it was met so by a source that knows the coordinator's answers, so that they alone tell when
            everybody has joined.
        whole_ms: from when on nobody can be a member of whom such a source has heard nothing, epoch ms.
        confirmed: whether a member of the classic group has agreed with its generation.
        away: whether its coordinator is away.
        record: what would be read at a load.
        read_ms: when its coordinator was last back, epoch ms.
        reads: how often it came back in that millisecond.
        heap: (deadline, whose, seq, member id); members re-arm lazily. `ties` orders what it finds due.
        verdicts: how many were derived.
        renewed_ms: end of the newest outage that started its timers anew, epoch ms; -1 if there was none.
        modern: what it has instead of members, if it goes by member epochs.
        over: starts of workers that said that they ended, and when, epoch ms; the latest last.
    """

    group_id: str
    kind: str = NOBODY
    state: str = EMPTY
    came_from: str = EMPTY
    generation: int = 0
    members: dict[str, Member] = {}
    pending: dict[str, Member] = {}
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
    record: Record = msgspec.field(default_factory=Record)
    read_ms: int = 0
    reads: int = 0
    heap: list[tuple[int, int, int, str]] = []
    verdicts: int = 0
    renewed_ms: int = -1
    modern: Modern | None = None
    over: dict[str, int] = {}

    @property
    def size(self) -> int:
        """How many members there are, pending ones included."""
        return len(self.members) + len(self.pending) + (len(self.modern.people) if self.modern is not None else 0)

    def note_read(self) -> None:
        """Count in this millisecond that its coordinator has read the group anew: what it said may begin again."""
        if self.read_ms != self.now_ms:
            self.read_ms, self.reads = self.now_ms, 0
        self.reads += 1

    def holds(self, member_id: str, instance_id: str | None) -> bool:
        """Tell whether a member of this id, or who holds the instance id, is there."""
        if self.modern is not None:
            return member_id in self.modern.people or instance_id in self.modern.static
        return member_id in self.members or member_id in self.pending or instance_id in self.static


class Said(msgspec.Struct):
    """Collect what is derived while one event is applied or one timer fires."""

    derived: list[Derived] = []
