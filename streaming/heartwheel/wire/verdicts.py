"""Verdicts out: what the engine decided, which topic it goes to, and the id that makes a replay harmless."""

from __future__ import annotations

import enum
import hashlib
import itertools
from typing import Final

import msgspec


class Kind(enum.StrEnum):
    """What was decided, in the vocabulary of the coordinator's own log."""

    MEMBER_EXPIRED = "member_expired"
    PENDING_MEMBER_EXPIRED = "pending_member_expired"
    MEMBER_REMOVED_AT_JOIN = "member_removed_at_join"
    SYNC_TIMEOUT = "sync_timeout"
    MEMBER_LEFT = "member_left"
    MEMBER_FAILED = "member_failed"
    """Of presence groups: a worker failed, and whoever watches it said so. No line of a broker says that."""
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
    """Of groups that go by member epochs: a member that had left is back under the same id, so it had not polled in
    time. No line of a broker says so."""
    EPOCH_BUMPED = "epoch_bumped"
    EPOCH_MOVED = "epoch_moved"
    """A share or streams group lost a member: its epoch moves on as ever, but no line of a broker says so."""
    TARGET_COMPUTED = "target_computed"
    GROUP_UPGRADED = "group_upgraded"
    GROUP_DOWNGRADED = "group_downgraded"


class ExpiryReason(enum.StrEnum):
    """What ended a member: a timer, or its own failure."""

    SESSION_TIMEOUT = "session_timeout"
    REBALANCE_TIMEOUT = "rebalance_timeout"
    SYNC_TIMEOUT = "sync_timeout"
    PENDING_TIMEOUT = "pending_timeout"
    NEW_MEMBER_TIMEOUT = "new_member_timeout"
    REVOCATION_TIMEOUT = "revocation_timeout"
    """Of groups that go by member epochs: partitions were not given back in time."""
    POLL_TIMEOUT = "poll_timeout"
    """The member itself left, as it was over its poll interval: it said so, or came back under the same id."""
    WORKER_FAILED = "worker_failed"
    """Of presence groups: its process crashed or was killed, or a check of it failed; `failure` has which."""
    NOT_A_MEMBER = "not_a_member"
    """Only of a consumer's own log: the answer to a request said that the coordinator did not accept it, such as
    UNKNOWN_MEMBER_ID. Which timer had removed it is in the broker's log alone."""
    NO_ANSWER = "no_answer"
    """Only of a consumer's own log: no heartbeat of it was answered for its session timeout. Whether it was removed is
    in the broker's log alone."""


_OF_CLIENTS: Final = frozenset({ExpiryReason.NOT_A_MEMBER, ExpiryReason.NO_ANSWER})

ENGINE_REASONS: Final = tuple(reason for reason in ExpiryReason if reason not in _OF_CLIENTS)
"""The reasons that the engine gives."""


POLL_TIMEOUT_WORDS: Final = "poll timeout"
"""What the words of a client that left hold, in lower case, if it had not polled in time: Java's, since 3.2 (KIP-800),
are `consumer poll timeout has expired.`"""


class Cause(enum.StrEnum):
    """Why a rebalance was triggered or a group changed, for machines; `reason` has Kafka's own words for people."""

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
    """The output that a verdict goes to; the configuration maps it to the topic's real name."""

    EXPIRATIONS = "expirations"
    TRIGGERS = "triggers"


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One decision about one group.

    Args:
        kind: what was decided.
        group_id: about which group.
        time_ms: when it is true: a timer's deadline, or the effective time of the event that decided it; epoch ms.
        generation_id: the group's generation at that moment (of a started rebalance: the old one).
        reason: the words Kafka's coordinator logs for it.
        cause: the same for machines.
        group_state: the group's state just before, as Kafka names it.
        group_kind: the rules that the group goes by, as `GroupKind` names them.
        member_id: the member it is about, for kinds that are about one.
        group_instance_id: its instance id, if static.
        client_id: shown to people.
        client_host: shown to people.
        expiry_reason: what ended the member, for the kinds that expire one.
        failure: how a worker failed, in the words of whoever watches it.
        last_seen_ms: effective time of the last event that kept the member alive, epoch ms.
        session_timeout_ms: the length of the timer that ran out, ms.
        renewed_ms: when that timer was started by the end of an outage of Kafka, epoch ms; `None` if by the member.
        deadline_ms: end of the join window of a started rebalance, epoch ms.
        awaiting: members that have not re-joined yet.
        leader: the leader of a completed rebalance.
        member_count: members of the group just after.
        removed: members taken out by a completed join phase.
        joined: members of a completed rebalance that were not in the generation before.
        duration_ms: how long the join phase took, ms.
        epoch: of a group that goes by member epochs: the group's new epoch, or the one that a member did not leave.
        member_epoch: of a member of such a group: its own epoch; -2 while a static one is away.
        timeout_ms: the length of the timer that fenced a member of such a group, ms.
        new_member_id: under which id a static member of such a group came back.
        loads: how often the group had been loaded in that very millisecond.
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


