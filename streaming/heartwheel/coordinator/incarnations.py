"""Incarnations of a worker in a presence group: which of its starts a record comes from.

A worker that is started again keeps its member id, so a record of the start before may arrive behind the first
heartbeat of the next one: from a gateway that was slow, or by a retry. Records that name their incarnation are told
apart, as Kafka's producer epochs and the incarnation numbers of SWIM tell them. Records that name none are taken as
they come.

- **Ended.** After a leave or a failure nothing of that incarnation counts any more: no repetition of it, and no
  heartbeat that it has overtaken. Only equal numbers are refused, so that a worker whose clock was set back between
  two starts is let in all the same.
- **Earlier.** A leave or failure of an earlier incarnation than the member's is refused, and it has ended all the same.
  A later one counts, as a worker may fail before its first heartbeat, while the session of the start before it still
  runs.
- An earlier heartbeat keeps the member alive, as any heartbeat does, and leaves the later incarnation with it. When
  only earlier ones were heard for a whole session, the later one would have expired by its own silence. Then the clock
  was set back, and the member takes the earlier one.

So the number has to rise from one start to the next, and wall clock time does that on one host. A random number would
not say which of two starts is the later one: the first heartbeat of the next start would look like a late one.

What ended is remembered for `LATE_MS`, as a producer of Kafka gives up a record by then (`delivery.timeout.ms`, two
minutes by default). A session would be no measure: that of a job lasts for days. An end is 64 bits and its time,
whatever the ids are, and a group remembers the last `ENDED_MAX`. So no timer has to clear them away: the next end does,
or the end of the group.
"""

from __future__ import annotations

from typing import Final

from heartwheel.coordinator.model import Group, Member
from heartwheel.wire.events import Event, fingerprint

LATE_MS: Final = 120_000
"""For how long an incarnation that ended is remembered, ms."""

ENDED_MAX: Final = 1_000
"""How many of them a group remembers at most; the oldest are forgotten first."""

NOT_EARLIER: Final = -1
"""`Member.earlier_since_ms` of a member whose last heartbeat was not of an earlier incarnation."""


def has_ended(group: Group, event: Event, now_ms: int) -> bool:
    """Return whether the incarnation that an event names has left or failed.

    Args:
        group: the group.
        event: a heartbeat, leave or failure.
        now_ms: effective time, epoch ms.
    """
    if event.incarnation is None or not group.ended:
        return False
    ended_ms = group.ended.get(_key(event.member_id, event.incarnation))
    return ended_ms is not None and now_ms - ended_ms < LATE_MS


def remember_end(group: Group, member_id: str, incarnation: int, now_ms: int) -> None:
    """Note that an incarnation of a member has left or failed, and forget those that ended long before.

    Args:
        group: changed in place.
        member_id: the member, never empty.
        incarnation: which one.
        now_ms: effective time, epoch ms.
    """
    key = _key(member_id, incarnation)
    group.ended.pop(key, None)
    for other, ended_ms in list(group.ended.items()):
        if now_ms - ended_ms < LATE_MS and len(group.ended) < ENDED_MAX:
            break
        del group.ended[other]
    group.ended[key] = now_ms


def is_earlier(event: Event, member: Member) -> bool:
    """Return whether an event names an earlier incarnation than the member's."""
    return event.incarnation is not None and member.incarnation is not None and event.incarnation < member.incarnation


def take_incarnation(event: Event, member: Member, now_ms: int) -> bool:
    """Give a member the incarnation of a heartbeat that keeps it alive, unless that is an earlier one.

    Args:
        event: the heartbeat.
        member: changed in place.
        now_ms: effective time, epoch ms.

    Returns:
        Whether the member has it, so that the heartbeat may be repeated unseen.
    """
    if is_earlier(event, member):
        if member.earlier_since_ms == NOT_EARLIER:
            member.earlier_since_ms = now_ms
        if now_ms - member.earlier_since_ms < member.session_timeout_ms:
            return False
    member.incarnation, member.earlier_since_ms = event.incarnation, NOT_EARLIER
    return True


def _key(member_id: str, incarnation: int) -> int:
    return fingerprint(Event(group_id="", member_id=member_id, incarnation=incarnation))
