"""Summaries: of each group how often what happened, what it cost, and a verdict in two sentences."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Final

import msgspec

from heartwheel.live.phrases import count, length
from heartwheel.live.why import advice
from heartwheel.wire.explained import KICKS, ExplainedEvent, Happened

GROUPS_MAX: Final = 50_000
_NAMES_MAX: Final = 1_000
_WORST_TIMES: Final = 2

_OUT: Final = {
    Happened.EXPIRED: ("session_timeout", "by its session timeout"),
    Happened.POLL_TIMEOUT: ("poll_timeout", "took itself out by a poll timeout"),
    Happened.REMOVED_AT_REBALANCE: ("rebalance_timeout", "as it did not join a rebalance in time"),
    Happened.SYNC_TIMEOUT: ("sync_timeout", "as it did not fetch its assignment in time"),
    Happened.REVOCATION_TIMEOUT: ("revocation_timeout", "as it did not give up partitions in time"),
    Happened.PENDING_EXPIRED: ("pending_timeout", "before it had joined"),
    Happened.REMOVED: ("", "and its own log does not say why"),
}
_BEGAN: Final = {
    "member_joined": "members that joined",
    "member_rejoined": "members that joined again",
    "member_updated": "members that changed what they subscribe to",
    "leader_rejoined": "a leader that joined again, as its topics or partitions had changed",
    "static_member_updated": "static members that came back in another way",
    "member_expired": "members that were thrown out",
    "sync_expired": "members that did not fetch their assignment",
    "member_left": "members that left",
    "over_capacity": "more members than group.max.size",
    "metadata_changed": "changed topics, partitions or subscriptions",
}
_STATIC: Final = (
    "Give each member a group.instance.id of its own, so that a restart within session.timeout.ms moves no partition."
)


class GroupSummary(msgspec.Struct, kw_only=True):
    """Hold what the log says of one group.

    Args:
        group_id: which group.
        group_type: classic, consumer, share or streams.
        kicks: how often a member was thrown out or took itself out by a timeout, by kind.
        leaves: how often a member left, left for a while, or was replaced.
        rebalances: how many there were.
        rebalancing_ms: how long they took together, ms, as far as the log tells.
        longest_ms: the longest of them, ms.
        causes: how often rebalances began, by cause.
        blocked: for whom rebalances waited, and how often.
        worst: who was out most often, and how often.
        storms: how many storms of rebalances.
        moves: how often the coordinator moved.
        verdict: two sentences: what is wrong, and the setting to change.
    """

    group_id: str
    group_type: str = ""
    kicks: dict[str, int] = msgspec.field(default_factory=dict)
    leaves: int = 0
    rebalances: int = 0
    rebalancing_ms: int = 0
    longest_ms: int = 0
    causes: dict[str, int] = msgspec.field(default_factory=dict)
    blocked: dict[str, int] = msgspec.field(default_factory=dict)
    worst: dict[str, int] = msgspec.field(default_factory=dict)
    storms: int = 0
    moves: int = 0
    verdict: list[str] = msgspec.field(default_factory=list)

    @property
    def kicked(self) -> int:
        """Count how often a timeout ended a membership, pending ones left out."""
        return sum(number for kind, number in self.kicks.items() if kind != Happened.PENDING_EXPIRED)


class Summary:
    """Sum up events by group."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, GroupSummary] = OrderedDict()

    def add(self, event: ExplainedEvent) -> None:
        """Take an event."""
        group = self._groups.get(event.group_id)
        if group is None:
            group = self._groups[event.group_id] = GroupSummary(group_id=event.group_id)
            if len(self._groups) > GROUPS_MAX:
                self._groups.popitem(last=False)
        group.group_type = event.group_type or group.group_type
        match event.kind:
            case Happened.LEFT | Happened.TEMPORARILY_LEFT | Happened.REPLACED:
                group.leaves += 1
            case Happened.REBALANCE | Happened.GROUP_EMPTY:
                _add_rebalance(group, event)
            case Happened.STORM:
                group.storms += 1
            case Happened.COORDINATOR_MOVED:
                group.moves += 1
            case _:
                group.kicks[event.kind] = group.kicks.get(event.kind, 0) + 1
                _count(group.worst, name_of(event))

    def groups(self) -> list[GroupSummary]:
        """Give the groups with their verdicts, the one with the most kicks first."""
        found = sorted(self._groups.values(), key=lambda each: (-each.kicked, -each.rebalancing_ms, each.group_id))
        for group in found:
            group.verdict = verdict_of(group)
        return found


