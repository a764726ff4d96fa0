"""The steps at which a job may die or stall, and the dice that decide."""

from __future__ import annotations

import enum
from random import Random

from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.story import Story


class JobStep(enum.StrEnum):
    """A step that a job has just done."""

    STARTED = "started"
    OFFSETS_FETCHED = "offsets fetched"
    TIMESTAMP_TAKEN = "timestamp taken"
    OFFSETS_WRITTEN = "offsets written"
    PACKED = "packed"
    STATE_FUNCTION_RUNNING = "state function running"
    SINK_PARTLY_WRITTEN = "sink partly written"
    SINK_WRITTEN = "sink written"
    STATE_PARTLY_WRITTEN = "state partly written"
    STATE_WRITTEN = "state written"
    COMMITTED = "committed"


class Crash(Exception):  # noqa: N818 - it is an event of the story, not an error of ours
    """The simulated driver dies.

    Args:
        step: the step that it had just done.
    """

    def __init__(self, step: JobStep) -> None:
        super().__init__(step.value)
        self.step = step


class Faults:
    """Decides which faults happen."""

    def __init__(self, plan: Plan, dice: Random, story: Story) -> None:
        self._plan = plan
        self._dice = dice
        self._story = story
        self._left = plan.crashes_max
        self.calm = False
        """Whether there are no more faults."""

    def stall_ms(self) -> int:
        """Return how long a step took, true ms."""
        if not self.calm and self._dice.random() < self._plan.stall_rate:
            self._story.mark("fault stall")
            return self._dice.choice((200, 700, 2_500))
        return self._dice.choice((0, 0, 1, 5, 30))

    def crash_at(self, step: JobStep) -> bool:
        """Decide whether the driver dies now."""
        if self.calm or self._left == 0 or self._dice.random() >= self._plan.crash_rate:
            return False
        self._left -= 1
        self._story.mark(f"crash {step}")
        return True

    def downtime_ms(self) -> int:
        """Return how long the job stays down, true ms."""
        down_ms = self._dice.choice((0, 10, 400, 2_000, 6_000))
        self._story.mark("downtime long" if down_ms >= 2_000 else "downtime short")
        return down_ms

    def retries(self) -> bool:
        """Decide whether a task fails after it wrote some rows, and is run again in the same batch."""
        return not self.calm and self._dice.random() < self._plan.crash_rate / 4
