"""The context of every rule: the group, the settings, its timers, and the list of derived verdicts."""

from __future__ import annotations

import heapq
from typing import Final

from heartwheel.proof.audit.config import AuditConfig
from heartwheel.proof.audit.derived import Derived
from heartwheel.proof.audit.rules.model import FORGET, JOIN, MEMBER, NEVER, SYNC, AuditedGroup, AuditedMember
from heartwheel.wire.events import Event

_MEMBERS_TIMERS: Final = ("session_timeout", "new_member_timeout", "pending_timeout")
"""Reasons of timers that an outage restarts, each with its own length."""


class Run:
    """The context in which the rules handle one event of a group; all lasting state is in the group."""

    __slots__ = ("config", "group", "verdicts")

    def __init__(self, group: AuditedGroup, config: AuditConfig, verdicts: list[Derived]) -> None:
        self.group = group
        self.config = config
        self.verdicts = verdicts

    # Timers

    def arm(self, member: AuditedMember, length_ms: int, expiry: str) -> None:
        """Restart a member's timer at the group's time."""
        member.expiry = expiry
        member.timer_ms = length_ms
        member.deadline_ms = deadline = self.group.now_ms + length_ms
        if deadline < member.filed_ms:
            member.filed_ms = deadline
            heapq.heappush(self.group.heap, (deadline, MEMBER, member.seq, member.member_id))

    def reset(self, member: AuditedMember) -> None:
        """Restart a member's session now; a session of unknown length has no end."""
        if not member.session_ms:
            member.deadline_ms = NEVER
            return
        self.arm(member, member.session_ms, "session_timeout")

    def start_join_timer(self, length_ms: int | None) -> None:
        """Start the timer that ends or extends the join phase; `None` starts none."""
        self.group.join_from_ms = self.group.now_ms
        self.group.join_ms = self._file(length_ms, JOIN)

    def start_sync_timer(self, length_ms: int | None) -> None:
        """Start the timer that removes the members without a sync; `None` starts none."""
        self.group.sync_from_ms = self.group.now_ms
        self.group.sync_ms = self._file(length_ms, SYNC)

    def start_forgetting(self) -> None:
        """Start the timer that forgets the group after the retention of empty groups."""
        self.group.forget_ms = self._file(self.config.empty_group_retention_ms, FORGET)

    def _file(self, length_ms: int | None, whose: int) -> int:
        if length_ms is None:
            return NEVER
        deadline = self.group.now_ms + length_ms
        heapq.heappush(self.group.heap, (deadline, whose, 0, ""))
        return deadline

    def stop_phase_timers(self) -> None:
        """Stop the timers of the join and the sync phase."""
        self.group.join_ms = self.group.sync_ms = NEVER

    # Settings

    def session_of(self, event: Event) -> int:
        """Return the session timeout that an event asks for, ms; 0 if the source saw the answers, and not the join."""
        assumed_ms = 0 if event.error_code is not None else self.config.default_session_timeout_ms
        return assumed_ms if event.session_timeout_ms is None else event.session_timeout_ms

    def rebalance_of(self, event: Event) -> int:
        """Return the rebalance timeout that an event asks for, ms; 0 as for `session_of`."""
        asked = event.session_timeout_ms if event.api_version == 0 else event.rebalance_timeout_ms
        assumed_ms = 0 if event.error_code is not None else self.config.default_rebalance_timeout_ms
        return assumed_ms if asked is None else asked

    def allows_session(self, timeout_ms: int) -> bool:
        """Return whether a session timeout is within the bounds, both included."""
        config = self.config
        return config.group_min_session_timeout_ms <= timeout_ms <= config.group_max_session_timeout_ms

    def allows_presence(self, timeout_ms: int) -> bool:
        """Return the same for a worker or a job of a presence group, whose upper bound is another one."""
        return self.config.group_min_session_timeout_ms <= timeout_ms <= self.config.presence_max_session_timeout_ms

    # Verdicts

    def emit_expired(self, member: AuditedMember, reason: str, timer_ms: int, failure: str | None = None) -> None:
        """Add the verdict that a removed member expired; for a failed worker, with its failure."""
        group = self.group
        began_ms = group.now_ms - timer_ms
        put_off = reason in _MEMBERS_TIMERS and began_ms > member.seen_ms and began_ms == group.renewed_ms
        self._emit(
            "expired",
            {
                "member_id": member.member_id,
                "group_instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "generation_id": group.generation,
                "reason": reason,
                "last_seen_ms": member.seen_ms,
                "session_timeout_ms": timer_ms,
                "group_state": group.state,
                "renewed_ms": began_ms if put_off else None,
                "failure": failure,
            },
        )

    def emit(  # noqa: PLR0913 - one argument a field of the row
        self,
        type_: str,
        reason: str,
        cause: str,
        *,
        deadline_ms: int | None = None,
        awaiting: tuple[str, ...] = (),
        leader: str | None = None,
        removed: tuple[str, ...] = (),
        joined: tuple[str, ...] = (),
        duration_ms: int | None = None,
    ) -> None:
        """Add the verdict that a rebalance was triggered or completed, or that the group is empty."""
        group = self.group
        self._emit(
            type_,
            {
                "generation_id": group.generation,
                "reason": reason,
                "cause": cause,
                "deadline_ms": deadline_ms,
                "awaiting": tuple(sorted(awaiting)),
                "leader": leader,
                "member_count": len(group.members),
                "removed": tuple(sorted(removed)),
                "joined": tuple(sorted(joined)),
                "duration_ms": duration_ms,
                "loads": group.reads if group.read_ms == group.now_ms else 0,
            },
        )

    def _emit(self, type_: str, facts: dict[str, str | int | tuple[str, ...] | None]) -> None:
        group = self.group
        group.verdicts += 1
        self.verdicts.append(Derived(group.verdicts, type_, group.group_id, group.now_ms, facts))
