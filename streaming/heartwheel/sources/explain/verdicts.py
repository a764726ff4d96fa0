"""Sentences about what is wrong with a group, and which setting to change."""

from __future__ import annotations

from collections import Counter
from typing import Final

from heartwheel.base.phrases import count, length, moment, setting
from heartwheel.readers.live.why import advice
from heartwheel.sources.explain.enough import timeout_name
from heartwheel.sources.explain.lines import CAUSES
from heartwheel.sources.explain.summary import OUR_WORDS, Enough, GroupSummary, LogSummary
from heartwheel.wire.explained import REASON_OF, Happened
from heartwheel.wire.verdicts import EPOCH_KINDS, ExpiryReason

_WORST_TIMES: Final = 2
_AT_ONCE_MS: Final = 60_000
_LEAVES_MIN: Final = 3
_REASONS_MAX: Final = 3

_OUT: Final = {
    Happened.EXPIRED: "was thrown out by its session timeout",
    Happened.POLL_TIMEOUT: "took itself out by a poll timeout",
    Happened.REMOVED_AT_REBALANCE: "was thrown out as it did not join a rebalance in time",
    Happened.SYNC_TIMEOUT: "was thrown out as it did not fetch its assignment in time",
    Happened.REVOCATION_TIMEOUT: "was thrown out as it did not give up partitions in time",
    Happened.REMOVED: "was no longer accepted by the coordinator, and its own log does not say why",
    Happened.NO_ANSWER: "got no answer to its heartbeats for its session timeout, and was likely thrown out",
}
_NOT_TOLD: Final = "This log tells of no removal: it is a consumer's own, and the broker's log has them all."
_STATIC: Final = (
    "Give each member a group.instance.id of its own, so that a restart within session.timeout.ms moves no partition."
)


def judged(summary: LogSummary) -> list[GroupSummary]:
    """Return the groups of a summary with their verdicts."""
    groups = summary.groups()
    for group in groups:
        group.verdict = verdict_of(group, follows=summary.follows)
    return groups


def verdict_of(group: GroupSummary, *, follows: bool = False) -> list[str]:
    """Return sentences about a group: its state, what happened to it, what that cost, and what to change.

    Args:
        follows: whether the log goes on, so that its end is now.
    """
    kicks = group.kicks
    out = {kind: number for kind, number in kicks.items() if kind != Happened.PENDING_EXPIRED}
    if out:
        what = _kicked(group, out)
        do = _to_do(group, out)
    elif group.blocked:
        name, times = _most(group.blocked)[0]
        what = [f"No member was thrown out, but rebalances waited for {name} {_times(times).lower()}."]
        do = advice(ExpiryReason.REBALANCE_TIMEOUT)[-1:]
    elif group.storms:
        causes = f": {_causes(group)}" if group.whole else ""
        what = [f"No member was thrown out, but the group rebalanced again and again{causes}."]
        do = [_STATIC]
    elif kicks:
        what = [f"{_times(kicks[Happened.PENDING_EXPIRED])} a client asked to join and did not come back."]
        do = advice(ExpiryReason.PENDING_TIMEOUT)[-1:]
    else:
        what, do = ["No member was thrown out." if group.from_coordinator else _NOT_TOLD], []
    return [*_stands(group, follows=follows), *what, *_left(group), *_cost(group), *do]


def _stands(group: GroupSummary, *, follows: bool) -> list[str]:
    sentences = []
    if group.rebalancing_since_ms is not None:
        since = moment(group.rebalancing_since_ms)
        still = "It is rebalancing" if follows else "It was still rebalancing when the log ended,"
        sentences.append(f"{still} since {since}, {group.rebalancing}.")
    if group.empty_since_ms is not None:
        sentences.append(f"It has had no member since {moment(group.empty_since_ms)}.")
    return sentences


