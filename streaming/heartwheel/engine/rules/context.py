"""The context of every rule: one group at one moment, and how its verdicts are emitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.model import NEVER, Group, GroupState, Member, TimerKind, postponed_by
from heartwheel.engine.rules.roster import Roster
from heartwheel.engine.rules.speaker import Speaker
from heartwheel.engine.rules.timers import Timers
from heartwheel.wire.events import Event
from heartwheel.wire.verdicts import Cause, ExpiryReason, Kind, Verdict

_BY_OWN_TIMER: Final = (
    ExpiryReason.SESSION_TIMEOUT,
    ExpiryReason.NEW_MEMBER_TIMEOUT,
    ExpiryReason.PENDING_TIMEOUT,
)


class Conditions(msgspec.Struct):
    """Facts that decide a request and are not in its fields. For a live log the defaults are the best guess.

    Args:
        member_id_required: whether a dynamic join without member id is answered MEMBER_ID_REQUIRED; `None` decides by
            the version of the request.
        append_delay_ms: how long the broker's log takes to store the leader's assignment, ms.
    """

    member_id_required: bool | None = None
    append_delay_ms: int = 0


class Context(Speaker):
    """One group, its members' bookkeeping, its timers, and the present moment.

    Args:
        config: bounds and delays.
        renewed_ms: end of the newest outage that has renewed the group's sessions, epoch ms; -1 if there was none.
    """

    __slots__ = ("conditions", "config", "emit", "group", "now_ms", "renewed_ms", "roster", "timers")

    def __init__(
        self,
        group: Group,
        config: CoordinatorConfig,
        emit: Callable[[Verdict], None],
        renewed_ms: int = -1,
    ) -> None:
        self.group = group
        self.config = config
        self.emit = emit
        self.renewed_ms = renewed_ms
        self.conditions = Conditions()
        self.now_ms = group.last_event_ms
        self.reindex()

    def reindex(self) -> None:
        """Count members and file timers again, after the group's fields were replaced as a whole."""
        self.roster = Roster(self.group)
        self.timers = Timers(self.group)

    def transition_to(self, state: GroupState) -> None:
        """Move the group to another state: `ClassicGroup.transitionTo`."""
        self.group.previous_state = self.group.state
        self.group.state = state

    def session_timeout_ms(self, event: Event) -> int:
        """Return the session timeout that a request asks for, ms; 0 if it is unknown."""
        if event.session_timeout_ms is not None:
            return event.session_timeout_ms
        return self.config.default_session_timeout_ms if event.error_code is None else 0

    def rebalance_timeout_ms(self, event: Event) -> int:
        """Return the rebalance timeout that a request asks for, ms; 0 if it is unknown.

        Version 0 has none of its own (`JoinGroupRequest`).
        """
        asked = event.session_timeout_ms if event.api_version == 0 else event.rebalance_timeout_ms
        if asked is not None:
            return asked
        return self.config.default_rebalance_timeout_ms if event.error_code is None else 0

    def moment_after(self, timeout_ms: int | None) -> int:
        """Return the deadline of a group timer that is armed now, epoch ms; `NEVER` if its length is unknown."""
        return NEVER if timeout_ms is None else self.now_ms + timeout_ms

    def reset_session(self, member: Member) -> None:
        """Give a member a whole session from now: `rescheduleClassicGroupMemberHeartbeat`.

        A member whose session timeout is unknown gets no timer: nothing shows when the coordinator will expire it.
        """
        if not member.session_timeout_ms:
            self.timers.disarm(member)
            return
        self.timers.arm(member, self.now_ms, member.session_timeout_ms, TimerKind.SESSION)

    def clear_checked_fingerprints(self) -> None:
        """Clear the fingerprints of heartbeats that carried a generation: the generation or the rules change."""
        for member in self.group.members.values():
            if member.fingerprint_generation >= 0:
                member.fingerprint = 0

    def count_load(self) -> None:
        """Count a load in this millisecond, so that verdicts after it differ from the same ones before it."""
        group = self.group
        group.loads = 1 + (group.loads if group.loaded_ms == self.now_ms else 0)
        group.loaded_ms = self.now_ms

    def report(self, kind: Kind, reason: str, cause: Cause | None = None, **fields: Any) -> None:
        """Emit a verdict about the group at this moment; `fields` are further fields of `Verdict`."""
        group = self.group
        fields.setdefault("group_state", group.state.value)
        fields.setdefault("group_kind", group.kind.value)
        self.emit(
            Verdict(
                kind=kind,
                group_id=group.group_id,
                time_ms=self.now_ms,
                generation_id=group.generation,
                reason=reason,
                cause=cause,
                member_count=len(group.members),
                loads=group.loads if group.loaded_ms == self.now_ms else 0,
                **fields,
            )
        )

    def report_expired(self, member: Member, kind: Kind, reason: str, cause: Cause, **fields: Any) -> None:
        """Emit a verdict about a member that a timer ended.

        If the end of an outage started the timer, and not the member itself, the verdict says so.
        """
        if fields["expiry_reason"] in _BY_OWN_TIMER:
            fields["renewed_ms"] = postponed_by(self.renewed_ms, member, self.now_ms)
        self.report_member(member, kind, reason, cause, last_seen_ms=member.last_seen_ms, **fields)

    def renew_timers(self, now_ms: int) -> int:
        """Restart the running timers, each with its own length: those of members and of the join and sync phases.

        Args:
            now_ms: when they start, epoch ms. A timer that already ends later than that is left alone.

        Returns:
            The number of members' timers.
        """
        group = self.group
        running = [member for member in group.all_members() if member.deadline_ms < now_ms + member.timer_ms]
        for member in running:
            self.timers.arm(member, now_ms, member.timer_ms, member.timer)
        patience_ms = self.roster.rebalance_timeout_ms()
        length_ms = group.join_delay_ms if group.join_is_initial else patience_ms
        if length_ms is not None and group.join_deadline_ms < now_ms + length_ms:
            group.join_deadline_ms, group.join_armed_ms = now_ms + length_ms, now_ms
        if patience_ms is not None and group.sync_deadline_ms < now_ms + patience_ms:
            group.sync_deadline_ms, group.sync_armed_ms = now_ms + patience_ms, now_ms
        return len(running)

    def stop_group_timers(self) -> None:
        """Stop the timers of the join and sync phases."""
        group = self.group
        group.join_deadline_ms = group.sync_deadline_ms = group.store_deadline_ms = NEVER
