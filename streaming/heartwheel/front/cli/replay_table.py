"""The tables of `heartwheel replay --what-if`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.table import Table

from heartwheel.base.phrases import count
from heartwheel.base.plain import plain
from heartwheel.engine.replay.revocations import RevocationsWhatIf
from heartwheel.engine.replay.what_if_answer import IntervalWhatIf, WhatIf
from heartwheel.front.cli.console import plain_table, stdout
from heartwheel.front.cli.inspect import show_time
from heartwheel.settings import format_duration

_NONE: Final = "-"
_NO_REVOCATION: Final = (
    "This log shows no member that was asked to give partitions back: it cannot say what a rebalance timeout does.",
    "Only groups with member epochs are looked at, and only if their lines have `assignment` or `revoking`.",
)


def show_what_if(answer: WhatIf) -> None:
    """Print a row for the timeouts that the members had, one for each other timeout, and what follows from them."""
    table = plain_table("session timeout", "expirations", "false", "noticed after (p50)", "(p99)", "rebalances")
    for scenario in (answer.recorded, *answer.scenarios):
        table.add_row(
            _asked(scenario.session_timeout_ms),
            str(scenario.expirations),
            str(scenario.false_expirations),
            _seconds(scenario.detection_delay_p50_ms),
            _seconds(scenario.detection_delay_p99_ms),
            str(scenario.rebalances),
        )
    _print(table, _notes(answer))


def show_revocations(answer: RevocationsWhatIf) -> None:
    """Print a row for the rebalance timeouts that the members had, one for each other, and what follows from them."""
    if not answer.revocations:
        stdout().print(*_NO_REVOCATION, sep="\n")
        return
    table = plain_table("rebalance timeout", "fenced", "false", "partitions free after (p50)", "(p99)")
    for scenario in (answer.recorded, *answer.scenarios):
        table.add_row(
            _asked(scenario.rebalance_timeout_ms),
            str(scenario.fenced),
            str(scenario.false_fenced),
            _seconds(scenario.free_after_p50_ms),
            _seconds(scenario.free_after_p99_ms),
        )
    notes = [f"Members were asked to give partitions back {count(answer.revocations, 'time')}."]
    if answer.longest is not None:
        took, since_ms = answer.longest, answer.longest.since_ms
        who = f"{plain(took.member_id)} of {plain(took.group_id)}, from {show_time(since_ms)}"
        notes.append(
            f"Longest that a member took to give them back, or to come back: {took.took_ms / 1000:g}s ({who})."
        )
        notes.append(
            "A rebalance timeout above that (max.poll.interval.ms of the client) would have fenced no such member."
        )
    _print(table, notes)


def show_intervals(answer: IntervalWhatIf) -> None:
    """Print a row for the heartbeat interval that the members had, one for each other, and what follows from them."""
    table = plain_table("heartbeat interval", "heartbeats a second", "longest silence, at worst")
    for scenario in (answer.recorded, *answer.scenarios):
        interval, rate = _asked(scenario.heartbeat_interval_ms), f"{scenario.heartbeats_per_s:.1f}"
        table.add_row(interval, rate, _seconds(scenario.longest_silence_ms))
    notes = [f"{count(answer.members, 'member')}."]
    if answer.heartbeat_interval_ms is not None:
        notes.append(f"Median time between two heartbeats of a member: {_seconds(answer.heartbeat_interval_ms)}.")
    if answer.recorded.longest_silence_ms is not None:
        notes.append(
            "A session timeout above the longest silence that a member came back from expires no living member."
        )
    _print(table, notes)


def _print(table: Table, notes: Sequence[str]) -> None:
    stdout().print(table, "", *notes, sep="\n")


def _asked(value_ms: int | None) -> str:
    return "as it was" if value_ms is None else format_duration(value_ms)


def _seconds(time_ms: int | None) -> str:
    return _NONE if time_ms is None else f"{time_ms / 1000:.1f}s"


def _notes(answer: WhatIf) -> list[str]:
    kind = f" of {answer.group_kind} groups" if answer.group_kind else ""
    notes = [
        f"{count(answer.members, 'member')}{kind}; {count(answer.other_rebalances, 'more rebalance')} had other causes."
    ]
    if answer.poll_timeouts:
        notes.append(
            f"Members took themselves out {count(answer.poll_timeouts, 'time')} by a poll timeout; session timeouts "
            "change nothing of that: raise max.poll.interval.ms, or lower max.poll.records."
        )
    if answer.heartbeat_interval_ms is not None:
        notes.append(f"Median time between two heartbeats of a member: {_seconds(answer.heartbeat_interval_ms)}.")
    longest = answer.longest_silence
    if longest is not None:
        who = f"{plain(longest.member_id)} of {plain(longest.group_id)}, from {show_time(longest.since_ms)}"
        notes.append(f"Longest silence that a member came back from: {longest.silence_ms / 1000:g}s ({who}).")
        notes.append("A session timeout above that would have expired no living member.")
    return notes
