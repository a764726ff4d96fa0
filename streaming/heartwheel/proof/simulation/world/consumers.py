"""Consumers: members of classic and of loaded groups, which follow Kafka's classic protocol.

They know only the coordinator's answers, and react as a client does: they join again when they are asked to, sync, and
give up a member id that was removed. They die at every stage, so that every timer of the protocol ends in some history.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.model import Member
from heartwheel.proof.simulation.world.feeder import SimulatedFeeder, Walk
from heartwheel.proof.simulation.world.workers import Who
from heartwheel.wire.events import Event, EventType, Protocol

Stage = Generator[int, None, bool]
"""A part of a walk; it returns whether the client is still a member."""

_POLL_MS: Final = 60
_BUSY_SHARE: Final = 0.3
_SYNC: Final[dict[str, object]] = {"protocol_type": "consumer", "protocol_name": "range", "api_version": 9}


def consumer(feeder: SimulatedFeeder, who: Who) -> Walk:
    """Walk as a consumer, one membership after another."""
    dice = feeder.dice
    yield feeder.grain(dice.randrange(1, 3 * who.group.session_ms))
    life = 0
    if who.group.kind == "loaded":
        generation = feeder.generations.setdefault(who.group.group_id, dice.randint(1, 9))
        yield from _Membership(feeder, who, life).stay(generation)
        life += 1
    while dice.random() < 0.85:
        membership = _Membership(feeder, who, life)
        yield from membership.begin()
        yield feeder.grain(who.group.session_ms * dice.uniform(0.2, 2.5))
        feeder.story.mark("member return static" if who.instance_id else "member return")
        life += 1


class _Membership:
    """A consumer with one member id."""

    def __init__(self, feeder: SimulatedFeeder, who: Who, life: int) -> None:
        self._feeder = feeder
        self._who = who
        self._group = who.group
        self._dice = feeder.dice
        self._member_id = who.member_id(life)

    def begin(self) -> Stage:
        """Get a member id, join with it, and stay."""
        answer = self._send(EventType.JOIN, member_id="", assigned_member_id=self._member_id, **self._offer())
        if answer is Answer.MEMBER_ID_REQUIRED:
            if self._stops("after its id"):
                return False
            yield self._soon()
            answer = self._send(EventType.JOIN, **self._offer())
        return (yield from self._after_join(answer))

    def stay(self, generation: int) -> Stage:
        """Send heartbeats in a generation, and join again when asked to."""
        while True:
            generation = self._newest(generation)
            beat = EventType.COMMIT if self._dice.random() < 0.05 else EventType.HEARTBEAT
            answer = self._send(beat, generation_id=generation)
            if answer is Answer.REBALANCE_IN_PROGRESS:
                if self._dice.random() >= _BUSY_SHARE:
                    yield self._soon()
                    return (yield from self._after_join(self._send(EventType.JOIN, **self._offer())))
                # A separate thread sends the heartbeats, and the thread that would join is busy.
                self._feeder.story.mark("member busy")
                yield self._feeder.grain(self._group.beat_ms)
            elif answer not in {Answer.NONE, Answer.NOT_COORDINATOR}:
                self._feeder.story.mark(f"answered {answer}")
                return False
            elif self._dice.random() >= self._feeder.plan.unrest:
                yield self._feeder.grain(self._group.beat_ms * self._dice.uniform(0.9, 1.1))
            else:
                stays = yield from self._do_something(generation)
                if stays is not None:
                    return stays

    def _do_something(self, generation: int) -> Generator[int, None, bool | None]:
        """Do something else than a heartbeat; return the result of a stage if the membership is over, or `None`."""
        append_ms = self._feeder.clock_ms(self._group)
        deed = self._dice.choice(("die", "leave", "edge", "edge", "stale", "rejoin", "pause"))
        if deed == "edge":
            yield self._feeder.until_append(self._group, append_ms + self._group.session_ms + self._feeder.edge())
            return None
        self._feeder.story.mark(f"member {deed}")
        if deed == "rejoin":
            return (yield from self._after_join(self._send(EventType.JOIN, **self._offer(changed=True))))
        if deed == "stale":
            self._send(EventType.HEARTBEAT, generation_id=max(0, generation - 1))
            yield self._soon()
            return None
        if deed == "pause":
            yield self._feeder.grain(self._group.session_ms * self._dice.uniform(0.9, 3.0))
            return None
        if deed == "leave":
            self._send(EventType.LEAVE)
        return False

    def _after_join(self, answer: Answer) -> Stage:
        """Wait until the join phase ends, sync, wait for the assignment, and stay."""
        if answer not in {Answer.PARKED, Answer.NONE}:
            self._feeder.story.mark(f"answered {answer}")
            return False
        while (member := self._seen()) is not None and member.awaiting_join:
            yield self._feeder.grain(_POLL_MS)
        if self._seen() is None or self._stops("before its sync"):
            return False
        generation = self._feeder.group(self._group).generation
        yield self._soon()
        answer = self._send(EventType.SYNC, generation_id=generation, **_SYNC)
        while (member := self._seen()) is not None and member.awaiting_sync:
            yield self._feeder.grain(_POLL_MS)
        if answer not in {Answer.PARKED, Answer.NONE, Answer.REBALANCE_IN_PROGRESS}:
            return False
        yield self._soon()
        return (yield from self.stay(generation))

    def _seen(self) -> Member | None:
        return self._feeder.member(self._group, self._member_id)

    def _newest(self, generation: int) -> int:
        """Return the newest generation; in a loaded group a rebalance may have happened that no record shows."""
        group_id, generations = self._group.group_id, self._feeder.generations
        if group_id in generations and self._dice.random() < self._feeder.plan.unrest / 6:
            generations[group_id] += self._dice.randint(1, 2)
            self._feeder.story.mark("fault rebalance unseen")
        return max(generation, generations.get(group_id, 0))

    def _stops(self, where: str) -> bool:
        """Decide whether the consumer dies here."""
        stops = self._dice.random() < self._feeder.plan.unrest
        if stops:
            self._feeder.story.mark(f"member dies {where}")
        return stops

    def _soon(self) -> int:
        return self._feeder.grain(self._dice.randrange(5, 120))

    def _offer(self, *, changed: bool = False) -> dict[str, object]:
        group = self._group
        return {
            "session_timeout_ms": group.session_ms,
            "rebalance_timeout_ms": group.rebalance_ms,
            "protocol_type": "consumer",
            "protocols": (Protocol("range", "y" if changed else "x"),),
        }

    def _send(self, kind: EventType, **fields: object) -> Answer:
        base: dict[str, object] = {
            "type": kind,
            "group_id": self._group.group_id,
            "member_id": self._member_id,
            "group_instance_id": self._who.instance_id,
            "client_id": f"c{self._who.number}",
        }
        event = Event(**(base | fields))  # type: ignore[arg-type]  # fields by name; the job decodes and checks them
        return self._feeder.send(self._group, event)
