"""Who walks in a history."""

from __future__ import annotations

from collections.abc import Callable

from heartwheel.simulation.consumers import consumer
from heartwheel.simulation.epoch_members import epoch_member
from heartwheel.simulation.feeder import Feeder, Walk
from heartwheel.simulation.mischief import bouncer, liar, mover, too_short, vandal
from heartwheel.simulation.plan import GroupPlan, Plan
from heartwheel.simulation.story import Story
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
    feeder.run()
    return feeder


def _walk_of(group: GroupPlan, number: int) -> Callable[[Feeder, Who], Walk]:
    if group.kind == "presence":
        return worker
    if group.kind in ("classic", "loaded") or (group.kind == "mixed" and number % 2):
        return consumer
    return epoch_member


def _populate(feeder: Feeder, group: GroupPlan) -> None:
    feeder.story.mark(f"group {group.kind}")
    for number in range(group.members):
        feeder.start(_walk_of(group, number)(feeder, Who(group, number)), group=group)
    if group.kind == "classic":
        feeder.start(too_short(feeder, group), group=group)
    if group.reloads:
        feeder.start(mover(feeder, group), group=group)
    if feeder.dice.random() < 0.1:
        feeder.start(bouncer(feeder, group), group=group)
