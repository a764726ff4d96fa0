"""Hypothesis strategies for logs of groups that go by member epochs, with classic members and conversions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from heartwheel.engine.rules.config import GroupOverride
from heartwheel.proof.testing import LogBuilder
from heartwheel.wire.events import Event, EventType, Leaving, Protocol
from heartwheel.wire.group_heartbeats import GroupHeartbeat, HeartbeatType
from heartwheel.wire.requests import Request
from support.heartbeat_logs import CONFIG, T0

EPOCHS_CONFIG = replace(
    CONFIG,
    group_max_size=5,
    group_consumer_session_timeout_ms=1_200,
    group_consumer_assignment_interval_ms=300,
    group_consumer_max_size=4,
    group_share_session_timeout_ms=1_500,
    group_share_max_size=3,
    group_streams_session_timeout_ms=1_000,
    group_streams_max_size=3,
    group_streams_initial_rebalance_delay_ms=700,
    group_overrides=(GroupOverride("h", "consumer.session.timeout.ms", 2_000),),
)
"""Small timeouts, so that a short log meets every timer."""

_STICKY = Protocol("sticky", "y")
_members = st.sampled_from(["a", "b", "c", "d"])
_groups = st.sampled_from(["g", "h"])
_partitions = st.sampled_from([None, None, {}, {"t": (0, 1)}, {"t": (0,)}])
_tasks = st.sampled_from(
    [
        {"activeTasks/0": (0, 1)},
        {"activeTasks/0": (0,), "standbyTasks/0": (1,)},
        {"standbyTasks/0": (0, 1)},
        {"standbyTasks/0": (0,), "warmupTasks/0": (1,)},
    ]
)
_steps = st.sampled_from([0, 0, 1, 25, 50, 299, 300, 700, 999, 1_000, 1_200, 1_500, 2_000, 6_000])


@st.composite
def _beats(draw: st.DrawFn, kinds: tuple[HeartbeatType, ...]) -> GroupHeartbeat:
    epoch = draw(st.sampled_from([0, 0, 0, 1, 2, 2, 3, 4, 5, -1, -2]))
    fields: dict[str, Any] = {
        "type": draw(st.sampled_from(kinds)),
        "group_id": draw(_groups),
        "member_id": draw(_members),
        "member_epoch": epoch,
    }
    if epoch >= 0:
        fields["answer_member_epoch"] = draw(st.sampled_from([None, None, epoch, epoch + 1, 2, 3]))
        fields["owned"], fields["assignment"] = draw(_partitions), draw(_partitions)
        fields["subscribed_topics"] = draw(st.sampled_from([None, ("t",), ("t", "u")]))
        fields["subscribed_regex"] = draw(st.sampled_from([None, None, None, "t.*"]))
        fields["rebalance_timeout_ms"] = draw(st.sampled_from([None, -1, 600, 3_000]))
        fields["revoking"] = draw(st.sampled_from([None, None, None, True, False]))
    if draw(st.integers(0, 3)) == 0:
        fields["group_instance_id"] = draw(st.sampled_from(["i1", "i2"]))
    if fields["type"] is HeartbeatType.STREAMS and epoch >= 0:
        if draw(st.booleans()):
            fields["owned"], fields["assignment"] = draw(_tasks), draw(_tasks)
        fields["process_id"] = draw(st.sampled_from([None, "p", "q"]))
        fields["rack_id"] = draw(st.sampled_from([None, None, "r"]))
        fields["client_tags"] = draw(st.sampled_from([None, None, {}, {"zone": "a"}]))
        fields["topology_epoch"] = draw(st.sampled_from([None, 0, 0, 1]))
    return GroupHeartbeat(**fields)


@st.composite
def _classic(draw: st.DrawFn) -> Event:
    kind = draw(st.sampled_from(tuple(EventType)))
    fields: dict[str, Any] = {"type": kind, "group_id": draw(_groups), "member_id": draw(_members)}
    if kind in {EventType.HEARTBEAT, EventType.SYNC, EventType.COMMIT}:
        fields["generation_id"] = draw(st.sampled_from([-1, 1, 2, 3, 4]))
    if kind is EventType.SYNC:
        fields["protocol_type"] = draw(st.sampled_from([None, None, "consumer", "consumer", "connect"]))
        fields["protocol_name"] = draw(st.sampled_from([None, None, "range", "range", "sticky"]))
        fields["api_version"] = draw(st.sampled_from([None, None, 4, 5]))
    if kind is EventType.JOIN:
        fields |= {
            "session_timeout_ms": 1_500,
            "rebalance_timeout_ms": 1_000,
            "protocol_type": draw(st.sampled_from(["consumer", "consumer", "consumer", "connect", None])),
            "protocols": draw(st.sampled_from([(Protocol("range", "x"),)] * 3 + [(), (_STICKY, Protocol("range"))])),
        }
        if draw(st.booleans()):
            fields |= {"assigned_member_id": fields["member_id"], "member_id": "", "api_version": 3}
        if draw(st.integers(0, 3)) == 0:
            fields["group_instance_id"] = draw(st.sampled_from(["i1", "i2"]))
    if kind is EventType.LEAVE:
        fields["leaving"] = (Leaving(draw(_members)),)
    return Event(**fields)


@st.composite
def epoch_logs(draw: st.DrawFn, *, size_max: int = 40) -> LogBuilder:
    """Draw a log: three heartbeats of the newer kinds to one request of the classic protocol."""
    log, now = LogBuilder(), T0
    kinds = tuple(HeartbeatType)
    requests: st.SearchStrategy[Request] = st.one_of(_beats(kinds), _beats(kinds), _beats(kinds), _classic())
    for request, step in draw(st.lists(st.tuples(requests, _steps), max_size=size_max)):
        now += step
        log.add(now, request)
    return log


@st.composite
def steady_epoch_logs(draw: st.DrawFn) -> LogBuilder:
    """Draw a log of members that join and then say the same again and again, which is what the fast path is for."""
    log, now = LogBuilder(), T0
    kind = draw(st.sampled_from(tuple(HeartbeatType)))
    answered = draw(st.booleans())
    members = draw(st.integers(1, 4))
    silent = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60)), max_size=3))
    others: st.SearchStrategy[Request] = st.one_of(_beats((kind,)), _classic())
    disturbances = draw(st.dictionaries(st.integers(0, 60), others, max_size=2))
    epoch = 1 + members
    for member in range(members):
        log.group_beat(now, "g", f"m{member}", 0, answer=2 + member if answered else None, kind=kind)
        now += draw(st.sampled_from([0, 10, 400]))
    for beat in range(draw(st.integers(5, 60))):
        now += draw(st.sampled_from([0, 10, 100, 200, 300]))
        member = beat % members
        if not any(member == who and since <= beat for who, since in silent):
            log.group_beat(now, "g", f"m{member}", epoch, answer=epoch if answered else None, kind=kind)
        if beat in disturbances:
            log.add(now, disturbances[beat])
    return log


@st.composite
def mid_life_logs(draw: st.DrawFn) -> LogBuilder:
    """Draw a log that begins in the middle of a consumer group's life, at some epoch, with members of both protocols.

    Members speak of an epoch that rises now and then; classic ones join and sync when it has, or fall behind; anybody
    may leave or come, and who comes first decides what the group is taken for.
    """
    log, now, epoch = LogBuilder(), T0, draw(st.integers(1, 120))
    classic = draw(st.sets(st.integers(0, 3), min_size=1, max_size=3))
    told = draw(st.booleans())
    behind = dict.fromkeys(range(4), 0)
    deeds = st.sampled_from(["beat"] * 6 + ["bump", "join", "sync", "commit", "leave", "first", "other", "other"])
    others: st.SearchStrategy[Request] = st.one_of(_beats((HeartbeatType.CONSUMER,)), _classic())
    for member, deed, step in draw(st.lists(st.tuples(st.integers(0, 3), deeds, _steps), min_size=1, max_size=40)):
        now += step
        said: dict[str, Any] = {"group_id": "g", "member_id": f"m{member}"}
        if draw(st.integers(0, 5)) == 0:
            said["group_instance_id"] = f"i{member}"
        if deed == "bump":
            epoch += 1
            behind = {who: lag + (who in classic) for who, lag in behind.items()}
        elif deed == "other":
            log.add(now, draw(others))
        elif member not in classic:
            asked = {"leave": -1, "first": 0}.get(deed, epoch)
            log.add(
                now,
                GroupHeartbeat(
                    type=HeartbeatType.CONSUMER,
                    member_epoch=asked,
                    answer_member_epoch=max(asked, epoch) if told else None,
                    **said,
                ),
            )
        elif deed in ("join", "first"):
            behind[member] = draw(st.sampled_from([0, 0, behind[member]]))
            log.add(now, _classic_join(said, first=deed == "first"))
        elif deed == "leave":
            log.add(now, Event(type=EventType.LEAVE, **said))
        else:
            kind = {"sync": EventType.SYNC, "commit": EventType.COMMIT}.get(deed, EventType.HEARTBEAT)
            log.add(now, Event(type=kind, generation_id=max(epoch - behind[member], 0), **said))
    return log


def _classic_join(said: dict[str, Any], *, first: bool) -> Event:
    ids = {"member_id": "", "assigned_member_id": said["member_id"]} if first else {}
    return Event(
        type=EventType.JOIN,
        session_timeout_ms=1_500,
        rebalance_timeout_ms=1_000,
        protocol_type="consumer",
        protocols=(Protocol("range", "x"),),
        **(said | ids),
    )


@st.composite
def migrating_logs(draw: st.DrawFn) -> LogBuilder:
    """Draw a log of a consumer group in which some members speak the classic protocol, and beat; some are disturbed."""
    log = LogBuilder()
    members = draw(st.integers(2, 4))
    classic = draw(st.sets(st.integers(1, members - 1), min_size=1))
    disturbances = draw(st.dictionaries(st.integers(0, 40), st.one_of(_beats((HeartbeatType.CONSUMER,)), _classic())))
    silent = draw(st.dictionaries(st.integers(0, 3), st.integers(0, 40), max_size=2))
    now = migrate(log, members, classic)
    for beat in range(draw(st.integers(5, 40))):
        now += draw(st.sampled_from([0, 10, 100, 200, 300]))
        member = beat % members
        if beat < silent.get(member, beat + 1):
            steady_beat(log, now, member, members, classic)
        if beat in disturbances:
            log.add(now, disturbances[beat])
    return log


def migrate(log: LogBuilder, members: int, classic: Collection[int]) -> int:
    """Append what brings a consumer group together in which some members speak the classic protocol.

    Args:
        members: how many; the first one must not be of the classic protocol.

    Returns:
        When it is stable, epoch ms.
    """
    for member in range(members):
        if member in classic:
            log.add(T0 + member, _join(member, ""))
        else:
            log.group_beat(T0 + member, "g", f"m{member}", 0, answer=2 + member)
    log.group_beat(T0 + 400, "g", "m0", 2, answer=1 + members)
    for member in sorted(classic):
        log.add(T0 + 410, _join(member, f"m{member}"))
        sync = Event(type=EventType.SYNC, group_id="g", member_id=f"m{member}", generation_id=1 + members)
        log.add(T0 + 420, sync)
    return T0 + 420


def steady_beat(log: LogBuilder, append_ms: int, member: int, members: int, classic: Collection[int]) -> None:
    """Append the heartbeat of a member of the group of `migrate`."""
    if member in classic:
        log.add(append_ms, Event(group_id="g", member_id=f"m{member}", generation_id=1 + members))
    else:
        log.group_beat(append_ms, "g", f"m{member}", 1 + members, answer=1 + members)


def _join(member: int, member_id: str) -> Event:
    return Event(
        type=EventType.JOIN,
        group_id="g",
        member_id=member_id,
        assigned_member_id=f"m{member}",
        api_version=3,
        session_timeout_ms=1_500,
        rebalance_timeout_ms=1_000,
        protocol_type="consumer",
        protocols=(Protocol("range", "x"),),
    )
