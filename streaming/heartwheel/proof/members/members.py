"""What simulated members send: who they are, and the records of members that know no protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from heartwheel.proof.members.schedule import Action, FeedPlan
from heartwheel.wire.event_codec import encode_event
from heartwheel.wire.events import Event, EventType

LEAVES: Final = {
    Action.LEAVE: "the consumer is being closed",
    Action.POLL_TIMEOUT: "consumer poll timeout has expired.",
}
"""The actions by which a member leaves, with the reason that Kafka's own consumer gives for it."""

BEATS: Final = frozenset({Action.START, Action.BEAT, Action.RESUME, Action.RETURN, Action.STALL})
"""The actions by which a member shows that it is there."""

_WORDS: Final = (
    *("orders", "payments", "invoices", "shipping", "search", "email", "fraud", "ledger", "pricing", "stock"),
    *("audit", "clicks"),
)


class Sent(NamedTuple):
    """One record to send.

    Args:
        event: the value decoded, for members that go by what becomes of it.
        life: how many lives the member had before.
    """

    member: int
    value: bytes
    event: Event | None = None
    life: int = 0


class Members(Protocol):
    """What turns the doings of members into the records they send; one implementation a protocol."""

    def member_id(self, member: int) -> str:
        """Return the id that a member goes by now."""

    def act(self, member: int, action: Action, now_ms: float) -> Iterable[Sent]:
        """Carry out one action of a member.

        Args:
            action: what it does; garbage is not asked for here.
            now_ms: when, ms since the start of the feed; never goes back.

        Returns:
            What is sent for it, in this order.
        """

    def landed(self, sent: Sent, append_ms: int | None, now_ms: float) -> None:
        """Take what became of a record.

        Args:
            sent: the record; those of a member come in the order of sending.
            append_ms: the broker's append time, epoch ms; `None` if nobody knows whether it was appended.
            now_ms: when that is known, ms since the start of the feed.
        """


def group_name(plan: FeedPlan, number: int) -> str:
    """Return the id of a group of a plan.

    Args:
        number: the group's number, from 0.
    """
    turn, word = divmod(number, len(_WORDS))
    return f"{plan.group_prefix}{_WORDS[word]}" + (f"-{turn + 1}" if turn else "")


def identity(plan: FeedPlan, member: int, life: int | None = None) -> Event:
    """Make the heartbeat that says all about a member: its ids, its timeout, where it runs.

    Args:
        member: the member's number, from 0.
        life: how many lives it had before, for members that get a new id at every start: it looks as a broker's does,
            the client's id and 36 characters of a UUID. `None` for members that keep theirs.
    """
    group, place = divmod(member, plan.members_per_group)
    client_id = f"{group_name(plan, group)}-{place}"
    if life is None:
        ending = f"{plan.seed:04x}0000{member:08x}"
    else:
        ending = f"{plan.seed & 0xFFFFFFFF:08x}-{life & 0xFFFF:04x}-4000-8000-{member:012x}"
    return Event(
        group_id=group_name(plan, group),
        member_id=f"{client_id}-{ending}",
        session_timeout_ms=plan.session_timeout_ms,
        client_id=client_id,
        client_host=f"/10.{group >> 8 & 255}.{group & 255}.{place % 254 + 1}",
    )


def goodbye(who: Event, action: Action = Action.LEAVE) -> Event:
    """Make the leave of a member, in the words of Kafka's own consumer."""
    reason = LEAVES[action]
    return Event(type=EventType.LEAVE, group_id=who.group_id, member_id=who.member_id, reason=reason)


class PresenceMembers:
    """Members that send bare heartbeats, encoded once; a member keeps its id for ever.

    Args:
        members: the numbers of those that are asked for; all, if left out.
    """

    def __init__(self, plan: FeedPlan, members: Iterable[int] | None = None) -> None:
        wanted = range(plan.members) if members is None else members
        self._beats = {member: encode_event(identity(plan, member)) for member in wanted}
        self._plan = plan

    def member_id(self, member: int) -> str:
        """Return the id that a member goes by."""
        return identity(self._plan, member).member_id

    def act(self, member: int, action: Action, now_ms: float) -> tuple[Sent, ...]:  # noqa: ARG002 - rules of others need the time
        """Send a heartbeat, or a goodbye."""
        if action in BEATS:
            return (Sent(member, self._beats[member]),)
        if action in LEAVES:
            who = identity(self._plan, member)
            return (Sent(member, encode_event(goodbye(who, action))),)
        return ()

    def landed(self, sent: Sent, append_ms: int | None, now_ms: float) -> None:
        """Take what became of a record, which changes nothing that these members do."""
