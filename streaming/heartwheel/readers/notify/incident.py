"""An incident: the problems of one group, from their start until all is well again or nothing more happens."""

from __future__ import annotations

import enum
import hashlib
from typing import Final

import msgspec

from heartwheel.readers.live.expiration import LoggedExpiration
from heartwheel.readers.live.returns import Arrival, is_return
from heartwheel.readers.notify.troubles import GroupTrouble
from heartwheel.wire.verdict_rows import ExpirationRow

MEMBERS_MAX: Final = 1_000
"""Most members of an incident whose return is waited for; beyond that, expirations are only counted."""


class IncidentStep(enum.StrEnum):
    """The subject of a message about an incident."""

    OPENED = "opened"
    UPDATED = "updated"
    CLOSED = "closed"


class ClosedBy(enum.StrEnum):
    """Why an incident is over: all members are back, the group is well again, or nothing happened for long."""

    RETURNED = "returned"
    CALM = "calm"
    QUIET = "quiet"


_IN_THE_FILE: Final = {"reported_ms": "told_ms", "reported_expired": "told_expired"}
"""The names of fields in the state file, where they differ."""


class ExpiredMember(msgspec.Struct, kw_only=True):
    """A member that was expired.

    Args:
        times: how often it was expired in this incident.
        returned_ms: when it came back after that, epoch ms.
        returned_as: its member id since then.
    """

    row: LoggedExpiration
    times: int = 1
    returned_ms: int | None = None
    returned_as: str | None = None


class Incident(msgspec.Struct, kw_only=True, rename=_IN_THE_FILE):
    """The expirations of a group since it was last quiet, the members that came back, and the group's troubles.

    Args:
        id: made from the group and its first expiration: the same after a restart.
        group_id: the group; `None` for all groups beyond those that have an incident of their own.
        opened_ms: when it began, by the notifier's clock, epoch ms.
        expired_ms: when its newest expiration or trouble was added, by the same clock.
        expired: expirations in all.
        untracked: expirations whose member is not in `members`, and whose return is not waited for.
        troubles: the group's present troubles, the worst first.
        sequence: messages made about it so far.
        reported_ms: when the newest of them was made, epoch ms.
        news_ms: since when there is unreported news, by the notifier's clock; `None` if there is none.
    """

    id: str
    group_id: str | None
    opened_ms: int
    expired_ms: int
    members: dict[str, ExpiredMember] = {}
    expired: int = 0
    untracked: int = 0
    reasons: dict[str, int] = {}
    troubles: list[GroupTrouble] = []
    sequence: int = 0
    reported_ms: int = 0
    reported_expired: int = 0
    news_ms: int | None = None

    @property
    def expired_members(self) -> int:
        """The number of expired members, each counted once; an untracked expiration counts as one."""
        return self.untracked + len(self.members)

    @property
    def returned(self) -> int:
        """The number of them that are back."""
        return sum(member.returned_ms is not None for member in self.members.values())

    @property
    def missing(self) -> int:
        """The number of them that are not known to be back."""
        return self.expired_members - self.returned

    def add(self, row: ExpirationRow, *, now_ms: int, may_track: bool = True) -> None:
        """Add one more expiration.

        Args:
            row: of a member of the group.
            may_track: whether there is room for a member that is not known yet.
        """
        self.expired += 1
        self.expired_ms = now_ms
        self._note_news(now_ms)
        self.reasons[row.reason] = self.reasons.get(row.reason, 0) + 1
        known = self._pop(row.member_id)
        if known is not None:
            self.members[row.member_id] = ExpiredMember(row=_logged(row), times=known.times + 1)
        elif may_track and self.group_id is not None and len(self.members) < MEMBERS_MAX:
            self.members[row.member_id] = ExpiredMember(row=_logged(row))
        else:
            self.untracked += 1

    def explain_again(self, row: LoggedExpiration, *, now_ms: int) -> None:
        """Replace the cause of an expired member; one is news if none was known, or if it changes what to do."""
        member = self.members.get(row.member_id)
        if member is None or member.row.id != row.id or member.row.cause == row.cause:
            return
        if row.cause and (not member.row.cause or member.row.advice != row.advice):
            self._note_news(now_ms)
        member.row = row

    def note_troubles(self, troubles: list[GroupTrouble], *, now_ms: int) -> None:
        """Replace the group's troubles; another kind of trouble, or one less, is news, another number is not.

        Args:
            troubles: the worst first.
        """
        before, after = {each.kind for each in self.troubles}, {each.kind for each in troubles}
        if after - before:
            self.expired_ms = now_ms
        if after != before:
            self._note_news(now_ms)
        self.troubles = troubles

    def claim(self, arrival: Arrival, *, now_ms: int, only: str | None = None) -> bool:
        """Count an arrival as the return of one expired member, the one that was expired first.

        Members with one client id cannot be distinguished, so one arrival counts as the return of only one of them.

        Args:
            arrival: of a member of the group.
            only: the only expired member to consider; by default all.

        Returns:
            Whether a member came back with it.
        """
        for member in self.members.values() if only is None else filter(None, [self.members.get(only)]):
            if member.returned_ms is None and is_return(member.row, arrival):
                member.returned_ms, member.returned_as = arrival.time_ms, arrival.member_id
                self._note_news(now_ms)
                return True
        return False

    def _pop(self, member_id: str) -> ExpiredMember | None:
        """Remove and return a member that was expired before, under this id or under an earlier one."""
        earlier = (name for name, member in self.members.items() if member.returned_as == member_id)
        return self.members.pop(member_id if member_id in self.members else next(earlier, ""), None)

    def _note_news(self, now_ms: int) -> None:
        if self.news_ms is None:
            self.news_ms = now_ms


def _logged(row: ExpirationRow) -> LoggedExpiration:
    """Return a row as one that a broker's log may have shown, which lacks some times and has an advice."""
    return row if isinstance(row, LoggedExpiration) else LoggedExpiration(**msgspec.structs.asdict(row))


def incident_id(group_id: str | None, expiration_id: str) -> str:
    """Derive the id of an incident from the expiration that began it."""
    return hashlib.blake2b(msgspec.json.encode((group_id, expiration_id)), digest_size=16).hexdigest()
