"""The rules for many members whose sessions end together.

In a loaded or presence group the end of a session has the same effect whichever other sessions end, so no heap of
timers is needed: members leave in the order of their deadlines, and in join order where deadlines are equal.
`loaded.fire_member` and `presence.fire_member` are the rules; `test_shard_crowds.py` checks that this gives the same
verdicts and the same state.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from heartwheel.engine.rules import messages
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.model import NEVER, Group, GroupKind, GroupState, Member, TimerKind, postponed_by
from heartwheel.wire.verdicts import Cause, ExpiryReason, Kind, Verdict

_KINDS: Final = (GroupKind.LOADED, GroupKind.PRESENCE)

_ORDER: Final = attrgetter("deadline_ms", "seq")

Emit = Callable[[Verdict], None]


def expire_at_once(group: Group, clock_ms: int, config: CoordinatorConfig, emit: Emit, renewed_ms: int) -> bool:
    """Expire every member whose session has ended, if nothing but sessions runs in the group.

    Args:
        group: changed in place.
        clock_ms: the time up to which sessions end, epoch ms.
        renewed_ms: end of the newest outage that has renewed the group's sessions, epoch ms; -1 if there was none.

    Returns:
        Whether it was done. If not, the group is unchanged and its machine has to do it.
    """
    if group.kind not in _KINDS or group.state is not GroupState.STABLE or group.unloaded:
        return False
    timers = (group.join_deadline_ms, group.sync_deadline_ms, group.store_deadline_ms, group.forget_deadline_ms)
    if min(timers) != NEVER or group.pending or group.orphaned_syncs:
        return False
    due = [member for member in group.members.values() if member.deadline_ms <= clock_ms]
    if not all(member.timer is TimerKind.SESSION and not member.stored for member in due):
        return False
    if group.leader is not None and any(member.member_id == group.leader for member in due):
        return False
    due.sort(key=_ORDER)
    _Departures(group, emit, renewed_ms).expire(due)
    if not group.members:
        group.forget_deadline_ms = group.last_event_ms + config.empty_group_retention_ms
    return True


class _Departures:
    """A group whose members leave one after the other.

    Args:
        group: changed in place.
        renewed_ms: end of the newest outage that has renewed its sessions, epoch ms.
    """

    def __init__(self, group: Group, emit: Emit, renewed_ms: int) -> None:
        self._group = group
        self._renewed_ms = renewed_ms
        self._emit = emit
        self._kind = group.kind.value

    def expire(self, due: list[Member]) -> None:
        group = self._group
        depart = self._depart if group.kind is GroupKind.PRESENCE else self._request_rebalance
        # The state changes only with the last departure, after the verdicts about it.
        state, reason = group.state.value, ExpiryReason.SESSION_TIMEOUT
        for member in due:
            del group.members[member.member_id]
            group.last_event_ms = max(member.deadline_ms, group.last_event_ms)
            self._emit(
                Verdict(
                    kind=Kind.MEMBER_EXPIRED,
                    group_id=group.group_id,
                    time_ms=group.last_event_ms,
                    generation_id=group.generation,
                    reason=messages.failed(group.group_id, member.member_id),
                    cause=Cause.MEMBER_EXPIRED,
                    group_state=state,
                    group_kind=self._kind,
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    expiry_reason=reason,
                    last_seen_ms=member.last_seen_ms,
                    session_timeout_ms=member.timer_ms,
                    renewed_ms=postponed_by(self._renewed_ms, member, group.last_event_ms),
                    member_count=len(group.members),
                    loads=self._loads(),
                )
            )
            depart(member)

    def _loads(self) -> int:
        group = self._group
        return group.loads if group.loaded_ms == group.last_event_ms else 0

    def _depart(self, member: Member) -> None:
        """Emit the verdicts of a departure from a presence group: `presence._depart`."""
        group = self._group
        if group.members:
            self._report_started(member, group.last_event_ms)
        group.generation += 1
        group.rebalance_started_ms = group.last_event_ms
        if not group.members:
            self._become_empty((member.member_id,))
            return
        self._emit(
            Verdict(
                kind=Kind.REBALANCE_COMPLETED,
                group_id=group.group_id,
                time_ms=group.last_event_ms,
                generation_id=group.generation,
                reason=messages.stabilized(group.group_id, group.generation, len(group.members)),
                cause=Cause.MEMBER_EXPIRED,
                group_state=GroupState.STABLE.value,
                group_kind=self._kind,
                member_count=len(group.members),
                removed=(member.member_id,),
                duration_ms=0,
                loads=self._loads(),
            )
        )

    def _request_rebalance(self, member: Member) -> None:
        """Emit the verdicts of a departure from a loaded group: `loaded._request_rebalance`."""
        group = self._group
        is_first = group.triggered_generation != group.generation
        if is_first:
            group.triggered_generation = group.generation
            group.rebalance_started_ms = group.last_event_ms
        if not group.members:
            group.generation += 1
            self._become_empty(())
        elif is_first:
            timeouts_ms = [other.rebalance_timeout_ms for other in group.members.values()]
            deadline_ms = None if 0 in timeouts_ms else group.last_event_ms + max(timeouts_ms)
            self._report_started(member, deadline_ms)

    def _report_started(self, member: Member, deadline_ms: int | None) -> None:
        group = self._group
        self._emit(
            Verdict(
                kind=Kind.REBALANCE_STARTED,
                group_id=group.group_id,
                time_ms=group.last_event_ms,
                generation_id=group.generation,
                reason=messages.removing_failed(member.member_id),
                cause=Cause.MEMBER_EXPIRED,
                group_state=GroupState.STABLE.value,
                group_kind=self._kind,
                deadline_ms=deadline_ms,
                member_count=len(group.members),
                loads=self._loads(),
            )
        )

    def _become_empty(self, removed: tuple[str, ...]) -> None:
        """Emit that no member is left, and store what a load would read: `classic_rebalance.become_empty`."""
        group = self._group
        group.previous_state, group.state = group.state, GroupState.EMPTY
        self._emit(
            Verdict(
                kind=Kind.GROUP_EMPTY,
                group_id=group.group_id,
                time_ms=group.last_event_ms,
                generation_id=group.generation,
                reason=messages.empty(group.group_id, group.generation),
                cause=Cause.NO_MEMBERS,
                group_state=group.previous_state.value,
                group_kind=self._kind,
                removed=removed,
                duration_ms=group.last_event_ms - group.rebalance_started_ms,
                loads=self._loads(),
            )
        )
        group.stored_generation, group.stored_leader = group.generation, group.leader
        group.stored_protocol_name, group.departed = group.protocol_name, {}
