"""Who walks in a history."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from heartwheel.simulation.consumers import consumer
from heartwheel.simulation.epoch_members import epoch_member
from heartwheel.simulation.feeder import Feeder, Walk
from heartwheel.simulation.group_plan import GroupPlan
from heartwheel.simulation.mischief import bouncer, liar, mover, too_short, vandal
from heartwheel.simulation.passing_on import bring, passed_on
from heartwheel.simulation.plan import Plan
from heartwheel.simulation.story import Story
from heartwheel.simulation.tapped import Heard, TappedFeeder, moves_between_brokers
from heartwheel.simulation.topic import Topic
from heartwheel.simulation.workers import Who, worker


def feed(plan: Plan, story: Story) -> Feeder:
    """Fill a topic with all that the members of a history send.

    Args:
        plan: the history's parameters.
        story: notes what happens.
    """
    feeder = Feeder(plan, Topic(plan), story)
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


def _heard(plan: Plan, topic: Topic, story: Story) -> list[Heard]:
    """Let the members walk whom feeds hear."""
    tapped = TappedFeeder(plan, topic, story)
    for fed in plan.passed_on.groups:
        _populate(tapped, fed.group, stands_still=False)
        story.mark("group passed on")
        if len(fed.moves) > 1:
            story.mark("group moves to another feed")
        if fed.told:
            tapped.start(moves_between_brokers(tapped, fed))
    return tapped.finish()


def _walk_of(group: GroupPlan, number: int) -> Callable[[Feeder, Who], Walk]:
    if group.kind == "presence":
        return worker
    if group.kind in ("classic", "loaded") or (group.kind == "mixed" and number % 2):
        return consumer
    return epoch_member


def _populate(feeder: Feeder, group: GroupPlan, *, stands_still: bool = True) -> None:
    """Let the members of a group walk; those who write to the topic stand still while it cannot be written."""
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
