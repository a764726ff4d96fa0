"""Members of presence groups: they beat, pause, fall silent, leave, come back."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from heartwheel.simulation.feeder import Feeder, Walk
from heartwheel.simulation.group_plan import GroupPlan
from heartwheel.wire.events import Event, EventType


class Who(NamedTuple):
    """Name one simulated member.

    Args:
        group: what its group is like.
        number: which of the group's members it is.
    """

    group: GroupPlan
    number: int

    def member_id(self, life: int = 0) -> str:
        """Name the id that it goes by in one of its lives."""
        return f"m{self.number}" if life == 0 else f"m{self.number}-{life}"

    @property
    def instance_id(self) -> str | None:
        """Its instance id, if it is static."""
        return f"i{self.number}" if self.group.static else None


def worker(feeder: Feeder, who: Who) -> Walk:
    """Walk as a worker that knows no protocol."""
    group, dice, life = who.group, feeder.dice, 0
    yield feeder.grain(dice.randrange(1, 3 * group.session_ms))
    while True:
        yield from _beat_on(feeder, who, life)
        ending = dice.choice(("die", "die", "leave", "pause"))
        feeder.story.mark(f"member {ending}")
        if ending == "leave":
            feeder.send(group, _leave(feeder, who, life))
        if ending != "pause" and dice.random() < 0.4:
            return
        yield feeder.grain(group.session_ms * dice.uniform(0.9, 3.0))
        feeder.story.mark("member return")
        if who.instance_id and dice.random() < 0.5:
            life += 1
            feeder.story.mark("member return static")


def _leave(feeder: Feeder, who: Who, life: int) -> Event:
    """Leave, fail, or tell of another worker that failed before its first beat, and fall silent.

    The clock decides, and not the dice: other members' histories stay as they are.
    """
    group = who.group
    leave = Event(type=EventType.LEAVE, group_id=group.group_id, member_id=who.member_id(life))
    which = feeder.clock_ms(group) % 4
    if which > 1:
        return leave
    feeder.story.mark("member fail" if which else "member fail unheard")
    named = leave.member_id if which else f"unheard-{who.number}"
    return msgspec.structs.replace(leave, member_id=named, failure=f"exit code {who.number + 1}")


def _beat_on(feeder: Feeder, who: Who, life: int) -> Walk:
    """Beat until something else is done; now and then after a silence that ends just at the deadline."""
    dice, plan, group = feeder.dice, feeder.plan, who.group
    session_ms = group.session_ms
    while True:
        if dice.random() < plan.unrest / 4:
            session_ms = group.session_ms + dice.choice((-100, 0, 300))
        append_ms = _beat(feeder, who, life, session_ms)
        if dice.random() >= plan.unrest:
            yield feeder.grain(group.beat_ms * dice.uniform(0.9, 1.1))
        elif dice.random() < 0.5:
            yield feeder.until_append(group, append_ms + session_ms + feeder.edge())
        else:
            return


def _beat(feeder: Feeder, who: Who, life: int, session_ms: int) -> int:
    group = who.group
    stray = group.stray and who.number % 2 == 1
    event = Event(
        group_id=group.group_id,
        member_id=who.member_id(life),
        group_instance_id=who.instance_id,
        session_timeout_ms=session_ms,
        client_host=f"/10.0.0.{who.number}",
    )
    feeder.send(group, event, stray=stray)
    return feeder.clock_ms(group)
