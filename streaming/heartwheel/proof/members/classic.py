"""Simulate members that speak Kafka's classic protocol: they join, sync, and beat with their generation.

No broker answers them. But the broker says when each of their records was appended, and by that the coordinator's rules
tell what it would have answered; so each group runs those rules over what it has sent, and its members go by them, as
clients do: who is asked to rejoin joins with its next heartbeat, who is unknown joins anew, who waits for an answer
sends nothing. Only if the fate of a record is unknown may a group fall out of step with the engine: its records are
refused then, as those of real clients that lost their coordinator would be.

A static member goes by its instance: if it comes back in time under a new id, the group stays as it is (KIP-345).
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator
from typing import Final

import msgspec

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group, GroupState, Member
from heartwheel.proof.members.members import BEATS, LEAVES, Sent, goodbye, group_name, identity
from heartwheel.proof.members.schedule import Action, FeedPlan
from heartwheel.wire.event_codec import encode_event
from heartwheel.wire.events import Event, EventType, Protocol
from heartwheel.wire.verdicts import Verdict

REBALANCE_TIMEOUT_MS: Final = 60_000
"""The rebalance timeout of all members, ms: long, so that nobody is removed for joining late."""

_PROTOCOLS: Final = (Protocol("range"), Protocol("cooperative-sticky"))


class _Client(msgspec.Struct):
    """What a member knows of itself.

    Args:
        who: its ids and timeouts, as a heartbeat.
        life: how many lives it had before.
        flying: how many of this life's records are on their way.
        synced: the generation that it has the assignment of; -1 for none.
        is_stalled: it beats and does not poll, so it does not join again.
    """

    who: Event
    life: int
    flying: int = 0
    synced: int = -1
    is_stalled: bool = False


class ClassicMembers:
    """The members of classic groups, and what they send.

    Args:
        config: what the engine's coordinators are set to; the defaults, if left out.
        groups: the numbers of those that are asked for; all, if left out.
        static: the numbers of groups whose members have an instance id.
    """

    def __init__(
        self,
        plan: FeedPlan,
        config: CoordinatorConfig | None = None,
        *,
        groups: Iterable[int] | None = None,
        static: Container[int] = (),
    ) -> None:
        self._plan = plan
        self._clock = _BrokerClock()
        self._groups = {
            number: _Group(plan, number, config or CoordinatorConfig(), self._clock, is_static=number in static)
            for number in (range(plan.groups) if groups is None else groups)
        }

    def member_id(self, member: int) -> str:
        """Return the id that a member goes by; every start is given a new one."""
        return self._group(member).member_id(member)

    def act(self, member: int, action: Action, now_ms: float) -> Iterator[Sent]:
        """Carry out one action of a member."""
        return self._group(member).act(member, action, now_ms)

    def landed(self, sent: Sent, append_ms: int | None, now_ms: float) -> None:
        """Note what the broker answered to a record; answers of a group come in the order of sending."""
        self._group(sent.member).landed(sent, append_ms, now_ms)

    def _group(self, member: int) -> _Group:
        return self._groups[member // self._plan.members_per_group]


class _BrokerClock:
    """The broker's time, or one a little behind it: what it has stamped was stamped before that was known."""

    def __init__(self) -> None:
        self._ahead_ms = -math.inf

    def learn(self, append_ms: int, now_ms: float) -> None:
        self._ahead_ms = max(self._ahead_ms, append_ms - now_ms)

    def at(self, now_ms: float) -> int:
        return -1 if self._ahead_ms == -math.inf else math.floor(now_ms + self._ahead_ms)


