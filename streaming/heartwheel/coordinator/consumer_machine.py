"""One group that goes by member epochs: requests and time in, verdicts out.

This is the door to the rules of consumer (KIP-848), share (KIP-932) and streams (KIP-1071) groups, which have the same
timers: share groups the session alone, the others a rebalance timer too. Offset commits are not for it: they keep
nobody alive here (`OffsetMetadataManager.commitOffset` re-arms the sessions of classic groups only).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from heartwheel.coordinator import consumer_classic, consumer_heartbeat, consumer_leave, consumer_loading
from heartwheel.coordinator.answer import Answer
from heartwheel.coordinator.consumer_config import EpochConfig
from heartwheel.coordinator.consumer_context import EpochContext
from heartwheel.coordinator.consumer_model import TYPE_OF, EpochGroup, GroupType, TimerName
from heartwheel.coordinator.consumer_target import compute_target, end_resolving
from heartwheel.coordinator.model import NEVER
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.group_heartbeats import JOIN_EPOCH, GroupHeartbeat
from heartwheel.wire.verdicts import Verdict

_CLASSIC_RULES: Final = {
    EventType.SYNC: consumer_classic.sync,
    EventType.LEAVE: consumer_classic.leave,
    EventType.HEARTBEAT: consumer_classic.heartbeat,
}


class EpochMachine:
    """Run the rules of one group.

    The machine keeps its whole state in the group it was given; a second machine on the same group carries on where the
    first one stopped.

    Args:
        group: the state, changed in place.
        config: what holds for groups.
        emit: called with every verdict, in order.
    """

    def __init__(self, group: EpochGroup, config: EpochConfig, emit: Callable[[Verdict], None]) -> None:
        self.group = group
        self._ctx = EpochContext(group, config, emit)

    @property
    def downgraded_by(self) -> str | None:
        """The member whose end leaves classic members alone: the group is to become a classic one; else `None`."""
        return self._ctx.downgraded_by

    @property
    def downgrade_rebalances(self) -> bool:
        """Whether the classic group begins with a rebalance: not if a static member came back as a classic one."""
        return self._ctx.downgrade_rebalances

    def apply(
        self, beat: GroupHeartbeat, now_ms: int, *, accepted: bool | None = None, answered_ms: int | None = None
    ) -> Answer:
        """Fire every timer that is due, then handle a heartbeat.

        Args:
            beat: the request.
            now_ms: when it arrived, epoch ms.
            accepted: `True` if a broker is known to have accepted it; by default the rules decide.
            answered_ms: when it was answered, epoch ms, if known.

        Returns:
            What the coordinator would have answered.
        """
        ctx, group = self._ctx, self.group
        self._begin(now_ms, accepted, answered_ms)
        if ctx.downgraded_by is not None or group.unloaded:
            return Answer.NOT_COORDINATOR
        wanted = TYPE_OF[beat.type]
        if group.type is not wanted:
            if group.members or beat.member_epoch != JOIN_EPOCH:
                return Answer.GROUP_ID_NOT_FOUND
            group.type = wanted
        if beat.member_epoch < JOIN_EPOCH:
            return consumer_leave.leave(ctx, beat)
        return consumer_heartbeat.heartbeat(ctx, beat)

    def apply_classic(
        self, event: Event, now_ms: int, *, accepted: bool | None = None, generation: int | None = None
    ) -> Answer:
        """Fire every timer that is due, then handle a request of the classic protocol, a load or an unload.

        Args:
            event: the request; a commit does nothing.
            now_ms: when it arrived, epoch ms.
            accepted: whether a broker is known to have answered NONE (`True`) or REBALANCE_IN_PROGRESS (`False`).
            generation: the generation that a join was answered with, if known.
        """
        ctx = self._ctx
        self._begin(now_ms, accepted, None)
        if event.type in (EventType.LOAD, EventType.UNLOAD):
            return consumer_loading.load(ctx) if event.type is EventType.LOAD else consumer_loading.unload(ctx)
        if ctx.downgraded_by is not None or self.group.unloaded:
            return Answer.NOT_COORDINATOR
        if self.group.type is not GroupType.CONSUMER:
            return Answer.UNKNOWN_MEMBER_ID
        if event.type is EventType.JOIN:
            return consumer_classic.join(ctx, event, generation)
        rule = _CLASSIC_RULES.get(event.type)
        return Answer.NONE if rule is None else rule(ctx, event)

    def advance(self, clock_ms: int) -> None:
        """Fire every timer with a deadline at or before the clock (epoch ms), in order."""
        ctx, group = self._ctx, self.group
        while ctx.downgraded_by is None and not group.unloaded:
            group_ms, member_due = self._group_due_ms(), ctx.next_due()
            member_ms = NEVER if member_due is None else member_due[0]
            due_ms = min(group_ms, member_ms)
            if due_ms > clock_ms:
                return
            ctx.now_ms = ctx.answered_ms = group.last_event_ms = max(due_ms, group.last_event_ms)
            if member_due is not None and member_ms <= group_ms:
                consumer_leave.fire(ctx, member_due[1], member_due[2])
            elif group.target_due_ms == group_ms:
                compute_target(ctx)
            else:
                end_resolving(ctx, next(p for p, ms in group.resolving.items() if ms == group_ms))

    def next_deadline_ms(self) -> int:
        """Tell when the next timer fires, epoch ms; `NEVER` if none is armed."""
        due = self._ctx.next_due()
        return min(self._group_due_ms(), NEVER if due is None else due[0])

    def outlives(self, member_id: str, name: TimerName, moment_ms: int) -> None:
        """Let a timer of a member end just after a moment that the member is known to have lived through, epoch ms."""
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

    def _group_due_ms(self) -> int:
        group = self.group
        target_ms = group.target_due_ms if group.target_due_ms >= 0 else NEVER
        return min(target_ms, min(group.resolving.values(), default=NEVER))
