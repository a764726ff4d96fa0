"""A group that goes by member epochs, as the audit sees it: consumer (KIP-848), share (KIP-932), streams (KIP-1071)."""

from __future__ import annotations

from typing import Final

import msgspec

CONSUMER, SHARE, STREAMS = "consumer", "share", "streams"
KINDS: Final = (CONSUMER, SHARE, STREAMS)

AWAY: Final = -2
"""The epoch of a static member that has left for a while."""

LOOKUP_MS: Final = 25
"""How long it is taken to last until the topics of a new pattern are known, ms; no request tells."""

PAST_MAX: Final = 1_000
"""How many ids that are nobody's are remembered of a group that was met in the middle of its life."""

LEAVERS_MAX: Final = 200
"""How many of those that left by themselves are remembered, in case they come back."""

SESSION, REVOCATION, REJOIN, RESYNC = "session", "revocation", "rejoin", "resync"
"""What the timers of a member are for."""

Parts = dict[str, tuple[int, ...]]
"""Partitions by topic."""


class Clock(msgspec.Struct, frozen=True):
    """Hold one running timer: its end (epoch ms), its length (ms), its place among all that were started, the epoch."""

    end_ms: int
    length_ms: int
    place: int
    epoch: int


class Person(msgspec.Struct):
    """Hold one member.

    Args:
        member_id: who.
        place: in the order of joining.
        instance_id: of a static member.
        client_id: shown to people.
        client_host: shown to people.
        epoch: its epoch; `AWAY` of one that left for a while.
        earlier: its epoch before.
        proven: whether an answer told its epoch.
        patience_ms: its rebalance timeout, ms; -1 if it has none.
        topics: what it subscribes to.
        pattern: likewise; empty for none.
        has: its partitions, `None` if not known.
        owed: what it was asked to give back.
        owes: whether it was asked to give something back.
        classic_ms: session of a member of the classic protocol, ms, -1 if nobody knows it; 0 of all others.
        offers: name and metadata digest of each protocol of such a member.
        seen_ms: when a request last kept it alive, epoch ms.
        clocks: its running timers, by what they are for.
        filed_ms: the earliest end under which it is filed in the group's heap, epoch ms.
    """

    member_id: str
    place: int = 0
    instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    epoch: int = 0
    earlier: int = 0
    proven: bool = False
    patience_ms: int = -1
    topics: tuple[str, ...] = ()
    pattern: str = ""
    has: Parts | None = None
    owed: Parts = {}
    owes: bool = False
    classic_ms: int = 0
    offers: tuple[tuple[str, str], ...] = ()
    seen_ms: int = 0
    clocks: dict[str, Clock] = {}
    filed_ms: int = 2**63 - 1


class Modern(msgspec.Struct):
    """Hold what a group has that goes by member epochs.

    Args:
        kind: which protocol.
        epoch: the group's epoch; the first is 1.
        target: the epoch of its last target assignment.
        target_ms: when that was computed, epoch ms; -1 if never.
        first_target_ms: when a streams group will have waited for company, epoch ms; -1 if it does not wait.
        people: its members, in the order of joining.
        static: the member id that holds an instance id.
        lookups: patterns, and when their topics are known, epoch ms.
        steps: how many timers and members there were.
        met_late: whether members may be there that were never seen.
        past: the last ids of such a group that are known to be no member's: who has gone, or has yet to join.
        leavers: who left by itself and did not come back, the last of them: when (epoch ms), and at which epoch.
    """

    kind: str = CONSUMER
    epoch: int = 1
    target: int = 1
    target_ms: int = -1
    first_target_ms: int = -1
    people: dict[str, Person] = {}
    static: dict[str, str] = {}
    lookups: dict[str, int] = {}
    steps: int = 0
    met_late: bool = False
    past: list[str] = []
    leavers: dict[str, tuple[int, int]] = {}


def stage_of(modern: Modern) -> str:
    """Name the state of a group as Kafka does: `ConsumerGroup.maybeUpdateGroupState`."""
    if not modern.people:
        return "Empty"
    if modern.kind == SHARE:
        return "Stable"
    if modern.epoch > modern.target:
        return "Assigning"
    for person in modern.people.values():
        behind = person.proven and person.epoch >= 0 and person.epoch != modern.target
        if person.owes or behind:
            return "Reconciling"
    return "Stable"
