"""An incident: the expired members of one group, from the first of them until all are back or it stays quiet."""

from __future__ import annotations

import enum
import hashlib
from typing import Final

import msgspec

from heartwheel.live.returns import is_return
from heartwheel.wire.verdicts import ExpirationRow

MEMBERS_MAX: Final = 1_000
"""Most members of an incident whose return is waited for; beyond it, expirations are counted only."""


class Step(enum.StrEnum):
    """Name what a message says about an incident."""

    OPENED = "opened"
    UPDATED = "updated"
    CLOSED = "closed"


class ClosedBy(enum.StrEnum):
    """Name why an incident is over: everybody came back, or nothing happened for long."""

    RETURNED = "returned"
    QUIET = "quiet"


class Gone(msgspec.Struct, kw_only=True):
    """Hold a member that was expired.

    Args:
        row: its newest expiration.
        times: how often it was expired in this incident.
        returned_ms: when it came back after that, epoch ms.
    """

    row: ExpirationRow
    times: int = 1
    returned_ms: int | None = None


class Incident(msgspec.Struct, kw_only=True):
    """Hold what is known about the expirations of a group.

    Args:
        id: made from the group and its first expiration: the same after a restart.
        group_id: which group; `None` for all groups beyond those that have an incident of their own.
        opened_ms: when it began, by the notifier's clock, epoch ms.
        expired_ms: when its newest expiration was taken in, likewise.
        members: who was expired, by member id.
        expired: expirations in all.
        returns: how often one of the members came back.
        untracked: expirations whose member is not in `members`, and whose return is not waited for.
        reasons: expirations by reason.
        sequence: messages made about it so far.
        told_ms: when the newest of them was made, epoch ms.
        told_expired: expirations that they have told.
        news_ms: since when there is something that they have not told, by the notifier's clock; `None` if there is not.
    """

    id: str
    group_id: str | None
    opened_ms: int
    expired_ms: int
    members: dict[str, Gone] = {}
    expired: int = 0
    returns: int = 0
    untracked: int = 0
    reasons: dict[str, int] = {}
    sequence: int = 0
    told_ms: int = 0
    told_expired: int = 0
    news_ms: int | None = None

    @property
    def missing(self) -> int:
        """Count the members that are not known to be back; an untracked expiration counts as one."""
        return self.untracked + sum(gone.returned_ms is None for gone in self.members.values())

    def add(self, row: ExpirationRow, *, now_ms: int, may_track: bool = True) -> None:
        """Take in one more expiration.

        Args:
            row: of a member of the group.
            now_ms: the notifier's clock, epoch ms.
            may_track: whether there is room for a member that is not known yet.
        """
        self.expired += 1
        self.expired_ms = now_ms
        self._note_news(now_ms)
        self.reasons[row.reason] = self.reasons.get(row.reason, 0) + 1
        known = self.members.get(row.member_id)
        if known is not None:
            known.row, known.times, known.returned_ms = row, known.times + 1, None
        elif may_track and self.group_id is not None and len(self.members) < MEMBERS_MAX:
            self.members[row.member_id] = Gone(row=row)
        else:
            self.untracked += 1

    def claim(self, member_id: str, arrived_ms: int, *, now_ms: int, only: str | None = None) -> bool:
        """Take an arrival as the return of one expired member, of the one that was expired first.

        Members with one client id look alike from outside, so one arrival stands for one of them and no more.

        Args:
            member_id: who joined the group.
            arrived_ms: when, epoch ms.
            now_ms: the notifier's clock, epoch ms.
            only: the one expired member that is asked about; all if left out.

        Returns:
            Whether somebody came back with it.
        """
        for gone in self.members.values() if only is None else filter(None, [self.members.get(only)]):
            is_later = gone.returned_ms is None and arrived_ms >= gone.row.deadline_ms
            if is_later and is_return(gone.row, member_id):
                gone.returned_ms = arrived_ms
                self.returns += 1
                self._note_news(now_ms)
                return True
        return False

    def _note_news(self, now_ms: int) -> None:
        if self.news_ms is None:
            self.news_ms = now_ms


def incident_id(group_id: str | None, expiration_id: str) -> str:
    """Derive the id of an incident from the expiration that began it."""
    return hashlib.blake2b(msgspec.json.encode((group_id, expiration_id)), digest_size=16).hexdigest()
