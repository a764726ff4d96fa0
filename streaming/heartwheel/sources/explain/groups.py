"""Groups and members while their log is read; bounded: the one that was named least recently is forgotten."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.roster import LoggedRoster
from heartwheel.wire.explained import ExplainedEvent, Happened

GROUPS_MAX: Final = 50_000
MEMBERS_MAX: Final = 2_000
"""Most members of a group that are remembered."""

PLACES_MAX: Final = 200_000
"""Most members whose group is remembered, for lines that do not name it."""

BROKER_START_MS: Final = 180_000
"""How long after a broker's start a load still belongs to the start, ms."""

_RETURN_MS: Final = 3_600_000
"""How long after it was out a member without an instance id may be back under a new id, ms: others share its name."""
_GONE_MS: Final = 2 * 86_400_000
"""How long a member that is out is remembered if others of its group go after it, ms of the log's time."""

_CAUSED_WITHIN_MS: Final = 2_000
"""How long before an epoch the changes are that led to it, at most, ms."""

_CAUSES_MAX: Final = 100
_DEPARTURES_MAX: Final = 500
_UUID: Final = re.compile(r"^(?P<name>.+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")


T = TypeVar("T")


@dataclass(slots=True)
class LoggedMember:
    """A member, as far as the log was read.

    Args:
        client_id: its client's id: from a line, or from the start of its member id.
        rebalance_timeout_ms: its own, ms.
        left_pending: whether it left before it had joined.
        is_in: whether it joined in this log and was not out since.
        out: the event of its last departure, until it is back.
    """

    member_id: str
    client_id: str = ""
    client_host: str = ""
    group_instance_id: str = ""
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    left_pending: bool = False
    is_in: bool = False
    out: ExplainedEvent | None = None

    def learn(self, fact: Fact) -> None:
        """Update the member from a line."""
        if fact.member_id != self.member_id:
            return
        self.client_id = fact.client_id or self.client_id
        self.client_host = fact.client_host or self.client_host
        self.group_instance_id = fact.group_instance_id or self.group_instance_id
        self.session_timeout_ms = fact.session_timeout_ms or self.session_timeout_ms
        self.rebalance_timeout_ms = fact.rebalance_timeout_ms or self.rebalance_timeout_ms
        if self.client_id and self.client_id == self.group_instance_id and not fact.client_id:
            self.client_id = ""  # a static member's id begins with its instance id, not its client's

    @property
    def name(self) -> str:
        """The name that stays the same when it comes back under a new id."""
        return self.group_instance_id or self.client_id or self.member_id


@dataclass(slots=True)
class OpenRebalance:
    """A rebalance of a classic group that is not complete.

    Args:
        caused_by: members that triggered it.
        fact: the line that shows it.
        seen_ms: when a follower first saw it open, ms of its own clock; `None` if none has.
        is_shown: whether a follower has already seen it as running.
        blocked_by: members that were removed because they did not join.
        left: members that left while it ran, and when.
    """

    started_ms: int
    old_generation: int | None
    cause: str
    words: str
    client_words: str
    caused_by: list[str]
    fact: Fact
    seen_ms: int | None = None
    is_shown: bool = False
    blocked_by: list[str] = field(default_factory=list)
    left: list[tuple[int, str]] = field(default_factory=list)

    def waited_for(self, done_ms: int, at_once_ms: int) -> tuple[str, ...]:
        """Return the members it waited for: those removed at its end, or that left just before it was complete.

        Args:
            done_ms: when it was complete, epoch ms.
            at_once_ms: how soon after the last departure it completes if it waited for that member, ms.
        """
        last = [
            member_id
            for left_ms, member_id in self.left
            if done_ms - left_ms <= at_once_ms < left_ms - self.started_ms and member_id not in self.caused_by
        ]
        return tuple(dict.fromkeys([*self.blocked_by, *last]))


