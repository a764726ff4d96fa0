"""The job's ticker in the simulated world: it lives with the driver, and lags, dies and leaves partitions out."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Final

from heartwheel.simulation.plan import Plan
from heartwheel.simulation.story import Story
from heartwheel.simulation.topic import Topic
from heartwheel.wire.tick import Tick, encode_tick

_BACK_MS: Final = (5, 120, 260)
"""How long after an outage a ticker has found its partitions again, ms."""


class Ticker:
    """Write ticks into the topic as true time passes.

    Args:
        plan: the history's parameters.
        topic: the heartbeats.
        story: notes what happens.
    """

    def __init__(self, plan: Plan, topic: Topic, story: Story) -> None:
        self.runs: list[str] = []
        """Every run that there was, the present one last."""
        self._plan = plan
        self._topic = topic
        self._story = story
        self._dice = Random(f"ticker {plan.seed}")
        self._alive = False
        self._now_ms = self._next_ms = self._began_ms = 0
        self._flying: list[tuple[int, int, int, bytes]] = []
        self._busy: dict[int, int] = {}
        self._numbers = count()

    def start(self, true_ms: int) -> None:
        """Begin a run: the ticker of a new process."""
        self.advance(true_ms)
        self.runs.append(f"{self._plan.seed % 2**32:08x}{len(self.runs):08x}")
        self._alive = True
        self._began_ms = self._next_ms = true_ms
        self._busy.clear()

    def stop(self, true_ms: int) -> None:
        """End with the process; what is on its way may land all the same, or not."""
        self.advance(true_ms)
        self._alive = False
        if self._dice.random() < 0.5:
            self._flying.clear()

    def advance(self, true_ms: int) -> None:
        """Let time pass; ticks are sent and land."""
        while True:
            landing_ms = self._flying[0][0] if self._flying else true_ms + 1
            sending_ms = self._next_ms if self._alive else true_ms + 1
            if min(landing_ms, sending_ms) > true_ms:
                break
            if landing_ms <= sending_ms:
                _, _, partition, value = heappop(self._flying)
                self._topic.append(partition, value, landing_ms)
            else:
                self._send(sending_ms)
                self._next_ms = sending_ms + self._plan.tick_interval_ms
        self._now_ms = true_ms

    def _send(self, true_ms: int) -> None:
        plan, topic = self._plan, self._topic
        partitions = topic.count_at(true_ms)
        value = encode_tick(Tick(self.runs[-1], true_ms - self._began_ms, partitions, plan.tick_interval_ms))
        for partition in range(partitions):
            trouble = next((one for one in plan.troubles if one.hits(partition, true_ms)), None)
            if self._busy.get(partition, -1) > true_ms or (trouble is not None and not trouble.lag_ms):
                continue
            landing_ms = true_ms + (trouble.lag_ms if trouble else self._dice.choice((0, 1, 4)))
            busy_ms = landing_ms
            if (outage := topic.outage_at(partition, landing_ms)) is not None:
                # One is on its way: it lands first, or never does. The next comes once the leader is found again.
                self._story.mark("fault outage with the job")
                landing_ms, busy_ms = outage.to_ms, outage.to_ms + self._dice.choice(_BACK_MS)
                if self._dice.random() < 0.3:
                    landing_ms = -1
            self._busy[partition] = busy_ms
            if landing_ms >= 0:
                heappush(self._flying, (landing_ms, next(self._numbers), partition, value))
