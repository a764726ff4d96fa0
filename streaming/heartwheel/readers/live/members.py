"""One member: its expirations and their causes, whether it came back, and its last heartbeats with their gaps."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from heartwheel.readers.live.expiration import Expiration
from heartwheel.readers.live.history_documents import MemberHistory
from heartwheel.readers.live.older import older_until_ms, picture_with
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.why import why


class MemberView(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one member.

    Args:
        group_id: its group.
        member_id: its id.
        expirations: its expirations in the window, newest first.
        why: why it was last expired, in sentences; empty if it was not.
        returned_ms: when it came back after that, epoch ms; `None` if it has not.
        history: its events around its last silence, from the heartbeat topic.
        older_until_ms: the value of `until_ms` for expirations that a history of brokers' logs may have from before
            these, epoch ms; `None` if it has none.
    """

    group_id: str
    member_id: str
    expirations: list[Expiration]
    why: list[str]
    returned_ms: int | None
    history: MemberHistory
    older_until_ms: int | None = None


class MemberExpirations(NamedTuple):
    """The expirations of a member, the oldest first, and `older_until_ms` as in `MemberView`."""

    rows: list[Expiration]
    older_until_ms: int | None


def expirations_of(picture: Picture, group_id: str, member_id: str, until_ms: int | None = None) -> MemberExpirations:
    """Return the expirations of a member: those in memory or, if there are none, from the history.

    Args:
        until_ms: the end of the time that is shown, epoch ms; `None`: the newest.

    Raises:
        LanesBusyError: another time is being read from the history at the moment.
    """
    picture = picture_with(picture, group_id, member_id=member_id, until_ms=until_ms)
    with picture.lock:
        entry = picture.groups.entries.get(group_id)
        rows = [row for row in entry.expirations if row.member_id == member_id] if entry else []
        older_ms = older_until_ms(picture, picture.window.known_from_ms)
    return MemberExpirations([row for row in rows if until_ms is None or row.append_ms < until_ms], older_ms)


def member_view(group_id: str, member_id: str, expirations: MemberExpirations, history: MemberHistory) -> MemberView:
    """Return what is known of one member.

    Args:
        expirations: of this member.
        history: its events in the heartbeat topic.
    """
    rows, older_ms = expirations
    newest = rows[-1] if rows else None
    return MemberView(
        group_id=group_id,
        member_id=member_id,
        expirations=list(reversed(rows)),
        why=why(newest) if newest else [],
        returned_ms=newest.returned_ms if newest else None,
        history=history,
        older_until_ms=older_ms,
    )
