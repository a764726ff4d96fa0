"""One group's state machine: events and time in, verdicts out.

It is the entry point of the rules. It keeps time (time never goes back, and every due timer fires before the next
event) and sends each request to the rules of the group's kind.
"""

from __future__ import annotations

from collections.abc import Callable

from heartwheel.engine.rules import loaded, loading, presence, proof
from heartwheel.engine.rules.answer import KEEPS_ALIVE, Answer
from heartwheel.engine.rules.classic import expiry as classic_expiry
from heartwheel.engine.rules.classic import heartbeat as classic_heartbeat
from heartwheel.engine.rules.classic import join as classic_join
from heartwheel.engine.rules.classic import leave as classic_leave
from heartwheel.engine.rules.classic import rebalance as classic_rebalance
from heartwheel.engine.rules.classic import sync as classic_sync
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.context import Conditions, Context
from heartwheel.engine.rules.model import NEVER, Group, GroupKind, GroupState, Member, TimerKind
from heartwheel.engine.rules.takeover import become_classic, catch_up, is_behind, is_unseen_member, take_over
from heartwheel.engine.rules.timers import GroupTimer
from heartwheel.wire.events import ACCEPTED, FROM_MEMBERS, UNCHECKED_GENERATION, Event, EventType
from heartwheel.wire.verdicts import Verdict

__all__ = ["Answer", "GroupMachine"]


