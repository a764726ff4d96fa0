"""The states of a group, derived from the triggers topic, each with a sentence for people."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from heartwheel.readers.live.expiration import FROM_A_LOG
from heartwheel.readers.live.group_entry import GroupEntry
from heartwheel.wire.verdicts import EPOCH_KINDS


class ShownState(enum.StrEnum):
    """The state of a group by Kafka's name; `UNKNOWN` while only expirations of it were seen."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    UNKNOWN = "Unknown"


class ShownKind(enum.StrEnum):
    """The kind of a group, which decides its rules."""

    CLASSIC = "classic"
    LOADED = "loaded"
    PRESENCE = "presence"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


STATE_OF_TYPE: Final[Mapping[str, ShownState]] = {
    "rebalance_triggered": ShownState.PREPARING_REBALANCE,
    "rebalance_completed": ShownState.STABLE,
    "group_empty": ShownState.EMPTY,
    "epoch_bumped": ShownState.STABLE,
    "group_upgraded": ShownState.STABLE,
    "group_downgraded": ShownState.STABLE,
}
"""The state that a group is in after a row of the triggers topic."""

STATE_WORDS: Final[Mapping[ShownState, str]] = {
    ShownState.EMPTY: "It has no members. Committed offsets stay; the next member to join begins a new generation.",
    ShownState.PREPARING_REBALANCE: "A rebalance has begun: it lasts until all have joined again, or the time for it "
    "is over. Eager consumers stop for it; cooperative ones continue with the partitions that they keep.",
    ShownState.COMPLETING_REBALANCE: "All members have joined, and wait with their sync for the assignment, which the "
    "leader makes. Eager consumers do not work before it has come; cooperative ones continue with the partitions "
    "that they keep.",
    ShownState.STABLE: "All members have joined this generation. Members work on what they were assigned.",
    ShownState.ASSIGNING: "The group has a new epoch, and its partitions are about to be assigned again.",
    ShownState.RECONCILING: "Some members have not taken over their part of the new epoch: they have to give "
    "partitions back, or wait for others who do. All others work on.",
    ShownState.UNKNOWN: "Only expirations of this group were seen so far; its next change tells its state.",
}
"""What each state means."""

PRESENCE_WORDS: Final = (
    "Its members only send heartbeats. When one arrives or leaves, no other member has to join again."
)
"""The meaning of `Stable` for a presence group, which never rebalances."""


EPOCH_WORDS: Final = (
    "Each member has its part of the present epoch. Each arrival or departure makes a new one, and no member has to "
    "stop for it."
)
"""The meaning of `Stable` for a group with member epochs."""

EMPTY_PRESENCE_WORDS: Final = "It has no members. The first worker that sends a heartbeat becomes one."
"""The meaning of `Empty` for a presence group, which has no offsets of its own and commits nothing."""

EMPTY_EPOCH_WORDS: Final = "It has no members. The next one to join makes a new epoch."
"""The meaning of `Empty` for a group with member epochs."""

_STATES: Final = {state.value: state for state in ShownState}
_KINDS: Final = {kind.value: kind for kind in ShownKind}


LOGGED_EPOCH_WORDS: Final = (
    "A broker's log names who comes to a group of this type and who goes. It does not say whether each member has its "
    "part of the newest epoch."
)
"""The meaning of `Unknown` for a group with member epochs that is known from a broker's log."""


CONSUMERS_WORDS: Final = (
    "A consumer's own log says when this consumer joined and left. How its group stands is in the broker's log."
)
"""The meaning of `Unknown` for a group that is known only from its consumers' own logs."""


def words_of(state: ShownState, kind: ShownKind | None, *, logged: bool = False, of_consumers: bool = False) -> str:
    """Return the meaning of a group's state.

    Args:
        kind: its kind, if that is known.
        logged: whether it is known from a log.
        of_consumers: whether that is a log of its consumers alone.
    """
    if of_consumers:
        return CONSUMERS_WORDS
    if logged and state is ShownState.UNKNOWN and kind in EPOCH_KINDS:
        return LOGGED_EPOCH_WORDS
    if kind is ShownKind.PRESENCE:
        return {ShownState.STABLE: PRESENCE_WORDS, ShownState.EMPTY: EMPTY_PRESENCE_WORDS}.get(
            state, STATE_WORDS[state]
        )
    if kind in EPOCH_KINDS:
        return {ShownState.STABLE: EPOCH_WORDS, ShownState.EMPTY: EMPTY_EPOCH_WORDS}.get(state, STATE_WORDS[state])
    return STATE_WORDS[state]


def state_of(entry: GroupEntry) -> ShownState:
    """Return the state of a group: by its newest row of the triggers topic, or by a later report of its shard.

    A rebalance that is completed in the triggers topic goes on until the assignment has come, which only a status row
    of the shard shows. A consumer knows when it joined, but not the state of its group.
    """
    if entry.of_consumers:
        return ShownState.UNKNOWN
    if entry.running is not None:
        return _named(entry.running.state)
    if entry.newest is None:
        return _named(entry.listed.state) if entry.listed is not None else ShownState.UNKNOWN
    if entry.newest.type == "epoch_bumped" and entry.newest.member_count == 0:
        return ShownState.EMPTY
    if entry.newest.type == "epoch_bumped" and entry.newest.shard == FROM_A_LOG:
        return ShownState.UNKNOWN
    return ShownState.COMPLETING_REBALANCE if entry.is_fresh else STATE_OF_TYPE[entry.newest.type]


def _named(state: str) -> ShownState:
    return _STATES.get(state, ShownState.UNKNOWN)


def kind_of(entry: GroupEntry) -> ShownKind | None:
    """Return the kind of a group: its rows name it; those of earlier releases show it by whether there is a leader."""
    if entry.newest is not None and entry.newest.group_kind is not None:
        return _KINDS.get(entry.newest.group_kind)
    if entry.listed is not None:
        return _KINDS.get(entry.listed.kind)
    if entry.newest is None and entry.expirations:
        return _KINDS.get(entry.expirations[-1].group_kind or "")
    if entry.newest is not None and entry.newest.cause == "generation_advanced":
        return ShownKind.LOADED
    if entry.leader_seen is None:
        return None
    return ShownKind.CLASSIC if entry.leader_seen else ShownKind.PRESENCE
