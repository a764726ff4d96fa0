"""Groups of tapped brokers: only the feeds bring their requests into the heartbeat topic.

An outage of that topic does not stop their members. The answers of their coordinator depend only on the requests, not
on what feeds have relayed of them.
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
class ReceivedRequest:
    """A request that a feed's broker has received.

    Args:
        true_ms: when it arrived, true ms.
        at_ms: the same by the broker's clock, epoch ms.
        answer: the coordinator's answer; `PARKED` if the final one comes later.
        answered_ms: when it is answered and logged, true ms; -1 while it waits for its answer.
    """

    true_ms: int
    at_ms: int
    feed: int
    group_id: str
    event: Request
    answer: Answer
    answered_ms: int


class TappedFeeder(SimulatedFeeder):
    """The world of members whose brokers are tapped; it records what each feed's broker receives.

    Args:
        topic: the heartbeat topic; nothing is written to it.
    """

    def __init__(self, plan: Plan, topic: SimulatedTopic, story: Story) -> None:
        super().__init__(plan, topic, story)
        self.dice = Random(f"tapped {plan.seed}")
        self.received: list[ReceivedRequest] = []
        self._groups = {fed.group.group_id: fed for fed in plan.relayed.groups}
        self._parked: list[ReceivedRequest] = []

    def send(self, group: GroupPlan, event: Request, *, stray: bool = False) -> Answer:  # noqa: ARG002 - as its base
        """Send a request to the tapped coordinator, and return its answer.

        Args:
            stray: ignored.
        """
        feed = self._groups[group.group_id].feed_at(self.now_ms)
        at_ms = self.clock_ms(group)
        answer = self._machine(group).apply(event, at_ms)
        parked = answer is Answer.PARKED
        request = ReceivedRequest(
            self.now_ms, at_ms, feed, group.group_id, event, answer, answered_ms=-1 if parked else self.now_ms
        )
        self.received.append(request)
        if parked:
            self.story.mark("feed hears of a parked join or sync")
            self._parked.append(request)
        self._note_answers(group)
        return answer

    def clock_ms(self, group: GroupPlan, true_ms: int | None = None) -> int:
        """Return the time of the coordinator's clock at a true time, by default now, epoch ms."""
        true_ms = self.now_ms if true_ms is None else true_ms
        feeds = self.plan.relayed.feeds
        return feeds[self._groups[group.group_id].feed_at(true_ms)].clock.at(true_ms)

    def any_group(self, group: GroupPlan) -> AnyGroup:
        """Return a group as its coordinator has it now."""
        found = super().any_group(group)
        self._note_answers(group)
        return found

    def finish(self) -> list[ReceivedRequest]:
        """Run to the end; return the requests that were received, in the order of time."""
        self.run()
        for request in self._parked:
            request.answered_ms = self.plan.feed_ms + self.dice.randrange(3_000)
        return self.received

    def _renew(self, group: GroupPlan) -> None:
        """Renew nothing: an outage of the heartbeat topic is no outage of these brokers."""

    def _note_answers(self, group: GroupPlan) -> None:
        """Record which joins and syncs of a group have been answered by now."""
        mine = [request for request in self._parked if request.group_id == group.group_id]
        if not mine:
            return
        found = self._machine(group).group
        waits = (
            {name for name, member in found.members.items() if member.awaiting_join or member.awaiting_sync}
            if isinstance(found, Group)
            else set()
        )
        for request in mine:
            if _sender(request.event) not in waits:
                request.answered_ms = self.now_ms
                self._parked.remove(request)


def _sender(event: Request) -> str:
    return event.member_id or (event.assigned_member_id or "" if isinstance(event, Event) else "")


def moves_between_brokers(feeder: SimulatedFeeder, fed: FedGroup) -> Walk:
    """Walk as a coordinator that moves to another broker; both brokers' own logs report it."""
    for from_ms, _ in fed.moves[1:]:
        feeder.story.mark("feed tells of a move")
        yield max(1, from_ms - 1 - feeder.now_ms)
        feeder.send(fed.group, Event(type=EventType.UNLOAD, group_id=fed.group.group_id))
        yield feeder.dice.choice((1, 40, 300))
        feeder.send(fed.group, Event(type=EventType.LOAD, group_id=fed.group.group_id))
