"""The groups of other brokers: members and their coordinator elsewhere, whose requests feeds hear, and nobody else.

Nothing of them lands in the heartbeat topic by itself, and no outage of that topic stops them. What their coordinator
answers depends on what happened alone, whether it was passed on or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.manager import AnyGroup
from heartwheel.engine.rules.model import Group
from heartwheel.proof.simulation.plan.feeds import FedGroup
from heartwheel.proof.simulation.plan.groups import GroupPlan
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.story import Story
from heartwheel.proof.simulation.world.feeder import SimulatedFeeder, Walk
from heartwheel.proof.simulation.world.topic import SimulatedTopic
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.requests import Request


@dataclass
class Heard:
    """A request that a feed's broker has received.

    Args:
        true_ms: when it came, true ms.
        at_ms: the same by the broker's clock, epoch ms.
        feed: which feed hears it.
        group_id: whose it is.
        event: what it asks.
        answer: what was answered, at once.
        answered_ms: when it is logged, which is when it is answered, true ms; -1 while it waits for its answer.
    """

    true_ms: int
    at_ms: int
    feed: int
    group_id: str
    event: Request
    answer: Answer
    answered_ms: int


class TappedFeeder(SimulatedFeeder):
    """The world of members whose brokers are tapped; it notes what each feed hears.

    Args:
        plan: the history's parameters.
        topic: of the heartbeats; nothing is written to it.
        story: notes what happens.
    """

    def __init__(self, plan: Plan, topic: SimulatedTopic, story: Story) -> None:
        super().__init__(plan, topic, story)
        self.dice = Random(f"tapped {plan.seed}")
        self.heard: list[Heard] = []
        self._groups = {fed.group.group_id: fed for fed in plan.passed_on.groups}
        self._parked: list[Heard] = []

    def send(self, group: GroupPlan, event: Request, *, stray: bool = False) -> Answer:  # noqa: ARG002 - as its base
        """Ask the coordinator, who is elsewhere; there is one way there.

        Args:
            group: whose member asks.
            event: what it asks.
            stray: has no meaning here.
        """
        feed = self._groups[group.group_id].feed_at(self.now_ms)
        at_ms = self.clock_ms(group)
        answer = self._machine(group).apply(event, at_ms)
        parked = answer is Answer.PARKED
        heard = Heard(
            self.now_ms, at_ms, feed, group.group_id, event, answer, answered_ms=-1 if parked else self.now_ms
        )
        self.heard.append(heard)
        if parked:
            self.story.mark("feed hears of a parked join or sync")
            self._parked.append(heard)
        self._note_answers(group)
        return answer

    def clock_ms(self, group: GroupPlan, true_ms: int | None = None) -> int:
        """Return what the clock of a group's coordinator shows, epoch ms; now, if no true time is given."""
        true_ms = self.now_ms if true_ms is None else true_ms
        feeds = self.plan.passed_on.feeds
        return feeds[self._groups[group.group_id].feed_at(true_ms)].clock.at(true_ms)

    def any_group(self, group: GroupPlan) -> AnyGroup:
        """Look at a group as its coordinator has it now."""
        found = super().any_group(group)
        self._note_answers(group)
        return found

    def finish(self) -> list[Heard]:
        """Run to the end; return what was heard, in the order of time."""
        self.run()
        for heard in self._parked:
            heard.answered_ms = self.plan.feed_ms + self.dice.randrange(3_000)
        return self.heard

    def _renew(self, group: GroupPlan) -> None:
        """Renew nothing: no outage of the heartbeat topic is one of these brokers."""

    def _note_answers(self, group: GroupPlan) -> None:
        """Note which joins and syncs of a group have their answers by now."""
        mine = [heard for heard in self._parked if heard.group_id == group.group_id]
        if not mine:
            return
        found = self._machine(group).group
        waits = (
            {name for name, member in found.members.items() if member.awaiting_join or member.awaiting_sync}
            if isinstance(found, Group)
            else set()
        )
        for heard in mine:
            if _sender(heard.event) not in waits:
                heard.answered_ms = self.now_ms
                self._parked.remove(heard)


def _sender(event: Request) -> str:
    return event.member_id or (event.assigned_member_id or "" if isinstance(event, Event) else "")


def moves_between_brokers(feeder: SimulatedFeeder, fed: FedGroup) -> Walk:
    """Walk as a coordinator that moves to another broker, where both brokers' own logs tell of it."""
    for from_ms, _ in fed.moves[1:]:
        feeder.story.mark("feed tells of a move")
        yield max(1, from_ms - 1 - feeder.now_ms)
        feeder.send(fed.group, Event(type=EventType.UNLOAD, group_id=fed.group.group_id))
        yield feeder.dice.choice((1, 40, 300))
        feeder.send(fed.group, Event(type=EventType.LOAD, group_id=fed.group.group_id))
