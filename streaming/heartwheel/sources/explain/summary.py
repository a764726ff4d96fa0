"""Summaries of groups: how often each thing happened, what it cost, the state at the end, and a verdict."""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.sources.explain.enough import later_ms, needed_ms
from heartwheel.sources.explain.explanation import UNSAID
from heartwheel.sources.explain.lines import what
from heartwheel.sources.explain.together import SharedIncident, Together
from heartwheel.wire.explained import BROKERS, REASON_OF, ExplainedEvent, Happened

GROUPS_MAX: Final = 50_000
BROKER_EVENTS_MAX: Final = 1_000
REPLACED: Final = "came back under the same instance id"
OUR_WORDS: Final = frozenset({"closed", "unsubscribed", REPLACED, UNSAID})
"""Reasons of leaves that are our words, not a client's."""

_NAMES_MAX: Final = 1_000
_NOTHING: Final[dict[str, int]] = {}
"""What groups have counted of which they counted nothing: ten thousand groups have thirty thousand of these."""
_GOES: Final = (REASON_OF.keys() | {Happened.LEFT}) - {Happened.PENDING_EXPIRED}


class Enough(msgspec.Struct, kw_only=True, gc=False):
    """How long a timeout would have had to be for the members that it removed, as far as the log shows.

    Args:
        gone: how many have not come back, as far as the log shows: under their id or instance id, or within an hour
            under their client id.
        name: the last of them; empty if no line names it.
        later_ms: how long after its removal the last of them was back, ms.
        needed_ms: the timeout that would have kept all that came back, ms; `None` if the log does not name theirs.
    """

    back: int = 0
    gone: int = 0
    name: str = ""
    later_ms: int = 0
    needed_ms: int | None = None

    @property
    def number(self) -> int:
        """How many members it removed."""
        return self.back + self.gone


class GroupSummary(msgspec.Struct, kw_only=True, gc=False):
    """The summary of one group.

    Args:
        group_type: classic, consumer, share or streams.
        members: how many members it has at the end of the log; `None` if the log does not show that.
        last_out: how the last member in a coordinator's log left, as events name it.
        rebalancing_since_ms: since when a rebalance runs that has no end in the log, epoch ms.
        rebalancing: how long that has run by the end of the log and why, in words; empty if none runs.
        out_from_ms: when the first member was removed or left by a timeout, epoch ms.
        out_to_ms: when the last of them was, epoch ms.
        enough: by the kind of these removals, how many there were, and what timeout would have been long enough.
        leaves: how often a member left, left temporarily, or was replaced.
        leave_reasons: the members' reasons for it, in their own words, and how often each was given.
        unmeasured: how many of them have no known length: they began before the log, or a consumer's own log has them.
        rebalancing_ms: how long the others took together, ms; `None` if there are no others.
        longest_ms: the longest of them, ms; `None` likewise.
        causes: how often rebalances began, by cause.
        blocked: the members that rebalances waited for, and how often.
        worst: the member that was out most often, and how often.
        storm_ms: when the last one began, epoch ms.
        moves: how often the coordinator moved.
        from_coordinator: whether it appears in a coordinator's log, and not only in its consumers' own logs.
        whole: whether all events of the group were added, and not only those about some of its members.
        verdict: sentences: its state, what happened, and what to change.
    """

    group_id: str
    group_type: str = ""
    members: int | None = None
    empty_since_ms: int | None = None
    last_out: str = ""
    rebalancing_since_ms: int | None = None
    rebalancing: str = ""
    out_from_ms: int | None = None
    out_to_ms: int | None = None
    enough: dict[str, Enough] = msgspec.field(default_factory=dict)
    leaves: int = 0
    leave_reasons: dict[str, int] = msgspec.field(default_factory=lambda: _NOTHING)
    rebalances: int = 0
    unmeasured: int = 0
    rebalancing_ms: int | None = 0
    longest_ms: int | None = 0
    causes: dict[str, int] = msgspec.field(default_factory=lambda: _NOTHING)
    blocked: dict[str, int] = msgspec.field(default_factory=lambda: _NOTHING)
    worst: dict[str, int] = msgspec.field(default_factory=lambda: _NOTHING)
    storms: int = 0
    storm_ms: int | None = None
    moves: int = 0
    from_coordinator: bool = False
    whole: bool = True
    verdict: list[str] = msgspec.field(default_factory=list)

    @property
    def kicks(self) -> dict[str, int]:
        """How often a member was removed or left by a timeout, by kind."""
        return {kind: each.number for kind, each in self.enough.items() if each.number}

    @property
    def kicked(self) -> int:
        """How often a timeout ended a membership, not counting pending members."""
        return sum(each.number for kind, each in self.enough.items() if kind != Happened.PENDING_EXPIRED)

    @property
    def lost_all(self) -> bool:
        """Whether a timeout removed its last member; a group whose last member left is empty on purpose.

        The rule is that of `heartwheel.readers.live.trouble`. A log may list the last leave after the line that the
        group is empty, and no other member can leave after that line.
        """
        return self.empty_since_ms is not None and self.last_out in REASON_OF

    @property
    def is_calm(self) -> bool:
        """Whether the group needs no attention."""
        return not (self.kicks or self.blocked or self.storms or self.rebalancing) and self.empty_since_ms is None