class _Group:
    """One group: its members by number, and its coordinator as of what the broker has confirmed."""

    def __init__(
        self, plan: FeedPlan, number: int, config: CoordinatorConfig, clock: _BrokerClock, *, is_static: bool
    ) -> None:
        self._plan, self._clock, self._is_static = plan, clock, is_static
        self._machine = GroupMachine(Group(group_name(plan, number)), config, _ignore)
        self._clients: dict[int, _Client] = {}

    def member_id(self, number: int) -> str:
        client = self._clients.get(number)
        return (identity(self._plan, number, 0) if client is None else client.who).member_id

    def act(self, number: int, action: Action, now_ms: float) -> Iterator[Sent]:
        self._machine.advance(self._clock.at(now_ms))
        if action in {Action.START, Action.RETURN}:
            yield from self._join_anew(number)
            return
        client = self._clients.get(number)
        if client is None:
            return
        if action is not Action.BEAT:
            client.is_stalled = action is Action.STALL
        # A client has one request on its way at a time.
        if action in BEATS and not client.flying:
            yield from self._beat(number, client)
        elif action in LEAVES and self._is_known(client):
            yield self._sent(number, client, goodbye(client.who, action))

    def landed(self, sent: Sent, append_ms: int | None, now_ms: float) -> None:
        client = self._clients.get(sent.member)
        if client is not None and sent.event is not None and client.life == sent.life:
            client.flying -= 1
        if append_ms is not None and sent.event is not None:
            self._clock.learn(append_ms, now_ms)
            self._machine.apply(sent.event, append_ms)

    def _is_known(self, client: _Client) -> bool:
        group, member_id = self._machine.group, client.who.member_id
        # Of a join on its way the coordinator is about to know.
        return bool(client.flying) or member_id in group.members or member_id in group.pending

    def _beat(self, number: int, client: _Client) -> Iterator[Sent]:
        group = self._machine.group
        member = group.members.get(client.who.member_id)
        if member is not None:
            yield from self._beat_of(number, client, member)
        elif client.who.member_id in group.pending:
            yield self._join(number, client)
        else:
            # It was expired, and finds that out by a heartbeat.
            yield self._request(number, client, EventType.HEARTBEAT)
            yield from self._join_anew(number)

    def _beat_of(self, number: int, client: _Client, member: Member) -> Iterator[Sent]:
        group = self._machine.group
        if member.awaiting_join or member.awaiting_sync:
            return  # it waits for the answer, and sends nothing meanwhile
        if group.state is GroupState.PREPARING_REBALANCE:
            yield self._request(number, client, EventType.HEARTBEAT)
            if not client.is_stalled:
                yield self._join(number, client)
        elif client.synced != group.generation:
            client.synced = group.generation
            yield self._request(number, client, EventType.SYNC)
        else:
            yield self._request(number, client, EventType.HEARTBEAT)

    def _join_anew(self, number: int) -> Iterator[Sent]:
        """Join as a new member, with an id handed out; a static one is let in at once, others join with it again."""
        before = self._clients.get(number)
        life = 0 if before is None else before.life + 1
        who = identity(self._plan, number, life)
        if self._is_static:
            who = msgspec.structs.replace(who, group_instance_id=who.client_id)
        client = self._clients[number] = _Client(who, life)
        yield self._join(number, client, first=True)
        if not self._is_static:
            yield self._join(number, client)

    def _request(self, number: int, client: _Client, kind: EventType) -> Sent:
        who, generation = client.who, self._machine.group.generation
        event = Event(type=kind, group_id=who.group_id, member_id=who.member_id, generation_id=generation)
        return self._sent(number, client, event)

    def _join(self, number: int, client: _Client, *, first: bool = False) -> Sent:
        who = client.who
        event = msgspec.structs.replace(
            who,
            type=EventType.JOIN,
            member_id="" if first else who.member_id,
            assigned_member_id=who.member_id if first else None,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            protocol_type="consumer",
            protocols=_PROTOCOLS,
        )
        return self._sent(number, client, event)

    def _sent(self, number: int, client: _Client, event: Event) -> Sent:
        client.flying += 1
        return Sent(number, encode_event(event), event, client.life)


def _ignore(_verdict: Verdict) -> None:
    """Ignore a verdict: members follow the group's state."""
