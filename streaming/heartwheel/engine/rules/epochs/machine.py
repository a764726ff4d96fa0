"""The state machine of one epoch group: requests and time in, verdicts out.

It is the entry point of the rules of consumer (KIP-848), share (KIP-932) and streams (KIP-1071) groups. They have the
same timers: share groups only the session, the others a rebalance timer too. Offset commits are not handled, because
they keep no member alive here (`OffsetMetadataManager.commitOffset` re-arms the sessions of classic groups only).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.epochs import classic as consumer_classic
from heartwheel.engine.rules.epochs import heartbeat as consumer_heartbeat
from heartwheel.engine.rules.epochs import leave as consumer_leave
from heartwheel.engine.rules.epochs import loading as consumer_loading
from heartwheel.engine.rules.epochs.config import EpochConfig
from heartwheel.engine.rules.epochs.context import EpochContext
from heartwheel.engine.rules.epochs.model import TYPE_OF, EpochGroup, EpochMember, GroupType, TimerName
from heartwheel.engine.rules.epochs.target import end_delay, end_resolving
from heartwheel.engine.rules.model import NEVER
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.group_heartbeats import JOIN_EPOCH, GroupHeartbeat
from heartwheel.wire.verdicts import Verdict

_CLASSIC_RULES: Final = {
    EventType.SYNC: consumer_classic.sync,
    EventType.LEAVE: consumer_classic.leave,
    EventType.HEARTBEAT: consumer_classic.heartbeat,
}


class EpochMachine:
    """The rules of one epoch group.

    The machine keeps its whole state in the group it was given. A second machine on the same group continues where the
    first one stopped.

    Args:
        group: the state, changed in place.
        renewed_ms: end of the newest outage that has renewed its sessions, epoch ms; -1 if there was none.
    """

    def __init__(
        self, group: EpochGroup, config: EpochConfig, emit: Callable[[Verdict], None], renewed_ms: int = -1
    ) -> None:
        self.group = group
        self.forgotten = False
        """Whether the group was forgotten because it had no members for so long (`empty_group_retention_ms`)."""
        self._ctx = EpochContext(group, config, emit, renewed_ms)

    @property
    def downgraded_by(self) -> str | None:
        """The member whose end left only classic members, so that the group becomes a classic one; else `None`."""
        return self._ctx.downgraded_by

    @property
    def downgrade_rebalances(self) -> bool:
        """Whether the classic group begins with a rebalance; not if a static member came back as a classic one."""
        return self._ctx.downgrade_rebalances

    def apply(
        self,
        beat: GroupHeartbeat,
        now_ms: int,
        *,
        accepted: bool | None = None,
        answered_ms: int | None = None,
        fingerprint: int = 0,
    ) -> Answer:
        """Fire every timer that is due, then handle a heartbeat.

        Args:
            now_ms: when it arrived, epoch ms.
            accepted: `True` if a broker is known to have accepted it; by default the rules decide.
            answered_ms: when it was answered, epoch ms, if known.
            fingerprint: `heartwheel.wire.requests.fingerprint_of` the heartbeat, on the way to the fast path.

        Returns:
            What the coordinator would have answered.
        """
        self._begin(now_ms, accepted, answered_ms)
        answer = self._heartbeat(beat, fingerprint)
        self._remember_or_forget()
        return answer

    def _heartbeat(self, beat: GroupHeartbeat, fingerprint: int) -> Answer:
        ctx, group = self._ctx, self.group
        if ctx.downgraded_by is not None or group.unloaded:
            return Answer.NOT_COORDINATOR
        wanted = TYPE_OF[beat.type]
        is_static = beat.group_instance_id is not None and wanted is GroupType.STREAMS
        if is_static and ctx.config.before_4_4 and not ctx.accepted:
            return Answer.INVALID_REQUEST
        if group.type is not wanted:
            if group.members or beat.member_epoch != JOIN_EPOCH:
                return Answer.GROUP_ID_NOT_FOUND
            group.type = wanted
        if beat.member_epoch < JOIN_EPOCH:
            return consumer_leave.leave(ctx, beat)
        answer = consumer_heartbeat.heartbeat(ctx, beat)
        if answer is Answer.NONE:
            # One that says `revoking` is no plain reset when it is repeated: what the first one was asked to give back
            # is gone from its assignment, so the second starts the timer. test_who_is_asked_again_starts_its_timer
            self._remember_heartbeat(group.members[beat.sender], beat.member_epoch, 0 if beat.revoking else fingerprint)
        return answer

    def _remember_heartbeat(self, member: EpochMember, epoch: int, fingerprint: int) -> None:
        """Store the fingerprint of a heartbeat that only resets the session when it is repeated.

        It changed all that it could by now. Every change that lets it do more clears the fingerprint.
        """
        plain = member.timers.keys() == {TimerName.SESSION} and not member.unrevoked and member.epoch == epoch
        self._ctx.remember_heartbeat(member, fingerprint if plain and self.group.target_is_current else 0)

    def apply_classic(
        self,
        event: Event,
        now_ms: int,
        *,
        accepted: bool | None = None,
        generation: int | None = None,
        fingerprint: int = 0,
    ) -> Answer:
        """Fire every timer that is due, then handle a request of the classic protocol, a load or an unload.

        Args:
            event: the request; a commit does nothing.
            now_ms: when it arrived, epoch ms.
            accepted: whether a broker is known to have answered NONE (`True`) or REBALANCE_IN_PROGRESS (`False`).
            generation: the generation in the answer to a join, if known.
            fingerprint: `heartwheel.wire.requests.fingerprint_of` the event, on the way to the fast path.
        """
        self._begin(now_ms, accepted, None)
        answer = self._classic(event, generation, fingerprint)
        self._remember_or_forget()
        return answer

    def _classic(self, event: Event, generation: int | None, fingerprint: int) -> Answer:
        ctx = self._ctx
        if event.type in (EventType.LOAD, EventType.UNLOAD):
            return consumer_loading.load(ctx) if event.type is EventType.LOAD else consumer_loading.unload(ctx)
        if ctx.downgraded_by is not None or self.group.unloaded:
            return Answer.NOT_COORDINATOR
        if self.group.type is not GroupType.CONSUMER:
            return Answer.UNKNOWN_MEMBER_ID
        if event.type is EventType.JOIN:
            return consumer_classic.join(ctx, event, generation)
        rule = _CLASSIC_RULES.get(event.type)
        answer = Answer.NONE if rule is None else rule(ctx, event)
        if event.type is EventType.HEARTBEAT and answer is Answer.NONE:
            self._remember_heartbeat(self.group.members[event.member_id], self.group.epoch, fingerprint)
        elif answer is Answer.REBALANCE_IN_PROGRESS:
            ctx.remember_heartbeat(self.group.members[event.member_id], 0)
        return answer

    def advance(self, clock_ms: int) -> None:
        """Fire every timer with a deadline at or before the clock (epoch ms), in order."""
        ctx, group = self._ctx, self.group
        while ctx.downgraded_by is None and not self.forgotten:
            group_ms, member_due = group.timer_ms, ctx.next_due()
            member_ms = NEVER if member_due is None else member_due[0]
            due_ms = min(group_ms, member_ms)
            if due_ms > clock_ms:
                return
            ctx.now_ms = ctx.answered_ms = group.last_event_ms = max(due_ms, group.last_event_ms)
            if member_due is not None and member_ms <= group_ms:
                consumer_leave.fire(ctx, member_due[1], member_due[2])
            else:
                self._fire_group(group_ms)
            self._remember_or_forget()

    def _fire_group(self, due_ms: int) -> None:
        ctx, group = self._ctx, self.group
        if group.forget_deadline_ms == due_ms:
            self.forgotten = True
        elif group.target_due_ms == due_ms:
            end_delay(ctx)
        else:
            end_resolving(ctx, next(p for p, ms in group.resolving.items() if ms == due_ms))

    def _remember_or_forget(self) -> None:
        """Start the retention of a group that waits for nothing, and stop it when the group is in use again."""
        group = self.group
        if group.members and not group.unloaded:
            group.forget_deadline_ms = NEVER
        elif group.forget_deadline_ms == NEVER:
            group.forget_deadline_ms = self._ctx.now_ms + self._ctx.config.coordinator.empty_group_retention_ms

    def renew(self, before_ms: int, after_ms: int) -> int:
        """Restart the timers of members at the end of an outage, as `GroupMachine.renew` does."""
        self.advance(before_ms)
        self._ctx.renewed_ms = max(self._ctx.renewed_ms, after_ms)
        return self._ctx.renew(after_ms)

    def next_deadline_ms(self) -> int:
        """Return when the next timer fires, epoch ms; `NEVER` if none is armed."""
        due = self._ctx.next_due()
        return min(self.group.timer_ms, NEVER if due is None else due[0])

    def outlives(self, member_id: str, name: TimerName, moment_ms: int) -> None:
        """Postpone a timer of a member to just after a moment (epoch ms) that the member is known to have survived."""
        member = self.group.members.get(member_id)
        timer = None if member is None else member.timers.get(name)
        if member is not None and timer is not None and timer.deadline_ms <= moment_ms:
            self._ctx.postpone(member, name, moment_ms + 1)

    def _begin(self, now_ms: int, accepted: bool | None, answered_ms: int | None) -> None:  # noqa: FBT001 - three values
        ctx, group = self._ctx, self.group
        now_ms = max(now_ms, group.last_event_ms)
        self.advance(now_ms)
        ctx.now_ms = group.last_event_ms = now_ms
        ctx.answered_ms = max(now_ms, answered_ms or now_ms)
        ctx.accepted = accepted
