"""The audit's model of a group with member epochs: consumer (KIP-848), share (KIP-932), streams (KIP-1071)."""

from __future__ import annotations

from typing import Final

import msgspec

CONSUMER, SHARE, STREAMS = "consumer", "share", "streams"

AWAY: Final = -2
"""The epoch of a static member that has left temporarily."""

LOOKUP_MS: Final = 25
"""The assumed time until the topics of a new pattern are known, ms; no request shows it."""

PAST_MAX: Final = 1_000
"""Number of ids without a member that are remembered of a group whose log begins in the middle of its life."""

LEAVERS_MAX: Final = 200
"""Number of members that left by themselves that are remembered, in case they come back."""

SESSION, REVOCATION, REJOIN, RESYNC = "session", "revocation", "rejoin", "resync"
"""The purposes of a member's timers."""

Parts = dict[str, tuple[int, ...]]
"""Partitions by topic."""


class AuditedTimer(msgspec.Struct, frozen=True):
    """One running timer: its end (epoch ms), length (ms), place in the order of starts, and the member's epoch."""

    end_ms: int
    length_ms: int
    place: int
    epoch: int


class Person(msgspec.Struct):
    """One member of a group with member epochs.

    Args:
        place: its place in the order of joining.
        epoch: its epoch; `AWAY` if it left temporarily.
        earlier: its former epoch.
        proven: whether an answer has shown its epoch.
        patience_ms: its rebalance timeout, ms; -1 if it has none.
        pattern: the pattern that it subscribes to; empty for none.
        about: what a streams member said of itself, by the names of a heartbeat; empty if the source has nothing of it.
        has: its partitions, `None` if unknown.
        to_revoke: the partitions that it must revoke.
        classic_ms: session timeout of a member of the classic protocol, ms, -1 if unknown; 0 for all others.
        offers: name and metadata digest of each protocol of such a member.
        seen_ms: when a request last kept it alive, epoch ms.
        clocks: its running timers, by purpose.
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
    about: dict[str, object] = {}
    has: Parts | None = None
    to_revoke: Parts = {}
    must_revoke: bool = False
    classic_ms: int = 0
    offers: tuple[tuple[str, str], ...] = ()
    seen_ms: int = 0
    clocks: dict[str, AuditedTimer] = {}
    filed_ms: int = 2**63 - 1


class Modern(msgspec.Struct):
    """The part of a group that only a group with member epochs has.

    Args:
        epoch: the group's epoch; the first is 1.
        target: the epoch of its last target assignment.
        target_ms: when that was computed, epoch ms; -1 if never.
        first_target_ms: when a streams group stops waiting for further members, epoch ms; -1 if it does not wait.
        people: its members, in the order of joining.
        static: the member id for each instance id.
        lookups: when the topics of each pattern are known, epoch ms.
        steps: number of timers and members so far.
        met_late: whether it may have members that were never seen.
        past: the last ids of such a group that are known to have no member: it left, or has yet to join.
        leavers: the last members that left by themselves and did not come back: when (epoch ms), and at which epoch.
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
    """Return Kafka's name of a group's state: `ConsumerGroup.maybeUpdateGroupState`."""
    if not modern.people:
        return "Empty"
    if modern.kind == SHARE:
        return "Stable"
    if modern.epoch > modern.target:
        return "Assigning"
    for person in modern.people.values():
        behind = person.proven and person.epoch >= 0 and person.epoch != modern.target
        if person.must_revoke or behind:
            return "Reconciling"
    return "Stable"
