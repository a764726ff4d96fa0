"""What brokers' logs contain beyond the rows of the engine's topics; shown where logs feed a picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec


class LoggedLine(NamedTuple):
    """A line of a group's timeline.

    Args:
        time_ms: when, epoch ms.
        kind: its kind.
        text: its text, or what returns it as of now: a storm grows after its line is there.
        member_id: the member that left; empty for other kinds.
    """

    time_ms: int
    kind: str
    text: str | Callable[[], str]
    member_id: str = ""


class EmptyGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group without members at the end of a log, and since when, epoch ms."""

    group_id: str
    since_ms: int


class LogIncident(msgspec.Struct, frozen=True, kw_only=True):
    """Members that were out at once: when the first was, epoch ms, and the likely cause."""

    from_ms: int
    words: str


class BrokerLine(msgspec.Struct, frozen=True, kw_only=True):
    """A start or shutdown of a broker: which, when (epoch ms), and what it does."""

    broker_id: int | None
    time_ms: int
    words: str


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report of brokers' logs on all groups together.

    Args:
        zone_assumed: whether the log names no time zone, so that times are as if it were UTC.
        to_ms: the newest time in it, epoch ms; `None` if there is none.
        empty: groups without members at its end, the first ones.
        empty_count: how many there are.
        incidents: members that were out at once, the first ones.
        brokers: starts and stops of brokers, the first ones.
        doubts: lines that are ignored, because they cannot be read or a client may have written them, in sentences.
    """

    zone_assumed: bool
    to_ms: int | None
    empty: list[EmptyGroup]
    empty_count: int
    incidents: list[LogIncident]
    brokers: list[BrokerLine]
    doubts: list[str]
