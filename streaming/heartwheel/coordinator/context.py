"""What every rule works on: one group at one moment, and the way its verdicts are spoken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from heartwheel.coordinator.config import CoordinatorConfig
from heartwheel.coordinator.model import NEVER, Group, GroupState, Member, TimerKind, put_off_by
from heartwheel.coordinator.roster import Roster
from heartwheel.coordinator.speaker import Speaker
from heartwheel.coordinator.timers import Timers
from heartwheel.wire.events import Event
from heartwheel.wire.verdicts import Cause, ExpiryReason, Kind, Verdict

_BY_OWN_TIMER: Final = (
    ExpiryReason.SESSION_TIMEOUT,
    ExpiryReason.NEW_MEMBER_TIMEOUT,
    ExpiryReason.PENDING_TIMEOUT,
)


class Conditions(msgspec.Struct):
    """What decides with a request and is not in its fields; a live log does not know better than the defaults.

    Args:
        member_id_required: a dynamic join without member id is answered MEMBER_ID_REQUIRED; `None` goes by the version
            of the request.
        append_delay_ms: how long the broker's log takes to store the leader's assignment, ms.
    """

    member_id_required: bool | None = None
    append_delay_ms: int = 0


class Context(Speaker):
    """One group, its members' bookkeeping, its timers, and the present moment.

    Args:
        group: the state.
        config: bounds and delays.
        emit: called with every verdict, in order.
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
        """Return which session timeout a request asks for, ms; 0 if nobody knows."""
        if event.session_timeout_ms is not None:
            return event.session_timeout_ms
        return self.config.default_session_timeout_ms if event.error_code is None else 0

    def rebalance_timeout_ms(self, event: Event) -> int:
        """Return which rebalance timeout a request asks for, ms; 0 if nobody knows.

        Version 0 has none of its own (`JoinGroupRequest`).
        """
        asked = event.session_timeout_ms if event.api_version == 0 else event.rebalance_timeout_ms
        if asked is not None:
            return asked
        return self.config.default_rebalance_timeout_ms if event.error_code is None else 0

    def moment_after(self, timeout_ms: int | None) -> int:
        """Return when a timer of the group ends that is armed now, epoch ms; `NEVER` if its length is unknown."""
        return NEVER if timeout_ms is None else self.now_ms + timeout_ms

    def reset_session(self, member: Member) -> None:
        """Give a member a whole session from now: `rescheduleClassicGroupMemberHeartbeat`.

        A member whose session is unknown has no timer: nobody knows when the coordinator will expire it.
        """
        if not member.session_timeout_ms:
            self.timers.disarm(member)
            return
        self.timers.arm(member, self.now_ms, member.session_timeout_ms, TimerKind.SESSION)

    def clear_checked_fingerprints(self) -> None:
        """Take back the promises of heartbeats that carried a generation, as the generation or the rules change."""
        for member in self.group.members.values():
            if member.fingerprint_generation >= 0:
                member.fingerprint = 0

    def count_load(self) -> None:
        """Count that what was said of the group in this millisecond may begin again in it."""
        group = self.group
        group.loads = 1 + (group.loads if group.loaded_ms == self.now_ms else 0)
        group.loaded_ms = self.now_ms

    def say(self, kind: Kind, reason: str, cause: Cause | None = None, **fields: Any) -> None:
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

    def say_expired(self, member: Member, kind: Kind, reason: str, cause: Cause, **fields: Any) -> None:
        """Emit a verdict about a member that a timer ended.

        One of the member's own timers that was started by the end of an outage, and not by the member, says so.
        """
        if fields["expiry_reason"] in _BY_OWN_TIMER:
            fields["renewed_ms"] = put_off_by(self.renewed_ms, member, self.now_ms)
        self.say_of(member, kind, reason, cause, last_seen_ms=member.last_seen_ms, **fields)

    def renew_timers(self, now_ms: int) -> int:
        """Start the timers that run anew, each with its own length: members', and those of the join and sync phase.

        Args:
            now_ms: when they start, epoch ms; a timer that ends later than it would then is left alone.

        Returns:
            How many members' timers there were.
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
        """Stop the join phase's and the sync phase's timers."""
        group = self.group
        group.join_deadline_ms = group.sync_deadline_ms = group.store_deadline_ms = NEVER
