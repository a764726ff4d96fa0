"""Groups that have lost all members, by the rows that a shard writes: trouble if the last one expired, else none."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.proof.testing import LogBuilder, run_shard
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.live.trouble import groups_in_trouble
from heartwheel.wire.events import Event, EventType, Protocol
from heartwheel.wire.verdict_rows import ExpirationRow, row_of
from heartwheel.wire.verdicts import topic_of
from support.heartbeat_logs import T0
from support.output_rows import topic_rows

SESSION_MS = 10_000
RULES = CoordinatorConfig(group_consumer_session_timeout_ms=SESSION_MS)
FIRST_MS = T0 + 4_000
"""When `a` is heard for the last time."""

LOST_MS = FIRST_MS + SESSION_MS + 2_000
"""When `b` leaves, or is heard for the last time; `a` is expired by then."""

UNTIL_MS = T0 + 600_000


def _event(log: LogBuilder, at_ms: int, type_: EventType, member: str, generation: int) -> None:
    log.add(at_ms, Event(type=type_, group_id="g", member_id=member, generation_id=generation))


def _join(log: LogBuilder, at_ms: int, member: str, known: str) -> None:
    join = Event(
        type=EventType.JOIN,
        group_id="g",
        member_id=known,
        assigned_member_id=member,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(Protocol("range"),),
        api_version=3,
    )
    log.add(at_ms, join)


def _classic(*, leaves: bool) -> LogBuilder:
    """Let `a` expire, and `b` join the next generation, and then leave or expire."""
    log = LogBuilder()
    _join(log, T0, "a", "")
    _join(log, T0, "b", "")
    for member in "ab":
        _event(log, FIRST_MS, EventType.SYNC, member, 1)
    for at_ms in range(FIRST_MS + 1_000, FIRST_MS + SESSION_MS, 1_000):
        _event(log, at_ms, EventType.HEARTBEAT, "b", 1)
    _join(log, FIRST_MS + SESSION_MS + 500, "b", "b")
    _event(log, FIRST_MS + SESSION_MS + 600, EventType.SYNC, "b", 2)
    _event(log, LOST_MS, EventType.LEAVE if leaves else EventType.HEARTBEAT, "b", 2)
    return log


def _presence(*, leaves: bool) -> LogBuilder:
    """Do the same in a group whose members only beat."""
    log = LogBuilder()
    log.beat(FIRST_MS, "g", "a", session_timeout_ms=SESSION_MS)
    for at_ms in range(FIRST_MS, LOST_MS, 1_000):
        log.beat(at_ms, "g", "b", session_timeout_ms=SESSION_MS)
    _event(log, LOST_MS, EventType.LEAVE if leaves else EventType.HEARTBEAT, "b", -1)
    return log


def _consumer(*, leaves: bool) -> LogBuilder:
    """Do the same in a group that goes by member epochs."""
    log = LogBuilder()
    log.group_beat(FIRST_MS, "g", "a", 0, answer=2)
    log.group_beat(FIRST_MS, "g", "b", 0, answer=3)
    for at_ms in range(FIRST_MS + 1_000, LOST_MS, 1_000):
        log.group_beat(at_ms, "g", "b", 3 if at_ms < FIRST_MS + SESSION_MS else 4)
    log.group_beat(LOST_MS, "g", "b", -1 if leaves else 4)
    return log


def _words(log: LogBuilder, *, expirations_first: bool) -> tuple[Iterable[str], list[str]]:
    """Return who was expired, and what is wrong with the group a minute later, if topics are read one after another."""
    verdicts = [each for each in run_shard(log, clock_ms=UNTIL_MS, config=RULES) if topic_of(each) is not None]
    rows = [row_of(each, shard=0, detected_ms=each.time_ms + 900) for each in verdicts]
    rows.sort(key=lambda row: isinstance(row, ExpirationRow) is not expirations_first)
    picture = Picture()
    for row in rows:
        picture.apply(topic_rows(row), now_ms=UNTIL_MS)
    found = groups_in_trouble(picture, StormRule(), now_ms=verdicts[-1].time_ms + 60_000)
    expired = [row.member_id for row in rows if isinstance(row, ExpirationRow)]
    return expired, [each.words for group in found.groups for each in group.troubles]


@pytest.mark.parametrize("expirations_first", [True, False])
@pytest.mark.parametrize("made", [_classic, _presence, _consumer])
def test_group_whose_last_member_leaves_is_in_no_trouble(made: type, expirations_first: bool) -> None:  # noqa: FBT001
    """A member expires for good, and the last one leaves soon after: the group has ended as it was meant to."""
    assert _words(made(leaves=True), expirations_first=expirations_first) == (["a"], [])


@pytest.mark.parametrize("expirations_first", [True, False])
@pytest.mark.parametrize("made", [_classic, _presence, _consumer])
def test_group_whose_last_member_expires_is_in_trouble(made: type, expirations_first: bool) -> None:  # noqa: FBT001
    """Both members expire, one after the other: nobody is left who was meant to be there."""
    words = ["no members for 1 min; 2 expired members not back"]
    assert _words(made(leaves=False), expirations_first=expirations_first) == (["a", "b"], words)


def test_member_that_leaves_as_another_expires_ends_the_group() -> None:
    """`a` expires and `b` leaves in one millisecond: the row of the emptied group names who went last."""
    log = LogBuilder()
    log.beat(T0, "g", "a", session_timeout_ms=SESSION_MS)
    log.beat(T0, "g", "b", session_timeout_ms=2 * SESSION_MS)
    _event(log, T0 + SESSION_MS, EventType.LEAVE, "b", -1)
    assert _words(log, expirations_first=True) == (["a"], [])
