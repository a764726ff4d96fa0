"""Cells and lines of text: pure functions from a frame to text in a terminal, without markup in ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from heartwheel.base.percentiles import HUNDRED
from heartwheel.base.phrases import ago, count, length
from heartwheel.base.plain import plain
from heartwheel.base.wall_clock import time_of_day
from heartwheel.readers.live.at_risk import AtRisk
from heartwheel.readers.live.expiration import Expiration
from heartwheel.readers.live.groups import Group
from heartwheel.readers.live.health_states import HealthState
from heartwheel.readers.live.returns import can_be_recognised
from heartwheel.readers.live.states import ShownState
from heartwheel.readers.live.storms import Storm
from heartwheel.readers.top.frame import Frame

EXPIRED_COLUMNS: Final = ("known", "timer", "silent", "late", "group", "member", "back", "host", "client", "gen")
"""Headings of the table of expirations; the first six fit into 80 cells."""

RISK_COLUMNS: Final = ("expires in", "", "group", "member", "shard")
"""Headings of the table of members at risk."""

GROUP_COLUMNS: Final = ("group", "state", "members", "last", "waits for", "storm", "gen")
"""Headings of the table of groups."""

_SIGNS: Final = {
    HealthState.HEALTHY: ("●", "bold green"),
    HealthState.CATCHING_UP: ("◐", "bold yellow"),
    HealthState.STALLED: ("▲", "bold red"),
    HealthState.WAITING: ("○", "bold yellow"),
    HealthState.UNREACHABLE: ("▲", "bold red"),
}
_LIGHTS: Final = (("○", "bold yellow"), ("▲", "bold red"), ("●", "bold green"))
"""The signs for: state of the groups unknown, some groups in trouble, no group in trouble."""

_TROUBLED_MAX: Final = 3
_REASONS_MAX: Final = 3
GROUP_CELLS: Final = 14
"""Width of group ids on the screen."""

MEMBER_CELLS: Final = 25
"""Width of member ids on the screen."""

_UNCUT: Final = 200
_STATE_NAMES: Final = {ShownState.PREPARING_REBALANCE: "rebalancing", ShownState.COMPLETING_REBALANCE: "completing"}
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_BAR_CELLS: Final = 12
_BAR_MS: Final = 12_000
_NEAR_MS: Final = 3_000


def short(text: str | None, *, cells_max: int = _UNCUT) -> str:
    """Return text from a topic fit for a cell: `plain`, and not too long.

    A long text loses its middle, because ids begin with a name and end with what distinguishes them.
    """
    text = plain(text or "")
    if len(text) <= cells_max:
        return text
    end = (cells_max - 1) // 2
    return f"{text[: cells_max - 1 - end]}…{text[-end:]}"


def head(frame: Frame) -> list[Text]:
    """Return the lines about the present state: whether the engine can be trusted first, then the figures."""
    return [_health(frame), *_reasons(frame), *_trouble(frame), _figures(frame), _engine(frame)]


def _health(frame: Frame) -> Text:
    health = frame.now.health
    sign, style = _SIGNS[health.state]
    if health.state is HealthState.HEALTHY and health.reasons:
        style = "bold yellow"
    return Text.assemble((f"{sign} {short(health.sentence)}", style), (f"  {short(health.hint)}", "dim"))


def _reasons(frame: Frame) -> Iterator[Text]:
    reasons = frame.now.health.reasons
    for reason in reasons[:_REASONS_MAX]:
        yield Text(f"! {short(reason)}", "yellow")
    yield from _more(len(reasons) - _REASONS_MAX, "! ")


def _more(hidden: int, sign: str) -> Iterator[Text]:
    """Yield a line with the number of hidden lines of a kind, if there are any."""
    if hidden > 0:
        yield Text(f"{sign}and {hidden:,} more", "dim")


def _figures(frame: Frame) -> Text:
    now = frame.now
    late = now.lateness_ms
    lateness = f"{length(late.p50)} / {length(late.p99)}" if late.count else "-"
    of_few = late.count < HUNDRED
    pairs = [
        ("members", _number(now.members) + _as_of(frame)),
        ("groups", _number(now.groups)),
        ("expired/min", _number(now.expirations_per_minute)),
        ("late p50/max" if of_few else "late p50/p99", lateness),
    ]
    return _pairs(pairs)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _as_of(frame: Frame) -> str:
    """Return the time of the shown members, if they are no longer updated."""
    as_of_ms = frame.now.health.as_of_ms
    return "" if as_of_ms is None else f" at {time_of_day(as_of_ms)}"


def _trouble(frame: Frame) -> Iterator[Text]:
    """Yield the lines about groups in trouble, the worst groups first."""
    trouble = frame.now.trouble
    sign, style = _LIGHTS[0] if not trouble.known else _LIGHTS[1] if trouble.count else _LIGHTS[2]
    yield Text(f"{sign} {trouble.sentence}", style)
    for group in trouble.groups[:_TROUBLED_MAX]:
        words = "; ".join(each.words for each in group.troubles)
        yield Text.assemble(("  ", ""), (short(group.group_id), "bold"), (f": {short(words)}", ""))
    yield from _more(trouble.count - _TROUBLED_MAX, "  ")


def _engine(frame: Frame) -> Text:
    now = frame.now
    beats = "-" if now.heartbeats_per_second is None else f"{now.heartbeats_per_second:,.0f}/s"
    behind = "-" if now.clock_behind_ms is None else length(max(0, now.clock_behind_ms))
    pairs = [
        ("beats", beats),
        ("clock behind", f"{behind}, {now.shards_held} of {now.shards} held" if now.shards_held else behind),
        ("batch", length(now.last_batch.duration_ms) if now.last_batch else "-"),
        ("backlog", _number(now.backlog)),
        ("canary", _canary(frame)),
    ]
    return _pairs(pairs)


def _canary(frame: Frame) -> str:
    if frame.canary is None:
        return "none seen"
    return f"{ago(frame.canary.newest_ms, frame.now.at_ms)} ago"


def _pairs(pairs: list[tuple[str, str]]) -> Text:
    line = Text()
    for name, value in pairs:
        line.append(f"{name} ", "dim").append(value, "bold").append("  ")
    line.rstrip()
    return line


def expired_cells(row: Expiration, *, cut: bool = True) -> list[Text]:
    """Return the cells of an expiration.

    Args:
        cut: whether ids are cut to the width of a column.
    """
    back = "" if row.returned_ms is None else f"after {length(max(0, row.returned_ms - row.deadline_ms))}"
    return [
        Text(time_of_day(row.append_ms)),
        Text(row.reason.removesuffix("_timeout").removeprefix("worker_").replace("_", " "), "" if back else "red"),
        Text(_length(row.silent_ms), justify="right"),
        Text(_length(row.known_late_ms), justify="right"),
        Text(short(row.group_id, cells_max=GROUP_CELLS if cut else _UNCUT)),
        Text(short(row.member_id, cells_max=MEMBER_CELLS if cut else _UNCUT)),
        Text(back or ("no" if can_be_recognised(row) else "not known"), "green" if back else ""),
        Text(short(row.client_host, cells_max=MEMBER_CELLS if cut else _UNCUT)),
        Text(short(row.group_instance_id or row.client_id, cells_max=MEMBER_CELLS if cut else _UNCUT)),
        Text(str(row.generation_id), justify="right"),
    ]


def risk_cells(row: AtRisk, *, now_ms: int, cut: bool = True, decides: bool = True) -> list[Text]:
    """Return the cells of a member at risk, with a bar that shrinks as its time runs out.

    Args:
        cut: whether ids are cut to the width of a column.
        decides: whether the engine decides; otherwise a passed deadline means nothing.
    """
    left_ms = row.deadline_ms - now_ms
    style = "bold red" if left_ms <= 0 else "yellow" if left_ms < _NEAR_MS else ""
    # A passed deadline is decided as soon as the shard's clock gets there: promise P2.
    words = length(left_ms) if left_ms > 0 else "any moment" if decides else "not decided"
    style = style if decides else "dim"
    return [
        Text(words, style, justify="right"),
        Text(bar(left_ms), style or "green"),
        Text(short(row.group_id, cells_max=GROUP_CELLS if cut else _UNCUT)),
        Text(short(row.member_id, cells_max=MEMBER_CELLS if cut else _UNCUT)),
        Text(str(row.shard), justify="right"),
    ]


def bar(left_ms: int) -> str:
    """Return a bar of the remaining time: full at twelve seconds or more, one cell per second."""
    eighths = max(0, min(_BAR_CELLS * 8, left_ms * _BAR_CELLS * 8 // _BAR_MS))
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + _EIGHTHS[rest].strip()).ljust(_BAR_CELLS)


def group_cells(group: Group, *, now_ms: int, cut: bool = True, decides: bool = True) -> list[Text]:
    """Return the cells of a group.

    Args:
        cut: whether its id is cut to the width of a column.
        decides: whether the engine decides; otherwise its state is that of the last batch, as on the page.
    """
    storm = group.storm
    state = _STATE_NAMES.get(group.state, group.state.value)
    return [
        Text(short(group.group_id, cells_max=GROUP_CELLS if cut else _UNCUT)),
        Text(state, "yellow" if group.blocked else "") if decides else Text(f"was {state}", "dim"),
        Text(_members_of(group), justify="right"),
        Text(_last(group, now_ms)),
        _waits_for(group, now_ms, decides=decides),
        Text(_storm(storm) if storm else "", "bold red"),
        Text(str(group.generation_id), justify="right"),
    ]


def _storm(storm: Storm) -> str:
    return f"{count(storm.count, 'rebalance')}, first: {storm.first_cause.replace('_', ' ')}"


def _members_of(group: Group) -> str:
    """Return how many members a group has, as on the page: `47 of 50`, `3 (1 unknown)`."""
    expected = "" if group.expected is None else f" of {group.expected:,}"
    unknown = f" ({group.unknown_sessions:,} unknown)" if group.unknown_sessions else ""
    return "-" if group.members is None else f"{group.members:,}{expected}{unknown}"


def _last(group: Group, now_ms: int) -> str:
    last = group.last
    if last is None:
        return "-"
    return f"{last.words}, {ago(last.began_ms, now_ms)} ago"


def _waits_for(group: Group, now_ms: int, *, decides: bool) -> Text:
    blocked = group.blocked
    if blocked is None:
        return Text("")
    left = "" if blocked.deadline_ms is None else f", {length(max(0, blocked.deadline_ms - now_ms))} left"
    left = left if decides else ", not decided"
    names = ", ".join(short(name, cells_max=30) for name in blocked.awaiting[:2])
    more = blocked.awaiting_count - min(2, len(blocked.awaiting))
    return Text(f"{names}{f' and {more} more' if more > 0 else ''}{left}", "yellow")


def _length(duration_ms: int | None) -> str:
    return "-" if duration_ms is None else length(duration_ms)