class GroupMachine:
    """The rules of one group.

    The machine keeps its whole state in the `Group` it was given. A second machine on the same group continues where
    the first one stopped.

    Args:
        group: the state, changed in place.
        config: bounds and delays.
        renewed_ms: end of the newest outage that has renewed its sessions, epoch ms; -1 if there was none.
    """

    def __init__(
        self,
        group: Group,
        config: CoordinatorConfig,
        emit: Callable[[Verdict], None],
        renewed_ms: int = -1,
    ) -> None:
        self.group = group
        self.clamped = 0
        """How many events had an append time before the group's effective time and were moved to that time."""
        self._ctx = Context(group, config, emit, renewed_ms)

    @property
    def conditions(self) -> Conditions:
        """Facts that decide a request and are not in its fields. A replay that knows more may change them."""
        return self._ctx.conditions

    def apply(self, event: Event, append_ms: int, fingerprint: int = 0) -> Answer:
        """Fire every timer that is due at the event's effective time, then apply the event.

        Args:
            fingerprint: `heartwheel.wire.event_codec.fingerprint` of the event, for heartbeats on the way to the fast
                path.

        Returns:
            What the coordinator would have answered.
        """
        ctx, group = self._ctx, self.group
        now_ms = append_ms
        if now_ms < group.last_event_ms:
            self.clamped += 1
            now_ms = group.last_event_ms
        if ctx.timers.is_due(now_ms):
            self._fire(now_ms)
        ctx.now_ms = group.last_event_ms = now_ms
        answer = self._handle(event, fingerprint)
        self._remember_or_forget()
        if self.is_forgettable():
            # A shard may forget such a group between any two batches, so its effective time must not be kept.
            group.last_event_ms = 0
        return answer

    def has_room_for(self, member_id: str) -> bool:
        """Return whether `group_max_size` leaves room for a join of this member (empty: of a new one)."""
        return classic_join.accepts_joining_member(self._ctx, member_id)

    def refuse_over_capacity(self, event: Event, append_ms: int) -> Answer:
        """Apply a join that found the group full. A replay may know that from the answer."""
        self.advance(append_ms)
        return classic_join.refuse_over_capacity(self._ctx, event)

    def advance(self, clock_ms: int) -> None:
        """Fire every timer with a deadline at or before the clock (epoch ms), in order."""
        if self._ctx.timers.is_due(clock_ms):
            self._fire(clock_ms)

    def renew(self, before_ms: int, after_ms: int) -> int:
        """Restart every timer of a member, a join phase and a sync phase at the end of an outage.

        Timers that had run out before the outage fire first. No verdict is emitted, and no member counts as seen: as
        after Kafka's own load of a partition (`GroupMetadataManager.onLoaded`), every member gets a whole session.

        Args:
            before_ms: when the outage began, epoch ms.
            after_ms: when it ended, epoch ms.

        Returns:
            The number of members' timers that were restarted.
        """
        self.advance(before_ms)
        self._ctx.renewed_ms = max(self._ctx.renewed_ms, after_ms)
        return self._ctx.renew_timers(after_ms)

    def next_deadline_ms(self) -> int:
        """Return when the next timer fires, epoch ms; `NEVER` if none is armed."""
        return self._ctx.timers.next_deadline_ms()

    @property
    def renewed_ms(self) -> int:
        """End of the newest outage that has renewed the sessions of the present group, epoch ms; -1 if none has."""
        return self._ctx.renewed_ms

    def is_forgettable(self) -> bool:
        """Return whether nothing of the group needs to be remembered: a new `Group` would behave the same.

        An Empty group reaches this state by a timer, `empty_group_retention_ms` after it became Empty. So it does not
        depend on when this is called whether the group is forgotten.
        """
        return self.group.kind is GroupKind.NEW and not self.group.unloaded

    # Time

    def _fire(self, clock_ms: int) -> None:
        ctx, group = self._ctx, self.group
        while (due := ctx.timers.pop_due(clock_ms)) is not None:
            deadline_ms, owner = due
            ctx.now_ms = group.last_event_ms = max(deadline_ms, group.last_event_ms)
            if isinstance(owner, Member):
                if not classic_expiry.may_have_missed_phase(ctx, owner):
                    self._fire_member(owner)
            elif owner is GroupTimer.JOIN:
                classic_rebalance.fire_join(ctx)
            elif owner is GroupTimer.SYNC:
                classic_sync.fire_sync(ctx)
            elif owner is GroupTimer.STORE:
                classic_sync.fire_store(ctx)
            else:
                self._forget()
            self._remember_or_forget()

    def _fire_member(self, member: Member) -> None:
        kind = self.group.kind
        if kind is GroupKind.PRESENCE:
            presence.fire_member(self._ctx, member)
        elif kind is GroupKind.LOADED:
            loaded.fire_member(self._ctx, member)
        else:
            classic_expiry.fire_member(self._ctx, member)

    def _remember_or_forget(self) -> None:
        """Start the retention of a group that waits for nothing, and stop it when the group is in use again."""
        group = self.group
        if group.state is not GroupState.EMPTY and not group.unloaded:
            group.forget_deadline_ms = NEVER
            return
        idle = group.unloaded or (group.kind is not GroupKind.NEW and not group.members and not group.pending)
        if not idle:
            group.forget_deadline_ms = NEVER
        elif group.forget_deadline_ms == NEVER:
            group.forget_deadline_ms = self._ctx.now_ms + self._ctx.config.empty_group_retention_ms

    def _forget(self) -> None:
        fresh = Group(group_id=self.group.group_id, partition=self.group.partition)
        for field in Group.__struct_fields__:
            setattr(self.group, field, getattr(fresh, field))
        self._ctx.renewed_ms = -1
        self._ctx.reindex()

    # Requests

    def _handle(self, event: Event, fingerprint: int) -> Answer:
        kind = event.type
        if kind is EventType.LOAD:
            return loading.load(self._ctx)
        if kind is EventType.UNLOAD:
            return loading.unload(self._ctx)
        if self.group.unloaded:
            return Answer.NOT_COORDINATOR
        rules = {EventType.JOIN: self._join, EventType.LEAVE: self._leave, EventType.EXPIRED: self._expired}
        rule = rules.get(kind)
        return self._request(event, fingerprint) if rule is None else rule(event)

    def _expired(self, event: Event) -> Answer:
        """Expire a member that the coordinator expired, if its session is unknown here or would be over by now.

        The session counts from the member's last request, and its timer may run on. When that was started is known only
        roughly: a gap of the source has extended it, or a request showed the end of a phase late.
        """
        member, now_ms = self.group.members.get(event.member_id), self._ctx.now_ms
        if member is None or self.group.kind not in (GroupKind.CLASSIC, GroupKind.LOADED):
            return Answer.UNKNOWN_MEMBER_ID
        if member.awaiting_join or member.awaiting_sync:
            return Answer.NONE
        if member.deadline_ms == NEVER:
            member.timer, member.timer_ms = TimerKind.SESSION, now_ms - member.last_seen_ms
            self._fire_member(member)
        elif member.last_seen_ms + member.session_timeout_ms <= now_ms + classic_rebalance.IN_DOUBT_MS:
            self._fire_member(member)
        return Answer.NONE

    def _join(self, event: Event) -> Answer:
        ctx, is_accepted = self._ctx, event.error_code == ACCEPTED
        if not is_accepted and not ctx.config.accepts_session_timeout(ctx.session_timeout_ms(event)):
            return Answer.INVALID_SESSION_TIMEOUT
        if is_accepted and event.generation_id > 0 and proof.adapt_to_join(ctx, event):
            return Answer.NONE
        if self.group.kind is GroupKind.NEW and event.member_id:
            # It may be a member of a group that was not seen yet, but a join does not carry the generation. The sync or
            # heartbeat that follows does.
            return Answer.UNKNOWN_MEMBER_ID
        become_classic(ctx, event)
        answer = classic_join.join(ctx, event)
        if is_accepted and event.leader and self.group.state is GroupState.PREPARING_REBALANCE:
            self.group.leader = event.leader
        return answer

    def _leave(self, event: Event) -> Answer:
        kind = self.group.kind
        if kind is GroupKind.PRESENCE or (kind is GroupKind.NEW and event.failure is not None):
            return presence.leave(self._ctx, event)
        if kind is GroupKind.LOADED:
            return loaded.leave(self._ctx, event)
        return classic_leave.leave(self._ctx, event)

    def _request(self, event: Event, fingerprint: int) -> Answer:
        """Handle a heartbeat, sync or commit."""
        group = self.group
        if event.type is EventType.SYNC and classic_sync.lacks_protocol(event):
            return Answer.INCONSISTENT_GROUP_PROTOCOL
        if event.error_code in FROM_MEMBERS and event.generation_id != UNCHECKED_GENERATION:
            proof.adapt_to_request(self._ctx, event)
        if group.kind is GroupKind.CLASSIC:
            if group.confirmed and not is_behind(group, event, self._ctx.renewed_ms):
                return self._classic_request(event, fingerprint)
            return self._unconfirmed_request(event, fingerprint)
        if group.kind is GroupKind.NEW:
            return self._first_request(event, fingerprint)
        if group.kind is GroupKind.PRESENCE:
            return presence.request(self._ctx, event, fingerprint)
        return loaded.request(self._ctx, event, fingerprint)

    def _classic_request(self, event: Event, fingerprint: int) -> Answer:
        if event.type is EventType.HEARTBEAT:
            return classic_heartbeat.heartbeat(self._ctx, event, fingerprint)
        if event.type is EventType.SYNC:
            return classic_sync.sync(self._ctx, event)
        return classic_heartbeat.commit(self._ctx, event)

    def _unconfirmed_request(self, event: Event, fingerprint: int) -> Answer:
        """Handle a request of a classic group that may be older or later than the first join seen of it."""
        group = self.group
        if is_behind(group, event, self._ctx.renewed_ms):
            catch_up(self._ctx, event.generation_id)
            return loaded.request(self._ctx, event, fingerprint)
        if is_unseen_member(group, event):
            take_over(self._ctx, event)
        answer = self._classic_request(event, fingerprint)
        agreed = answer in KEEPS_ALIVE or answer is Answer.PARKED
        group.confirmed = agreed and event.generation_id != UNCHECKED_GENERATION
        return answer

    def _first_request(self, event: Event, fingerprint: int) -> Answer:
        """Handle the first request of a group, which decides what kind of group it is."""
        group = self.group
        if event.generation_id != UNCHECKED_GENERATION:
            group.kind = GroupKind.LOADED
            group.generation = event.generation_id
            return loaded.request(self._ctx, event, fingerprint)
        if event.type is EventType.HEARTBEAT:
            answer = presence.request(self._ctx, event, fingerprint)
            if answer is Answer.NONE:
                group.kind = GroupKind.PRESENCE
            return answer
        # An unchecked commit creates only a place to keep offsets, not a group. A sync needs a group.
        return Answer.NONE if event.type is EventType.COMMIT else Answer.UNKNOWN_MEMBER_ID