class LogSummary:
    """Collects events into summaries of groups.

    Args:
        whole: whether all events of a group are added, and not only those about some of its members.
        follows: whether the logs go on, so that their end is now.

    Attributes:
        known_from_ms: from when on all events are added, epoch ms; `None`: from the begin of the logs on.
    """

    def __init__(self, *, whole: bool = True, follows: bool = False) -> None:
        self._whole, self.follows = whole, follows
        self.known_from_ms: int | None = None
        self._groups: dict[str, GroupSummary] = {}
        self.brokers: list[ExplainedEvent] = []
        """Starts and stops of brokers, the newest."""
        self._together = Together(self.brokers)

    def add(self, event: ExplainedEvent) -> None:
        """Add an event."""
        if event.kind in BROKERS:
            self.brokers.append(event)
            del self.brokers[:-BROKER_EVENTS_MAX]
            return
        group = self._of(event.group_id)
        group.group_type = event.group_type or group.group_type
        group.from_coordinator |= event.broker_id is not None or event.moved_from is not None
        _note_last(group, event)
        match event.kind:
            case Happened.LEFT | Happened.TEMPORARILY_LEFT | Happened.REPLACED:
                group.leaves += 1
                group.leave_reasons = _counted(group.leave_reasons, leave_words(event))
            case Happened.REBALANCE | Happened.GROUP_EMPTY:
                _add_rebalance(group, event)
            case Happened.REBALANCING:
                group.rebalancing_since_ms, group.rebalancing = event.started_ms, what(event)
            case Happened.STORM:
                group.storms, group.storm_ms = group.storms + 1, event.time_ms
            case Happened.COORDINATOR_MOVED:
                group.moves += 1
                group.rebalancing_since_ms, group.rebalancing = None, ""
            case _:
                self._together.add(event)
                if self.follows and event.kind is Happened.POLL_TIMEOUT and event.certainty == "likely":
                    _take_back_leave(group)
                _add_out(group, event)

    def returned(self, event: ExplainedEvent) -> None:
        """Note that the member of a removal is back, which the event does not show as it was added.

        A log that is followed adds both at once, and the return may come first.
        """
        group = self._of(event.group_id)
        _enough(group, event.kind).gone -= 1
        _add_return(group, event)

    def _of(self, group_id: str) -> GroupSummary:
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = GroupSummary(group_id=group_id, whole=self._whole)
            if len(self._groups) > GROUPS_MAX:
                del self._groups[next(iter(self._groups))]
        return group

    def groups(self) -> list[GroupSummary]:
        """Return the groups: those that rebalance, those without members, then those with the most removals."""
        return sorted(
            self._groups.values(),
            key=lambda each: (
                not each.rebalancing,
                each.empty_since_ms is None,
                -each.kicked,
                -(each.rebalancing_ms or 0),
                each.group_id,
            ),
        )

    def group(self, group_id: str) -> GroupSummary | None:
        """Return one group; `None` if it is not known, or not any more."""
        return self._groups.get(group_id)

    def incidents(self) -> list[SharedIncident]:
        """Return the newest incidents in which several members were out at once, in the order of time."""
        return self._together.incidents()


