"""A channel: events for all its listeners, made once from the picture as it changes."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from heartwheel.readers.dashboard.ring import Ring, StreamFrame
from heartwheel.readers.live.at_risk import at_risk
from heartwheel.readers.live.expiration import Expiration
from heartwheel.readers.live.groups import Group, group_of
from heartwheel.readers.live.now import View, now_of
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.series import newest_step

ROWS_MAX: Final = 200
"""Most expirations of one frame; the rest is counted as skipped, and can be requested."""

GROUPS_MAX: Final = 50
"""Most groups of one frame."""

RETURNS_MAX: Final = 500
"""Most returns of one frame."""

_AT_RISK_MAX: Final = 50

_encode = msgspec.json.Encoder().encode


class NewExpirations(msgspec.Struct, frozen=True, kw_only=True):
    """The newest expirations, newest first, and how many were left out."""

    rows: list[Expiration]
    skipped: int


class NewReturn(msgspec.Struct, frozen=True, kw_only=True):
    """A change of an expiration: its member is back, or its cause became known.

    Args:
        id: of the expiration.
        returned_ms: when the member was back, epoch ms; `None` until it is.
        advice: what to change, by a broker's log.
        cause: what happened to the member's pod or machine, by a broker's log.
    """

    id: str
    returned_ms: int | None
    advice: str
    cause: str


class NewGroups(msgspec.Struct, frozen=True, kw_only=True):
    """Groups that changed, and how many were left out."""

    rows: list[Group]
    skipped: int


class SentUpTo(NamedTuple):
    """How far the picture was sent: the numbers of its newest expiration, return and change of a group."""

    seq: int
    returns: int
    version: int


def event_text(event: str, body: Any, id_: str | None = None) -> bytes:
    """Return an event of a stream as text.

    Args:
        body: sent as JSON, which has no line breaks in it.
        id_: the id that a returning client names as the last one it has seen.
    """
    head = f"id: {id_}\n" if id_ is not None else ""
    return f"{head}event: {event}\ndata: ".encode() + _encode(body) + b"\n\n"


class Channel:
    """The events of a picture, made once for all listeners.

    Expirations, returns and groups are numbered frames, each sent once. The present state is sent whole each time, and
    only its newest version is kept.

    Args:
        picture: the source of the events.
        epoch: names this run of the server; numbers of another run mean nothing.
        view: the parameters for showing the picture.
    """

    def __init__(self, picture: Picture, epoch: str, view: View) -> None:
        self._picture, self.epoch, self.view = picture, epoch, view
        self.ring = Ring()
        self._position = self._newest()
        self.state: dict[str, bytes] = {}
        """The newest event of each kind that describes the present state."""
        self.state_version = 0

    @property
    def seq(self) -> int:
        """The number of the newest expiration that was sent."""
        return self._position.seq

    def id_of(self, number: int) -> str:
        """Return the id of a frame."""
        return f"{self.epoch}-{number}"

    def number_of(self, id_: str) -> int | None:
        """Parse the number in an id; return `None` if it is of another run of the server, or no id at all."""
        epoch, dash, number = id_.partition("-")
        if epoch != self.epoch or not dash or not (number.isascii() and number.isdigit()) or len(number) > 15:
            return None
        return int(number)

    def add_changes(self, now_ms: int) -> None:
        """Make frames of all changes since the last call."""
        with self._picture.lock:
            before, self._position = self._position, self._newest()
            if before == self._position:
                return
            expirations, returns = self._expirations(before), self._returns(before)
            groups = self._groups(before, now_ms)
        if expirations.rows:
            self._add("expirations", expirations)
        if returns:
            self._add("returned", returns)
        if groups.rows:
            self._add("groups", groups)

    def update_state(self, view: View, now_ms: int) -> None:
        """Update the events that describe the present state."""
        self.view = view
        self.state = {
            "now": event_text("now", now_of(self._picture, view, now_ms=now_ms)),
            "at_risk": event_text("at_risk", self._at_risk(now_ms)),
            "series": event_text("series", newest_step(self._picture, now_ms=now_ms)),
        }
        self.state_version += 1

    def _at_risk(self, now_ms: int) -> Any:
        return at_risk(self._picture, now_ms=now_ms, limit=_AT_RISK_MAX, canary=self.view.show_canary)

    def _add(self, event: str, body: Any) -> None:
        number = self.ring.newest + 1
        self.ring.add(StreamFrame(number, self._position.seq, event_text(event, body, self.id_of(number))))

    def _newest(self) -> SentUpTo:
        picture = self._picture
        return SentUpTo(picture.window.newest_seq, picture.newest_return, picture.groups.version)

    def _shows(self, group_id: str) -> bool:
        return self.view.show_canary or not self._picture.is_canary(group_id)

    def _expirations(self, before: SentUpTo) -> NewExpirations:
        window = self._picture.window
        found = [row for row in window.after(before.seq) if self._shows(row.group_id)]
        dropped = max(0, window.newest_seq - before.seq - len(window.rows))
        return NewExpirations(rows=found[:ROWS_MAX], skipped=max(0, len(found) - ROWS_MAX) + dropped)

    def _returns(self, before: SentUpTo) -> list[NewReturn]:
        news = islice(reversed(self._picture.returns), min(RETURNS_MAX, self._picture.newest_return - before.returns))
        return [
            NewReturn(id=row.id, returned_ms=row.returned_ms, advice=row.advice, cause=row.cause)
            for row in news
            if self._shows(row.group_id)
        ]

    def _groups(self, before: SentUpTo, now_ms: int) -> NewGroups:
        changed = [entry for entry in self._picture.groups.changed_after(before.version) if self._shows(entry.group_id)]
        rows = [group_of(entry, self.view.storm, now_ms=now_ms) for entry in changed[:GROUPS_MAX]]
        return NewGroups(rows=rows, skipped=max(0, len(changed) - GROUPS_MAX))