def _kicked(group: GroupSummary, out: dict[str, int]) -> list[str]:
    number = sum(out.values())
    if len(out) == 1:
        counted = f"{_times(number)} a member {_OUT[Happened(next(iter(out)))]}"
    else:
        each = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in _most(out))
        was = "was out, or likely so" if Happened.NO_ANSWER in out else "was out"
        counted = f"{_times(number)} a member {was} ({each})"
    names = _most(group.worst)
    if number == 1:
        counted += f": {names[0][0]}" if names else ""
    elif names and names[0][1] >= _WORST_TIMES:
        counted += f", {names[0][0]} {names[0][1]} times"
    if number > 1 and group.out_from_ms is not None and group.out_to_ms is not None:
        span_ms = group.out_to_ms - group.out_from_ms
        counted += f", all within {length(span_ms)}" if span_ms <= _AT_ONCE_MS else ""
    return [f"{counted}."]


def _to_do(group: GroupSummary, out: dict[str, int]) -> list[str]:
    """Return which timeout would have been enough for the most frequent kind, and what to change."""
    kind = Happened(max(out, key=lambda each: (out[each], each)))
    sentences = _enough(group, kind, group.enough.get(kind, Enough()))
    do = advice(REASON_OF[kind], group.group_type)[-1:]
    return [*sentences, *(do or ["Look at the broker's log around that time: heartwheel explain server.log."])]


def _enough(group: GroupSummary, kind: Happened, enough: Enough) -> list[str]:
    name = timeout_name(kind, group.group_type)
    if name is None:
        return []
    number, who = enough.number, enough.name or "That member"
    if not enough.back:
        # Not "by the end of the log": a client id that is seen again later may be that of another member.
        unseen = f"The log does not show {who}" if number == 1 else "The log shows none of those that were out"
        return [f"{unseen} back within an hour, so it does not show which {name} would have been enough."]
    were = "was back," if enough.back == 1 else "were back, the last"
    back = f"{who} was back" if number == 1 else f"Of {number} that were out {enough.back} {were}"
    back += f" {length(enough.later_ms)} later"
    than = f"a {name} of {setting(enough.needed_ms)}" if enough.needed_ms else f"a {name} longer by more than that"
    same = "; if that was the same process," if kind is Happened.EXPIRED else ":"
    return [f"{back}{same} {than} would have been enough."]


def _left(group: GroupSummary) -> list[str]:
    if not group.leaves or not (group.storms or group.empty_since_ms is not None or group.leaves >= _LEAVES_MIN):
        return []
    most = _most(group.leave_reasons)[:_REASONS_MAX]
    reasons = [f"{number} x {words}" if words in OUR_WORDS else f'{number} x "{words}"' for words, number in most]
    return [f"{count(group.leaves, 'leave')}: {', '.join(reasons)}."]


def _causes(group: GroupSummary) -> str:
    began = [f"{number} x {CAUSES.get(cause, cause.replace('_', ' '))}" for cause, number in _most(group.causes)]
    return ", ".join(began[:_REASONS_MAX]) or "the log does not say why"


def _cost(group: GroupSummary) -> list[str]:
    if not group.whole:
        return []  # most of its rebalances are not about the members that were asked for
    if group.group_type in EPOCH_KINDS and not group.rebalancing_ms:
        return [f"It had {count(group.rebalances, 'new epoch')}."]
    if not group.rebalances:
        return ["No rebalance was completed." if group.rebalancing else "No rebalance was seen."]
    measured = group.rebalances - group.unmeasured
    if not measured:
        return [f"{count(group.rebalances, 'rebalance')}; how long is not known."]
    took = f" took {length(group.rebalancing_ms)}" if group.rebalancing_ms else ""
    longest = f", the longest {length(group.longest_ms)}" if measured > 1 and group.longest_ms else ""
    more = f", and {group.unmeasured} more of unknown length" if group.unmeasured else ""
    return [f"{count(measured, 'rebalance')}{took}{longest}{more}."]


def _most(counts: dict[str, int]) -> list[tuple[str, int]]:
    return Counter(counts).most_common()


def _times(number: int) -> str:
    return "Once" if number == 1 else "Twice" if number == 2 else f"{number:,} times"
