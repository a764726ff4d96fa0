"""The states of an engine as a page shows them."""

from __future__ import annotations

import enum

import msgspec


class HealthState(enum.StrEnum):
    """How far the engine can be trusted."""

    HEALTHY = "healthy"
    CATCHING_UP = "catching_up"
    STALLED = "stalled"
    WAITING = "waiting"
    LOG = "log"
    """There is no engine: what is shown is from brokers' logs."""
    UNREACHABLE = "unreachable"


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How far the engine can be trusted.

    Args:
        state: in one word.
        since_ms: since when, epoch ms; `None` if that is not known.
        sentence: the same for people.
        hint: what to do; empty if there is nothing to do.
        reasons: what else a person should know.
        as_of_ms: when the newest batch was, epoch ms, if no batch has processed members and groups since: the shown
            data is of that time. `None` while batches run, and before the first one.
        topic: the section of docs/troubleshooting.md about it; empty if there is none.
    """

    state: HealthState
    since_ms: int | None
    sentence: str
    hint: str
    reasons: list[str]
    as_of_ms: int | None = None
    topic: str = ""

    @property
    def ready(self) -> bool:
        """Whether what is shown can be relied on."""
        return self.state in {HealthState.HEALTHY, HealthState.CATCHING_UP, HealthState.LOG}