NAMES_MAX: Final = 100
"""Most members that a row of the triggers topic names; a group of ten thousand must not make a huge row (P6)."""

NAMES_BYTES_MAX: Final = 32 * 1024
"""Most UTF-8 bytes of the members that one list of a row names. JSON may write a byte as six, as in `\\u0000`; the
longest row stays below the megabyte that a Kafka producer sends (`test_limits_of_rows.py`)."""

REASON_CHARS_MAX: Final = 4096
"""Most characters of a row's reason: Kafka's own words name every member that left or did not sync."""

EPOCH_KINDS: Final = frozenset({"consumer", "share", "streams"})
"""The kinds of group that go by member epochs; their `generation_id` is the group's epoch."""

PRESENCE: Final = "presence"
"""The kind of group whose members only send heartbeats; `GroupKind.PRESENCE`, which is defined further in."""

TRIGGER_TYPES: Final = {
    Kind.REBALANCE_STARTED: "rebalance_triggered",
    Kind.REBALANCE_COMPLETED: "rebalance_completed",
    Kind.GROUP_EMPTY: "group_empty",
    Kind.EPOCH_BUMPED: "epoch_bumped",
    Kind.EPOCH_MOVED: "epoch_bumped",
    Kind.GROUP_UPGRADED: "group_upgraded",
    Kind.GROUP_DOWNGRADED: "group_downgraded",
}
"""How the triggers topic names the kinds that go there."""


_encode_parts = msgspec.json.Encoder().encode


def topic_of(verdict: Verdict) -> Topic | None:
    """Return which topic a verdict is written to; `None` for kinds that only a replay shows."""
    if verdict.expiry_reason is not None:
        return Topic.EXPIRATIONS
    if verdict.kind in TRIGGER_TYPES:
        return Topic.TRIGGERS
    return None


def verdict_id(verdict: Verdict) -> str:
    """Derive the 128-bit id of a verdict from what it says, never from when or where it was computed.

    A batch that is replayed after a crash therefore writes the same id, which consumers drop (promise P3).
    """
    parts: tuple[str | int, ...] = (
        verdict.group_id,
        verdict.member_id or "",
        verdict.generation_id,
        verdict.kind,
        # Two rebalances may start at one millisecond and one generation: a loaded group's member leaves, another joins.
        verdict.expiry_reason or verdict.cause or "",
        verdict.time_ms,
    )
    if verdict.loads and verdict.expiry_reason is None:
        # A load takes the group back to where it was, and while append times stand still it may start from there again.
        parts = (*parts, verdict.loads)
    if verdict.group_kind in EPOCH_KINDS and verdict.expiry_reason is None and len(verdict.joined) == 1:
        # While append times stand still a group may end, begin again as of another kind, and come to an epoch twice.
        parts = (*parts, *verdict.joined)
    if verdict.kind is Kind.MEMBER_RETURNED:
        # While append times stand still a static member may be back, leave for a while, and be back in one epoch.
        parts = (*parts, verdict.last_seen_ms or 0)
    # JSON keeps the boundaries of the parts apart: ("a", "bc") and ("ab", "c") must not collide.
    return hashlib.blake2b(_encode_parts(parts), digest_size=16).hexdigest()


class ExpirationRow(msgspec.Struct, kw_only=True, gc=False):
    """One row of the expirations topic; `conf/schemas/member-expirations.schema.json` describes it.

    `group_kind` is that of `TriggerRow`; `member_epoch` is known of members that go by epochs, -2 of a static member
    that was away. Both are `None` in rows of earlier releases. A poll timeout of such a member is known by its return
    under the same id: `deadline_ms` is the return, `last_seen_ms` when it left, and `member_epoch` how, -1 or -2.
    Of a worker that failed `failure` tells how, and `deadline_ms` when that was said.
    """

    id: str
    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
    generation_id: int
    reason: str
    last_seen_ms: int
    session_timeout_ms: int
    deadline_ms: int
    detected_ms: int
    lateness_ms: int
    group_state: str
    shard: int
    renewed_ms: int | None = None
    group_kind: str | None = None
    member_epoch: int | None = None
    failure: str | None = None

    @property
    def out_ms(self) -> int:
        """When the member was out of the group, epoch ms: the deadline, but for a poll timeout known by the return."""
        is_known_by_return = self.reason == ExpiryReason.POLL_TIMEOUT and self.group_kind in EPOCH_KINDS
        return self.last_seen_ms if is_known_by_return and (self.member_epoch or 0) < 0 else self.deadline_ms


