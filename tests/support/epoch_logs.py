"""Logs of groups that go by member epochs, written line by line, and what comes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from heartwheel.engine.replay.log import LogReplay
from heartwheel.engine.rules.config import CoordinatorConfig, GroupOverride, coordinator_config
from heartwheel.engine.rules.epochs.config import EpochConfig
from heartwheel.wire.verdicts import Kind, Verdict

START_MS = 1_700_000_000_000
SESSION_MS = 3_000


def config_of(settings: Mapping[str, Any]) -> CoordinatorConfig:
    """Make the coordinator's settings of those that a recording has, as numbers or as texts."""
    return coordinator_config({name: int(value) for name, value in settings.items()})


class EpochLog:
    """Write a log; times are milliseconds after its start.

    Args:
        kind: `consumer`, `share` or `streams`.
        overrides: what groups have of their own.
        settings: settings of the coordinator other than the defaults; a session lasts `SESSION_MS`.
    """

    def __init__(
        self, kind: str = "consumer", overrides: tuple[GroupOverride, ...] = (), **settings: int | str
    ) -> None:
        sessions = {f"group_{each}_session_timeout_ms": SESSION_MS for each in ("consumer", "share", "streams")}
        self.config = coordinator_config({**sessions, **settings})
        self.epochs = EpochConfig(self.config, overrides)
        self._kind = kind
        self.lines: list[dict[str, Any]] = []

    def beat(self, at_ms: int, member: str, epoch: int, **fields: Any) -> None:
        """Write a heartbeat; by default nothing is known of its answer."""
        self.line(at_ms, type=f"{self._kind}_heartbeat", member_id=member, member_epoch=epoch, **fields)

    def ok(self, at_ms: int, member: str, epoch: int, answer: int, **fields: Any) -> None:
        """Write a heartbeat that was accepted and answered with an epoch."""
        self.beat(at_ms, member, epoch, error="NONE", answer_member_epoch=answer, **fields)

    def line(self, at_ms: int, **fields: Any) -> None:
        """Write any line of the group `g`."""
        self.lines.append({"t_ms": START_MS + at_ms, "group_id": "g", **fields})

    def verdicts(self, until_ms: int) -> list[Verdict]:
        """Replay the log up to a moment."""
        run = LogReplay(self.config, epochs=self.epochs)
        for line in self.lines:
            run.feed(json.dumps(line).encode())
        return run.finish(START_MS + until_ms)

    def bumps(self, until_ms: int) -> list[tuple[str, int | None]]:
        """Replay the log up to a moment and list the cause and the epoch of each bump with a line of its own."""
        bumped = [v for v in self.verdicts(until_ms) if v.kind is Kind.EPOCH_BUMPED]
        return [("" if v.cause is None else v.cause.value, v.epoch) for v in bumped]

    def said(self, until_ms: int, *kinds: str) -> list[tuple[Any, ...]]:
        """Replay the log and list kind, member or epoch, and time; of some kinds alone if any are named."""
        return [
            (v.kind.value, v.epoch if v.member_id is None else v.member_id, v.time_ms - START_MS)
            for v in self.verdicts(until_ms)
            if not kinds or v.kind.value in kinds
        ]
