"""The open incidents: what to report about them, and when. This module uses no clock and no network."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from heartwheel.readers.live.expiration import LoggedExpiration
from heartwheel.readers.live.returns import Arrival, arrivals_of
from heartwheel.readers.live.trouble import TroubleKind
from heartwheel.readers.notify.arrivals import NewestArrivals
from heartwheel.readers.notify.incident import ClosedBy, Incident, IncidentStep, incident_id
from heartwheel.readers.notify.troubles import GroupTrouble
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

SEEN_MAX: Final = 5_000
"""How many of the newest expirations are known by id, so that one that was written twice counts once."""

TRACKED_MAX: Final = 20_000
"""Most members of all incidents together whose return is waited for: it bounds the memory and the file of the state."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """When an incident is reported.

    Args:
        gather_ms: from the first expiration to the first message.
        min_interval_ms: shortest time between two messages about one incident.
        close_after_ms: how long after its newest expiration an incident is closed, if not all came back.
        incidents_max: most groups with an incident of their own.
    """

    gather_ms: int
    min_interval_ms: int
    close_after_ms: int
    incidents_max: int


class IncidentsSnapshot(msgspec.Struct, kw_only=True):
    """The state that must survive the process.

    Args:
        incidents: the open ones, the oldest first.
        seen: ids of the newest expirations, the oldest first.
        arrivals: the newest arrivals that are no return so far, the oldest first.
    """

    incidents: list[Incident] = []
    seen: list[str] = []
    arrivals: list[Arrival] = []


class Incidents:
    """The open incidents of all groups.

    Args:
        rules: when to report them.
        snapshot: the saved state of an earlier process; `None` at the first start.
    """

    def __init__(self, rules: Rules, snapshot: IncidentsSnapshot | None = None) -> None:
        snapshot = snapshot or IncidentsSnapshot()
        self._rules = rules
        self._open = {incident.group_id: incident for incident in snapshot.incidents}
        self._seen = OrderedDict.fromkeys(snapshot.seen)
        self._arrivals = NewestArrivals(snapshot.arrivals)
        self._closed_troubles: set[tuple[str, TroubleKind]] = set()
        """Troubles whose incident was closed because nothing more happened: they start no other one while they last."""
        self._tracked = sum(len(incident.members) for incident in snapshot.incidents)

    @property
    def incidents(self) -> Collection[Incident]:
        """The open incidents, the oldest first."""
        return self._open.values()

    def snapshot(self) -> IncidentsSnapshot:
        """Return the state that must survive the process."""
        return IncidentsSnapshot(
            incidents=list(self._open.values()), seen=list(self._seen), arrivals=list(self._arrivals)
        )

    def expired(self, row: ExpirationRow, *, now_ms: int) -> None:
        """Add an expiration; one whose id is known changes nothing."""
        if row.id in self._seen:
            return
        self._remember(row.id)
        incident = self._incident_for(row, now_ms)
        before = len(incident.members)
        incident.add(row, now_ms=now_ms, may_track=self._tracked < TRACKED_MAX)
        self._tracked += len(incident.members) - before
        for arrival in self._arrivals.of(row.group_id):
            # The other members were checked when the arrival was read.
            if incident.claim(arrival, now_ms=now_ms, only=row.member_id):
                self._arrivals.remove(arrival)
                break

    def explain_again(self, row: LoggedExpiration, *, now_ms: int) -> None:
        """Replace the cause of an expiration of an open incident; closed ones are not opened again."""
        incident = self._open.get(row.group_id)
        if incident is not None:
            incident.explain_again(row, now_ms=now_ms)

    def triggered(self, row: TriggerRow, *, now_ms: int) -> None:
        """Apply a row of the triggers topic: a member that joined may be one that was expired."""
        incident = self._open.get(row.group_id)
        for arrival in arrivals_of(row):
            if incident is None or not incident.claim(arrival, now_ms=now_ms):
                self._arrivals.add(arrival)

    def troubles(self) -> dict[str, list[GroupTrouble]]:
        """Return the troubles of groups in the open incidents."""
        return {name: one.troubles for name, one in self._open.items() if name is not None and one.troubles}

    def troubled(self, found: Mapping[str, Sequence[GroupTrouble]], *, now_ms: int) -> None:
        """Replace the troubles of all groups; a trouble of a group without an incident starts one.

        Args:
            found: all present troubles, by group.
        """
        self._closed_troubles &= {(name, each.kind) for name, troubles in found.items() for each in troubles}
        for name in found.keys() | self.troubles().keys():
            troubles = [each for each in found.get(name, ()) if (name, each.kind) not in self._closed_troubles]
            incident = self._open.get(name)
            if incident is None and troubles and self._has_room():
                # A trouble may come again under the same name, so the time is a part of the id.
                begun = incident_id(name, f"{troubles[0].kind}@{now_ms}")
                incident = self._open[name] = Incident(id=begun, group_id=name, opened_ms=now_ms, expired_ms=now_ms)
            if incident is not None:
                incident.note_troubles(troubles, now_ms=now_ms)

    def due(self, now_ms: int, *, busy: Collection[str] = ()) -> list[Incident]:
        """Return the incidents that a message is due for, the one that waits longest first.

        Args:
            busy: ids of incidents with a message that is not delivered yet; they wait, so that messages keep their
                order.
        """
        found = [one for one in self._open.values() if one.id not in busy and self.due_ms(one) <= now_ms]
        return sorted(found, key=self.due_ms)

    def due_ms(self, incident: Incident) -> int:
        """Return when the next message about an incident is due if nothing more happens, epoch ms."""
        rules = self._rules
        if not incident.sequence:
            return incident.opened_ms + rules.gather_ms
        news_ms = incident.expired_ms + rules.close_after_ms if incident.news_ms is None else incident.news_ms
        return max(news_ms, incident.reported_ms + rules.min_interval_ms)

    def report(self, incident: Incident, now_ms: int) -> tuple[IncidentStep, ClosedBy | None]:
        """Note that a message about an incident was made; if it closes the incident, remove it.

        Returns:
            The subject of the message, and why the incident is closed if it is.
        """
        closed_by = self._closed_by(incident, now_ms)
        incident.sequence += 1
        incident.reported_ms = now_ms
        incident.reported_expired = incident.expired
        incident.news_ms = None
        if closed_by is not None:
            if incident.group_id is not None:
                self._closed_troubles |= {(incident.group_id, each.kind) for each in incident.troubles}
            del self._open[incident.group_id]
            self._tracked -= len(incident.members)
            return IncidentStep.CLOSED, closed_by
        return (IncidentStep.OPENED if incident.sequence == 1 else IncidentStep.UPDATED), None

    def _incident_for(self, row: ExpirationRow, now_ms: int) -> Incident:
        group = row.group_id if row.group_id in self._open or self._has_room() else None
        if group not in self._open:
            self._open[group] = Incident(
                id=incident_id(group, row.id), group_id=group, opened_ms=now_ms, expired_ms=now_ms
            )
        return self._open[group]

    def _has_room(self) -> bool:
        return len(self._open) - (None in self._open) < self._rules.incidents_max

    def _remember(self, expiration_id: str) -> None:
        self._seen[expiration_id] = None
        if len(self._seen) > SEEN_MAX:
            self._seen.popitem(last=False)

    def _closed_by(self, incident: Incident, now_ms: int) -> ClosedBy | None:
        if not incident.missing and not incident.troubles:
            return ClosedBy.RETURNED if incident.expired else ClosedBy.CALM
        return ClosedBy.QUIET if now_ms >= incident.expired_ms + self._rules.close_after_ms else None
