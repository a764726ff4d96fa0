"""One member: its expirations and their causes, whether it came back, and its last heartbeats with their gaps."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from heartwheel.readers.live.expiration import Expiration
from heartwheel.readers.live.history_documents import MemberHistory
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
    """

    group_id: str
    member_id: str
    expirations: list[Expiration]
    why: list[str]
    returned_ms: int | None
    history: MemberHistory


def member_view(group_id: str, member_id: str, expirations: Sequence[Expiration], history: MemberHistory) -> MemberView:
    """Return what is known of one member.

    Args:
        expirations: of this member, the oldest first.
        history: its events in the heartbeat topic.
    """
    newest = expirations[-1] if expirations else None
    return MemberView(
        group_id=group_id,
        member_id=member_id,
        expirations=list(reversed(expirations)),
        why=why(newest) if newest else [],
        returned_ms=newest.returned_ms if newest else None,
        history=history,
    )