def name_of(event: ExplainedEvent) -> str:
    """Name a member by what stays the same when it comes back under a new id."""
    return event.group_instance_id or event.client_id or event.member_id or ""


def verdict_of(group: GroupSummary) -> list[str]:
    """Say in two sentences what is wrong with a group, and which setting to change."""
    out = {kind: number for kind, number in group.kicks.items() if kind != Happened.PENDING_EXPIRED}
    cost = _cost(group)
    if out:
        kind = max(out, key=lambda each: (out[each], each))
        reason, words = _OUT[Happened(kind)]
        if len(out) == 1:
            counted = f"{_times(out[kind])} a member was out, {words}" if kind != Happened.POLL_TIMEOUT else (
                f"{_times(out[kind])} a member {words}"
            )  # fmt: skip
        else:
            each = ", ".join(f"{number} {each.replace('_', ' ')}" for each, number in _most(out))
            counted = f"{_times(sum(out.values()))} a member was out ({each})"
        name, times = _most(group.worst)[0]
        worst = f", {name} {times} times" if times >= _WORST_TIMES else f": {name}" if sum(out.values()) == 1 else ""
        return [f"{counted}{worst}; {cost}.", advice(reason, group.group_type)[-1]]
    if group.blocked:
        name, times = _most(group.blocked)[0]
        return [
            f"Nobody was thrown out, but rebalances waited for {name} {_times(times).lower()}; {cost}.",
            advice("rebalance_timeout")[-1],
        ]
    if group.storms:
        first = _most(group.causes)[0][0] if group.causes else "unknown"
        what = _BEGAN.get(first, first.replace("_", " "))
        return [f"Nobody was thrown out, but the group rebalances again and again, mostly for {what}; {cost}.", _STATIC]
    if group.kicks:
        number = group.kicks[Happened.PENDING_EXPIRED]
        return [
            f"{_times(number)} a client asked to join and did not come back; {cost}.",
            advice("pending_timeout")[-1],
        ]
    return [f"Nobody was thrown out; {cost}.", "There is nothing to change."]


def kicks_of(groups: Iterable[GroupSummary]) -> int:
    """Count how often a coordinator threw a member out."""
    return sum(number for group in groups for kind, number in group.kicks.items() if Happened(kind) in KICKS)


def _cost(group: GroupSummary) -> str:
    if not group.rebalances:
        return "no rebalance was seen"
    took = f" took {length(group.rebalancing_ms)}" if group.rebalancing_ms else ""
    longest = f", the longest {length(group.longest_ms)}" if group.rebalances > 1 and group.longest_ms else ""
    return f"{count(group.rebalances, 'rebalance')}{took}{longest}"


def _add_rebalance(group: GroupSummary, event: ExplainedEvent) -> None:
    group.rebalances += 1
    group.rebalancing_ms += event.duration_ms or 0
    group.longest_ms = max(group.longest_ms, event.duration_ms or 0)
    _count(group.causes, event.reason)
    for each in event.blocked_by:
        _count(group.blocked, each)


def _count(counts: dict[str, int], name: str) -> None:
    if name in counts or len(counts) < _NAMES_MAX:
        counts[name] = counts.get(name, 0) + 1


def _most(counts: dict[str, int]) -> list[tuple[str, int]]:
    return Counter(counts).most_common()


def _times(number: int) -> str:
    return "Once" if number == 1 else "Twice" if number == 2 else f"{number:,} times"
