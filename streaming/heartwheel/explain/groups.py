"""What is known of groups and members while their log is read: bounded, the least recently named is forgotten."""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final

from heartwheel.explain.facts import Fact
from heartwheel.explain.roster import Roster
from heartwheel.wire.explained import ExplainedEvent, Happened

GROUPS_MAX: Final = 50_000
MEMBERS_MAX: Final = 2_000
"""Most members of a group that are remembered."""

PLACES_MAX: Final = 200_000
"""Most members whose group is remembered, for lines that do not name it."""

BROKER_START_MS: Final = 180_000
"""How long after a broker's start a load is still a part of it, ms."""

_RETURN_MS: Final = 3_600_000
_GONE_MAX: Final = 500
_UUID: Final = re.compile(r"^(?P<name>.+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")


@dataclass(slots=True)
class Member:
    """Hold what is known of a member.

    Args:
        member_id: its id.
        client_id: its client's id: named by a line, or what its member id begins with.
        client_host: where its client is.
        group_instance_id: of a static member.
        session_timeout_ms: its own, ms.
        rebalance_timeout_ms: its own, ms.
        left_pending: whether it left before it had joined.
        out: the last event in which it went, as long as it is not back.
    """

    member_id: str
    client_id: str = ""
    client_host: str = ""
    group_instance_id: str = ""
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    left_pending: bool = False
    out: ExplainedEvent | None = None

    def learn(self, fact: Fact) -> None:
        """Take what a line says of it."""
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
        """Give the name that stays the same when it comes back under a new id."""
        return self.group_instance_id or self.client_id or self.member_id


@dataclass(slots=True)
class OpenRebalance:
    """Hold a rebalance of a classic group that is not done.

    Args:
        started_ms: when it began, epoch ms.
        old_generation: the generation that it ends.
        cause: for machines.
        words: the broker's reason.
        client_words: the client's.
        caused_by: members that it began with.
        fact: the line that says so.
        seen_ms: when a follower first saw it open, ms of its own clock; `None` if none has.
        is_shown: whether a follower has been shown that it still runs.
        blocked_by: members that were removed as they did not join.
        gone: members that went while it ran, and when.
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
    gone: list[tuple[int, str]] = field(default_factory=list)

    def waited_for(self, done_ms: int, at_once_ms: int) -> list[str]:
        """Name who it waited for: who was removed at its end, or went just before it was done.

        Args:
            done_ms: when it was done, epoch ms.
            at_once_ms: how soon after the last one went it is done if it waited for that one, ms.
        """
        last = [
            member_id
            for gone_ms, member_id in self.gone
            if done_ms - gone_ms <= at_once_ms < gone_ms - self.started_ms and member_id not in self.caused_by
        ]
        return list(dict.fromkeys([*self.blocked_by, *last]))


class WatchedGroup:
    """Hold what is known of a group."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_type = ""
        self.generation: int | None = None
        self.broker_id: int | None = None
        self.loaded_ms: int | None = None
        self.unloaded: Fact | None = None
        self.roster = Roster()
        self.open: OpenRebalance | None = None
        self.bumped: ExplainedEvent | None = None
        self.emptied: ExplainedEvent | None = None
        self.causes: list[tuple[int, str, str]] = []
        """What has happened to members of a group with epochs since its last one."""
        self.unsettled: list[ExplainedEvent] = []
        """Events in which members went, whose rebalance is not done."""
        self.starts: deque[tuple[int, str, list[str]]] = deque(maxlen=1_000)
        self.storm: ExplainedEvent | None = None
        self._outs: OrderedDict[str, int] = OrderedDict()
        self._members: OrderedDict[str, Member] = OrderedDict()
        self._gone: OrderedDict[str, list[ExplainedEvent]] = OrderedDict()

    def member(self, member_id: str) -> Member:
        """Give a member, new if it is not known."""
        member = self._members.get(member_id)
        if member is None:
            match = _UUID.match(member_id) if self.group_type in {"classic", ""} else None
            member = self._members[member_id] = Member(member_id, client_id=match["name"] if match else "")
            if len(self._members) > MEMBERS_MAX:
                self._members.popitem(last=False)
        else:
            self._members.move_to_end(member_id)
        return member

    def note_gone(self, member: Member, event: ExplainedEvent) -> None:
        """Remember by its lasting name who went, for when it is back under a new id."""
        if event.kind in {Happened.PENDING_EXPIRED, Happened.REPLACED} or member.name == member.member_id:
            return
        self._gone.setdefault(member.name, []).append(event)
        self._gone.move_to_end(member.name)
        if len(self._gone) > _GONE_MAX:
            self._gone.popitem(last=False)

    def count_out(self, name: str) -> int:
        """Count that a member was out by a timeout, by the name that it keeps; tell how often so far."""
        times = self._outs[name] = self._outs.get(name, 0) + 1
        self._outs.move_to_end(name)
        if len(self._outs) > MEMBERS_MAX:
            self._outs.popitem(last=False)
        return times

    def return_of(self, member: Member, now_ms: int) -> ExplainedEvent | None:
        """Find who is back with a new member; nobody if several of its name went."""
        if member.name == member.member_id:
            return None
        gone = [each for each in self._gone.get(member.name, ()) if now_ms - each.time_ms <= _RETURN_MS]
        self._gone.pop(member.name, None)
        return gone[0] if len(gone) == 1 and gone[0].member_id != member.member_id else None


class Groups:
    """Keep the groups of a log."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, WatchedGroup] = OrderedDict()
        self._places: OrderedDict[str, str] = OrderedDict()

    def get(self, group_id: str) -> WatchedGroup:
        """Give a group, new if it is not known."""
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = WatchedGroup(group_id)
            if len(self._groups) > GROUPS_MAX:
                self._groups.popitem(last=False)
        else:
            self._groups.move_to_end(group_id)
        return group

    def remember(self, member_id: str, group: WatchedGroup) -> None:
        """Remember in which group a member is."""
        if group.group_id and member_id:
            self._places[member_id] = group.group_id
            self._places.move_to_end(member_id)
            if len(self._places) > PLACES_MAX:
                self._places.popitem(last=False)

    def where(self, member_id: str) -> str:
        """Tell in which group a member is; an empty text if that is not known."""
        return self._places.get(member_id, "")

    def stopped(self, broker_id: int) -> None:
        """Take that a broker stops: its groups were unloaded for that."""
        for group in self._groups.values():
            if group.unloaded is not None and group.unloaded.broker_id == broker_id:
                group.unloaded = None

    def rebalancing(self) -> list[WatchedGroup]:
        """Return the groups whose rebalance is not done."""
        return [group for group in self._groups.values() if group.open is not None]

    def moved_away(self) -> list[WatchedGroup]:
        """Give the groups that were unloaded by a broker that went on, and loaded by none whose log was read."""
        return [group for group in self._groups.values() if group.unloaded is not None]
