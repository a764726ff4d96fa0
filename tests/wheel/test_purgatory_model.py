"""Whatever is done to a purgatory, each operation ends as a plain list of operations says, and exactly once."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from support.heartbeat_logs import EXAMPLES
from timing_wheel import DelayedOperation, Outcome, Purgatory, TimingWheel

KEYS = st.sampled_from("abcd")
PICKS = st.integers(0, 1_000)


class Told(DelayedOperation):
    """Complete once told, and count the ends."""

    def __init__(self, timeout_ms: int) -> None:
        super().__init__(timeout_ms)
        self.told = False
        self.ends: list[str] = []

    def is_satisfied(self) -> bool:
        """Tell whether it was told."""
        return self.told

    def on_complete(self) -> None:
        """Note the end."""
        self.ends.append("complete")

    def on_expiration(self) -> None:
        """Note the deadline."""
        self.ends.append("expiration")


@dataclass
class Expected:
    """Hold what the model knows of one operation."""

    operation: Told
    keys: frozenset[str]
    due_ms: int
    deadline_ms: int
    outcome: Outcome = Outcome.PENDING


class PurgatoryAgainstList(RuleBasedStateMachine):
    """Do the same things to a purgatory and to a list."""

    @initialize(tick_ms=st.sampled_from([1, 100]), purge_interval=st.sampled_from([0, 2, 1_000]))
    def start(self, tick_ms: int, purge_interval: int) -> None:
        """Make both."""
        wheel = TimingWheel(tick_ms=tick_ms, wheel_size=3)
        self.purgatory: Purgatory[str, Told] = Purgatory(wheel=wheel, purge_interval=purge_interval)
        self.tick_ms = tick_ms
        self.all: list[Expected] = []

    def waiting(self, key: str | None = None) -> list[Expected]:
        """List what waits in the model, in the order of arrival."""
        return [each for each in self.all if each.outcome is Outcome.PENDING and (key is None or key in each.keys)]

    @rule(
        timeout_ms=st.one_of(st.integers(0, 50), st.integers(0, 5_000)),
        keys=st.frozensets(KEYS, min_size=1),
        told=st.booleans(),
    )
    def watch(self, timeout_ms: int, keys: frozenset[str], told: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """Bring an operation, whose condition may hold already."""
        operation = Told(timeout_ms)
        operation.told = told
        now_ms = self.purgatory.clock_ms
        assert self.purgatory.try_complete_else_watch(operation, sorted(keys), now_ms) == told
        deadline_ms = now_ms + timeout_ms
        due_ms = deadline_ms if timeout_ms == 0 else -(-deadline_ms // self.tick_ms) * self.tick_ms
        outcome = Outcome.COMPLETED if told else Outcome.PENDING
        self.all.append(Expected(operation, keys, due_ms, deadline_ms, outcome))

    @rule(pick=PICKS)
    def tell(self, pick: int) -> None:
        """Let a condition hold, without a check."""
        waiting = self.waiting()
        if waiting:
            waiting[pick % len(waiting)].operation.told = True

    @rule(key=KEYS)
    def check_key(self, key: str) -> None:
        """Check a key."""
        told = [each for each in self.waiting(key) if each.operation.told]
        assert self.purgatory.check_and_complete(key) == len(told)
        for each in told:
            each.outcome = Outcome.COMPLETED

    @rule(key=KEYS)
    def cancel_key(self, key: str) -> None:
        """Cancel a key."""
        expected = self.waiting(key)
        assert self.purgatory.cancel_for_key(key) == [each.operation for each in expected]
        for each in expected:
            each.outcome = Outcome.CANCELLED

    @rule(pick=PICKS)
    def force(self, pick: int) -> None:
        """Complete an operation by force."""
        waiting = self.waiting()
        if waiting:
            each = waiting[pick % len(waiting)]
            assert each.operation.force_complete()
            each.outcome = Outcome.COMPLETED

    @rule(step=st.one_of(st.sampled_from([0, 1, 100, 10**6]), st.integers(0, 3_000)))
    def advance(self, step: int) -> None:
        """Advance the clock."""
        clock_ms = self.purgatory.clock_ms + step
        due = sorted((each for each in self.waiting() if each.due_ms <= clock_ms), key=lambda each: each.deadline_ms)
        assert self.purgatory.advance(clock_ms) == [each.operation for each in due]
        for each in due:
            each.outcome = Outcome.EXPIRED

    @rule()
    def purge(self) -> None:
        """Purge the lists."""
        self.purgatory.purge()
        assert self.purgatory.watched == sum(len(each.keys) for each in self.waiting())

    @invariant()
    def agrees(self) -> None:
        """Hold both against each other."""
        if not hasattr(self, "purgatory"):
            return
        self.purgatory.check()
        assert self.purgatory.delayed == len(self.waiting())
        assert self.purgatory.watched >= sum(len(each.keys) for each in self.waiting())
        ends = {
            Outcome.PENDING: [],
            Outcome.COMPLETED: ["complete"],
            Outcome.EXPIRED: ["complete", "expiration"],
            Outcome.CANCELLED: [],
        }
        for each in self.all:
            assert each.operation.outcome is each.outcome
            assert each.operation.ends == ends[each.outcome]


class TestPurgatoryAgainstList(PurgatoryAgainstList.TestCase):  # type: ignore[misc,valid-type]  # made by a property
    """Run the machine; programs of up to 50 steps."""

    settings = settings(max_examples=max(60, EXAMPLES), stateful_step_count=50, deadline=None)
