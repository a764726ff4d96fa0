"""The walks of a history: its members, disturbances and feeds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from heartwheel.proof.simulation.plan.groups import GroupPlan
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.story import Story
from heartwheel.proof.simulation.world.consumers import consumer
from heartwheel.proof.simulation.world.disturbances import bouncer, liar, mover, too_short, vandal
from heartwheel.proof.simulation.world.epoch_members import epoch_member
from heartwheel.proof.simulation.world.feeder import SimulatedFeeder, Walk
from heartwheel.proof.simulation.world.feeds import append_writes, relayed_writes
from heartwheel.proof.simulation.world.tapped import ReceivedRequest, TappedFeeder, moves_between_brokers
from heartwheel.proof.simulation.world.topic import SimulatedTopic
from heartwheel.proof.simulation.world.workers import Who, worker


def feed(plan: Plan, story: Story) -> SimulatedFeeder:
    """Return a feeder whose topic has all records of the members and feeds of a history."""
    feeder = SimulatedFeeder(plan, SimulatedTopic(plan), story)
    for group in plan.groups:
        _populate(feeder, group)
    feeder.start(vandal(feeder))
    if plan.liar:
        feeder.start(liar(feeder))
    feeds = (
        append_writes(feeder, relayed_writes(plan, _received(plan, feeder.topic, story), story))
        if plan.relayed.feeds
        else None
    )
    if feeds is not None:
        feeder.start(feeds)
    feeder.run()
    if feeds is not None:
        deque(feeds, maxlen=0)  # members have stopped; the feeds write the rest
    return feeder


def _received(plan: Plan, topic: SimulatedTopic, story: Story) -> list[ReceivedRequest]:
    """Return the requests that the feeds' brokers receive."""
    tapped = TappedFeeder(plan, topic, story)
    for fed in plan.relayed.groups:
        _populate(tapped, fed.group, waits_for_topic=False)
        story.mark("group passed on")
        if len(fed.moves) > 1:
            story.mark("group moves to another feed")
        if fed.reports_moves:
            tapped.start(moves_between_brokers(tapped, fed))
    return tapped.finish()


def _walk_of(group: GroupPlan, number: int) -> Callable[[SimulatedFeeder, Who], Walk]:
    if group.kind == "presence":
        return worker
    if group.kind in ("classic", "loaded") or (group.kind == "mixed" and number % 2):
        return consumer
    return epoch_member


def _populate(feeder: SimulatedFeeder, group: GroupPlan, *, waits_for_topic: bool = True) -> None:
    """Start the members of a group; those that write to the topic stop while it cannot be written."""
    feeder.story.mark(f"group {group.kind}")
    where = group if waits_for_topic else None
    for number in range(group.members):
        feeder.start(_walk_of(group, number)(feeder, Who(group, number)), group=where)
    if group.kind == "classic":
        feeder.start(too_short(feeder, group), group=where)
    if group.reloads:
        feeder.start(mover(feeder, group), group=where)
    if feeder.dice.random() < 0.1:
        feeder.start(bouncer(feeder, group), group=where)
