"""An expiration as it is shown: the topic's row, and later facts such as the member's return."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow
from heartwheel.wire.verdicts import ExpiryReason

_LOGGED_ID: Final = re.compile(r"([0-9a-f]{1,13})-[0-9a-f]{32}")


class Expiration(ExpirationRow, kw_only=True):
    """An expiration as the picture keeps and shows it: all fields of the topic's row, and these.

    A broker's log contains when a member was out, which becomes `deadline_ms`, and little else: fields that are not in
    the log are `None`.

    Args:
        last_seen_ms: when it last kept its session alive, epoch ms; `None` for a worker that failed before its first
            heartbeat.
        session_timeout_ms: the length of the timer that ran out, ms.
        lateness_ms: how long after the deadline the engine decided, ms.
        seq: rises by arrival; the newest has the highest.
        append_ms: when it was appended to Kafka, epoch ms.
        known_late_ms: how long after the deadline that was, ms.
        silent_ms: how long the member had been silent when the engine decided, ms; `None` for a worker that failed: its
            failure was reported, not found by its silence.
        returned_ms: when the member was back in its group, epoch ms; `None` until it is.
        partition: its partition in the topic.
        offset: its offset there.
        explanation: sentences of the log's explanation, in place of those of `heartwheel.readers.live.why`.
        evidence: file and line of the broker's log that shows it; `None` if the engine has decided it.
        advice: the setting to change or the place to look at, in a sentence; empty if `explanation` is.
        cause: what happened to the member's pod or machine, or at the same time, in a sentence; empty if unknown.
    """

    last_seen_ms: int | None  # type: ignore[assignment] # the engine knows it, a broker's log may not
    session_timeout_ms: int | None  # type: ignore[assignment] # likewise
    lateness_ms: int | None  # type: ignore[assignment] # likewise
    seq: int
    append_ms: int
    known_late_ms: int | None
    silent_ms: int | None
    returned_ms: int | None = None
    partition: int
    offset: int
    explanation: tuple[str, ...] = ()
    evidence: str | None = None
    advice: str = ""
    cause: str = ""


class LoggedExpiration(ExpirationRow, kw_only=True):
    """An expiration from a broker's log; `shard` is `FROM_A_LOG`. `Expiration` describes the fields."""

    last_seen_ms: int | None  # type: ignore[assignment] # a broker's log may not have it
    session_timeout_ms: int | None  # type: ignore[assignment] # likewise
    lateness_ms: int | None  # type: ignore[assignment] # likewise
    returned_ms: int | None = None
    explanation: tuple[str, ...] = ()
    evidence: str | None = None
    advice: str = ""
    cause: str = ""


class LoggedTrigger(TriggerRow, kw_only=True):
    """A row of the triggers topic made from a broker's log: `member_count` is `None` where the log does not have it."""

    member_count: int | None  # type: ignore[assignment] # a broker's log may not have it


def logged_id(time_ms: int, digest: str) -> str:
    """Return the id of an expiration from a broker's log: it says when that was, so that a history finds it."""
    return f"{max(0, time_ms):x}-{digest}"


def logged_ms(id_: str) -> int | None:
    """Return when an expiration from a broker's log was, by its id, epoch ms; `None` if it is no such id."""
    found = _LOGGED_ID.fullmatch(id_)
    return None if found is None else int(found[1], 16)


FROM_A_LOG: Final = -1
"""The `shard` of a row from a broker's log, which no engine has decided."""


def expiration_of(row: ExpirationRow, *, seq: int, append_ms: int, partition: int, offset: int) -> Expiration:
    """Return a row as the picture keeps it."""
    not_silence = row.shard == FROM_A_LOG or row.reason == ExpiryReason.WORKER_FAILED
    return Expiration(
        **msgspec.structs.asdict(row) | {"last_seen_ms": last_alive_ms(row)},
        seq=seq,
        append_ms=append_ms,
        known_late_ms=None if row.shard == FROM_A_LOG else append_ms - row.deadline_ms,
        silent_ms=None if not_silence else row.detected_ms - row.last_seen_ms,
        partition=partition,
        offset=offset,
    )


def last_alive_ms(row: ExpirationRow) -> int | None:
    """Return when a member last kept its session alive, epoch ms; `None` for a worker that failed before any beat.

    Such a worker arrives and fails in one moment, so its row has that moment twice.
    """
    never = row.reason == ExpiryReason.WORKER_FAILED and row.last_seen_ms == row.deadline_ms
    return None if never else row.last_seen_ms


def is_same_member(one: ExpirationRow, other: ExpirationRow) -> bool:
    """Return whether two expirations are about the same worker, as far as its ids show.

    A dynamic member has a new member id after every return, so its client's id and host together identify it.

    Args:
        other: another one.
    """
    if one.group_id != other.group_id:
        return False
    if one.member_id == other.member_id:
        return True
    if one.group_instance_id or other.group_instance_id:
        return one.group_instance_id == other.group_instance_id
    return bool(one.client_id and one.client_host) and (one.client_id, one.client_host) == (
        other.client_id,
        other.client_host,
    )
