"""One group of whatever kind it is at the time: its requests go to the rules of its protocol, and it may change that.

`GroupMachine` has the rules of classic, loaded and presence groups, `EpochMachine` those of consumer, share and streams
groups. Read beside `GroupMetadataManager`: every function names the method it mirrors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from heartwheel.coordinator.answer import Answer
from heartwheel.coordinator.consumer_config import EpochConfig
from heartwheel.coordinator.consumer_machine import EpochMachine
from heartwheel.coordinator.consumer_migration import (
    convert_to_classic_group,
    convert_to_consumer_group,
    recognize_consumer_group,
    validate_online_upgrade,
)
from heartwheel.coordinator.consumer_model import TYPE_OF, EpochGroup, GroupType
from heartwheel.coordinator.machine import GroupMachine
from heartwheel.coordinator.model import Group, GroupKind
from heartwheel.wire.events import UNCHECKED_GENERATION, Event, EventType
from heartwheel.wire.group_heartbeats import JOIN_EPOCH, GroupHeartbeat
from heartwheel.wire.requests import Request
from heartwheel.wire.verdicts import Verdict

AnyGroup = Group | EpochGroup
"""What is known of a group, of whatever kind."""

_BRING_NOBODY: Final = frozenset({EventType.LEAVE, EventType.LOAD, EventType.UNLOAD, EventType.EXPIRED})
"""Events that a full shard and a full group take as ever: who leaves makes room. A worker that failed may be new."""


class GroupManager:
    """Run one group.

    Its whole state is `group`; a second manager on the same state carries on where the first one stopped. When the
    group takes another protocol, `group` is another object.

    Args:
        group: the state, changed in place.
        config: what holds for groups.
        emit: called with every verdict, in order.
        renewed_ms: end of the newest outage that has renewed its sessions, epoch ms; -1 if there was none.
    """

    def __init__(
        self, group: AnyGroup, config: EpochConfig, emit: Callable[[Verdict], None], renewed_ms: int = -1
    ) -> None:
        self._config = config
        self._emit = emit
        self._renewed_ms = renewed_ms
        self.clamped = 0
        """How many events had an append time before the group's effective time, and were counted as at that time."""
        self._machine = self._machine_of(group)

    @property
    def group(self) -> AnyGroup:
        """The state as it is now."""
        return self._machine.group

    @property
    def size(self) -> int:
        """How many members there are, pending ones included."""
        group = self.group
        return len(group.members) + (len(group.pending) if isinstance(group, Group) else 0)

    def apply(self, request: Request, append_ms: int, fingerprint: int = 0) -> Answer:
        """Fire every timer that is due at the request's effective time, then apply it.

        Args:
            request: the request.
            append_ms: append time of its record, epoch ms.
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
        if self._follow():
            self._machine.advance(clock_ms)

    def renew(self, before_ms: int, after_ms: int) -> int:
        """Start every timer of a member, of a join and of a sync anew at the end of an outage (`GroupMachine.renew`).

        Args:
            before_ms: when the outage began, epoch ms; what had run out by then fires first.
            after_ms: when it ended, epoch ms.

        Returns:
            How many members' timers were started anew.
        """
        self.advance(before_ms)
        self._renewed_ms = max(self._renewed_ms, after_ms)
        return self._machine.renew(before_ms, after_ms)

    def go_back_to_load(self, at_ms: int) -> None:
        """Let a load count at its own time, though a renewal has put the group's time beyond it.

        A feed that missed something renews the sessions of its groups at the end of that. One that another broker has
        loaded meanwhile has whole sessions from its load on, and that broker's feed missed nothing.

        Args:
            at_ms: when the group was loaded, by the feed that passes it on, epoch ms.
        """
        group = self.group
        if group.last_event_ms == self.renewed_ms:
            group.last_event_ms = min(group.last_event_ms, at_ms)

    @property
    def renewed_ms(self) -> int:
        """End of the newest outage that has renewed the sessions of the group as it is, epoch ms; -1 if none has."""
        return self._machine.renewed_ms if isinstance(self._machine, GroupMachine) else self._renewed_ms

    def next_deadline_ms(self) -> int:
        """Return when the next timer fires, epoch ms; `NEVER` if none is armed."""
        return self._machine.next_deadline_ms()

    def is_forgettable(self) -> bool:
        """Tell that nothing of the group is left to remember: a fresh `Group` would behave the same."""
        return isinstance(self._machine, GroupMachine) and self._machine.is_forgettable()

    def is_stranger(self, request: Request) -> bool:
        """Tell whether a request may bring a member that the group does not hold yet."""
        if isinstance(request, Event):
            if request.type in _BRING_NOBODY and request.failure is None:
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

    def _follow(self) -> bool:
        """Take over what became of a group that goes by epochs; tell whether it has other rules now."""
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
        if not machine.group.members and not machine.group.unloaded and _may_begin(event, machine.group):
            # An empty group takes the protocol of whom it meets next: `getOrMaybeCreateClassicGroup`.
            machine.group.last_event_ms = now_ms
            fresh = GroupMachine(Group(machine.group.group_id), self._config.coordinator, self._emit, self._renewed_ms)
            answer = fresh.apply(event, now_ms, fingerprint)
            if not fresh.is_forgettable():
                self._machine = fresh
            return answer
        answer = machine.apply_classic(event, now_ms, fingerprint=fingerprint)
        self._follow()
        return answer

    def _heartbeat(self, beat: GroupHeartbeat, now_ms: int, fingerprint: int) -> Answer:
        machine = self._machine
        if isinstance(machine, GroupMachine):
            return self._first_heartbeat(machine, beat, now_ms, fingerprint)
        answer = machine.apply(beat, now_ms, accepted=beat.accepted, fingerprint=fingerprint)
        self._follow()
        return answer

    def _first_heartbeat(self, machine: GroupMachine, beat: GroupHeartbeat, now_ms: int, fingerprint: int) -> Answer:
        """Handle a heartbeat that goes by epochs of a group that does not: `getOrMaybeCreateConsumerGroup`."""
        machine.advance(now_ms)
        group = machine.group
        if group.unloaded:
            return Answer.NOT_COORDINATOR
        group.last_event_ms = 0 if machine.is_forgettable() else now_ms
        if not self._may_take(group, beat):
            return Answer.GROUP_ID_NOT_FOUND
        said: list[Verdict] = []
        fresh = self._converted(group, beat, now_ms, said.append)
        answer = fresh.apply(beat, now_ms, accepted=beat.accepted, fingerprint=fingerprint)
        if answer is Answer.NONE:
            for verdict in said:
                self._emit(verdict)
            self._machine = self._machine_of(fresh.group)
        return answer

    def _may_take(self, group: Group, beat: GroupHeartbeat) -> bool:
        """Tell whether a group may take the protocol of a heartbeat: `validateOnlineUpgrade`."""
        if beat.member_epoch < JOIN_EPOCH:
            return False
        if group.kind is GroupKind.NEW:
            return True
        if not group.members:
            return beat.member_epoch == JOIN_EPOCH or bool(beat.accepted)
        if group.kind is GroupKind.PRESENCE or TYPE_OF[beat.type] is not GroupType.CONSUMER:
            return False
        # A group that was met in the middle of its life may have been a consumer group all the time, and one whose
        # member a broker accepts at an epoch is one, whatever was missed of it.
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


def _may_begin(event: Event, group: EpochGroup) -> bool:
    """Tell whether an event may be the first of a classic, a loaded or a presence group, in place of an empty one.

    A member that was not seen yet speaks the classic protocol in what was a consumer group: who was last seen of the
    new protocol has gone, so the group has become a classic one.
    """
    if event.type is EventType.JOIN:
        return True
    if event.type is EventType.HEARTBEAT and event.generation_id == UNCHECKED_GENERATION:
        return True
    may_be_unseen = group.type is GroupType.CONSUMER and group.taken_over and event.member_id not in group.gone
    speaks_of_one = event.type in (EventType.HEARTBEAT, EventType.SYNC) and event.generation_id != UNCHECKED_GENERATION
    return may_be_unseen and speaks_of_one
