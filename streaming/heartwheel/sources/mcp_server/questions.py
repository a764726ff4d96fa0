"""The questions that can be asked, whatever answers them."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from heartwheel.sources.mcp_server.answers import AdviceList, GroupTimeline, NextList, RemovalList, StormList, WhyAnswer

AROUND_MS: Final = 60_000
"""How long before and after a removal its group is looked at to explain it, ms."""


class Period(NamedTuple):
    """The time that is asked about.

    Args:
        since_ms: its begin, epoch ms; `None` for no bound.
        until_ms: its end, epoch ms; likewise.
    """

    since_ms: int | None = None
    until_ms: int | None = None


class Questions(Protocol):
    """A source of answers; its functions may be called from any thread.

    Ids of groups and members may be patterns with `*`; an empty one stands for all.

    Raises:
        HeartwheelError: the source cannot be read.
    """

    def who_was_kicked(self, group: str, member: str, period: Period, limit: int) -> RemovalList:
        """Return removals, the newest first."""
        ...

    def why(self, group: str, member: str, period: Period) -> WhyAnswer:
        """Return the newest removal, and what happened around it."""
        ...

    def storms(self, group: str, period: Period) -> StormList:
        """Return groups that rebalanced again and again."""
        ...

    def timeline(self, group: str, period: Period, limit: int) -> GroupTimeline:
        """Return what happened in a group, the newest first."""
        ...

    def advise(self, group: str) -> AdviceList:
        """Return which settings would have prevented what."""
        ...

    def who_is_next(self, limit: int) -> NextList:
        """Return the members nearest to their expiry."""
        ...
