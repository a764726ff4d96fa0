"""The world before the job: members, their coordinator, and the topic that gets their requests.

Every actor is a *walk*, a generator that yields how long it waits. The feeder resumes the walks in the order of true
time, so the same seed gives the same log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Final

import msgspec

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.epochs.config import EpochConfig
from heartwheel.engine.rules.manager import AnyGroup, ClassicRules
from heartwheel.engine.rules.model import Group, Member
from heartwheel.proof.simulation.plan.groups import GroupPlan
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.story import Story
from heartwheel.proof.simulation.world.topic import SimulatedTopic
from heartwheel.wire.requests import Request, encode_request

Walk = Iterator[int]

_EDGES_MS: Final = (-1, 0, 1)


class SimulatedFeeder:
    """The members, and the coordinator that answers them.

    Args:
        topic: the topic that gets the requests.
    """

    def __init__(self, plan: Plan, topic: SimulatedTopic, story: Story) -> None:
        self.plan = plan
        self.dice = Random(f"feed {plan.seed}")
        self.topic = topic
        self.story = story
        self.now_ms = 0
        self.generations: dict[str, int] = {}
        """The generation that members of loaded groups know, by group."""
        self._machines: dict[str, ClassicRules] = {}
        self._walks: list[tuple[int, int, Walk, GroupPlan | None]] = []
        self._renewed: dict[str, int] = {}
        self._numbers = count()

    def start(self, walk: Walk, after_ms: int = 0, *, group: GroupPlan | None = None) -> None:
        """Start a walk; if a group is given, the walk stops while the group's partition cannot be written."""
        heappush(self._walks, (self.now_ms + after_ms, next(self._numbers), walk, group))

    def run(self) -> None:
        """Run all walks until the members stop."""
        while self._walks:
            self.now_ms, _, walk, group = heappop(self._walks)
            if self.now_ms >= self.plan.feed_ms:
                return
            outage = group and self.topic.outage_at(self.topic.partition_of(group, self.now_ms), self.now_ms)
            if outage:
                self._pause(walk, group, outage.to_ms)
                continue
            wait_ms = next(walk, None)
            if wait_ms is not None:
                self.start(walk, wait_ms, group=group)

    def _pause(self, walk: Walk, group: GroupPlan | None, until_ms: int) -> None:
        """Make a member wait until an outage ends, or die in it."""
        if self.dice.random() < 0.15:
            self.story.mark("member dies in an outage")
            return
        self.story.mark("member stands still")
        self.start(walk, until_ms - self.now_ms + self.dice.choice((0, 1, 40, 300)), group=group)

    # -- used by the walks

    def grain(self, wait_ms: float) -> int:
        """Round a wait to the history's grain, to at least one."""
        grain_ms = self.plan.grain_ms
        return max(1, round(wait_ms / grain_ms)) * grain_ms

    def send(self, group: GroupPlan, event: Request, *, stray: bool = False) -> Answer:
        """Append a request, sometimes twice, and return its answer.

        Args:
            stray: whether it goes to another partition than its group's.
        """
        record_ms = self.land(group, self._encode(event), stray=stray)
        self.story.say(self.now_ms, "{} of {}: {} at {}", event.type, event.member_id, group.group_id, record_ms)
        if self.dice.random() < self.plan.duplicates:
            self.story.mark("fault duplicate record")
            self.land(group, self._encode(event), stray=stray)
        return self._machine(group).apply(event, record_ms)

    def land(self, group: GroupPlan, value: bytes | None, *, cause: str = "", stray: bool = False) -> int:
        """Send a value as a record of a group, and return its append time; `cause` is why the job must reject it."""
        partition = self.topic.partition_of(group, self.now_ms)
        if stray:
            partition = (partition + 1) % self.topic.count_at(self.now_ms)
        return self.topic.send(partition, value, self.now_ms, cause=cause)

    def until_append(self, group: GroupPlan, append_ms: int) -> int:
        """Return how long to wait for a record to get this append time, or the first possible one after it."""
        at_ms = self.now_ms + 1
        while (missing := append_ms - self.clock_ms(group, at_ms)) > 0 and at_ms < self.plan.feed_ms:
            at_ms += missing
        return at_ms - self.now_ms

    def clock_ms(self, group: GroupPlan, true_ms: int | None = None) -> int:
        """Return the append time of a group's record at a true time, by default now, epoch ms."""
        partition = self.topic.partition_of(group, self.now_ms)
        return self.topic.clock_ms(partition, self.now_ms if true_ms is None else true_ms)

    def edge(self) -> int:
        """Return a random offset from a deadline: just before it, exactly at it, or just after it, ms."""
        edge_ms = self.dice.choice(_EDGES_MS)
        self.story.mark(f"pause deadline {edge_ms:+}")
        return edge_ms

    def group(self, group: GroupPlan) -> Group:
        """Return a group as its coordinator has it now; an epoch group is returned as classic members see it."""
        found = self.any_group(group)
        if isinstance(found, Group):
            return found
        members = {name: Member(name, 0) for name in found.members}
        return Group(found.group_id, generation=found.target_epoch, members=members)

    def any_group(self, group: GroupPlan) -> AnyGroup:
        """Return a group as its coordinator has it now."""
        machine = self._machine(group)
        machine.advance(self.clock_ms(group))
        return machine.group

    def member(self, group: GroupPlan, member_id: str) -> Member | None:
        """Return a member as its coordinator has it now."""
        return self.group(group).members.get(member_id)

    def _machine(self, group: GroupPlan) -> ClassicRules:
        group_id = group.group_id
        if group_id not in self._machines:
            ignore: Callable[[object], None] = _ignore
            self._machines[group_id] = ClassicRules(
                Group(group_id=group_id), EpochConfig(self.plan.coordinator), ignore
            )
        self._renew(group)
        return self._machines[group_id]

    def _renew(self, group: GroupPlan) -> None:
        """Renew all sessions after an outage, as a coordinator does when it loads the group."""
        group_id, topic, partition = group.group_id, self.topic, self.topic.partition_of(group, self.now_ms)
        for outage in self.plan.outages:
            over = self._renewed.get(group_id, 0) < outage.to_ms <= self.now_ms
            if over and outage.partition in (-1, partition):
                self._renewed[group_id] = outage.to_ms
                self._machines[group_id].renew(
                    topic.clock_ms(partition, outage.from_ms), topic.clock_ms(partition, outage.to_ms)
                )

    def _encode(self, event: Request) -> bytes:
        """Encode an event as different producers do: as short as possible, or with an unknown field."""
        value = encode_request(event)
        if self.dice.random() < 0.2:
            return msgspec.json.encode({**msgspec.json.decode(value), "sent_at": self.now_ms})
        return value


def _ignore(_: object) -> None:
    pass
