"""The table of `heartwheel replay --what-if`."""

from __future__ import annotations

from typing import Final

from heartwheel.cli.console import plain_table, stdout
from heartwheel.cli.inspect import show_time
from heartwheel.plain import plain
from heartwheel.replay.what_if import Scenario, WhatIf
from heartwheel.settings import format_duration

_NONE: Final = "-"


def show_what_if(answer: WhatIf) -> None:
    """Print a row for the timeouts that the members had, one for each other timeout, and what to make of them."""
    table = plain_table("session timeout", "expirations", "false", "noticed after (p50)", "(p99)", "rebalances")
    for scenario in (answer.recorded, *answer.scenarios):
        table.add_row(*_cells(scenario))
    stdout().print(table, "", *_notes(answer), sep="\n", markup=False)


def _cells(scenario: Scenario) -> list[str]:
    timeout_ms = scenario.session_timeout_ms
    return [
        "as it was" if timeout_ms is None else format_duration(timeout_ms),
        str(scenario.expirations),
        str(scenario.false_expirations),
        _seconds(scenario.detection_delay_p50_ms),
        _seconds(scenario.detection_delay_p99_ms),
        str(scenario.rebalances),
    ]


def _seconds(time_ms: int | None) -> str:
    return _NONE if time_ms is None else f"{time_ms / 1000:.1f}s"


def _notes(answer: WhatIf) -> list[str]:
    notes = [f"{answer.members} members; {answer.other_rebalances} more rebalances had other causes."]
    if answer.poll_timeouts:
        notes.append(
            f"Members took themselves out {answer.poll_timeouts} times by a poll timeout; session timeouts change "
            "nothing of that: raise max.poll.interval.ms, or lower max.poll.records."
        )
    if answer.heartbeat_interval_ms is not None:
        notes.append(f"Median time between two heartbeats of a member: {_seconds(answer.heartbeat_interval_ms)}.")
    longest = answer.longest_silence
    if longest is not None:
        who = f"{plain(longest.member_id)} of {plain(longest.group_id)}, from {show_time(longest.since_ms)}"
        notes.append(f"Longest silence that a member came back from: {longest.silence_ms / 1000:g}s ({who}).")
        notes.append("A session timeout above that would have expired nobody falsely.")
    return notes
