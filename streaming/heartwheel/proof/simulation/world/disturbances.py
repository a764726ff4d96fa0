"""Other events in a topic: broken records, coordinators that move, members that are removed together."""

from __future__ import annotations

from typing import Final

from heartwheel.proof.simulation.plan.groups import GroupPlan
from heartwheel.proof.simulation.plan.parameters import VALUE_BYTES_MAX
from heartwheel.proof.simulation.world.feeder import SimulatedFeeder, Walk
from heartwheel.wire.events import Event, EventType, Leaving, RejectCause
from heartwheel.wire.tick import Tick, encode_tick

_BROKEN: Final[tuple[tuple[RejectCause, bytes | None], ...]] = (
    (RejectCause.TOMBSTONE, None),
    (RejectCause.TOO_LARGE, b'{"group_id":"g","member_id":"m","x":"' + b"x" * VALUE_BYTES_MAX + b'"}'),
    (RejectCause.NOT_JSON, b'{"group_id":"g","member_id":'),
    (RejectCause.NOT_JSON, b"\xff\xfe\x00"),
    (RejectCause.BAD_FIELD, b'{"group_id":"g","member_id":7}'),
    (RejectCause.BAD_FIELD, b'{"group_id":"g","member_id":"m","session_timeout_ms":0}'),
    (RejectCause.UNKNOWN_TYPE, b'{"group_id":"g","member_id":"m","type":"dance"}'),
    (RejectCause.MISSING_FIELD, b'{"member_id":"m"}'),
    (RejectCause.MISSING_FIELD, b'{"group_id":"g"}'),
    (RejectCause.ID_TOO_LONG, b'{"group_id":"g","member_id":"' + b"m" * 1_025 + b'"}'),
)


def vandal(feeder: SimulatedFeeder) -> Walk:
    """Walk as a producer of broken records."""
    for _ in range(feeder.plan.garbage):
        yield feeder.grain(feeder.dice.randrange(1, 2 * feeder.plan.feed_ms // (feeder.plan.garbage + 1)))
        cause, value = feeder.dice.choice(_BROKEN)
        feeder.land(feeder.dice.choice(feeder.plan.groups), value, cause=cause)
        feeder.story.say(feeder.now_ms, "a broken record: {}", cause)


def liar(feeder: SimulatedFeeder) -> Walk:
    """Walk as another client that writes ticks: another job, or a forger. Its ticks prove no outage."""
    dice, topic = feeder.dice, feeder.topic
    while True:
        yield feeder.grain(dice.choice((100, 200, 900)))
        forged = Tick(dice.choice(("f" * 16, "f" * 16, "")), feeder.now_ms, dice.choice((0, 1, 64)), 10**6)
        value = dice.choice((encode_tick(forged), encode_tick(forged), b'{"type":"tick","run":7}', b'{"type":"tick"}'))
        topic.send(dice.randrange(topic.count_at(feeder.now_ms)), value, feeder.now_ms)
        feeder.story.mark("fault tick of somebody else")


def too_short(feeder: SimulatedFeeder, group: GroupPlan) -> Walk:
    """Walk as a consumer that joins once, with a session timeout under the group's minimum."""
    yield feeder.grain(feeder.dice.randrange(1, feeder.plan.feed_ms))
    event = Event(type=EventType.JOIN, group_id=group.group_id, assigned_member_id="short", session_timeout_ms=10)
    feeder.send(group, event)


def mover(feeder: SimulatedFeeder, group: GroupPlan) -> Walk:
    """Walk as a coordinator that unloads a group and loads it again."""
    while True:
        yield feeder.grain(feeder.dice.randrange(1, feeder.plan.feed_ms // 2))
        feeder.story.mark("fault unload")
        feeder.send(group, Event(type=EventType.UNLOAD, group_id=group.group_id))
        yield feeder.grain(feeder.dice.randrange(1, 1_500))
        feeder.story.mark("fault load")
        feeder.send(group, Event(type=EventType.LOAD, group_id=group.group_id))


def bouncer(feeder: SimulatedFeeder, group: GroupPlan) -> Walk:
    """Walk as an administrator who removes several members at once."""
    yield feeder.grain(feeder.dice.randrange(1, feeder.plan.feed_ms))
    members = list(feeder.group(group).members)[:3]
    if members:
        feeder.story.mark("member batch leave")
        leaving = tuple(Leaving(member_id) for member_id in members)
        feeder.send(group, Event(type=EventType.LEAVE, group_id=group.group_id, leaving=leaving))
