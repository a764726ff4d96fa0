"""The job's ticker in the simulated world: it runs in the driver, and may lag, die and skip partitions."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Final

import msgspec

from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.story import Story
from heartwheel.proof.simulation.world.topic import SimulatedTopic
from heartwheel.wire.tick import ANONYMOUS, Tick, encode_tick, read_tick

NEVER_MS: Final = 2**53
"""The end of a process for which no end is planned, true ms."""


class _Life:
    """A process that ticks: its run, its start, its next tick, and until when partitions are busy (true ms)."""

    def __init__(self, run: str, true_ms: int) -> None:
        self.run = run
        self.began_ms = self.next_ms = true_ms
        self.until_ms = NEVER_MS
        self.busy: dict[int, int] = {}


_BACK_MS: Final = (5, 120, 260)
"""How long after an outage a ticker takes to find the leaders of its partitions, ms."""


class SimulatedTicker:
    """Writes ticks into the topic as true time passes."""

    def __init__(self, plan: Plan, topic: SimulatedTopic, story: Story) -> None:
        self.runs: list[str] = []
        """All runs so far, the present one last."""
        self._plan = plan
        self._topic = topic
        self._story = story
        self._dice = Random(f"ticker {plan.seed}")
        self._rival_dice = Random(f"rivals {plan.seed}")
        self._lie_dice = Random(f"lies {plan.seed}")
        self._lives: list[_Life] = []
        self._flying: list[tuple[int, int, int, bytes]] = []
        self._written: list[tuple[int, bytes]] = []
        self._numbers = count()

    def start(self, true_ms: int) -> None:
        """Start a run, the ticker of a new process."""
        self.advance(true_ms)
        self.runs.append(f"{self._plan.seed % 2**32:08x}{len(self.runs):08x}")
        self._lives.append(_Life(self.runs[-1], true_ms))

    def stop(self, true_ms: int) -> None:
        """End the present run with its process; ticks that were sent may still be appended, or not.

        A process that is cut off from its checkpoint may live on for a while, and tick beside its successor.
        """
        self.advance(true_ms)
        if self._lives and self._rival_dice.random() < self._plan.rival_rate:
            self._story.mark("fault ticks of two drivers")
            self._lives[-1].until_ms = true_ms + self._rival_dice.choice((700, 4_000, 20_000))
        elif self._lives:
            self._lives.pop()
        if self._dice.random() < 0.5:
            self._flying.clear()

    def advance(self, true_ms: int) -> None:
        """Advance true time: send ticks, and append those that arrive."""
        while True:
            landing_ms = self._flying[0][0] if self._flying else true_ms + 1
            life = min(self._lives, key=lambda each: each.next_ms, default=None)
            sending_ms = true_ms + 1 if life is None else life.next_ms
            if min(landing_ms, sending_ms) > true_ms:
                break
            if landing_ms <= sending_ms or life is None:
                _, _, partition, value = heappop(self._flying)
                self._topic.append(partition, value, landing_ms)
                self._written.append((partition, value))
                self._copy(landing_ms)
            elif sending_ms > life.until_ms:
                self._lives.remove(life)
            else:
                self._send(sending_ms, life)
                life.next_ms = sending_ms + self._plan.tick_interval_ms

    def _copy(self, true_ms: int) -> None:
        """Copy a tick of any run into its partition, as any client that may write to the topic can."""
        dice = self._rival_dice
        if dice.random() < self._plan.copy_rate:
            self._story.mark("fault tick copied")
            partition, value = dice.choice(self._written)
            # Or the client forges a tick of that run, with too many partitions or a false interval.
            lies = {"partitions": 64} if dice.random() < 0.2 else {}
            if self._lie_dice.random() < 0.5:
                self._story.mark("fault tick with a false interval")
                lies["interval_ms"] = self._lie_dice.choice((0, 1, 2**53 - 1))
            value = encode_tick(msgspec.structs.replace(read_tick(value) or ANONYMOUS, **lies))
            if self._topic.outage_at(partition, true_ms) is None:
                self._topic.append(partition, value, true_ms)

    def _send(self, true_ms: int, life: _Life) -> None:
        plan, topic = self._plan, self._topic
        partitions = topic.count_at(true_ms)
        value = encode_tick(Tick(life.run, true_ms - life.began_ms, partitions, plan.tick_interval_ms))
        for partition in range(partitions):
            trouble = next((one for one in plan.troubles if one.hits(partition, true_ms)), None)
            if life.busy.get(partition, -1) > true_ms or (trouble is not None and not trouble.lag_ms):
                continue
            landing_ms = true_ms + (trouble.lag_ms if trouble else self._dice.choice((0, 1, 4)))
            busy_ms = landing_ms
            if (outage := topic.outage_at(partition, landing_ms)) is not None:
                # A tick that was sent is appended when the outage ends, or never. The next one is sent when the leader
                # has been found again.
                self._story.mark("fault outage with the job")
                landing_ms, busy_ms = outage.to_ms, outage.to_ms + self._dice.choice(_BACK_MS)
                if self._dice.random() < 0.3:
                    landing_ms = -1
            life.busy[partition] = busy_ms
            if landing_ms >= 0:
                heappush(self._flying, (landing_ms, next(self._numbers), partition, value))
