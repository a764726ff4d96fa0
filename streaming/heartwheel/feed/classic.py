"""Simulate members that speak Kafka's classic protocol: they join, sync, and beat with their generation.

No broker answers them, so each group keeps the coordinator's rule itself, in its simplest form: whoever comes, goes or
falls silent opens a join phase; when all members have joined again the next generation begins, and all sync. A member
learns of either at its first heartbeat that comes a moment later: it must not be ahead of the engine, whose clock is
the broker's. When two members of one group fail within one rebalance, the group may fall out of step with the engine
until a later rebalance; its records are then refused, as those of real clients that lost their coordinator would be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import msgspec

from heartwheel.feed.members import BEATS, Sent, goodbye, identity
from heartwheel.feed.schedule import Action, FeedPlan
from heartwheel.wire.events import Event, EventType, Protocol, encode_event

INITIAL_REBALANCE_DELAY_MS: Final = 3_000
"""How long the engine holds the first join phase of an empty group open by default, ms."""

REBALANCE_TIMEOUT_MS: Final = 60_000
"""The rebalance timeout of all members, ms: long, so that nobody is removed for joining late."""

NOTICE_MS: Final = 500
"""How long after a change a member can know of it, ms: more than it takes a record to be stamped."""

_NEVER: Final = math.inf
_PROTOCOLS: Final = (Protocol("range"), Protocol("cooperative-sticky"))


class _Member(msgspec.Struct):
    """Hold what a group knows of one member.

    Args:
        number: which simulated member it is.
        who: its ids and timeouts, as a heartbeat.
        seen_ms: when its session began anew, ms since the start of the feed.
        joined: whether it has joined in this join phase, and waits for the answer: its session does not run.
        synced: whether it has the assignment of this generation.
    """

    number: int
    who: Event
    seen_ms: float
    joined: bool = True
    synced: bool = False


class ClassicMembers:
    """Send what members of classic groups would send.

    Args:
        plan: whom to simulate.
        initial_delay_ms: how long the engine holds the first join phase of an empty group open, ms.
    """

    def __init__(self, plan: FeedPlan, initial_delay_ms: int = INITIAL_REBALANCE_DELAY_MS) -> None:
        self._plan = plan
        self._groups = [_Group(plan, initial_delay_ms) for _ in range(plan.groups)]

    def member_id(self, member: int) -> str:
        """Name the id that a member goes by; every start is given a new one."""
        return self._group(member).member_id(member)

    def act(self, member: int, action: Action, now_ms: float) -> Iterator[Sent]:
        """Let a member do something, and its group what follows from it."""
        return self._group(member).act(member, action, now_ms)

    def _group(self, member: int) -> _Group:
        return self._groups[member // self._plan.members_per_group]


class _Group:
    """Keep one group as its coordinator does: members by number, generation, and the join phase if one is open."""

    def __init__(self, plan: FeedPlan, initial_delay_ms: int) -> None:
        self._plan = plan
        self._initial_delay_ms = initial_delay_ms
        self._members: dict[int, _Member] = {}
        self._lives: dict[int, int] = {}
        self._up: set[int] = set()
        self._generation = 0
        self._joining = False
        self._changed_ms = 0.0
        self._hold_ms = _NEVER
        """Until when the first join phase of an empty group is held open."""
        self._newcomers = False
        self._due_ms = _NEVER
        """No session and no hold ends before; a lower bound, for heartbeats only move ends away."""

    def member_id(self, number: int) -> str:
        return identity(self._plan, number, self._lives.get(number, 0)).member_id

    def act(self, number: int, action: Action, now_ms: float) -> Iterator[Sent]:
        self._advance(now_ms)
        if action in BEATS:
            self._up.add(number)
            yield from self._beat(number, now_ms, fresh=action in {Action.START, Action.RETURN})
        else:
            self._up.discard(number)
        if action is Action.LEAVE:
            yield from self._leave(number, now_ms)

    def _advance(self, now_ms: float) -> None:
        """Let everything happen whose time has come, at its time and in order."""
        while now_ms >= self._due_ms:
            ends = [(member.seen_ms + self._plan.session_timeout_ms, n) for n, member in self._running()]
            at_ms, number = min([*ends, (self._hold_ms, -1)])
            self._due_ms = at_ms
            if at_ms > now_ms:
                return
            if number < 0:
                self._end_hold(at_ms)
            else:
                self._remove(number, at_ms)

    def _running(self) -> list[tuple[int, _Member]]:
        """List the members whose session runs: all but those that wait for the answer to their join."""
        return [(n, member) for n, member in self._members.items() if not (self._joining and member.joined)]

    def _end_hold(self, at_ms: float) -> None:
        # Only a group's very first join phase is held longer when more members come.
        if self._newcomers and self._generation == 0:
            self._newcomers = False
            self._hold_ms = at_ms + self._initial_delay_ms
        else:
            self._hold_ms = _NEVER
            self._complete(at_ms)

    def _remove(self, number: int, at_ms: float) -> None:
        del self._members[number]
        self._open_join_phase(at_ms)
        self._complete(at_ms)

    def _open_join_phase(self, at_ms: float) -> None:
        if not self._joining:
            self._joining, self._changed_ms = True, at_ms
            for member in self._members.values():
                member.joined = False

    def _complete(self, at_ms: float) -> None:
        if not self._joining or self._hold_ms < _NEVER or not all(m.joined for m in self._members.values()):
            return
        self._joining, self._changed_ms = False, at_ms
        self._generation += 1
        for member in self._members.values():
            member.seen_ms, member.synced = at_ms, False
        self._due_ms = at_ms

    def _beat(self, number: int, now_ms: float, *, fresh: bool) -> Iterator[Sent]:
        member = self._members.get(number)
        known = now_ms - self._changed_ms >= NOTICE_MS
        if fresh or member is None:
            yield from self._join_new(number, now_ms, stale=None if fresh else self.member_id(number))
        elif self._joining and not member.joined:
            member.seen_ms = now_ms
            yield self._send(member, EventType.HEARTBEAT)
            if known:
                member.joined = True
                yield self._join(member)
                self._complete(now_ms)
        elif not self._joining and member.synced:
            member.seen_ms = now_ms
            yield self._send(member, EventType.HEARTBEAT)
        elif not self._joining and known:
            yield from self._sync_all(now_ms)
        # Else it waits for the answer to its join, and sends nothing meanwhile.

    def _sync_all(self, now_ms: float) -> Iterator[Sent]:
        """Let all who are up sync at once: a session runs anew from the leader's sync, whoever that is."""
        for member in self._members.values():
            if member.number in self._up and not member.synced:
                member.seen_ms, member.synced = now_ms, True
                yield self._send(member, EventType.SYNC)

    def _join_new(self, number: int, now_ms: float, stale: str | None) -> Iterator[Sent]:
        """Join as a new member, with an id handed out; one that was expired finds that out by a heartbeat first."""
        group_id = identity(self._plan, number).group_id
        if stale is not None:
            beat = Event(group_id=group_id, member_id=stale, generation_id=self._generation)
            yield Sent(number, encode_event(beat))
        if number in self._members:
            self._remove(number, now_ms)
        self._lives[number] = self._lives.get(number, -1) + 1
        member = _Member(number, identity(self._plan, number, self._lives[number]), now_ms)
        yield self._join(member, first=True)
        yield self._join(member)
        if self._members or self._joining:
            self._newcomers = True
        elif self._initial_delay_ms:
            self._hold_ms, self._newcomers = now_ms + self._initial_delay_ms, False
        self._open_join_phase(now_ms)
        self._members[number] = member
        self._due_ms = now_ms
        self._complete(now_ms)

    def _leave(self, number: int, now_ms: float) -> Iterator[Sent]:
        member = self._members.get(number)
        if member is not None:
            yield Sent(number, encode_event(goodbye(member.who)))
            self._remove(number, now_ms)

    def _send(self, member: _Member, kind: EventType) -> Sent:
        who = member.who
        event = Event(type=kind, group_id=who.group_id, member_id=who.member_id, generation_id=self._generation)
        return Sent(member.number, encode_event(event))

    def _join(self, member: _Member, *, first: bool = False) -> Sent:
        event = msgspec.structs.replace(
            member.who,
            type=EventType.JOIN,
            member_id="" if first else member.who.member_id,
            assigned_member_id=member.who.member_id if first else None,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            protocol_type="consumer",
            protocols=_PROTOCOLS,
        )
        return Sent(member.number, encode_event(event))
