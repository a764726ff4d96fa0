"""Why was this member expired: the row in plain words, with the setting that governs it and what to look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from heartwheel.live.words import length, setting
from heartwheel.wire.verdicts import ExpirationRow, ExpiryReason


def why(row: ExpirationRow) -> list[str]:
    """Explain an expiration by what its row says, in sentences.

    Args:
        row: of the expirations topic.

    Returns:
        What happened; by which rule; what is likely, and what to do about it.
    """
    tell = _TELL.get(row.reason)
    if tell is None:
        return [f"The engine gave the reason {row.reason}, which this release does not know."]
    return [*tell(row), _known(row)]


def _known(row: ExpirationRow) -> str:
    return f"Its time was over at the deadline; the engine decided {length(row.lateness_ms)} after that."


def _session(row: ExpirationRow) -> list[str]:
    silent_ms = row.detected_ms - row.last_seen_ms
    return [
        (
            f"No heartbeat of it reached the broker for {length(silent_ms)}; its session timeout is "
            f"{setting(row.session_timeout_ms)} (session.timeout.ms)."
        ),
        "Its process ended, hung (a long garbage collection, a suspended machine), or lost the network to the broker.",
        "If it was alive: raise session.timeout.ms, or lower heartbeat.interval.ms to a third of it or less.",
    ]


def _rebalance(row: ExpirationRow) -> list[str]:
    return [
        (
            f"Its group rebalanced, and it did not join again within {setting(row.session_timeout_ms)}, the longest "
            "that any member of the group may take (max.poll.interval.ms of a consumer, rebalance.timeout.ms of a "
            "Connect worker)."
        ),
        "It heartbeats from another thread, so it may be alive: what it does between two polls took too long.",
        (
            "Look at what it works on for one batch of records: make that faster, lower max.poll.records, or raise "
            "max.poll.interval.ms."
        ),
    ]


def _sync(row: ExpirationRow) -> list[str]:
    return [
        (
            f"It joined generation {row.generation_id}, but did not ask for its assignment (SyncGroup) within "
            f"{setting(row.session_timeout_ms)}, the rebalance timeout of its group (max.poll.interval.ms)."
        ),
        "It ended or hung between the two steps of a rebalance, or gave up as the leader's assignment took too long.",
        "Look at its log around that time, and at the group's leader if several members were expired at once.",
    ]


def _pending(row: ExpirationRow) -> list[str]:
    return [
        (
            f"It was handed a member id and did not come back with it within {setting(row.session_timeout_ms)}, its "
            "session timeout (session.timeout.ms)."
        ),
        (
            "A client asks to join, gets an id, and joins again with that id at once. One that ends or loses its "
            "connection in between leaves such a pending member behind; it held no partitions."
        ),
        "Often a client that restarts in a loop: look for others of the same host that come and go.",
    ]


def _new_member(row: ExpirationRow) -> list[str]:
    return [
        (
            f"It was new in its group and hung in the join phase for {setting(row.session_timeout_ms)}, the longest "
            "that a new member may wait there."
        ),
        "Its client gave up or ended while the others of the group had not joined again; it held no partitions.",
        "Look for who held up the rebalance at that time: a high max.poll.interval.ms lets one slow member do so.",
    ]


_TELL: Final[Mapping[str, Callable[[ExpirationRow], list[str]]]] = {
    ExpiryReason.SESSION_TIMEOUT: _session,
    ExpiryReason.REBALANCE_TIMEOUT: _rebalance,
    ExpiryReason.SYNC_TIMEOUT: _sync,
    ExpiryReason.PENDING_TIMEOUT: _pending,
    ExpiryReason.NEW_MEMBER_TIMEOUT: _new_member,
}
