"""Whether an expired member has come back: the only place with that rule.

A dynamic or static member comes back under a new id, `<client id or instance id>-<uuid>`; a worker that only sends
heartbeats comes back under the same one. Completed rebalances name the new members of their generation, new epochs the
members that have come.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow
from heartwheel.wire.verdicts import EPOCH_KINDS, ExpiryReason

_UUID_CHARS: Final = 36
_ENDS_WITH_UUID: Final = re.compile(r"(?<=.)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A member that is new in a group: which group, its id there, and when, epoch ms."""

    group_id: str
    member_id: str
    time_ms: int


def arrivals_of(row: TriggerRow) -> list[Arrival]:
    """Return the members that arrived with a row of the triggers topic.

    The engine names them when a rebalance is completed; a broker's log, when they begin one.
    """
    return [Arrival(group_id=row.group_id, member_id=member_id, time_ms=row.time_ms) for member_id in row.joined]


def can_be_recognised(expiration: ExpirationRow) -> bool:
    """Return whether the return of a restarted client would be recognised.

    In groups with member epochs, clients choose a new random id at each start; only a static member, or one that was
    paused and keeps its id, is recognised.
    """
    return expiration.group_instance_id is not None or expiration.group_kind not in EPOCH_KINDS


def _name_of(expiration: ExpirationRow) -> str | None:
    """Return the common prefix of all ids that a member has had; `None` if that is not known.

    For a member that joined before the source was read, the client's id is not known, but its own id begins with it.
    """
    named = expiration.group_instance_id or expiration.client_id
    if named or not _ENDS_WITH_UUID.search(expiration.member_id):
        return named
    return expiration.member_id[: -_UUID_CHARS - 1]


def names_gone(expiration: ExpirationRow) -> tuple[str, ...]:
    """Return the names under which an expired member can come back: each later arrival with one of them is a return."""
    group_id, named = expiration.group_id, _name_of(expiration)
    same = f"{group_id}\n={expiration.member_id}"
    return (same, f"{group_id}\n~{named}-") if named else (same,)


def names_come(arrival: Arrival) -> tuple[str, ...]:
    """Return the names under which an arrival may be expected; see `names_gone`."""
    group_id, member_id = arrival.group_id, arrival.member_id
    return f"{group_id}\n={member_id}", f"{group_id}\n~{member_id[:-_UUID_CHARS]}"


def back_from_ms(expiration: ExpirationRow) -> int:
    """Return since when an arrival is a return, epoch ms.

    A worker that fails before its first beat arrives in the same moment, and that is not a return.
    """
    return expiration.deadline_ms + (expiration.reason == ExpiryReason.WORKER_FAILED)


def is_return(expiration: ExpirationRow, arrival: Arrival) -> bool:
    """Return whether an arrival is the expired member: in its group, not before the deadline, and by its id."""
    if arrival.group_id != expiration.group_id or arrival.time_ms < back_from_ms(expiration):
        return False
    if arrival.member_id == expiration.member_id:
        return True
    named = _name_of(expiration)
    return bool(named) and arrival.member_id[:-_UUID_CHARS] == f"{named}-"
