"""Lines of a group with member epochs, which may be a classic group before or after.

A recorded answer shows what a request cannot: whether it was accepted, the member's epoch, and which partitions were
revoked. A request that a broker accepted up to `LATE_MS` after a timer's end proves that the timer had not fired yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from heartwheel.engine.replay.evidence import LATE_MS, LaneState, ReplayLane
from heartwheel.engine.replay.recorded import Recorded, RecordedAnswer
from heartwheel.engine.rules.epochs.config import EpochConfig
from heartwheel.engine.rules.epochs.machine import EpochMachine
from heartwheel.engine.rules.epochs.migration import (
    convert_to_classic_group,
    convert_to_consumer_group,
    recognize_consumer_group,
    validate_online_upgrade,
)
from heartwheel.engine.rules.epochs.model import TYPE_OF, EpochGroup, GroupType, TimerName
from heartwheel.engine.rules.model import Group
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.group_heartbeats import JOIN_EPOCH, GroupHeartbeat
from heartwheel.wire.verdicts import Kind, Verdict

_ACCEPTED: Final = frozenset({None, "NONE"})
_HAS_TO_REJOIN: Final = "REBALANCE_IN_PROGRESS"
_IS_GIVEN_ITS_ID: Final = "MEMBER_ID_REQUIRED"


class EpochLine(msgspec.Struct, frozen=True):
    """One line: a heartbeat at an epoch, or an event of the classic protocol; one of them is `None`."""

    evidence: RecordedAnswer
    beat: GroupHeartbeat | None = None
    event: Event | None = None

    @property
    def keeps_alive(self) -> str | None:
        """The member that the broker still had when it accepted this request; otherwise `None`."""
        error = self.evidence.error
        if self.beat is not None:
            return self.beat.sender if error == "NONE" and self.beat.member_epoch > JOIN_EPOCH else None
        if self.event is not None and self.event.type in (EventType.HEARTBEAT, EventType.SYNC):
            return self.event.member_id if error in ("NONE", _HAS_TO_REJOIN) else None
        return None


class EpochLaneState(msgspec.Struct, omit_defaults=True):
    """The state of a lane, so that a replay can be saved and resumed.

    Args:
        group: the group while it has member epochs, otherwise `None`.
        classic: the state of a lane of classic groups, while the group is classic.
        waiting: requests that arrived so recently that later ones may still change what is known about them.
    """

    group: EpochGroup | None = None
    classic: LaneState | None = None
    waiting: list[EpochLine] = []


class EpochLane:
    """A lane that applies one group's requests under the protocol that the group has at the time.

    Args:
        state: the initial state; its group is changed in place.
        follow: called after each accepted request with the group, its sender (`None` for the coordinator) and its time.
    """

    def __init__(
        self,
        state: EpochLaneState,
        config: EpochConfig,
        emit: Callable[[Verdict], None],
        follow: Callable[[EpochGroup, str | None, int], None] | None = None,
    ) -> None:
        self._config = config
        self._follow = follow
        self._emit = emit = _of_a_broker(emit)
        self._waiting = deque(state.waiting)
        self._machine = None if state.group is None else EpochMachine(state.group, config, emit)
        self._classic = None if state.classic is None else ReplayLane(state.classic, config.coordinator, emit)

    def state(self) -> EpochLaneState:
        """The state of the lane."""
        return EpochLaneState(
            None if self._machine is None else self._machine.group,
            None if self._classic is None else self._classic.state(),
            list(self._waiting),
        )

    def feed(self, line: EpochLine) -> None:
        """Apply the next line in the order of arrival."""
        self._settle(line.evidence.t_ms - LATE_MS)
        self._waiting.append(line)

    def advance(self, clock_ms: int) -> None:
        """Apply all lines up to a moment and fire the timers that are due then (epoch ms)."""
        self._settle(clock_ms)
        self._advance(clock_ms)

    def _settle(self, until_ms: int) -> None:
        while self._waiting and self._waiting[0].evidence.t_ms <= until_ms:
            line = self._waiting[0]
            self._spare(line.evidence.t_ms)
            self._waiting.popleft()
            self._advance(line.evidence.t_ms)
            self._apply(line)
            self._follow_downgrade()

    def _spare(self, now_ms: int) -> None:
        """Extend the timers of members that the broker is known to have kept just after."""
        if self._machine is None or self._machine.next_deadline_ms() > now_ms:
            return
        for line in self._waiting:
            t_ms = line.evidence.t_ms
            if t_ms > now_ms + LATE_MS:
                return
            member = self._machine.group.members.get(line.keeps_alive or "")
            for name in TimerName if member is not None else ():
                timer = member.timers.get(name) if member is not None else None
                if member is not None and timer is not None and timer.deadline_ms >= t_ms - LATE_MS:
                    self._machine.outlives(member.member_id, name, t_ms)

    def _advance(self, clock_ms: int) -> None:
        if self._machine is not None:
            self._machine.advance(clock_ms)
            self._follow_downgrade()
        if self._classic is not None:
            self._classic.advance(clock_ms)

    def _follow_downgrade(self) -> None:
        machine = self._machine
        if machine is not None and machine.forgotten:
            fresh = LaneState(Group(machine.group.group_id))
            self._machine, self._classic = None, ReplayLane(fresh, self._config.coordinator, self._emit)
        if machine is None or machine.downgraded_by is None:
            return
        classic = convert_to_classic_group(
            machine.group, self._config.coordinator, rebalance=machine.downgrade_rebalances, emit=self._emit
        )
        self._machine, self._classic = None, ReplayLane(LaneState(classic), self._config.coordinator, self._emit)

    def _apply(self, line: EpochLine) -> None:
        if line.beat is not None:
            self._apply_beat(line.beat, line.evidence)
        elif line.event is not None:
            self._apply_event(line.event, line.evidence)

    def _apply_beat(self, beat: GroupHeartbeat, evidence: RecordedAnswer) -> None:
        if evidence.error not in _ACCEPTED:
            return
        if self._classic is not None and not self._upgrade(beat, evidence):
            return
        if self._machine is None:
            self._machine = EpochMachine(EpochGroup(beat.group_id, TYPE_OF[beat.type]), self._config, self._emit)
        known = True if evidence.error == "NONE" else None
        self._machine.apply(beat, evidence.t_ms, accepted=known, answered_ms=evidence.answer_ms)
        if self._follow is not None:
            self._follow(self._machine.group, beat.sender, evidence.t_ms)

    def _upgrade(self, beat: GroupHeartbeat, evidence: RecordedAnswer) -> bool:
        """Turn a classic group into one with member epochs, if this heartbeat does so; return whether it did."""
        lane, accepted = self._classic, evidence.error == "NONE"
        joins = beat.member_epoch == JOIN_EPOCH
        if lane is None or beat.member_epoch < JOIN_EPOCH or not (joins or accepted):
            return False
        group = lane.state().group
        if group.members and TYPE_OF[beat.type] is not GroupType.CONSUMER:
            return False
        if group.members and not accepted and not validate_online_upgrade(group, self._config):
            return False
        if joins or group.confirmed or not group.members:
            fresh = convert_to_consumer_group(group, self._config, evidence.t_ms, self._emit)
            fresh.type = TYPE_OF[beat.type]
        else:
            shown = max(beat.member_epoch, beat.answer_member_epoch or 0)
            fresh = recognize_consumer_group(group, self._config, shown, evidence.t_ms)
        self._classic, self._machine = None, EpochMachine(fresh, self._config, self._emit)
        return True

    def _apply_event(self, event: Event, evidence: RecordedAnswer) -> None:
        if self._classic is not None:
            self._classic.feed(Recorded(event, evidence))
            return
        machine, error = self._machine, evidence.error
        if machine is not None and machine.group.members and error == _IS_GIVEN_ITS_ID:
            machine.apply_classic(event, evidence.t_ms)
        if machine is None or (error not in _ACCEPTED and error != _HAS_TO_REJOIN):
            return
        if not machine.group.members and event.type is EventType.JOIN:
            # An empty group takes the protocol of its next request: `getOrMaybeCreateClassicGroup`.
            classic = ReplayLane(LaneState(Group(event.group_id)), self._config.coordinator, self._emit)
            self._machine, self._classic = None, classic
            classic.feed(Recorded(event, evidence))
            return
        accepted = None if error is None else error == "NONE"
        machine.apply_classic(event, evidence.t_ms, accepted=accepted, generation=evidence.response_generation_id)
        if self._follow is not None:
            self._follow(machine.group, event.member_id or None, evidence.t_ms)


def _of_a_broker(emit: Callable[[Verdict], None]) -> Callable[[Verdict], None]:
    """Return an emitter without the verdicts that no broker gives for a group with member epochs."""

    def pass_on(verdict: Verdict) -> None:
        if verdict.kind not in (Kind.EPOCH_MOVED, Kind.MEMBER_RETURNED):
            emit(verdict)

    return pass_on
