"""W1: whatever is done to a wheel, it hands out what a plain heap would, and its invariants hold after each step."""

from __future__ import annotations

import heapq

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from support.heartbeat_logs import EXAMPLES
from timing_wheel import NEVER, TimingWheel

HANDLES = st.integers(0, 30)
DELAYS = st.one_of(
    st.integers(-50, 50),
    st.integers(-50, 5_000),
    st.sampled_from([99, 100, 101, 1_999, 2_000, 2_001, 39_999, 40_000, 45_000, 300_000, 86_400_000]),
)


class HeapModel:
    """Decide by a binary heap with lazy removal when a handle is due; it knows no bucket and no level."""

    def __init__(self, tick_ms: int, clock_ms: int) -> None:
        self.tick_ms = tick_ms
        self.clock_ms = clock_ms
        self.armed: dict[int, tuple[int, int]] = {}
        self.heap: list[tuple[int, int, int]] = []

    def arm(self, handle: int, deadline: int) -> None:
        """Arm a handle: due at its deadline rounded up, or at once when that has passed."""
        due = deadline if deadline <= self.clock_ms else -(-deadline // self.tick_ms) * self.tick_ms
        self.armed[handle] = (due, deadline)
        heapq.heappush(self.heap, (due, deadline, handle))

    def advance(self, clock_ms: int) -> list[int]:
        """Take out what is due, by deadline and handle."""
        if clock_ms < self.clock_ms:
            return []
        self.clock_ms = clock_ms
        fired = set()
        while self.heap and self.heap[0][0] <= clock_ms:
            due, deadline, handle = heapq.heappop(self.heap)
            if self.armed.get(handle) == (due, deadline):
                fired.add((deadline, handle))
                del self.armed[handle]
        return [handle for _, handle in sorted(fired)]


class WheelAgainstHeap(RuleBasedStateMachine):
    """Do the same things to a wheel and to a heap, and hold what comes out against each other."""

    @initialize(
        tick_ms=st.sampled_from([1, 7, 100]),
        wheel_size=st.sampled_from([2, 3, 20]),
        start_ms=st.sampled_from([0, 1, 1_000, 1_700_000_000_123]),
    )
    def start(self, tick_ms: int, wheel_size: int, start_ms: int) -> None:
        """Make both."""
        self.wheel = TimingWheel(tick_ms=tick_ms, wheel_size=wheel_size, start_ms=start_ms)
        self.model = HeapModel(tick_ms, start_ms)

    @rule(armings=st.lists(st.tuples(HANDLES, DELAYS), max_size=8))
    def file(self, armings: list[tuple[int, int]]) -> None:
        """File handles, new and old, some of them twice in one call."""
        deadlines = [self.model.clock_ms + delay for _, delay in armings]
        self.wheel.file([handle for handle, _ in armings], deadlines)
        for (handle, _), deadline in zip(armings, deadlines, strict=True):
            self.model.arm(handle, deadline)

    @rule(picks=st.lists(st.tuples(st.integers(0, 1_000), DELAYS), max_size=8))
    def touch(self, picks: list[tuple[int, int]]) -> None:
        """Re-arm handles that are filed: later (a heartbeat), or earlier (a shorter timeout)."""
        filed = sorted(self.model.armed)
        if not filed:
            return
        handles = [filed[pick % len(filed)] for pick, _ in picks]
        deadlines = [self.model.clock_ms + delay for _, delay in picks]
        self.wheel.touch(handles, deadlines)
        for handle, deadline in zip(handles, deadlines, strict=True):
            self.model.arm(handle, deadline)

    @rule(handles=st.lists(HANDLES, max_size=8))
    def cancel(self, handles: list[int]) -> None:
        """Cancel handles, filed or not."""
        self.wheel.cancel(handles)
        for handle in handles:
            self.model.armed.pop(handle, None)

    @rule(handle=HANDLES, delay=DELAYS)
    def file_one(self, handle: int, delay: int) -> None:
        """File a single handle by the way that is made for one."""
        self.wheel.file_one(handle, self.model.clock_ms + delay)
        self.model.arm(handle, self.model.clock_ms + delay)

    @rule(handle=HANDLES)
    def cancel_one(self, handle: int) -> None:
        """Cancel a single handle by the way that is made for one."""
        self.wheel.cancel_one(handle)
        self.model.armed.pop(handle, None)

    @rule(step=st.one_of(st.sampled_from([0, 1]), st.integers(0, 3_000), st.sampled_from([10**6, 10**9])))
    def advance(self, step: int) -> None:
        """Advance by nothing, by a little, or by a huge step."""
        self.advance_to(self.model.clock_ms + step)

    @rule(offset=st.sampled_from([-1, 0, 1]))
    def advance_to_a_boundary(self, offset: int) -> None:
        """Advance to the begin of the next bucket, one before and one after it."""
        expiration = self.wheel.next_expiration_ms()
        if expiration is not None:
            self.advance_to(max(self.model.clock_ms, expiration + offset))

    @rule(step=st.integers(1, 10**6))
    def regress(self, step: int) -> None:
        """Let the clock go back."""
        assert self.wheel.advance(self.model.clock_ms - step).tolist() == []

    @rule()
    def restore(self) -> None:
        """Go on with a wheel that was restored from a snapshot."""
        before, overdue = self.wheel.occupancy(slots=True), self.wheel.overdue
        stats, expiration = self.wheel.stats, self.wheel.next_expiration_ms()
        self.wheel = TimingWheel.restore(self.wheel.snapshot())
        assert (self.wheel.occupancy(slots=True), self.wheel.overdue) == (before, overdue)
        assert (self.wheel.stats, self.wheel.next_expiration_ms()) == (stats, expiration)

    def advance_to(self, clock_ms: int) -> None:
        """Advance both and compare."""
        assert self.wheel.advance(clock_ms).tolist() == self.model.advance(clock_ms)

    @invariant()
    def agrees(self) -> None:
        """Hold the state of both against each other."""
        if not hasattr(self, "wheel"):
            return
        self.wheel.check()
        assert len(self.wheel) == len(self.model.armed)
        assert self.wheel.clock_ms == self.model.clock_ms
        assert self.wheel.overdue + sum(level.entries for level in self.wheel.occupancy()) == len(self.wheel)
        deadlines = self.wheel.deadlines()
        assert {h: d for h, d in enumerate(deadlines.tolist()) if d != NEVER} == {
            handle: deadline for handle, (_, deadline) in self.model.armed.items()
        }
        expiration = self.wheel.next_expiration_ms()
        first_due = min((due for due, _ in self.model.armed.values()), default=None)
        assert (expiration is None) == (first_due is None)
        assert expiration is None or first_due is None or expiration <= max(first_due, self.model.clock_ms)


@pytest.mark.timeout(300)
class TestWheelAgainstHeap(WheelAgainstHeap.TestCase):  # type: ignore[misc,valid-type]  # made by a property
    """Run the machine; programs of up to 60 steps."""

    settings = settings(max_examples=max(60, EXAMPLES), stateful_step_count=60, deadline=None)
