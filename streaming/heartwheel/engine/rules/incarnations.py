"""Incarnations of a worker in a presence group: which of its starts a record comes from.

A worker that is started again keeps its member id, so a record of its previous start may arrive after the first
heartbeat of the next one, because of a slow gateway or a retry. Records that name their incarnation can be told apart,
as with Kafka's producer epochs and SWIM's incarnation numbers. Records that name none are accepted as they come.

- **Ended.** After a leave or a failure nothing of that incarnation counts any more: no repetition of it, and no
  heartbeat that it has overtaken. That holds although the leave or failure itself is refused, as where the group is
  full. Only equal numbers are refused, so a worker whose clock was set back between two starts is still accepted.
- **Earlier.** A leave or failure of an earlier incarnation than the member's is refused, but that incarnation has
  ended. A later one counts, because a worker may fail before its first heartbeat, while the session of its previous
  start still runs.
- An earlier heartbeat keeps the member alive, as any heartbeat does, and changes nothing else: incarnation, session
  timeout, client and instance id stay those of the later one. If only earlier ones were received for a whole session of
  the later one, the later one would have expired by its own silence. So the clock was set back, and the member takes
  the earlier one. After an outage or a load the later one has a whole session again, because it could not send
  heartbeats before.
- An earlier heartbeat under another member id does not take the instance id of a static member. A worker whose clock
  was set back, and which has a new id, arrives once that member has expired.

So the number has to rise from one start to the next, which wall clock time does on one host. A random number would not
show which of two starts is the later one: the first heartbeat of the next start would look like a late one.

An end is remembered for `LATE_MS`, because by then a Kafka producer gives up a record (`delivery.timeout.ms`, two
minutes by default). A session is no measure: that of a job lasts for days. An end takes 64 bits and its time, whatever
the ids are, and a group remembers the last `ENDED_MAX`. So no timer has to remove them: the next end does, or the end
of the group.
"""

from __future__ import annotations

from typing import Final

from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.model import Group, Member
from heartwheel.wire.event_codec import fingerprint
from heartwheel.wire.events import Event

LATE_MS: Final = 120_000
"""How long an ended incarnation is remembered, ms."""

ENDED_MAX: Final = 1_000
"""The most ended incarnations that a group remembers; the oldest are forgotten first."""

NOT_EARLIER: Final = -1
"""`Member.earlier_since_ms` of a member whose last heartbeat was not of an earlier incarnation."""


def has_ended(group: Group, member_id: str, incarnation: int | None, now_ms: int) -> bool:
    """Return whether an incarnation of a member has left or failed.

    Args:
        incarnation: the incarnation; `None` if a record names none.
        now_ms: effective time, epoch ms.
    """
    if incarnation is None or not group.ended:
        return False
    ended_ms = group.ended.get(_key(member_id, incarnation))
    return ended_ms is not None and now_ms - ended_ms < LATE_MS


def remember_end(group: Group, member_id: str, incarnation: int, now_ms: int) -> None:
    """Remember that an incarnation of a member has left or failed, and forget those that ended long before.

    Args:
        group: changed in place.
        member_id: the member, never empty.
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


def take_incarnation(ctx: Context, event: Event, member: Member) -> bool:
    """Set a member's incarnation to that of a heartbeat that keeps it alive, unless it is an earlier one.

    Args:
        member: changed in place; its session timeout is still that of its present incarnation.

    Returns:
        Whether the member has that incarnation. If so, the heartbeat's other fields count, and it may be repeated
        unread.
    """
    if is_earlier(event, member):
        if member.earlier_since_ms == NOT_EARLIER:
            member.earlier_since_ms = ctx.now_ms
        since_ms = max(member.earlier_since_ms, ctx.renewed_ms, ctx.group.loaded_ms)
        if ctx.now_ms - since_ms < member.session_timeout_ms:
            return False
    member.incarnation, member.earlier_since_ms = event.incarnation, NOT_EARLIER
    return True


def _key(member_id: str, incarnation: int) -> int:
    return fingerprint(Event(group_id="", member_id=member_id, incarnation=incarnation))
