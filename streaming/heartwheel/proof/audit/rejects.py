"""Records that cannot be used. The audit finds them itself, and compares them with the rejects topic (P6).

The log alone decides that a record does not decode, asks for a session timeout out of bounds, or finds its group at
`group_max_size`, so the audit expects its reject. Whether a shard or a group was at the engine's own limit may depend
on which timers had fired when the record was read. There the audit believes the reject if it can be true, and ignores
the record.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from heartwheel.proof.audit.config import AuditConfig
from heartwheel.proof.audit.fed import PLACE_OF_FEEDS
from heartwheel.proof.audit.findings import FindingKind
from heartwheel.proof.audit.ledger import Ledger
from heartwheel.proof.audit.recent import key_of
from heartwheel.proof.audit.rules.groups import is_forgotten
from heartwheel.proof.audit.rules.model import NEVER, AuditedGroup
from heartwheel.proof.audit.state import AuditState, GroupNotes, OpenReject
from heartwheel.wire.events import EventType
from heartwheel.wire.group_heartbeats import GroupHeartbeat
from heartwheel.wire.requests import Request

SHARD_FULL = "shard_full"
GROUP_FULL = "group_full"
SKIPPED = "skipped"
"""The cause of an offset that `heartwheel skip` made the job pass over. Any record may be there, even one that the
audit could not read either."""

_ADD_NO_MEMBER = frozenset({EventType.LEAVE, EventType.LOAD, EventType.UNLOAD, EventType.EXPIRED})


class Rejects:
    """The matcher of rejects and the records that they name.

    Args:
        state: the audit's state; changed in place.
        is_stray: returns whether the order of a group's records is not defined.
    """

    def __init__(self, state: AuditState, config: AuditConfig, is_stray: Callable[[GroupNotes], bool]) -> None:
        self._state = state
        self._config = config
        self._is_stray_group = is_stray

    def take(self, partition: int, offset: int, reject: OpenReject) -> None:
        """Read a row of the rejects topic.

        Args:
            reject: the row's content and place.
        """
        state = self._state
        if reject.cause == SKIPPED and key_of(partition, offset) not in state.settled_rejects:
            known = state.open_rejects.get(partition, {}).get(offset)
            state.count("skipped", int(known is None))
        expected = state.expected_rejects.get(partition, {}).pop(offset, None)
        if expected is not None:
            self._settle(partition, offset, expected.cause, reject, expected.group_id)
        elif key_of(partition, offset) not in state.settled_rejects:
            state.open_rejects.setdefault(partition, {}).setdefault(offset, reject)

    def is_named(self, partition: int, offset: int) -> bool:
        """Return whether a reject names this record and was not judged yet."""
        return offset in self._state.open_rejects.get(partition, {})

    def is_left_out(self, partition: int, offset: int, event: Request, group: AuditedGroup | None) -> bool:
        """Return whether the engine ignored a record because it was at its limit, or had to skip the record."""
        reject = self._state.open_rejects.get(partition, {}).get(offset)
        if reject is None or reject.cause not in (SHARD_FULL, GROUP_FULL, SKIPPED):
            return False
        if reject.cause != SKIPPED and not self._is_possible(reject, event, group):
            return False
        self._settle(partition, offset, reject.cause, self._state.open_rejects[partition].pop(offset))
        return True

    def _is_possible(self, reject: OpenReject, event: Request, group: AuditedGroup | None) -> bool:
        if group is None or is_forgotten(group):
            return reject.cause == SHARD_FULL  # a shard at its limit of groups refuses every record of a new group
        if _adds_no_member(event):
            return False
        member_id = event.sender if isinstance(event, GroupHeartbeat) else event.member_id or event.assigned_member_id
        if group.holds(member_id or "", event.group_instance_id):
            return False
        if reject.cause == SHARD_FULL or self._config.group_max_size > self._config.members_per_group_max:
            return True
        return group.size >= self._config.members_per_group_max

    def used(self, partition: int, offset: int, group_id: str) -> None:
        """Record that a group used a record, in case a reject names it."""
        named = self._state.open_rejects.get(partition, {})
        if offset in named:
            named[offset] = msgspec.structs.replace(named[offset], group_id=group_id)

    def expect(self, partition: int, offset: int, append_ms: int, cause: str, group_id: str | None = None) -> None:
        """Expect a record to be on the rejects topic."""
        reject = self._state.open_rejects.get(partition, {}).pop(offset, None)
        if reject is not None:
            self._settle(partition, offset, cause, reject, group_id)
        elif self._config.judge_rejects:
            self._state.expected_rejects.setdefault(partition, {})[offset] = OpenReject(
                cause, append_ms, group_id=group_id
            )

    def _settle(self, partition: int, offset: int, cause: str, reject: OpenReject, group_id: str | None = None) -> None:
        self._state.settled_rejects.add(key_of(partition, offset))
        named = msgspec.structs.replace(reject, group_id=group_id or reject.group_id)
        if reject.cause not in (cause, SKIPPED) and not self._is_stray(named):
            words = f"heartbeats {partition}@{offset}: the reject says {reject.cause}, the log says {cause}"
            _note(self._state.ledger, FindingKind.REJECT_FORGED, reject, words)

    def finish(self, clock_ms: int | None, pending: list[int]) -> None:
        """Judge the remaining records without a reject, and rejects without a record.

        Args:
            clock_ms: up to when the job has read everything, epoch ms; `None` if it has read all.
            pending: list to which the append times of those that cannot be judged yet are added.
        """
        clock_ms = NEVER if clock_ms is None else clock_ms
        waiting = {
            (entry[2] if entry[2] >= 0 else PLACE_OF_FEEDS, entry[3])
            for notes in self._state.groups.values()
            for entry in notes.waiting
        }
        for partition, expected in self._state.expected_rejects.items():
            for offset, reject in expected.items():
                if reject.append_ms > clock_ms:
                    pending.append(reject.append_ms)
                elif not self._is_stray(reject):
                    self._state.ledger.add(
                        FindingKind.REJECT_MISSING, topic="heartbeats", partition=partition, offset=offset,
                        group_id=reject.group_id, time_ms=reject.append_ms,
                        detail=f"it must be rejected as {reject.cause}",
                    )  # fmt: skip
        for partition, rejects in self._state.open_rejects.items():
            for offset, reject in rejects.items():
                if reject.append_ms > clock_ms or (partition, offset) in waiting:
                    pending.append(reject.append_ms)
                elif self._is_beyond_the_log(partition, offset, reject):
                    continue
                elif not self._is_stray(reject):
                    words = (
                        f"heartbeats {partition}@{offset}: {reject.cause}, but the record can be used or does not exist"
                    )
                    _note(self._state.ledger, FindingKind.REJECT_FORGED, reject, words)

    def _is_stray(self, reject: OpenReject) -> bool:
        """Return whether a reject's group has no defined order of records, which decides who has room; count it."""
        notes = self._state.groups.get(reject.group_id or "")
        stray = notes is not None and not self._config.judge_strays and self._is_stray_group(notes)
        self._state.ledger.unsettled += stray
        return stray

    def _is_beyond_the_log(self, partition: int, offset: int, reject: OpenReject) -> bool:
        """Return whether the audit cannot know the record that a reject names."""
        if self._is_before_log(partition, reject) or self._state.settled_rejects.forgot or reject.cause == SKIPPED:
            return True
        return any(first <= offset <= last for first, last in self._state.unread.get(partition, ()))

    def _is_before_log(self, partition: int, reject: OpenReject) -> bool:
        begin = self._state.begins.get(partition)
        return begin is not None and reject.append_ms <= begin.append_ms


def _note(ledger: Ledger, kind: FindingKind, reject: OpenReject, detail: str) -> None:
    ledger.add(
        kind,
        topic="rejects",
        partition=reject.row_partition,
        offset=reject.row_offset,
        group_id=reject.group_id,
        time_ms=reject.append_ms,
        detail=detail,
    )


def _adds_no_member(event: Request) -> bool:
    """Return whether a request adds no member; the failure of a worker may be its first record, which adds it."""
    if isinstance(event, GroupHeartbeat):
        return event.member_epoch < 0
    return event.type in _ADD_NO_MEMBER and event.failure is None