class TriggerRow(msgspec.Struct, kw_only=True, gc=False):
    """One row of the triggers topic; `conf/schemas/rebalance-triggers.schema.json` describes it.

    `awaiting`, `removed` and `joined` name the first `NAMES_MAX` members, or as many as `NAMES_BYTES_MAX` allows; their
    counts tell how many there are. `group_kind` is `classic`, `loaded`, `presence`,
    `consumer`, `share` or `streams`, of which `generation_id` is the epoch; `None` in rows of earlier releases.
    `loads` tells how often the group had been loaded in the very millisecond of `time_ms`.
    """

    id: str
    type: str
    group_id: str
    generation_id: int
    reason: str
    cause: str | None
    time_ms: int
    deadline_ms: int | None
    awaiting: tuple[str, ...]
    awaiting_count: int
    leader: str | None
    member_count: int
    removed: tuple[str, ...]
    removed_count: int
    joined: tuple[str, ...] = ()
    joined_count: int = 0
    duration_ms: int | None
    detected_ms: int
    shard: int
    group_kind: str | None = None
    loads: int = 0

    @property
    def is_rebalance(self) -> bool:
        """Whether members had to join again; those of a presence group only come and go, and nobody waits for anybody.

        Those of groups that go by member epochs do not wait either: each takes over its part of the epoch by itself.

        Rows of earlier releases do not name the kind of their group. Of presence groups alone the join phase is over
        the moment it begins, and the completed one has no leader.
        """
        if self.group_kind is not None:
            return self.group_kind != PRESENCE and self.group_kind not in EPOCH_KINDS
        if self.type == TRIGGER_TYPES[Kind.REBALANCE_STARTED]:
            return self.deadline_ms is None or self.deadline_ms > self.time_ms
        if self.type == TRIGGER_TYPES[Kind.REBALANCE_COMPLETED]:
            is_caught_up = self.cause == Cause.GENERATION_ADVANCED
            return self.leader is not None or self.duration_ms != 0 or is_caught_up
        return True


def row_of(verdict: Verdict, *, shard: int, detected_ms: int) -> ExpirationRow | TriggerRow:
    """Return a verdict as the row of its topic.

    Args:
        verdict: one for which `topic_of` names a topic.
        shard: the shard that decided it.
        detected_ms: timestamp of the trigger that decided it, epoch ms; the same on every replay of that trigger.
    """
    if verdict.expiry_reason is not None:
        return ExpirationRow(
            id=verdict_id(verdict),
            group_id=verdict.group_id,
            member_id=verdict.member_id or "",
            group_instance_id=verdict.group_instance_id,
            client_id=verdict.client_id,
            client_host=verdict.client_host,
            generation_id=verdict.generation_id,
            reason=verdict.expiry_reason,
            last_seen_ms=verdict.last_seen_ms or 0,
            session_timeout_ms=verdict.session_timeout_ms or 0,
            deadline_ms=verdict.time_ms,
            detected_ms=detected_ms,
            lateness_ms=detected_ms - verdict.time_ms,
            group_state=verdict.group_state,
            shard=shard,
            renewed_ms=verdict.renewed_ms,
            group_kind=verdict.group_kind or None,
            member_epoch=verdict.member_epoch,
            failure=verdict.failure,
        )
    return TriggerRow(
        id=verdict_id(verdict),
        type=TRIGGER_TYPES[verdict.kind],
        group_id=verdict.group_id,
        generation_id=verdict.generation_id,
        reason=_cut(verdict.reason),
        cause=verdict.cause,
        time_ms=verdict.time_ms,
        deadline_ms=verdict.deadline_ms,
        awaiting=first_names(verdict.awaiting),
        awaiting_count=len(verdict.awaiting),
        leader=verdict.leader,
        member_count=verdict.member_count,
        removed=first_names(verdict.removed),
        removed_count=len(verdict.removed),
        joined=first_names(verdict.joined),
        joined_count=len(verdict.joined),
        duration_ms=verdict.duration_ms,
        detected_ms=detected_ms,
        shard=shard,
        group_kind=verdict.group_kind or None,
        loads=verdict.loads,
    )


def first_names(member_ids: tuple[str, ...]) -> tuple[str, ...]:
    """Take as many members as a row may name, in their order."""
    if not member_ids:
        return member_ids
    first = member_ids[:NAMES_MAX]
    ends = itertools.accumulate(len(member_id.encode()) for member_id in first)
    return first[: sum(end <= NAMES_BYTES_MAX for end in ends)]


def _cut(reason: str) -> str:
    return reason if len(reason) <= REASON_CHARS_MAX else f"{reason[:REASON_CHARS_MAX]} ..."
