"""Logs of feeds that the tests of the engine and those of the audit have in common."""

from __future__ import annotations

from heartwheel.proof.testing import LogBuilder
from heartwheel.wire.events import Event, EventType
from support.heartbeat_logs import T0

SESSION_MS = 6_000
LOADED_MS = 5_000
"""When the other broker loads the group, ms after `T0`."""


def broker_that_comes_back(*, back_first: bool) -> LogBuilder:
    """Write of a broker that dies with two members, of whom one goes on with the broker that loads the group.

    Args:
        back_first: whether the feed of the first broker is back before the other one says what happened meanwhile.
    """
    log, back_ms = LogBuilder(), T0 + 20_000
    for member in ("dead", "alive"):
        log.relay(T0, _beat(member), T0, feed="one")
    for feed in ("one", "two"):
        log.mark(T0 + 100, T0 + 100, feed=feed)
    if back_first:
        log.mark(back_ms, back_ms, since_ms=back_ms - 500, feed="one")
    log.relay(T0 + LOADED_MS, Event(group_id="g", type=EventType.LOAD), T0 + LOADED_MS, feed="two")
    for second in range(6, 22):
        log.relay(T0 + LOADED_MS, _beat("alive"), T0 + second * 1_000, feed="two")
    log.mark(T0 + 21_500, T0 + 21_500, feed="two")
    if not back_first:
        log.mark(back_ms, back_ms, since_ms=back_ms - 500, feed="one")
    log.mark(back_ms + 2_000, back_ms + 1_500, since_ms=back_ms - 500, feed="one")
    return log


def _beat(member: str) -> Event:
    return Event(group_id="g", member_id=member, session_timeout_ms=SESSION_MS)
