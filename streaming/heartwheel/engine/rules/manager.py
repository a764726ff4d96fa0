"""One group of any kind. Its requests go to the rules of its protocol, and the group may change its protocol.

`GroupMachine` has the rules of classic, loaded and presence groups, `EpochMachine` those of consumer, share and streams
groups. Read it next to `GroupMetadataManager`: every function names the method it mirrors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.epochs.config import EpochConfig
from heartwheel.engine.rules.epochs.machine import EpochMachine
from heartwheel.engine.rules.epochs.migration import (
    convert_to_classic_group,
    convert_to_consumer_group,
    recognize_consumer_group,
    validate_online_upgrade,
)
from heartwheel.engine.rules.epochs.model import TYPE_OF, EpochGroup, GroupType
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group, GroupKind
from heartwheel.wire.events import UNCHECKED_GENERATION, Event, EventType
from heartwheel.wire.group_heartbeats import JOIN_EPOCH, GroupHeartbeat
from heartwheel.wire.requests import Request
from heartwheel.wire.verdicts import Verdict

AnyGroup = Group | EpochGroup
"""The state of a group of any kind."""

_ADD_NO_MEMBER: Final = frozenset({EventType.LEAVE, EventType.LOAD, EventType.UNLOAD, EventType.EXPIRED})
"""Events that add no member, so full shards and full groups accept them. A `LEAVE` with a failure may come from a new
worker."""


class ClassicRules:
    """The rules of one group of any kind.

    Its whole state is `group`. A second manager on the same state continues where the first one stopped. When the group
    changes its protocol, `group` becomes another object.

    Args:
        group: the state, changed in place.
        renewed_ms: end of the newest outage that has renewed its sessions, epoch ms; -1 if there was none.
    """

    def __init__(
        self, group: AnyGroup, config: EpochConfig, emit: Callable[[Verdict], None], renewed_ms: int = -1
    ) -> None:
        self._config = config
        self._emit = emit
        self._renewed_ms = renewed_ms
        self.clamped = 0
        """How many events had an append time before the group's effective time and were moved to that time."""
        self._machine = self._machine_of(group)

    @property
    def group(self) -> AnyGroup:
        """The group's present state."""
        return self._machine.group

    @property
    def size(self) -> int:
        """The number of members, pending ones included."""
        group = self.group
        return len(group.members) + (len(group.pending) if isinstance(group, Group) else 0)

    def apply(self, request: Request, append_ms: int, fingerprint: int = 0) -> Answer:
        """Fire every timer that is due at the request's effective time, then apply it.

        Args:
            fingerprint: `heartwheel.wire.requests.fingerprint_of` the request.

        Returns:
            What the coordinator would have answered.
        """
        self.clamped += append_ms < self.group.last_event_ms
        now_ms = max(append_ms, self.group.last_event_ms)
        if isinstance(self._machine, EpochMachine):
            self.advance(now_ms)
        if isinstance(request, Event):
            return self._event(request, now_ms, fingerprint)
        return self._heartbeat(request, now_ms, fingerprint)

    def advance(self, clock_ms: int) -> None:
        """Fire every timer with a deadline at or before the clock (epoch ms), in order."""
        self._machine.advance(clock_ms)
        if self._switch_rules():
            self._machine.advance(clock_ms)

    def renew(self, before_ms: int, after_ms: int) -> int:
        """Restart the timers of members and of join and sync phases at the end of an outage (`GroupMachine.renew`).

        Args:
            before_ms: when the outage began, epoch ms. Timers that had run out by then fire first.
            after_ms: when it ended, epoch ms.

        Returns:
            The number of members' timers that were restarted.
        """
        self.advance(before_ms)
        self._renewed_ms = max(self._renewed_ms, after_ms)
        return self._machine.renew(before_ms, after_ms)

    def rewind_to_load(self, at_ms: int) -> None:
        """Move the group's time back to a load if only a renewal has moved it past the load.

        A feed with a gap renews the sessions of its groups at the end of the gap. If another broker has loaded the
        group in that time, its sessions are whole from the load on, and that broker's feed has no gap.

        Args:
            at_ms: when the group was loaded, according to the feed that relays the load, epoch ms.
        """
        group = self.group
        if group.last_event_ms == self.renewed_ms:
            group.last_event_ms = min(group.last_event_ms, at_ms)

    @property
    def renewed_ms(self) -> int:
        """End of the newest outage that has renewed the sessions of the present group, epoch ms; -1 if none has."""
        return self._machine.renewed_ms if isinstance(self._machine, GroupMachine) else self._renewed_ms

    def next_deadline_ms(self) -> int:
        """Return when the next timer fires, epoch ms; `NEVER` if none is armed."""
        return self._machine.next_deadline_ms()

    def is_forgettable(self) -> bool:
        """Return whether nothing of the group needs to be remembered: a new `Group` would behave the same."""
        return isinstance(self._machine, GroupMachine) and self._machine.is_forgettable()

    def may_add_member(self, request: Request) -> bool:
        """Return whether a request may add a member that the group does not have yet."""
        if isinstance(request, Event):
            if request.type in _ADD_NO_MEMBER and request.failure is None:
                return False
            member_id = request.member_id or request.assigned_member_id or ""
        else:
            if request.member_epoch < JOIN_EPOCH:
                return False
            member_id = request.sender
        group = self.group
        if member_id in group.members or (isinstance(group, Group) and member_id in group.pending):
            return False
        # A static member that comes back takes its own place again, under a new id.
        instance_id = request.group_instance_id
        return instance_id is None or all(member.group_instance_id != instance_id for member in group.members.values())

    def _machine_of(self, group: AnyGroup) -> GroupMachine | EpochMachine:
        if isinstance(group, Group):
            return GroupMachine(group, self._config.coordinator, self._emit, self._renewed_ms)
        return EpochMachine(group, self._config, self._emit, self._renewed_ms)

    def _switch_rules(self) -> bool:
        """Switch to other rules if an epoch group was forgotten or downgraded; return whether it was."""
        machine = self._machine
        if isinstance(machine, GroupMachine):
            return False
        group = machine.group
        if machine.forgotten:
            self._renewed_ms = -1
            self._machine = self._machine_of(Group(group.group_id))
        elif machine.downgraded_by is not None:
            rebalance, coordinator = machine.downgrade_rebalances, self._config.coordinator
            classic = convert_to_classic_group(group, coordinator, rebalance=rebalance, emit=self._emit)
            self._machine = self._machine_of(classic)
        return self._machine is not machine

    def _event(self, event: Event, now_ms: int, fingerprint: int) -> Answer:
        machine = self._machine
        if isinstance(machine, GroupMachine):
            return machine.apply(event, now_ms, fingerprint)
        if not machine.group.members and not machine.group.unloaded and _may_start_group(event, machine.group):
            # An empty group takes the protocol of its next member: `getOrMaybeCreateClassicGroup`.
            machine.group.last_event_ms = now_ms
            fresh = GroupMachine(Group(machine.group.group_id), self._config.coordinator, self._emit, self._renewed_ms)
            answer = fresh.apply(event, now_ms, fingerprint)
            if not fresh.is_forgettable():
                self._machine = fresh
            return answer
        answer = machine.apply_classic(event, now_ms, fingerprint=fingerprint)
        self._switch_rules()
        return answer

    def _heartbeat(self, beat: GroupHeartbeat, now_ms: int, fingerprint: int) -> Answer:
        machine = self._machine
        if isinstance(machine, GroupMachine):
            return self._first_heartbeat(machine, beat, now_ms, fingerprint)
        answer = machine.apply(beat, now_ms, accepted=beat.accepted, fingerprint=fingerprint)
        self._switch_rules()
        return answer

    def _first_heartbeat(self, machine: GroupMachine, beat: GroupHeartbeat, now_ms: int, fingerprint: int) -> Answer:
        """Handle the first epoch heartbeat of a group that has no epochs yet: `getOrMaybeCreateConsumerGroup`."""
        machine.advance(now_ms)
        group = machine.group
        if group.unloaded:
            return Answer.NOT_COORDINATOR
        group.last_event_ms = 0 if machine.is_forgettable() else now_ms
        if not self._may_convert(group, beat):
            return Answer.GROUP_ID_NOT_FOUND
        verdicts: list[Verdict] = []
        fresh = self._converted(group, beat, now_ms, verdicts.append)
        answer = fresh.apply(beat, now_ms, accepted=beat.accepted, fingerprint=fingerprint)
        if answer is Answer.NONE:
            for verdict in verdicts:
                self._emit(verdict)
            self._machine = self._machine_of(fresh.group)
        return answer

    def _may_convert(self, group: Group, beat: GroupHeartbeat) -> bool:
        """Return whether a group may change to the protocol of a heartbeat: `validateOnlineUpgrade`."""
        if beat.member_epoch < JOIN_EPOCH:
            return False
        if group.kind is GroupKind.NEW:
            return True
        if not group.members:
            return beat.member_epoch == JOIN_EPOCH or bool(beat.accepted)
        if group.kind is GroupKind.PRESENCE or TYPE_OF[beat.type] is not GroupType.CONSUMER:
            return False
        # A group first seen in mid-life may have been a consumer group all the time. If a broker accepts a member of it
        # at an epoch, it is a consumer group, whatever was missed.
        if beat.member_epoch != JOIN_EPOCH and group.kind is not GroupKind.LOADED and not beat.accepted:
            return False
        return bool(beat.accepted) or validate_online_upgrade(group, self._config)

    def _converted(
        self, group: Group, beat: GroupHeartbeat, now_ms: int, emit: Callable[[Verdict], None]
    ) -> EpochMachine:
        if not group.members:
            return EpochMachine(EpochGroup(group.group_id, TYPE_OF[beat.type]), self._config, emit)
        if beat.member_epoch == JOIN_EPOCH or group.confirmed:
            return EpochMachine(convert_to_consumer_group(group, self._config, now_ms, emit), self._config, emit)
        shown = max(beat.member_epoch, beat.answer_member_epoch or 0)
        return EpochMachine(recognize_consumer_group(group, self._config, shown, now_ms), self._config, emit)


def _may_start_group(event: Event, group: EpochGroup) -> bool:
    """Return whether an event may be the first of a classic, loaded or presence group that replaces an empty group.

    A member that was not seen yet uses the classic protocol in what was a consumer group. The last member of the new
    protocol that was seen has left, so the group has become a classic one.
    """
    if event.type is EventType.JOIN:
        return True
    if event.type is EventType.HEARTBEAT and event.generation_id == UNCHECKED_GENERATION:
        return True
    may_be_unseen = group.type is GroupType.CONSUMER and group.taken_over and event.member_id not in group.non_members
    speaks_of_one = event.type in (EventType.HEARTBEAT, EventType.SYNC) and event.generation_id != UNCHECKED_GENERATION
    return may_be_unseen and speaks_of_one
