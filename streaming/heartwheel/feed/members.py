"""What simulated members send: who they are, and the records of members that know no protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from heartwheel.feed.schedule import Action, FeedPlan
from heartwheel.wire.events import Event, EventType, encode_event

BEATS: Final = frozenset({Action.START, Action.BEAT, Action.RESUME, Action.RETURN})
"""The actions by which a member shows that it is there."""

_WORDS: Final = (
    *("orders", "payments", "invoices", "shipping", "search", "email", "fraud", "ledger", "pricing", "stock"),
    *("audit", "clicks"),
)


class Sent(NamedTuple):
    """Hold one record to send: which member sends it, and its value."""

    member: int
    value: bytes


class Members(Protocol):
    """Turn what members do into the records they send; one implementation a protocol."""

    def member_id(self, member: int) -> str:
        """Name the id that a member goes by now."""

    def act(self, member: int, action: Action, now_ms: float) -> Iterable[Sent]:
        """Let a member do something.

        Args:
            member: its number.
            action: what it does; garbage is not asked for here.
            now_ms: when, ms since the start of the feed; never goes back.

        Returns:
            What is sent for it, by it or by other members of its group, in this order.
        """


def group_name(plan: FeedPlan, number: int) -> str:
    """Name a group of a plan.

    Args:
        plan: gives the prefix.
        number: the group's number, from 0.
    """
    turn, word = divmod(number, len(_WORDS))
    return f"{plan.group_prefix}{_WORDS[word]}" + (f"-{turn + 1}" if turn else "")


def identity(plan: FeedPlan, member: int, life: int = 0) -> Event:
    """Make the heartbeat that says all about a member: its ids, its timeout, where it runs.

    Args:
        plan: gives groups and timeouts.
        member: the member's number, from 0.
        life: how many lives it had before, for members that get a new id at every start.
    """
    group, place = divmod(member, plan.members_per_group)
    client_id = f"{group_name(plan, group)}-{place}"
    return Event(
        group_id=group_name(plan, group),
        member_id=f"{client_id}-{plan.seed:04x}{life:04x}{member:08x}",
        session_timeout_ms=plan.session_timeout_ms,
        client_id=client_id,
        client_host=f"/10.{group >> 8 & 255}.{group & 255}.{place % 254 + 1}",
    )


def goodbye(who: Event) -> Event:
    """Make the leave of a member, in the words of Kafka's own consumer."""
    reason = "the consumer is being closed"
    return Event(type=EventType.LEAVE, group_id=who.group_id, member_id=who.member_id, reason=reason)


class PresenceMembers:
    """Send bare heartbeats, encoded once; a member keeps its id for ever.

    Args:
        plan: whom to simulate.
    """

    def __init__(self, plan: FeedPlan) -> None:
        self._beats = [encode_event(identity(plan, member)) for member in range(plan.members)]
        self._plan = plan

    def member_id(self, member: int) -> str:
        """Name the id that a member goes by."""
        return identity(self._plan, member).member_id

    def act(self, member: int, action: Action, now_ms: float) -> tuple[Sent, ...]:  # noqa: ARG002 - rules of others need the time
        """Send a heartbeat, or a goodbye."""
        if action in BEATS:
            return (Sent(member, self._beats[member]),)
        if action is Action.LEAVE:
            who = identity(self._plan, member)
            return (Sent(member, encode_event(goodbye(who))),)
        return ()
