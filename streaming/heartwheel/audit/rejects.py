"""Records that cannot be used: the audit finds them itself, and holds them against the rejects topic (P6).

A record that does not decode, asks for a session timeout out of bounds, or finds its group at `group_max_size` is
refused by the log alone, so the audit expects its reject. Whether a shard or a group was at the engine's own limit may
depend on which timers had fired when the record was read: there the reject is believed if it can be true, and the
record is left out.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from heartwheel.audit.config import AuditConfig
from heartwheel.audit.findings import FindingKind
from heartwheel.audit.ledger import Ledger
from heartwheel.audit.recent import key_of
from heartwheel.audit.rules.groups import is_gone
from heartwheel.audit.rules.model import NEVER, Group
from heartwheel.audit.state import Held, OpenReject, State
from heartwheel.wire.events import EventType
from heartwheel.wire.group_heartbeats import GroupHeartbeat
from heartwheel.wire.requests import Request

SHARD_FULL = "shard_full"
GROUP_FULL = "group_full"
SKIPPED = "skipped"
"""The cause of an offset that the job has to pass over, by `heartwheel skip`: any record may be there, or one that
the audit has not read either."""

_BRING_NOBODY = frozenset({EventType.LEAVE, EventType.LOAD, EventType.UNLOAD, EventType.EXPIRED})


class Rejects:
    """Match rejects with the records that they name.

    Args:
        state: what the audit knows; changed in place.
        config: what the audited job was set to.
        is_stray: tells whether nothing promises the order of a group's records.
    """

    def __init__(self, state: State, config: AuditConfig, is_stray: Callable[[Held], bool]) -> None:
        self._state = state
        self._config = config
        self._is_stray_group = is_stray

    def take(self, partition: int, offset: int, reject: OpenReject) -> None:
        """Take a row of the rejects topic.

        Args:
            partition: of the record that it names.
            offset: likewise.
            reject: what it says, and where it is.
        """
        state = self._state
        if reject.cause == SKIPPED and key_of(partition, offset) not in state.settled_rejects:
            known = state.open_rejects.get(partition, {}).get(offset)
            state.counts["skipped"] = state.counts.get("skipped", 0) + (known is None)
        expected = state.expected_rejects.get(partition, {}).pop(offset, None)
        if expected is not None:
            self._settle(partition, offset, expected.cause, reject, expected.group_id)
        elif key_of(partition, offset) not in state.settled_rejects:
            state.open_rejects.setdefault(partition, {}).setdefault(offset, reject)

    def is_named(self, partition: int, offset: int) -> bool:
        """Tell whether a reject names this record and was not judged yet."""
        return offset in self._state.open_rejects.get(partition, {})

    def is_left_out(self, partition: int, offset: int, event: Request, group: Group | None) -> bool:
        """Tell whether the engine was at its limit, or had to pass over a record, so that it took no notice of it."""
        reject = self._state.open_rejects.get(partition, {}).get(offset)
        if reject is None or reject.cause not in (SHARD_FULL, GROUP_FULL, SKIPPED):
            return False
        if reject.cause != SKIPPED and not self._is_possible(reject, event, group):
            return False
        self._settle(partition, offset, reject.cause, self._state.open_rejects[partition].pop(offset))
        return True

    def _is_possible(self, reject: OpenReject, event: Request, group: Group | None) -> bool:
        if group is None or is_gone(group):
            return reject.cause == SHARD_FULL  # a shard that is full of groups refuses whatever is about another one
        if _brings_nobody(event):
            return False
        member_id = event.sender if isinstance(event, GroupHeartbeat) else event.member_id or event.assigned_member_id
        if group.holds(member_id or "", event.group_instance_id):
            return False
        if reject.cause == SHARD_FULL or self._config.group_max_size > self._config.members_per_group_max:
            return True
        return group.size >= self._config.members_per_group_max

    def used(self, partition: int, offset: int, group_id: str) -> None:
        """Note that a record was used, and by which group, in case that a reject names it."""
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
            words = f"heartbeats {partition}@{offset}: it says {reject.cause}, the log {cause}"
            _note(self._state.ledger, FindingKind.REJECT_FORGED, reject, words)

    def finish(self, clock_ms: int | None, pending: list[int]) -> None:
        """Judge what is left: records without a reject, and rejects without a record.

        Args:
            clock_ms: up to when the job has read everything, epoch ms; `None` if it has read all.
            pending: takes the append times of those that cannot be judged yet.
        """
        clock_ms = NEVER if clock_ms is None else clock_ms
        sources = {source.number: source.partition for source in self._state.sources}
        waiting = {
            (sources.get(entry[2], entry[2]), entry[3])
            for held in self._state.groups.values()
            for entry in held.waiting
        }
        for partition, expected in self._state.expected_rejects.items():
            for offset, reject in expected.items():
                if reject.append_ms > clock_ms:
                    pending.append(reject.append_ms)
                elif not self._is_stray(reject):
                    self._state.ledger.add(
                        FindingKind.REJECT_MISSING, topic="heartbeats", partition=partition, offset=offset,
                        group_id=reject.group_id, time_ms=reject.append_ms,
                        detail=f"it is to be rejected as {reject.cause}",
                    )  # fmt: skip
        for partition, rejects in self._state.open_rejects.items():
            for offset, reject in rejects.items():
                if reject.append_ms > clock_ms or (partition, offset) in waiting:
                    pending.append(reject.append_ms)
                elif self._is_beyond_the_log(partition, offset, reject):
                    continue
                elif not self._is_stray(reject):
                    words = (
                        f"heartbeats {partition}@{offset}: {reject.cause}, and the record can be used or is not there"
                    )
                    _note(self._state.ledger, FindingKind.REJECT_FORGED, reject, words)

    def _is_stray(self, reject: OpenReject) -> bool:
        """Put a reject aside whose group has records in several partitions: their order decides who finds it full."""
        held = self._state.groups.get(reject.group_id or "")
        stray = held is not None and not self._config.judge_strays and self._is_stray_group(held)
        self._state.ledger.unsettled += stray
        return stray

    def _is_beyond_the_log(self, partition: int, offset: int, reject: OpenReject) -> bool:
        """Tell whether the record that a reject names cannot be held against it."""
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


def _brings_nobody(event: Request) -> bool:
    """Tell whether a request makes nobody a member; a worker may fail before it was ever heard of."""
    if isinstance(event, GroupHeartbeat):
        return event.member_epoch < 0
    return event.type in _BRING_NOBODY and event.failure is None
