"""Verdicts: the engine's decisions, and the ids that make a replay harmless; `verdict_rows` has their rows."""

from __future__ import annotations

import enum
import hashlib
from typing import Final

import msgspec


class Kind(enum.StrEnum):
    """The kinds of decision, in the vocabulary of the coordinator's own log."""

    MEMBER_EXPIRED = "member_expired"
    PENDING_MEMBER_EXPIRED = "pending_member_expired"
    MEMBER_REMOVED_AT_JOIN = "member_removed_at_join"
    SYNC_TIMEOUT = "sync_timeout"
    MEMBER_LEFT = "member_left"
    MEMBER_FAILED = "member_failed"
    """In presence groups: a worker failed, as its supervisor reported. Brokers log no such line."""
    PENDING_MEMBER_LEFT = "pending_member_left"
    STATIC_REPLACED = "static_replaced"
    REBALANCE_STARTED = "rebalance_started"
    REBALANCE_COMPLETED = "rebalance_completed"
    JOIN_EXTENDED = "join_extended"
    ASSIGNMENT_RECEIVED = "assignment_received"
    GROUP_EMPTY = "group_empty"
    MEMBER_JOINED = "member_joined"
    MEMBER_FENCED_REBALANCE_TIMEOUT = "member_fenced_rebalance_timeout"
    CLASSIC_MEMBER_JOIN_TIMEOUT = "classic_member_join_timeout"
    CLASSIC_MEMBER_SYNC_TIMEOUT = "classic_member_sync_timeout"
    STATIC_LEFT = "static_left"
    MEMBER_RETURNED = "member_returned"
    """In groups with member epochs: a member that had left is back under the same id, so it had not polled in time.
    Brokers log no such line."""
    EPOCH_BUMPED = "epoch_bumped"
    EPOCH_MOVED = "epoch_moved"
    """A share or streams group lost a member: its epoch is bumped as usual, but brokers log no such line."""
    TARGET_COMPUTED = "target_computed"
    GROUP_UPGRADED = "group_upgraded"
    GROUP_DOWNGRADED = "group_downgraded"


class ExpiryReason(enum.StrEnum):
    """The reasons for which a membership ended: a timer, or a failure."""

    SESSION_TIMEOUT = "session_timeout"
    REBALANCE_TIMEOUT = "rebalance_timeout"
    SYNC_TIMEOUT = "sync_timeout"
    PENDING_TIMEOUT = "pending_timeout"
    NEW_MEMBER_TIMEOUT = "new_member_timeout"
    REVOCATION_TIMEOUT = "revocation_timeout"
    """In groups with member epochs: the member did not give partitions back in time."""
    POLL_TIMEOUT = "poll_timeout"
    """The member itself left because it exceeded its poll interval: it said so, or came back under the same id."""
    WORKER_FAILED = "worker_failed"
    """In presence groups: its process crashed or was killed, or a check of it failed; `failure` says which."""
    NOT_A_MEMBER = "not_a_member"
    """Only from a consumer's own log: an answer, such as UNKNOWN_MEMBER_ID, showed that the coordinator refused a
    request. Only the broker's log shows which timer had removed the member."""
    NO_ANSWER = "no_answer"
    """Only from a consumer's own log: no heartbeat was answered for its session timeout. Only the broker's log shows
    whether it was removed."""


_OF_CLIENTS: Final = frozenset({ExpiryReason.NOT_A_MEMBER, ExpiryReason.NO_ANSWER})

ENGINE_REASONS: Final = tuple(reason for reason in ExpiryReason if reason not in _OF_CLIENTS)
"""The reasons that the engine gives."""


POLL_TIMEOUT_WORDS: Final = "poll timeout"
"""The text, in lower case, in a client's reason for leaving if it had not polled in time: since 3.2 (KIP-800) the Java
client says `consumer poll timeout has expired.`"""


class Cause(enum.StrEnum):
    """The causes of a rebalance or another change of a group, for machines; `reason` has Kafka's words for people."""

    MEMBER_JOINED = "member_joined"
    MEMBER_REJOINED = "member_rejoined"
    MEMBER_UPDATED = "member_updated"
    LEADER_REJOINED = "leader_rejoined"
    STATIC_MEMBER_UPDATED = "static_member_updated"
    MEMBER_EXPIRED = "member_expired"
    SYNC_EXPIRED = "sync_expired"
    MEMBER_LEFT = "member_left"
    OVER_CAPACITY = "over_capacity"
    ALL_JOINED = "all_joined"
    JOIN_TIMEOUT = "join_timeout"
    GENERATION_ADVANCED = "generation_advanced"
    NO_MEMBERS = "no_members"
    METADATA_CHANGED = "metadata_changed"
    PROTOCOL_CHANGED = "protocol_changed"


