"""Members of presence groups: they send heartbeats, pause, fall silent, leave and come back."""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

import msgspec

from heartwheel.proof.simulation.plan.groups import GroupPlan
from heartwheel.proof.simulation.world.feeder import SimulatedFeeder, Walk
from heartwheel.wire.events import Event, EventType


class Who(NamedTuple):
    """A simulated member.

    Args:
        incarnation: the number of its start, if its records have one.
        slowness: its session timeout and its time between heartbeats, as a multiple of its group's.
    """

    group: GroupPlan
    number: int
    incarnation: int | None = None
    slowness: float = 1.0

    def member_id(self, life: int = 0) -> str:
        """Return the id that it uses in one of its lives."""
        return f"m{self.number}" if life == 0 else f"m{self.number}-{life}"

    @property
    def session_ms(self) -> int:
        """Its session timeout."""
        return round(self.group.session_ms * self.slowness)

    @property
    def instance_id(self) -> str | None:
        """Its instance id, if it is static."""
        return f"i{self.number}" if self.group.static else None


def worker(feeder: SimulatedFeeder, who: Who) -> Walk:
    """Walk as a worker without a protocol."""
    group, dice, life, ending = who.group, feeder.dice, 0, ""
    yield feeder.grain(dice.randrange(1, 3 * group.session_ms))
    for start in count():
        if group.numbered and ending != "pause":
            slowness = dice.choice((0.5, 1.0, 1.0, 2.0))
            who = who._replace(incarnation=_incarnation(feeder, start), slowness=slowness)
        yield from _beat_on(feeder, who, life)
        ending = dice.choice(("leave", "leave", "die", "pause") if group.numbered else ("die", "die", "leave", "pause"))
        feeder.story.mark(f"member {ending}")
        end = _leave(feeder, who, life) if ending == "leave" else None
        if group.numbered:
            feeder.start(_late(feeder, who, life, end), group=group)
        if end is not None and not (group.numbered and dice.random() < 0.4):
            feeder.send(group, end)
        if ending != "pause" and dice.random() < (0.1 if group.numbered else 0.4):
            return
        yield feeder.grain(group.session_ms * (dice.uniform(0.1, 1.2) if group.numbered else dice.uniform(0.9, 3.0)))
        feeder.story.mark("member return")
        if who.instance_id and dice.random() < 0.5:
            life += 1
            feeder.story.mark("member return static")


def _incarnation(feeder: SimulatedFeeder, start: int) -> int:
    """Return a number for a start: higher than the earlier ones, unless the clock was set back; never the same."""
    set_back = start > 0 and feeder.dice.random() < 0.15
    if set_back:
        feeder.story.mark("worker clock set back")
    return 10 * start + (0 if set_back else 15)


def _late(feeder: SimulatedFeeder, who: Who, life: int, end: Event | None) -> Walk:
    """Walk as a gateway that sends the last records of a start late, or again.

    A failure may name an instance id that no member has, as when the worker has got another one.
    """
    dice, group = feeder.dice, who.group
    beat = _heartbeat(who, life, who.session_ms)
    if end is not None and end.failure is not None and dice.random() < 0.5:
        end = msgspec.structs.replace(end, group_instance_id=f"former-{who.number}")
    records = dice.choice(((end,), (end, end), (beat,), (beat, beat, end), (beat, beat, beat), (end, beat)))
    for event in records:
        yield feeder.grain(who.session_ms * dice.choice((0.05, 0.3, 1.0)))
        if event is not None:
            answer = feeder.send(group, event)
            feeder.story.mark(f"late {event.type} answered {answer}")


def _leave(feeder: SimulatedFeeder, who: Who, life: int) -> Event:
    """Return a leave, a failure, or the failure of another worker that failed before its first heartbeat.

    The clock decides which, not the dice, so that other members' histories stay the same.
    """
    group = who.group
    leave = Event(
        type=EventType.LEAVE, group_id=group.group_id, member_id=who.member_id(life), incarnation=who.incarnation
    )
    which = feeder.clock_ms(group) % 4
    if which > 1:
        return leave
    feeder.story.mark("member fail" if which else "member fail unheard")
    named = leave.member_id if which else f"unheard-{who.number}"
    failure = f"exit code {who.number + 1}" if who.incarnation is None else f"start {who.incarnation} failed"
    return msgspec.structs.replace(leave, member_id=named, failure=failure)


def _beat_on(feeder: SimulatedFeeder, who: Who, life: int) -> Walk:
    """Send heartbeats until the worker does something else; some come after a silence up to the deadline."""
    dice, group = feeder.dice, who.group
    unrest, session_ms = 0.4 if group.numbered else feeder.plan.unrest, who.session_ms
    while True:
        if dice.random() < unrest / 4:
            session_ms = who.session_ms + dice.choice((-100, 0, 300))
        append_ms = _beat(feeder, who, life, session_ms)
        if dice.random() >= unrest:
            yield feeder.grain(group.beat_ms * who.slowness * dice.uniform(0.9, 1.1))
        elif dice.random() < 0.5:
            yield feeder.until_append(group, append_ms + session_ms + feeder.edge())
        else:
            return


def _beat(feeder: SimulatedFeeder, who: Who, life: int, session_ms: int) -> int:
    group = who.group
    stray = group.stray and who.number % 2 == 1
    feeder.send(group, _heartbeat(who, life, session_ms), stray=stray)
    return feeder.clock_ms(group)


def _heartbeat(who: Who, life: int, session_ms: int) -> Event:
    return Event(
        group_id=who.group.group_id,
        member_id=who.member_id(life),
        group_instance_id=who.instance_id,
        session_timeout_ms=session_ms,
        client_host=f"/10.0.{who.incarnation or 0}.{who.number}",
        incarnation=who.incarnation,
    )
