"""Which timeout would have been enough for a member that came back, as far as the log shows it."""

from __future__ import annotations

from typing import Final

from heartwheel.wire.explained import ExplainedEvent, Happened

SESSION: Final = {
    "classic": "session.timeout.ms",
    "": "session.timeout.ms",
    "consumer": "group.consumer.session.timeout.ms",
    "share": "group.share.session.timeout.ms",
    "streams": "group.streams.session.timeout.ms",
}
"""The session timeout's name by the group's type."""

POLL: Final = "max.poll.interval.ms"

POLLS: Final = frozenset({Happened.POLL_TIMEOUT, Happened.REMOVED_AT_REBALANCE, Happened.REVOCATION_TIMEOUT})
"""Removals of members that did not poll in time."""


def timeout_name(kind: Happened, group_type: str) -> str | None:
    """Return the setting that governs a removal; `None` if no timeout alone would have prevented it."""
    return SESSION[group_type] if kind is Happened.EXPIRED else POLL if kind in POLLS else None


def later_ms(event: ExplainedEvent) -> int:
    """Return by how much a member that came back was too late, ms; 0 if it did not come back."""
    return event.late_ms or max(0, (event.returned_ms or 0) - event.time_ms)


def needed_ms(event: ExplainedEvent) -> int | None:
    """Return the timeout that would have kept a member that came back, ms; `None` if the log does not name its own."""
    limit_ms = event.session_timeout_ms if event.kind is Happened.EXPIRED else event.rebalance_timeout_ms
    return None if event.returned_ms is None or limit_ms is None else limit_ms + later_ms(event)
