"""Why a member was expired: the row in plain words, with the setting that governs it and what to look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from heartwheel.base.phrases import length, setting
from heartwheel.base.plain import plain
from heartwheel.readers.live.expiration import last_alive_ms
from heartwheel.wire.events import JOB, JOB_RUN
from heartwheel.wire.group_heartbeats import LEAVE_STATIC_EPOCH
from heartwheel.wire.verdict_rows import ExpirationRow
from heartwheel.wire.verdicts import EPOCH_KINDS, PRESENCE, ExpiryReason


def why(row: ExpirationRow) -> list[str]:
    """Explain an expiration by its row, in sentences.

    Returns:
        What happened; by which rule; the likely cause, and what to do about it.
    """
    explanation: tuple[str, ...] = getattr(row, "explanation", ())
    if explanation:
        return list(explanation)
    tell = _TELL.get(row.reason)
    if tell is None:
        return [f"The engine gave the reason {row.reason}, which this release does not know."]
    if row.reason == ExpiryReason.WORKER_FAILED:
        return [*tell(row), f"The engine knew it {length(row.lateness_ms)} after that."]
    return [*tell(row), *_renewed(row), _known(row)]


def advice(reason: str, group_type: str = "classic") -> list[str]:
    """Return the likely cause of an expiration, and what to do about it.

    Args:
        reason: which timer it was, as `ExpiryReason` names it.
        group_type: classic; consumer, share or streams, whose session timeout is the broker's; or presence, whose
            members name it in each heartbeat.

    Returns:
        Two sentences or none: the likely cause, and which setting to change.
    """
    if reason == ExpiryReason.SESSION_TIMEOUT and group_type == PRESENCE:
        return [_ADVICE[reason][0], _WORKER_SESSION]
    if reason == ExpiryReason.SESSION_TIMEOUT and group_type not in {"classic", ""}:
        return [_ADVICE[reason][0], _GROUP_SESSION.format(group_type=group_type)]
    return list(_ADVICE.get(reason, ()))


def _renewed(row: ExpirationRow) -> list[str]:
    if row.renewed_ms is None:
        return []
    later_ms = row.renewed_ms - row.last_seen_ms
    restarted = f"its session started again when that was over, {length(later_ms)} after its last heartbeat"
    return [f"Kafka could not be written to during that time: {restarted}."]


def _known(row: ExpirationRow) -> str:
    return f"Its time was over at the deadline; the engine decided {length(row.lateness_ms)} after that."


def _session(row: ExpirationRow) -> list[str]:
    silent_ms = row.detected_ms - row.last_seen_ms
    if row.group_kind in EPOCH_KINDS:
        return [*_epoch_session(row, silent_ms), *advice(ExpiryReason.SESSION_TIMEOUT, row.group_kind or "")]
    silent = f"No heartbeat of it reached the broker for {length(silent_ms)}; its session timeout is"
    if row.group_kind == PRESENCE and row.client_id in _OF_JOBS:
        expected, *advised = _OF_JOBS[row.client_id]
        return [expected.format(silent=length(silent_ms), within=setting(row.session_timeout_ms)), *advised]
    if row.group_kind == PRESENCE:
        return [
            (
                f"{silent} {setting(row.session_timeout_ms)} (named in its heartbeats, or "
                "coordinator.default_session_timeout)."
            ),
            *advice(ExpiryReason.SESSION_TIMEOUT, PRESENCE),
        ]
    return [
        f"{silent} {setting(row.session_timeout_ms)} (session.timeout.ms).",
        *advice(ExpiryReason.SESSION_TIMEOUT),
    ]


def _epoch_session(row: ExpirationRow, silent_ms: int) -> list[str]:
    kind = row.group_kind
    if row.member_epoch == LEAVE_STATIC_EPOCH:
        away = "It is a static member that had left for a while (epoch -2) and was not back within the session timeout"
        return [f"{away} after its last heartbeat, {setting(row.session_timeout_ms)}."]
    silent = f"No heartbeat of it reached the broker for {length(silent_ms)}; its session timeout is"
    whose = f"for {kind} groups (group.{kind}.session.timeout.ms) or for this group alone ({kind}.session.timeout.ms)"
    return [f"{silent} {setting(row.session_timeout_ms)}, which the broker sets {whose}."]


def _rebalance(row: ExpirationRow) -> list[str]:
    return [
        (
            f"Its group rebalanced, and it did not join again within {setting(row.session_timeout_ms)}, the longest "
            "that any member of the group may take (max.poll.interval.ms of a consumer, rebalance.timeout.ms of a "
            "Connect worker)."
        ),
        *advice(ExpiryReason.REBALANCE_TIMEOUT),
    ]


def _sync(row: ExpirationRow) -> list[str]:
    return [
        (
            f"It joined generation {row.generation_id}, but did not ask for its assignment (SyncGroup) within "
            f"{setting(row.session_timeout_ms)}, the rebalance timeout of its group (max.poll.interval.ms)."
        ),
        *advice(ExpiryReason.SYNC_TIMEOUT),
    ]


def _pending(row: ExpirationRow) -> list[str]:
    return [
        (
            f"It was handed a member id and did not come back with it within {setting(row.session_timeout_ms)}, its "
            "session timeout (session.timeout.ms)."
        ),
        *advice(ExpiryReason.PENDING_TIMEOUT),
    ]


def _new_member(row: ExpirationRow) -> list[str]:
    return [
        (
            f"It was new in its group and hung in the join phase for {setting(row.session_timeout_ms)}, the longest "
            "that a new member may wait there."
        ),
        *advice(ExpiryReason.NEW_MEMBER_TIMEOUT),
    ]


def _poll(row: ExpirationRow) -> list[str]:
    if row.out_ms != row.deadline_ms:
        limit = f" ({setting(row.session_timeout_ms)} of this one)" if row.session_timeout_ms else ""
        return [
            (
                f"It left the group, and came back {setting(row.deadline_ms - row.out_ms)} later under the same id. A "
                "consumer that is closed never does that: most likely it had not polled within its "
                f"max.poll.interval.ms{limit}. One that unsubscribes and subscribes again looks alike."
            ),
            *advice(ExpiryReason.POLL_TIMEOUT),
        ]
    return [
        (
            f"It took itself out of the group: it had not polled for {setting(row.session_timeout_ms)}, its "
            "max.poll.interval.ms, and said so when it left."
        ),
        *advice(ExpiryReason.POLL_TIMEOUT),
    ]


def _revocation(row: ExpirationRow) -> list[str]:
    return [
        f"Its partitions were to go to others, and it did not give them up within {setting(row.session_timeout_ms)}.",
        *advice(ExpiryReason.REVOCATION_TIMEOUT),
    ]


def _failed(row: ExpirationRow) -> list[str]:
    how = f"It failed: {plain(row.failure).rstrip('.')}." if row.failure else "It failed; no reason given."
    return [f"{how} {_heard(row)}", *_failure_advice(row.failure or "")]


def _failure_advice(failure: str) -> list[str]:
    if "SIGKILL" in failure:
        return ["If no operator sent SIGKILL, it was often the kernel, because memory ran out.", _FAILED_LOG]
    if failure.startswith("exit code"):
        return [_FAILED_LOG, "If its exit code means that all is well: heartwheel beat --ok-exit CODE."]
    return [_FAILED_LOG]


def _heard(row: ExpirationRow) -> str:
    last_ms = last_alive_ms(row)
    if last_ms is None:
        return "It had sent no heartbeat before that."
    return f"That was said {length(row.deadline_ms - last_ms)} after its last heartbeat."


_FAILED_LOG: Final = "Look at its own log of that time."
_ALIVE_BUT_SLOW: Final = (
    "It heartbeats from another thread, so it may be alive: what it does between two polls took too long."
)
_FASTER: Final = (
    "Make its work on one batch of records faster, lower max.poll.records so that a batch is smaller, or raise "
    "max.poll.interval.ms."
)
_GROUP_SESSION: Final = (
    "If its process was alive: raise the session timeout of the group, {group_type}.session.timeout.ms, which the "
    "broker keeps for groups of this type (kafka-configs.sh --entity-type groups)."
)
_OF_JOBS: Final[Mapping[str | None, tuple[str, str, str]]] = {
    JOB: (
        "Its next success was expected within {within}, period and grace together; the last one was {silent} before.",
        "It did not run, took longer than its grace, or could not reach the gateway or Kafka.",
        "Look at what starts it (cron, a timer of systemd, a CronJob), and at its log.",
    ),
    JOB_RUN: (
        "A run of this job sent nothing for {silent}; within {within} it must end, or report that it continues.",
        "The run hung, was killed together with what watches it, or took longer than its limit.",
        "Look at its log. If it may take longer: limit= of the gateway's /start, or --limit of heartwheel beat.",
    ),
}
_WORKER_SESSION: Final = (
    "If it was alive: let it beat more often, or name a longer session, by ?session=30s of the gateway's address, "
    "--session of heartwheel beat, or session_timeout_ms of a record."
)
_ADVICE: Final[Mapping[str, tuple[str, str]]] = {
    ExpiryReason.SESSION_TIMEOUT: (
        "Its process ended, hung (a long garbage collection, a suspended machine), or lost the network to the broker.",
        (
            "If its process was alive: raise session.timeout.ms, or lower heartbeat.interval.ms to a third of it or "
            "less. If not: look at why it ended."
        ),
    ),
    ExpiryReason.REBALANCE_TIMEOUT: (_ALIVE_BUT_SLOW, _FASTER),
    ExpiryReason.SYNC_TIMEOUT: (
        "It ended or hung between the two steps of a rebalance, or gave up as the leader's assignment took too long.",
        "Look at its log around that time, and at the group's leader if several members were expired at once.",
    ),
    ExpiryReason.PENDING_TIMEOUT: (
        (
            "A client asks to join, gets an id, and joins again with that id at once. One that ends or loses its "
            "connection in between leaves such a pending member behind; it held no partitions."
        ),
        "Often a client that restarts in a loop: look for others of the same host that come and go.",
    ),
    ExpiryReason.NEW_MEMBER_TIMEOUT: (
        "Its client gave up or ended while the others of the group had not joined again; it held no partitions.",
        "Look for who held up the rebalance at that time: a high max.poll.interval.ms lets one slow member do so.",
    ),
    ExpiryReason.POLL_TIMEOUT: (
        "Its process was alive: what it did between two polls took longer than it may.",
        _FASTER,
    ),
    ExpiryReason.REVOCATION_TIMEOUT: (
        (
            "It was to give up partitions and did not say within its rebalance timeout that it had: what it "
            "does between "
            "two polls, or in its rebalance listener, took too long."
        ),
        (
            "Make its work between two polls and in its rebalance listener faster, lower max.poll.records, or raise "
            "max.poll.interval.ms."
        ),
    ),
}


_TELL: Final[Mapping[str, Callable[[ExpirationRow], list[str]]]] = {
    ExpiryReason.SESSION_TIMEOUT: _session,
    ExpiryReason.REBALANCE_TIMEOUT: _rebalance,
    ExpiryReason.SYNC_TIMEOUT: _sync,
    ExpiryReason.PENDING_TIMEOUT: _pending,
    ExpiryReason.NEW_MEMBER_TIMEOUT: _new_member,
    ExpiryReason.POLL_TIMEOUT: _poll,
    ExpiryReason.REVOCATION_TIMEOUT: _revocation,
    ExpiryReason.WORKER_FAILED: _failed,
}
