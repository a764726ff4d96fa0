"""Members of consumer, share and streams groups: they join, take over partitions, and give them back or do not.

The answers follow from the present members: an assignor deals the partitions out in the order of the members. In some
groups the records contain the answers, like those of a source that reads a broker's log.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from heartwheel.engine.rules.epochs.model import EpochGroup
from heartwheel.proof.simulation.world.feeder import SimulatedFeeder, Walk
from heartwheel.proof.simulation.world.workers import Who
from heartwheel.wire.group_heartbeats import GroupHeartbeat, HeartbeatType

_PARTITIONS: Final = 6
_TOPIC: Final = "t"


def epoch_member(feeder: SimulatedFeeder, who: Who) -> Walk:
    """Walk as a member of an epoch group, one membership after another."""
    dice = Random(f"{feeder.plan.seed} {who.group.group_id} {who.number}")
    yield feeder.grain(dice.randrange(1, 2 * who.group.session_ms))
    life = 0
    while True:
        membership = _Membership(feeder, who, life, dice)
        yield from membership.live()
        if dice.random() < 0.25:
            return
        yield feeder.grain(who.group.session_ms * dice.uniform(0.2, 2.5))
        feeder.story.mark("epoch member returns")
        # Sometimes it keeps its id, as a Java consumer does that comes back after it had not polled in time.
        life += dice.random() < 0.7


class _Membership:
    """A member of an epoch group with one member id."""

    def __init__(self, feeder: SimulatedFeeder, who: Who, life: int, dice: Random) -> None:
        self._feeder = feeder
        self._who = who
        self._dice = dice
        self._member_id = who.member_id(life)
        self._kind = HeartbeatType(f"{'consumer' if who.group.kind == 'mixed' else who.group.kind}_heartbeat")
        self._answers = who.group.answers
        # A member returns from the same process or from another one, so that the epoch is bumped or is not.
        self._process = f"{who.number}-{life // 2}" if self._kind is HeartbeatType.STREAMS else None
        self._epoch = 0
        self._owned: tuple[int, ...] = ()

    def live(self) -> Iterator[int]:
        """Join, then send heartbeats until the membership ends."""
        self._join()
        while True:
            yield self._feeder.grain(self._who.group.beat_ms * self._dice.uniform(0.9, 1.1))
            if self._dice.random() >= self._feeder.plan.unrest:
                self._beat(gives_back=True)
                continue
            deed = self._dice.choice(("die", "leave", "edge", "stale", "keep", "keep", "pause", "away", "rejoin"))
            self._feeder.story.mark(f"epoch member {deed}")
            if deed in ("die", "leave", "away"):
                yield from self._go(deed)
                return
            yield from self._misbehave(deed)

    def _go(self, deed: str) -> Iterator[int]:
        """End the membership: silently, with a leave, or with a temporary leave."""
        if deed == "leave":
            self._send(-1)
        elif deed == "away" and self._who.instance_id is not None:
            self._send(-2)
            yield self._feeder.grain(self._who.group.session_ms * self._dice.uniform(0.1, 0.9))

    def _misbehave(self, deed: str) -> Iterator[int]:
        group = self._who.group
        if deed == "edge":
            append_ms = self._feeder.clock_ms(group)
            yield self._feeder.until_append(group, append_ms + group.session_ms + self._feeder.edge())
            self._beat(gives_back=True)
        elif deed == "stale":
            self._send(max(1, self._epoch - 1))
        elif deed == "keep":
            for _ in range(self._dice.randint(3, 12)):
                self._beat(gives_back=False)
                yield self._feeder.grain(group.beat_ms)
        elif deed == "pause":
            yield self._feeder.grain(group.session_ms * self._dice.uniform(0.9, 2.0))
        else:
            self._join()

    def _join(self) -> None:
        self._owned = self._dealt()
        answered = self._known_epoch() + (self._member_id not in self._members())
        fields: dict[str, Any] = {"subscribed_topics": (_TOPIC,), "rebalance_timeout_ms": self._who.group.rebalance_ms}
        self._send(0, answered=answered, assigned=self._owned, process_id=self._process, **fields)
        self._epoch = answered

    def _beat(self, *, gives_back: bool) -> None:
        """Send a heartbeat; surplus partitions are revoked in its answer, and given back with the next heartbeat."""
        dealt = self._dealt()
        surplus = set(self._owned) - set(dealt)
        if not self._answers:
            self._send(self._epoch)
            self._epoch = max(self._epoch, self._known_epoch())
        elif surplus:
            kept = tuple(part for part in self._owned if part not in surplus)
            self._send(self._epoch, answered=self._epoch, assigned=kept, owned=self._owned)
            if gives_back:
                self._owned = kept
        else:
            answered = max(self._epoch, self._known_epoch())
            plain = (answered, dealt) == (self._epoch, self._owned)
            self._send(self._epoch, answered=answered, **({} if plain else {"assigned": dealt, "owned": self._owned}))
            self._epoch, self._owned = answered, dealt

    def _send(
        self,
        epoch: int,
        *,
        answered: int | None = None,
        assigned: tuple[int, ...] | None = None,
        owned: tuple[int, ...] | None = None,
        **fields: Any,
    ) -> None:
        if not self._answers:
            answered = assigned = owned = None
        beat = GroupHeartbeat(
            type=self._kind,
            group_id=self._who.group.group_id,
            member_id=self._member_id,
            member_epoch=epoch,
            group_instance_id=self._who.instance_id,
            client_id=f"e{self._who.number}",
            answer_member_epoch=answered,
            assignment=None if assigned is None else {_TOPIC: assigned},
            owned=None if owned is None else {_TOPIC: owned},
            **fields,
        )
        answer = self._feeder.send(self._who.group, beat)
        self._feeder.story.mark(f"epochs answered {answer}")

    def _group(self) -> EpochGroup | None:
        group = self._feeder.any_group(self._who.group)
        return group if isinstance(group, EpochGroup) else None

    def _members(self) -> tuple[str, ...]:
        group = self._group()
        return tuple(group.members) if group is not None else ()

    def _known_epoch(self) -> int:
        group = self._group()
        return 1 if group is None else group.epoch

    def _dealt(self) -> tuple[int, ...]:
        """Return the partitions that the assignor gives to this member."""
        everybody = sorted({*self._members(), self._member_id})
        mine = everybody.index(self._member_id)
        return tuple(part for part in range(_PARTITIONS) if part % len(everybody) == mine)
