"""Who walks in a history."""

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
from heartwheel.proof.simulation.world.feeds import bring, passed_on
from heartwheel.proof.simulation.world.tapped import Heard, TappedFeeder, moves_between_brokers
from heartwheel.proof.simulation.world.topic import SimulatedTopic
from heartwheel.proof.simulation.world.workers import Who, worker


def feed(plan: Plan, story: Story) -> SimulatedFeeder:
    """Fill a topic with all that the members of a history send.

    Args:
        plan: the history's parameters.
        story: notes what happens.
    """
    feeder = SimulatedFeeder(plan, SimulatedTopic(plan), story)
    for group in plan.groups:
        _populate(feeder, group)
    feeder.start(vandal(feeder))
    if plan.liar:
        feeder.start(liar(feeder))
    feeds = bring(feeder, passed_on(plan, _heard(plan, feeder.topic, story), story)) if plan.passed_on.feeds else None
    if feeds is not None:
        feeder.start(feeds)
    feeder.run()
    if feeds is not None:
        deque(feeds, maxlen=0)  # members have stopped; feeds go on
    return feeder


def _heard(plan: Plan, topic: SimulatedTopic, story: Story) -> list[Heard]:
    """Return what feeds hear of their members."""
    tapped = TappedFeeder(plan, topic, story)
    for fed in plan.passed_on.groups:
        _populate(tapped, fed.group, stands_still=False)
        story.mark("group passed on")
        if len(fed.moves) > 1:
            story.mark("group moves to another feed")
        if fed.told:
            tapped.start(moves_between_brokers(tapped, fed))
    return tapped.finish()


def _walk_of(group: GroupPlan, number: int) -> Callable[[SimulatedFeeder, Who], Walk]:
    if group.kind == "presence":
        return worker
    if group.kind in ("classic", "loaded") or (group.kind == "mixed" and number % 2):
        return consumer
    return epoch_member


def _populate(feeder: SimulatedFeeder, group: GroupPlan, *, stands_still: bool = True) -> None:
    """Start the members of a group; those that write to the topic stand still while it cannot be written."""
    feeder.story.mark(f"group {group.kind}")
    where = group if stands_still else None
    for number in range(group.members):
        feeder.start(_walk_of(group, number)(feeder, Who(group, number)), group=where)
    if group.kind == "classic":
        feeder.start(too_short(feeder, group), group=where)
    if group.reloads:
        feeder.start(mover(feeder, group), group=where)
    if feeder.dice.random() < 0.1:
        feeder.start(bouncer(feeder, group), group=where)
