"""A verdict as the audit derives it, and its comparison with a row.

The id is computed here a second time, from the rule in docs/events.md and the schemas: a 128-bit BLAKE2b hash over the
JSON array of group, member, generation, kind, expiry reason (of a trigger: cause) and time, and of a trigger's loads
if there were any.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

Row = ExpirationRow | TriggerRow
"""One row of the two topics of verdicts."""

NAMES_IN_A_ROW: Final = 100
"""Most members that one list of a trigger's row names; the row also has their number."""

NAME_BYTES_IN_A_ROW: Final = 31 * 1024
"""A list whose names take more bytes than this may be shorter: the next name would not fit into 32 KiB."""

REASON_CHARS_IN_A_ROW: Final = 4096
"""Longer reasons are truncated to this length."""

KIND_OF_REASON: Final = {
    "session_timeout": "member_expired",
    "new_member_timeout": "member_expired",
    "pending_timeout": "pending_member_expired",
    "rebalance_timeout": "member_removed_at_join",
    "sync_timeout": "sync_timeout",
    "poll_timeout": "member_left",
    "worker_failed": "member_failed",
}
"""The kind of verdict, by the reason in a row of the expirations topic."""

EPOCH_KINDS: Final = frozenset({"consumer", "share", "streams"})
"""The kinds of group that use member epochs."""

EPOCH_KIND_OF_REASON: Final = {
    "session_timeout": "member_expired",
    "poll_timeout": "member_returned",
    "revocation_timeout": "member_fenced_rebalance_timeout",
    "rebalance_timeout": "classic_member_join_timeout",
    "sync_timeout": "classic_member_sync_timeout",
}
"""The same for groups that use member epochs."""

KIND_OF_TYPE: Final = {
    "rebalance_triggered": "rebalance_started",
    "rebalance_completed": "rebalance_completed",
    "group_empty": "group_empty",
    "epoch_bumped": "epoch_bumped",
    "group_upgraded": "group_upgraded",
    "group_downgraded": "group_downgraded",
}
"""The kind of verdict, by the type of a row of the triggers topic."""


class Derived(msgspec.Struct, frozen=True):
    """One verdict that the job must write.

    Args:
        order: its position among the verdicts of its group.
        type: `expired`, or the type of a row of the triggers topic.
        time_ms: when it becomes true, epoch ms.
        facts: every other field that the row must have, by the row's names; lists of members are sorted.
        ready_ms: effective time of the record that first proves it, epoch ms.
    """

    order: int
    type: str
    group_id: str
    time_ms: int
    facts: dict[str, str | int | tuple[str, ...] | None]
    ready_ms: int = 0

    def id(self) -> str:
        """Return the id that the row must have."""
        facts = self.facts
        if self.type != "expired":
            cause = facts["cause"] or ""
            kind, generation = _kind_of_type(self.type, facts.get("group_kind"), cause), facts["generation_id"]
            joined = facts.get("joined") or ()
            assert isinstance(joined, tuple), "it is a list of names"  # noqa: S101 - facts hold many types
            more = (*_loads(facts["loads"]), *_came(facts.get("group_kind"), joined, len(joined)))
            return _hash(self.group_id, "", generation, kind, cause, self.time_ms, *more)
        reason = str(facts["reason"])
        member, generation = facts["member_id"], facts["generation_id"]
        kind = _kind_of_reason(reason, facts.get("group_kind"))
        left = _left(kind, facts["last_seen_ms"])
        return _hash(self.group_id, member, generation, kind, reason, self.time_ms, *left)


def id_of(row: Row) -> str:
    """Return the id that belongs to a row's content; empty if no verdict has such content."""
    if isinstance(row, ExpirationRow):
        kind = _kind_of_reason(row.reason, row.group_kind)
        if not kind:
            return ""
        left = _left(kind, row.last_seen_ms)
        return _hash(row.group_id, row.member_id, row.generation_id, kind, row.reason, row.deadline_ms, *left)
    kind = _kind_of_type(row.type, row.group_kind, row.cause)
    if not kind:
        return ""
    more = (*_loads(row.loads), *_came(row.group_kind, row.joined, row.joined_count))
    return _hash(row.group_id, "", row.generation_id, kind, row.cause or "", row.time_ms, *more)


def _loads(loads: object) -> tuple[object, ...]:
    """Return what the number of loads adds to an id: nothing, unless there was a load in the verdict's millisecond."""
    return (loads,) if loads else ()


def _came(group_kind: object, joined: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Return what a member that began an epoch adds to an id: its name, as an epoch may come twice in a millisecond."""
    return joined if group_kind in EPOCH_KINDS and count == 1 else ()


def _left(kind: str, left_ms: object) -> tuple[object, ...]:
    """Return what a return adds to an id: when the member left, as it may leave twice within one millisecond."""
    return (left_ms,) if kind == "member_returned" else ()


def _kind_of_reason(reason: str, group_kind: object) -> str:
    return (EPOCH_KIND_OF_REASON if group_kind in EPOCH_KINDS else KIND_OF_REASON).get(reason, "")


def _kind_of_type(type_: str, group_kind: object, cause: object) -> str:
    """Return the kind of verdict; a broker logs nothing when a share or streams group loses a member."""
    kind = KIND_OF_TYPE.get(type_, "")
    silent = group_kind in ("share", "streams") and cause in ("member_left", "member_expired")
    return "epoch_moved" if kind == "epoch_bumped" and silent else kind


def _hash(*parts: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()


def time_of(row: Row) -> int:
    """Return the moment at which a row became true, as the row says, epoch ms."""
    return row.deadline_ms if isinstance(row, ExpirationRow) else row.time_ms


def differences(derived: Derived, row: Row) -> list[str]:
    """Return the fields in which a row differs from the derived verdict, each with both values."""
    found = []
    if derived.time_ms != time_of(row):
        found.append(f"time is {time_of(row)}, derived {derived.time_ms}")
    for name, expected in derived.facts.items():
        written = getattr(row, name)
        if isinstance(expected, tuple):
            agree = _names_agree(expected, written, getattr(row, f"{name}_count"))
        elif name == "reason":
            agree = written == _as_in_a_row(str(expected))
        else:
            agree = written == expected
        if not agree:
            found.append(f"{name} is {_short(written)}, derived {_short(expected)}")
    return found


def _names_agree(expected: tuple[str, ...], written: tuple[str, ...], count: int) -> bool:
    """Return whether lists of members agree as sets; a row names at most the first hundred, and has their number."""
    if count != len(expected):
        return False
    if len(written) == count:
        return sorted(written) == list(expected)
    is_full = len(written) == NAMES_IN_A_ROW or sum(len(name.encode()) for name in written) > NAME_BYTES_IN_A_ROW
    return is_full and len(set(written)) == len(written) and set(written) <= set(expected)


def _as_in_a_row(reason: str) -> str:
    return reason if len(reason) <= REASON_CHARS_IN_A_ROW else f"{reason[:REASON_CHARS_IN_A_ROW]} ..."


def _short(value: object) -> str:
    words = repr(value)
    return words if len(words) <= 200 else f"{words[:200]} ..."
