"""The question of `heartwheel replay --what-if`: which timeout, and which values of it."""

from __future__ import annotations

from typing import Final, NamedTuple

import typer

from heartwheel.settings import parse_duration_ms

SESSION: Final = "session_timeout"
REBALANCE: Final = "rebalance_timeout"
INTERVAL: Final = "heartbeat_interval"

OF_KIND: Final = {f"group_{kind}_session_timeout": kind for kind in ("consumer", "share", "streams")}
"""The session timeouts that the broker sets, by the names of the settings, with the kind of their groups."""

NAMES: Final = (SESSION, *OF_KIND, REBALANCE, INTERVAL)


class Question(NamedTuple):
    """A what-if question.

    Args:
        name: one of `NAMES`.
    """

    name: str
    values_ms: list[int]


def read_question(what_if: str, *, whole: bool) -> Question:
    """Parse a question.

    Args:
        what_if: such as `session_timeout=10s,20s`.
        whole: whether the log is replayed in one piece.

    Raises:
        typer.BadParameter: it makes no sense.
    """
    name, _, values = what_if.partition("=")
    name = name.strip()
    if name not in NAMES:
        known = f"write {SESSION}=10s,20s, or one of {', '.join(NAMES[1:])}"
        raise typer.BadParameter(f"{name} is not known; {known}", param_hint="--what-if")
    if not whole:
        raise typer.BadParameter("it needs a whole log, so it cannot be used with a snapshot", param_hint="--what-if")
    try:
        values_ms = [parse_duration_ms(value) for value in _split(values)]
    except ValueError as error:
        raise typer.BadParameter(f"{values}: each {error}", param_hint="--what-if") from None
    if min(values_ms) < 1:
        raise typer.BadParameter(f"{values}: a {name} is at least 1ms", param_hint="--what-if")
    return Question(name, values_ms)


def _split(values: str) -> list[str]:
    return [value.strip() for value in values.split(",")]
