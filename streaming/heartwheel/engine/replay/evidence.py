"""Recorded answers as evidence, where a recorded order is ambiguous.

The rules alone decide. But a recording is not as exact as a log: requests are stamped where they arrive and decided
about a millisecond later, in an order of their own, and a broker's timer fires up to some ten milliseconds late. The
answer to a request shows on which side of its neighbours it was decided. So a lane orders requests and timers that are
that close together in the way that explains the answers. It never changes a rule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from heartwheel.engine.replay.explain import explains
from heartwheel.engine.replay.recorded import Recorded
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import NEVER, Group, GroupState
from heartwheel.wire.events import EventType
from heartwheel.wire.verdicts import Verdict

WINDOW_US: Final = 3_000
"""Requests of one group that arrive this close together may have been decided in any order, microseconds."""

LATE_MS: Final = 25
"""How late a broker's timer may fire, ms; 16 was the most that was seen."""

EARLY_MS: Final = 10
"""How much earlier than ours a broker's timer may fire, because ours was armed by an answer that was seen late, ms."""


class LaneState(msgspec.Struct, omit_defaults=True):
    """The state of a lane, so that a replay can be saved and resumed.

    Args:
        waiting: requests that arrived so recently that their order may still change.
        completed_ms: when each future generation was complete, by the answers to its joins, epoch ms.
        forced: how many join phases ended because members were answered with the next generation, contrary to our
            rules.
    """

    group: Group
    waiting: list[Recorded] = []
    completed_ms: dict[int, int] = {}
    forced: int = 0