class WatchedGroup:
    """A group, as far as the log was read; ten thousand of them are small."""

    __slots__ = (
        "_causes",
        "_departures",
        "_members",
        "_outs",
        "broker_id",
        "bumped",
        "emptied",
        "generation",
        "group_id",
        "group_type",
        "loaded_ms",
        "open",
        "roster",
        "starts",
        "storm",
        "unconfirmed",
        "unloaded",
        "unsettled",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_type = ""
        self.generation: int | None = None
        self.broker_id: int | None = None
        self.loaded_ms: int | None = None
        self.unloaded: Fact | None = None
        self.roster = LoggedRoster()
        self.open: OpenRebalance | None = None
        self.bumped: ExplainedEvent | None = None
        self.emptied: ExplainedEvent | None = None
        self.unconfirmed: Fact | None = None
        """A join or return in a streams group that may still be refused."""
        self._causes: Sequence[tuple[int, str, str]] = ()
        """The latest changes to members since the last epoch: when, why and who."""
        self.unsettled: list[ExplainedEvent] = []
        """Departures whose rebalance is not complete."""
        self.starts: list[tuple[int, str, tuple[str, ...]]] = []
        self.storm: ExplainedEvent | None = None
        # Of these the one that was changed last is the last. They are too short for an `OrderedDict` to pay.
        self._outs: dict[str, int] = {}
        self._members: dict[str, LoggedMember] = {}
        self._departures: dict[str, list[ExplainedEvent]] = {}

    def member(self, member_id: str) -> LoggedMember:
        """Return a member, a new one if it is not known."""
        member = self._members.pop(member_id, None)
        if member is None:
            name = name_in_id(member_id) if self.group_type in {"classic", ""} else ""
            member = LoggedMember(member_id, client_id=name)
        _put_last(self._members, member_id, member, MEMBERS_MAX)
        return member

    def note_gone(self, member: LoggedMember, event: ExplainedEvent) -> list[str]:
        """Remember a departure by the member's lasting name, for its return under a new id.

        Returns:
            The ids of members that are forgotten, as they are out for long.
        """
        while self._departures and event.time_ms - next(iter(self._departures.values()))[-1].time_ms > _GONE_MS:
            _drop_first(self._departures)  # no new member returns from it any more
        if event.kind not in {Happened.PENDING_EXPIRED, Happened.REPLACED} and member.name != member.member_id:
            departures = [*self.forget_departure(member), event]
            _put_last(self._departures, member.name, departures, _DEPARTURES_MAX)
        return list(self._long_gone(event.time_ms))

    def forget_departure(self, member: LoggedMember) -> list[ExplainedEvent]:
        """Forget by its lasting name that a member is out; return the departures of others of its name."""
        if others := [each for each in self._departures.pop(member.name, ()) if each.member_id != member.member_id]:
            self._departures[member.name] = others
        return others

    def _long_gone(self, now_ms: int) -> Iterator[str]:
        """Forget members that have been out for long, and yield their ids; it ends at the one that is out now."""
        while (out := next(iter(self._members.values())).out) is not None and now_ms - out.time_ms > _GONE_MS:
            yield _drop_first(self._members)

    def add_cause(self, time_ms: int, cause: str, member_id: str) -> None:
        """Note a change to a member, which may lead to an epoch; a classic group has none."""
        if self.group_type == "classic":
            return
        self._causes = [*self._recent_causes(time_ms)[1 - _CAUSES_MAX :], (time_ms, cause, member_id)]

    def take_causes(self, time_ms: int) -> Sequence[tuple[int, str, str]]:
        """Return the changes that led to an epoch, and forget them."""
        causes, self._causes = self._recent_causes(time_ms), ()
        return causes

    def _recent_causes(self, time_ms: int) -> list[tuple[int, str, str]]:
        return [each for each in self._causes if time_ms - each[0] <= _CAUSED_WITHIN_MS]

    def count_out(self, name: str) -> int:
        """Count that a member was out by a timeout, by its lasting name; return how often so far."""
        times = self._outs.pop(name, 0) + 1
        _put_last(self._outs, name, times, MEMBERS_MAX)
        return times

    def return_of(self, member: LoggedMember, now_ms: int) -> ExplainedEvent | None:
        """Return the departure that a new member returns from; `None` if several members of its name have left.

        An instance id belongs to one member, so that one is back however late it is.
        """
        if member.name == member.member_id:
            return None
        within_ms = _GONE_MS if member.group_instance_id else _RETURN_MS
        departures = [each for each in self._departures.get(member.name, ()) if now_ms - each.time_ms <= within_ms]
        self._departures.pop(member.name, None)
        return departures[0] if len(departures) == 1 and departures[0].member_id != member.member_id else None


def name_in_id(member_id: str) -> str:
    """Return the name that a member id of a classic group begins with, before its UUID; empty if it has none."""
    match = _UUID.match(member_id)
    return match["name"] if match else ""


def _put_last(things: dict[str, T], name: str, thing: T, kept_max: int) -> None:
    things[name] = thing
    if len(things) > kept_max:
        _drop_first(things)


def _drop_first(things: dict[str, T]) -> str:
    first = next(iter(things))
    del things[first]
    return first


class Groups:
    """The groups of a log."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, WatchedGroup] = OrderedDict()
        self._places: OrderedDict[str, str] = OrderedDict()

    def get(self, group_id: str) -> WatchedGroup:
        """Return a group, a new one if it is not known."""
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = WatchedGroup(group_id)
            if len(self._groups) > GROUPS_MAX:
                self._groups.popitem(last=False)
        else:
            self._groups.move_to_end(group_id)
        return group

    def remember(self, member_id: str, group: WatchedGroup) -> None:
        """Remember a member's group."""
        if group.group_id and member_id:
            self._places[member_id] = group.group_id
            self._places.move_to_end(member_id)
            if len(self._places) > PLACES_MAX:
                self._places.popitem(last=False)

    def forget(self, member_id: str, group: WatchedGroup) -> None:
        """Forget a member's group, unless it is another one by now."""
        if self._places.get(member_id) == group.group_id:
            del self._places[member_id]

    def where(self, member_id: str) -> str:
        """Return the group id of a member; empty if it is not known."""
        return self._places.get(member_id, "")

    def stopped(self, broker_id: int) -> None:
        """Note that a broker stops: its groups are unloaded because of that."""
        for group in self._groups.values():
            if group.unloaded is not None and group.unloaded.broker_id == broker_id:
                group.unloaded = None

    def rebalancing(self) -> list[WatchedGroup]:
        """Return the groups whose rebalance is not complete."""
        return [group for group in self._groups.values() if group.open is not None]

    def moved_away(self) -> list[WatchedGroup]:
        """Return the groups that a running broker unloaded, and that no broker whose log was read has loaded."""
        return [group for group in self._groups.values() if group.unloaded is not None]
