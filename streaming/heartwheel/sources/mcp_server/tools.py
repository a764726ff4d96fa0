"""The tools of the server: what each asks, and the limits of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Annotated, Final, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.plain import plain
from heartwheel.sources.explain.asked_time import asked_time_ms
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.mcp_server.answers import (
    NOTE,
    AdviceList,
    GroupTimeline,
    NextList,
    RemovalList,
    StormList,
    WhyAnswer,
)
from heartwheel.sources.mcp_server.questions import Period, Questions

T = TypeVar("T")
GroupId = Annotated[str, Field(max_length=1_024, description="A group's id; of logs also a pattern: pay*. Empty: all.")]
MemberId = Annotated[str, Field(max_length=1_024, description="A member id; of logs also a client or instance id.")]
OneGroup = Annotated[str, Field(min_length=1, max_length=1_024, description="The group's id.")]
Since = Annotated[str, Field(max_length=40, description="From when: 2026-11-22T02:12Z, or 3h for 3 hours ago.")]
Until = Annotated[str, Field(max_length=40, description="Before when, likewise.")]
Limit = Annotated[int, Field(ge=1, le=200, description="Most entries.")]

_INSTRUCTIONS: Final = (
    "Which members Kafka's group coordinators removed from which consumer groups, and why, as brokers' own logs or "
    "heartwheel's dashboard show it. Read only. Say how certain an answer is, name its evidence, and report its "
    f"unknowns: an empty list is no proof that nothing happened. {NOTE}"
)
_ERROR_CHARS: Final = 500
_READS: Final = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


def server_of(questions: Questions, zone: LocalZone) -> MCPServer:
    """Return the server with its tools.

    Args:
        questions: the source of answers.
        zone: of asked times that name none.
    """
    server: MCPServer = MCPServer(
        "heartwheel", instructions=_INSTRUCTIONS, version=metadata.version("heartwheel"), log_level="WARNING"
    )
    for tool in _Tools(questions, zone).all():
        server.add_tool(tool, annotations=_READS)
    return server


class _Tools:
    """The tools; the docstring of each is what a model reads about it."""

    def __init__(self, questions: Questions, zone: LocalZone) -> None:
        self._questions, self._zone = questions, zone

    def all(self) -> list[Callable[..., object]]:
        return [self.who_was_kicked, self.why, self.storms, self.timeline, self.advise, self.who_is_next]

    def who_was_kicked(
        self, group: GroupId = "", member: MemberId = "", since: Since = "", until: Until = "", limit: Limit = 20
    ) -> RemovalList:
        """List the members that a timeout took out of their groups, the newest first, each with reason and evidence."""
        return _answered(lambda: self._questions.who_was_kicked(group, member, self._period(since, until), limit))

    def why(self, group: GroupId = "", member: MemberId = "", since: Since = "", until: Until = "") -> WhyAnswer:
        """Explain the newest removal of a member: by which rule, what to change, and what its group did around it."""
        return _answered(lambda: self._questions.why(group, member, self._period(since, until)))

    def storms(self, group: GroupId = "", since: Since = "", until: Until = "") -> StormList:
        """List groups that rebalanced again and again within minutes, and the members with which that began."""
        return _answered(lambda: self._questions.storms(group, self._period(since, until)))

    def timeline(self, group: OneGroup, since: Since = "", until: Until = "", limit: Limit = 50) -> GroupTimeline:
        """List what happened in one group, the newest first: removals, leaves, rebalances and who they waited for."""
        return _answered(lambda: self._questions.timeline(group, self._period(since, until), limit))

    def advise(self, group: GroupId = "") -> AdviceList:
        """List settings, such as a longer timeout, that would have prevented removals: how many, and at what cost."""
        return _answered(lambda: self._questions.advise(group))

    def who_is_next(self, limit: Limit = 20) -> NextList:
        """List the living members nearest to their expiry. Only a dashboard of the job can know them."""
        return _answered(lambda: self._questions.who_is_next(limit))

    def _period(self, since: str, until: str) -> Period:
        try:
            bounds = [asked_time_ms(text, self._zone) if text else None for text in (since, until)]
        except (ValueError, OverflowError) as error:
            raise HeartwheelError(str(error)) from None
        return Period(*bounds)


def _answered(ask: Callable[[], T]) -> T:
    """Return an answer, or raise the error that the client is shown."""
    try:
        return ask()
    except HeartwheelError as error:
        hint = f" ({error.hint})" if error.hint else ""
        raise ToolError(plain(f"{error}{hint}")[:_ERROR_CHARS]) from None