class ReplayLane:
    """A lane that orders one group's recorded requests and applies them to its machine.

    Args:
        state: the initial state; its group is changed in place.
    """

    def __init__(self, state: LaneState, config: CoordinatorConfig, emit: Callable[[Verdict], None]) -> None:
        self._machine = GroupMachine(state.group, config, emit)
        self._config = config
        self._waiting = deque(state.waiting)
        self._completed_ms = dict(state.completed_ms)
        self.forced = state.forced

    def state(self) -> LaneState:
        """Return all that the lane knows."""
        return LaneState(self._machine.group, list(self._waiting), self._completed_ms, self.forced)

    def feed(self, recorded: Recorded) -> None:
        """Apply the next request in the order of arrival, which is the order that counts without a recorded answer."""
        if recorded.evidence.error is None:
            if self._waiting:
                self.settle(self._waiting[-1].t_us)
            self._apply_as_answered(recorded, recorded.evidence.t_ms)
            return
        if recorded.had_no_effect:
            return
        # A join that explains what was accepted before it may be logged as late as a timer fires.
        self.settle(recorded.t_us - LATE_MS * 1000)
        self._note_completion(recorded)
        self._waiting.append(recorded)

    def settle(self, until_us: int) -> None:
        """Apply the requests that arrived up to a moment (epoch microseconds)."""
        waiting = self._waiting
        while waiting and waiting[0].t_us <= until_us:
            chosen, t_ms = self._choose()
            waiting.remove(chosen)
            self._apply(chosen, t_ms)
            self._forget_completions()

    def advance(self, clock_ms: int) -> None:
        """Apply the requests that arrived up to a moment and fire the timers that are due then (epoch ms)."""
        self.settle(clock_ms * 1000 + 999)
        self._machine.advance(clock_ms)

    def _note_completion(self, recorded: Recorded) -> None:
        evidence = recorded.evidence
        generation, answer_ms = evidence.response_generation_id, evidence.answer_ms
        if recorded.event.type is not EventType.JOIN or evidence.error != "NONE" or not generation or not answer_ms:
            return
        if generation > self._machine.group.generation:
            self._completed_ms.setdefault(generation, answer_ms)

    def _forget_completions(self) -> None:
        """Drop completions of generations that the group has reached: a later group of its name starts again."""
        reached = self._machine.group.generation
        for generation in [known for known in self._completed_ms if known <= reached]:
            del self._completed_ms[generation]

    def _choose(self) -> tuple[Recorded, int]:
        """Choose the first request of the window whose answer is explained by the present state, or by a timer.

        Returns:
            The request, and when it arrived or the latest time at which it must have been decided, epoch ms.
        """
        first = self._waiting[0]
        if len(self._waiting) == 1:
            return first, first.evidence.t_ms
        near = self._near(first)
        for recorded in near:
            if self._awaits_leader(recorded):
                continue
            if explains(self._machine, recorded, near):
                return recorded, recorded.evidence.t_ms
            soon_ms = recorded.evidence.t_ms + EARLY_MS
            due = self._machine.next_deadline_ms() <= soon_ms
            if due and explains(self._after_timers(soon_ms), recorded, near):
                return recorded, recorded.evidence.t_ms
        late = self._late_join(first)
        return (first, first.evidence.t_ms) if late is None else late

    def _near(self, first: Recorded) -> list[Recorded]:
        """Return the waiting requests that may have been decided in another order than the one of arrival."""
        return [recorded for recorded in self._waiting if recorded.t_us <= first.t_us + WINDOW_US]

    def _logged_by(self, until_us: int, generation: int | None) -> list[Recorded]:
        """Return the waiting joins that were answered with a generation and were logged up to a moment."""
        return [other for other in self._waiting if other.t_us <= until_us and other.was_let_into(generation)]

    def _awaits_leader(self, recorded: Recorded) -> bool:
        """Return whether a join is one of the group's first, and was logged before the join of the later leader."""
        if self._machine.group.leader is not None or recorded.came_to_lead or recorded.event.type is not EventType.JOIN:
            return False
        generation = recorded.evidence.response_generation_id
        joins = self._logged_by(recorded.t_us + LATE_MS * 1000, generation) if recorded.was_let_into(generation) else []
        return any(other.came_to_lead for other in joins)

    def _late_join(self, first: Recorded) -> tuple[Recorded, int] | None:
        """Return a join that was logged after a request whose answer it explains.

        A busy broker logs a join up to `LATE_MS` late. A member that is accepted at the next generation proves that the
        join phase is over, so the joins that ended it were decided before. Two joins were decided after another one: a
        join that waits for the next generation although it starts no join phase, and a join that finds another leader
        although it is the first.
        """
        joins = first.event.type is EventType.JOIN
        generation = first.evidence.response_generation_id if joins else first.event.generation_id
        late = [r for r in self._logged_by(first.t_us + LATE_MS * 1000, generation) if r is not first]
        if generation is None or generation <= self._machine.group.generation or not late:
            return None
        t_ms = first.evidence.t_ms
        if joins:
            earlier = next((other for other in late if explains(self._machine, other, late)), None)
            return None if earlier is None or not first.was_let_into(generation) else (earlier, t_ms)
        if not _is_over(self._after_timers(t_ms).group, first):
            return None
        return late[0], min(t_ms, self._completed_ms.get(generation, t_ms))

    def _apply(self, recorded: Recorded, t_ms: int) -> None:
        machine, event = self._machine, recorded.event
        self._force_completion(recorded, t_ms)
        t_ms = self._moment(recorded, t_ms)
        if event.type is EventType.JOIN:
            self._apply_join(recorded, t_ms)
            return
        if event.type is EventType.SYNC:
            machine.conditions.append_delay_ms = self._append_delay_ms(recorded)
        machine.apply(event, t_ms)
        machine.conditions.append_delay_ms = 0

    def _apply_join(self, recorded: Recorded, t_ms: int) -> None:
        machine, event, evidence = self._machine, recorded.event, recorded.evidence
        if evidence.error == "GROUP_MAX_SIZE_REACHED":
            machine.refuse_over_capacity(event, t_ms)
            return
        group = machine.group
        present = evidence.error == "NONE" and evidence.response_generation_id == group.generation
        if present and event.member_id and group.state is GroupState.PREPARING_REBALANCE:
            return  # answered with the present generation, so before this join phase began, and without effect
        self._apply_as_answered(recorded, t_ms)

    def _apply_as_answered(self, recorded: Recorded, t_ms: int) -> None:
        conditions = self._machine.conditions
        conditions.member_id_required = recorded.was_given_its_id
        self._machine.apply(recorded.event, t_ms)
        conditions.member_id_required = None

    def _append_delay_ms(self, recorded: Recorded) -> int:
        """Return how long the leader's assignment took to be stored: the group is not Stable before that answer."""
        evidence = recorded.evidence
        if evidence.answer_ms is None:
            return 0
        interrupted = evidence.error == "REBALANCE_IN_PROGRESS"
        return max(evidence.answer_ms - evidence.t_ms, 0) + interrupted

    def _moment(self, recorded: Recorded, t_ms: int) -> int:
        """Return the effective time of a request, ms, on that side of the nearby timers on which it was decided."""
        machine = self._machine
        machine.advance(t_ms - LATE_MS)
        deadline_ms = machine.next_deadline_ms()
        if deadline_ms > t_ms + EARLY_MS:
            return t_ms
        explained = explains(machine, recorded)
        if deadline_ms <= t_ms:
            if explained and not explains(self._after_timers(t_ms), recorded):
                return deadline_ms - 1  # the broker's timer fired after this request
        elif not explained and explains(self._after_timers(t_ms + EARLY_MS), recorded):
            machine.advance(t_ms + EARLY_MS)
        return t_ms

    def _after_timers(self, clock_ms: int) -> GroupMachine:
        """Return the group as it will be once the timers up to a moment have fired."""
        group = msgspec.json.decode(msgspec.json.encode(self._machine.group), type=Group)
        ahead = GroupMachine(group, self._config, lambda _: None)
        ahead.advance(clock_ms)
        return ahead

    def _force_completion(self, recorded: Recorded, t_ms: int) -> None:
        """End a join phase that the broker, by its answers, has ended, unless its last join comes now.

        That is the case a while after the first join of the phase was answered, and as soon as a member is accepted at
        the next generation.
        """
        # An answer may belong to a phase that timers have ended since; only after they fire is its phase known.
        self._machine.advance(t_ms - LATE_MS)
        group = self._machine.group
        generation = group.generation + 1
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        if any(other.evidence.response_generation_id == generation for other in [recorded, *self._near(recorded)]):
            return
        completed_ms = self._completed_ms.get(generation, NEVER)
        if _is_over(group, recorded):
            if explains(self._after_timers(t_ms + EARLY_MS), recorded):
                return
            completed_ms = min(completed_ms, t_ms)
        elif completed_ms + LATE_MS >= t_ms:
            return
        if completed_ms + EARLY_MS < group.rebalance_started_ms:
            return  # it is the answer of an earlier phase
        self.forced += 1
        group.join_is_initial = False
        group.join_deadline_ms = completed_ms
        self._machine.advance(completed_ms)


def _is_over(group: Group, recorded: Recorded) -> bool:
    """Return whether a member was accepted at the generation that the running join phase is to end with."""
    joining = group.state is GroupState.PREPARING_REBALANCE and recorded.event.member_id in group.members
    return joining and recorded.was_accepted_at(group.generation + 1)