def name_of(event: ExplainedEvent) -> str:
    """Return the name of a member that stays the same when it comes back under a new id."""
    return event.group_instance_id or event.client_id or event.member_id or ""


def leave_words(event: ExplainedEvent) -> str:
    """Return why a member left, in its own words where it gave any."""
    if event.kind is Happened.REPLACED:
        return REPLACED
    words = event.reason_text.strip().rstrip(".")
    if event.reason in {"closed", "unsubscribed"} or words in {"", "not provided"}:
        return event.reason if event.reason in {"closed", "unsubscribed"} else UNSAID
    return words[:200]


def _note_last(group: GroupSummary, event: ExplainedEvent) -> None:
    if event.broker_id is not None and event.kind in _GOES:
        group.last_out = event.kind


def _add_out(group: GroupSummary, event: ExplainedEvent) -> None:
    name = name_of(event)
    if event.kind is not Happened.PENDING_EXPIRED:
        if name:  # a consumer's own log may not name it
            group.worst = _counted(group.worst, name)
        group.out_from_ms = event.time_ms if group.out_from_ms is None else min(group.out_from_ms, event.time_ms)
        group.out_to_ms = max(group.out_to_ms or 0, event.time_ms)
    enough = _enough(group, event.kind)
    enough.name = name
    if event.returned_ms is None:
        enough.gone += 1
    else:
        _add_return(group, event)


def _enough(group: GroupSummary, kind: Happened) -> Enough:
    return group.enough.setdefault(kind.value, Enough())  # a plain string: with it a dictionary takes a fifth less


def _take_back_leave(group: GroupSummary) -> None:
    """Count a leave no longer that turns out to be a poll timeout; in a log that is followed it was added before."""
    if group.leave_reasons.get(UNSAID):
        group.leaves -= 1
        group.leave_reasons[UNSAID] -= 1
        if not group.leave_reasons[UNSAID]:
            del group.leave_reasons[UNSAID]


def _add_return(group: GroupSummary, event: ExplainedEvent) -> None:
    enough = _enough(group, event.kind)
    enough.back += 1
    enough.later_ms = max(enough.later_ms, later_ms(event))
    if (enough_ms := needed_ms(event)) is not None:
        enough.needed_ms = max(enough.needed_ms or 0, enough_ms)


def _add_rebalance(group: GroupSummary, event: ExplainedEvent) -> None:
    group.rebalances += 1
    group.rebalancing_since_ms, group.rebalancing = None, ""
    if event.duration_ms is not None:
        group.rebalancing_ms = (group.rebalancing_ms or 0) + event.duration_ms
        group.longest_ms = max(group.longest_ms or 0, event.duration_ms)
    else:
        group.unmeasured += 1
        if group.unmeasured == group.rebalances:
            group.rebalancing_ms = group.longest_ms = None
    if event.broker_id is not None:  # a consumer does not know how many members its group has
        group.members = 0 if event.kind is Happened.GROUP_EMPTY else event.member_count
        group.empty_since_ms = event.time_ms if group.members == 0 else None
    group.causes = _counted(group.causes, event.reason)
    for each in event.blocked_by:
        group.blocked = _counted(group.blocked, each)


def _counted(counts: dict[str, int], name: str) -> dict[str, int]:
    if name in counts:
        counts[name] += 1
        return counts
    return counts | {name: 1} if len(counts) < _NAMES_MAX else counts