class Topic(enum.StrEnum):
    """The output topics of verdicts; the configuration maps them to the topics' real names."""

    EXPIRATIONS = "expirations"
    TRIGGERS = "triggers"


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One decision about one group.

    Args:
        kind: the kind of decision.
        group_id: the group.
        time_ms: when it becomes true: a timer's deadline, or the effective time of the event that caused it; epoch ms.
        generation_id: the group's generation at that moment (for a started rebalance the former one).
        reason: the text that Kafka's coordinator logs for it.
        cause: the same for machines.
        group_state: the group's state just before, as Kafka names it.
        group_kind: the kind of the group, as `GroupKind` names it.
        member_id: the member, for kinds that are about one.
        group_instance_id: its instance id, if static.
        client_id: shown to people.
        client_host: shown to people.
        expiry_reason: the reason of the expiry, for the kinds that expire a member.
        failure: how a worker failed, in the words of its supervisor.
        last_seen_ms: effective time of the last event that kept the member alive, epoch ms.
        session_timeout_ms: the length of the timer that ended, ms.
        renewed_ms: the end of the outage of Kafka that started that timer, epoch ms; `None` if the member started it.
        deadline_ms: end of the join window of a started rebalance, epoch ms.
        awaiting: members that have not re-joined yet.
        leader: the leader of a completed rebalance.
        member_count: members of the group just after.
        removed: members removed by a completed join phase.
        joined: members of a completed rebalance that were not in the generation before.
        duration_ms: how long the join phase took, ms.
        epoch: for a group with member epochs its new epoch, or the one that a member did not leave.
        member_epoch: for a member of such a group its own epoch; -2 while a static one is away.
        timeout_ms: the length of the timer that fenced a member of such a group, ms.
        new_member_id: the id under which a static member of such a group came back.
        loads: number of loads of the group in that millisecond.
    """

    kind: Kind
    group_id: str
    time_ms: int
    generation_id: int
    reason: str
    cause: Cause | None = None
    group_state: str = ""
    group_kind: str = ""
    member_id: str | None = None
    group_instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    expiry_reason: ExpiryReason | None = None
    failure: str | None = None
    last_seen_ms: int | None = None
    session_timeout_ms: int | None = None
    renewed_ms: int | None = None
    deadline_ms: int | None = None
    awaiting: tuple[str, ...] = ()
    leader: str | None = None
    member_count: int = 0
    removed: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    duration_ms: int | None = None
    epoch: int | None = None
    member_epoch: int | None = None
    timeout_ms: int | None = None
    new_member_id: str | None = None
    loads: int = 0


EPOCH_KINDS: Final = frozenset({"consumer", "share", "streams"})
"""The kinds of group with member epochs; their `generation_id` is the group's epoch."""

PRESENCE: Final = "presence"
"""The kind of group whose members only send heartbeats: `GroupKind.PRESENCE`, which the engine defines."""

TRIGGER_TYPES: Final = {
    Kind.REBALANCE_STARTED: "rebalance_triggered",
    Kind.REBALANCE_COMPLETED: "rebalance_completed",
    Kind.GROUP_EMPTY: "group_empty",
    Kind.EPOCH_BUMPED: "epoch_bumped",
    Kind.EPOCH_MOVED: "epoch_bumped",
    Kind.GROUP_UPGRADED: "group_upgraded",
    Kind.GROUP_DOWNGRADED: "group_downgraded",
}
"""The type of a row of the triggers topic, by the kind of verdict."""


_encode_parts = msgspec.json.Encoder().encode


def topic_of(verdict: Verdict) -> Topic | None:
    """Return the topic that a verdict is written to; `None` for kinds that only a replay shows."""
    if verdict.expiry_reason is not None:
        return Topic.EXPIRATIONS
    if verdict.kind in TRIGGER_TYPES:
        return Topic.TRIGGERS
    return None


def verdict_id(verdict: Verdict) -> str:
    """Return the 128-bit id of a verdict, which depends on its content, never on when or where it was computed.

    So a batch that is replayed after a crash writes the same ids, and consumers can drop them (promise P3).
    """
    parts: tuple[str | int, ...] = (
        verdict.group_id,
        verdict.member_id or "",
        verdict.generation_id,
        verdict.kind,
        # Two rebalances may start in one millisecond and generation: a loaded group's member leaves, another joins.
        verdict.expiry_reason or verdict.cause or "",
        verdict.time_ms,
    )
    if verdict.loads and verdict.expiry_reason is None:
        # A load resets the group, and while append times stand still the same may happen again afterwards.
        parts = (*parts, verdict.loads)
    if verdict.group_kind in EPOCH_KINDS and verdict.expiry_reason is None and len(verdict.joined) == 1:
        # While append times stand still a group may end, begin again as another kind, and reach an epoch twice.
        parts = (*parts, *verdict.joined)
    if verdict.kind is Kind.MEMBER_RETURNED:
        # While append times stand still a static member may return, leave temporarily, and return within one epoch.
        parts = (*parts, verdict.last_seen_ms or 0)
    # JSON keeps the boundaries of the parts apart: ("a", "bc") and ("ab", "c") must not collide.
    return hashlib.blake2b(_encode_parts(parts), digest_size=16).hexdigest()
