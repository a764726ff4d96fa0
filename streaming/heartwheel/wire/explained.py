"""Explained events: what happened in a group, by which rule, and the line of the log that shows it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

from heartwheel.wire.verdicts import ExpiryReason


class Happened(enum.StrEnum):
    """The kinds of explained events.

    In the kinds of `KICKS` a coordinator removes a member.
    """

    EXPIRED = "expired"
    PENDING_EXPIRED = "pending_expired"
    REMOVED_AT_REBALANCE = "removed_at_rebalance"
    SYNC_TIMEOUT = "sync_timeout"
    REVOCATION_TIMEOUT = "revocation_timeout"
    POLL_TIMEOUT = "poll_timeout"
    REMOVED = "removed"
    """A consumer's own log says that the coordinator did not know it any more, but not why."""
    NO_ANSWER = "no_answer"
    """A consumer's own log says that no heartbeat was answered for its session timeout: it was likely removed."""
    LEFT = "left"
    TEMPORARILY_LEFT = "temporarily_left"
    REPLACED = "replaced"
    REBALANCE = "rebalance"
    REBALANCING = "rebalancing"
    """A rebalance that still runs at the end of the log; its time is the end of the log."""
    GROUP_EMPTY = "group_empty"
    COORDINATOR_MOVED = "coordinator_moved"
    STORM = "storm"
    BROKER_STARTED = "broker_started"
    BROKER_STOPPED = "broker_stopped"


KICKS: Final = frozenset(
    {
        Happened.EXPIRED,
        Happened.REMOVED_AT_REBALANCE,
        Happened.SYNC_TIMEOUT,
        Happened.REVOCATION_TIMEOUT,
        Happened.REMOVED,
    }
)
"""Kinds in which the coordinator removed a member."""

REASON_OF: Final[Mapping[Happened, ExpiryReason]] = {
    Happened.EXPIRED: ExpiryReason.SESSION_TIMEOUT,
    Happened.REMOVED_AT_REBALANCE: ExpiryReason.REBALANCE_TIMEOUT,
    Happened.SYNC_TIMEOUT: ExpiryReason.SYNC_TIMEOUT,
    Happened.PENDING_EXPIRED: ExpiryReason.PENDING_TIMEOUT,
    Happened.REVOCATION_TIMEOUT: ExpiryReason.REVOCATION_TIMEOUT,
    Happened.POLL_TIMEOUT: ExpiryReason.POLL_TIMEOUT,
    Happened.REMOVED: ExpiryReason.NOT_A_MEMBER,
    Happened.NO_ANSWER: ExpiryReason.NO_ANSWER,
}
"""Kinds in which a timeout ended a membership, for certain or as far as a consumer's own log shows, and the reason."""

BROKERS: Final = frozenset({Happened.BROKER_STARTED, Happened.BROKER_STOPPED})
"""Kinds that are about a broker instead of a group."""


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """The place in a log that shows an event.

    Args:
        file: the file's name as given on the command line.
        line: number of the line, from 1; of JSON the line it begins at.
    """

    file: str
    line: int


class ExplainedCause(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What may have caused a removal, from a file beside the brokers' logs.

    Args:
        kind: what happened: oom_killed, evicted, terminated, node_down, stopped, unhealthy, paused or deployed.
        time_ms: when, epoch ms; for a pause its end.
        certainty: `certain` if it happened to the pod or the machine of the member, `possible` if only the time agrees.
        words: a sentence for people, with its evidence.
        evidence: the line, or the item of a list of JSON, that shows it.
    """

    kind: str
    time_ms: int
    certainty: str
    words: str
    evidence: Evidence


class ExplainedEvent(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """One thing that happened in a group, as a broker's log shows it.

    Args:
        kind: what happened.
        group_id: the group; empty for a broker, and if the log does not name it (a static member replaced in Kafka
            2.4).
        group_type: classic, consumer, share or streams; empty if unknown.
        member_id: the member that is out; for `replaced` the former one.
        client_id: its client id, if the log names it or the member id begins with it.
        client_host: its host, if the log names it.
        group_instance_id: instance id of a static member, if the log names it.
        new_member_id: for `replaced` the member that took over, if the log names it.
        time_ms: when it happened, for a rebalance when it was done; epoch ms.
        time_error_ms: 1000 if the log has times by the second only; else 0.
        zone_assumed: whether the log names no time zone and none was given, so that times are read as UTC.
        reason: the timer or the cause, for machines.
        reason_text: the broker's or the client's own words.
        certainty: `certain` if the log says it, `likely` if it follows from what the member did next.
        generation_id: for a classic group the generation that the member was removed from, or that the rebalance made.
        epoch: the same for a group of a newer type.
        started_ms: when a rebalance or a storm began, epoch ms.
        duration_ms: how long a rebalance, a storm or a move took, ms; absent if the log does not show it.
        blocked_by: members that a rebalance waited for until they were out.
        caused_by: members whose requests or timeouts began a rebalance or a storm.
        member_count: members of the group after a rebalance, or rebalances of a storm.
        session_timeout_ms: the session timeout, if the log names it, ms.
        rebalance_timeout_ms: the rebalance timeout, if the log names it, ms: `max.poll.interval.ms` of a consumer.
        rebalance_generation: the group's generation or epoch after the event.
        rebalance_ms: how long the rebalance took that followed, ms.
        returned_ms: when the member was back in its group, epoch ms.
        returned_as: its member id then.
        late_ms: for a poll timeout by how much the poll was too late, ms, if a consumer's log says it.
        times_out: how often this member, by the name that it keeps, was out by a timeout so far, this time included.
        broker_id: the coordinator that wrote it.
        moved_from: for a move the broker that had the group before.
        explanation: sentences for people; those of the causes among them.
        causes: what happened to the member's pod or machine, or at the same time; the most telling first.
        advice: the last of them that says what to change or where to look; empty if none does.
        evidence: the place in the log.
    """

    kind: Happened
    group_id: str
    group_type: str = ""
    member_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    group_instance_id: str | None = None
    new_member_id: str | None = None
    time_ms: int
    time_error_ms: int = 0
    zone_assumed: bool = False
    reason: str
    reason_text: str = ""
    certainty: str = "certain"
    generation_id: int | None = None
    epoch: int | None = None
    started_ms: int | None = None
    duration_ms: int | None = None
    blocked_by: tuple[str, ...] = ()
    caused_by: tuple[str, ...] = ()
    member_count: int | None = None
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    rebalance_generation: int | None = None
    rebalance_ms: int | None = None
    returned_ms: int | None = None
    returned_as: str | None = None
    late_ms: int | None = None
    times_out: int | None = None
    broker_id: int | None = None
    moved_from: int | None = None
    explanation: tuple[str, ...] = ()
    causes: tuple[ExplainedCause, ...] = ()
    advice: str = ""
    evidence: Evidence
