"""The answers of a what-if analysis: one scenario a timeout or interval, beside what the log itself shows."""

from __future__ import annotations

import msgspec


class Scenario(msgspec.Struct, kw_only=True, frozen=True):
    """The outcome of one session timeout.

    Args:
        session_timeout_ms: the timeout of every member, ms; `None` for the timeouts that the members had.
        expirations: how often a session would have run out before the end of the log.
        false_expirations: how many of them hit a member that was alive, because it sent something later.
        detection_delay_p50_ms: median time from the last sign of life of a member that never came back to its
            expiration, ms; `None` without such members. The member died at most one heartbeat interval after that sign.
        detection_delay_p99_ms: the same, 99th percentile.
        rebalances: how many rebalances the expirations would have triggered: those that overlap in a group trigger one,
            and one in a join phase that runs for another cause triggers none. In a group with member epochs each is a
            new epoch.
    """

    session_timeout_ms: int | None
    expirations: int
    false_expirations: int
    detection_delay_p50_ms: int | None
    detection_delay_p99_ms: int | None
    rebalances: int


class LongestSilence(msgspec.Struct, kw_only=True, frozen=True):
    """The longest silence that a member came back from: a shorter timeout would expire a living member."""

    silence_ms: int
    since_ms: int
    group_id: str
    member_id: str


class WhatIf(msgspec.Struct, kw_only=True, frozen=True):
    """The outcomes of session timeouts on a log.

    Args:
        recorded: for the timeouts that the members had.
        scenarios: for other timeouts.
        longest_silence: `None` if no member was ever silent and came back.
        heartbeat_interval_ms: the median time between two heartbeats of a member, ms; `None` without heartbeats.
        other_rebalances: how many rebalances, or new epochs, had other causes, such as members that joined or left.
        poll_timeouts: how often a member left because it had not polled in time: no session timeout changes that.
        members: how many members appear in the log.
        group_kind: the evaluated kind of group, `consumer`, `share` or `streams`; empty for all.
        end_ms: end of the evaluated time, epoch ms.
    """

    recorded: Scenario
    scenarios: list[Scenario]
    longest_silence: LongestSilence | None
    heartbeat_interval_ms: int | None
    other_rebalances: int
    poll_timeouts: int
    members: int
    group_kind: str
    end_ms: int


class IntervalScenario(msgspec.Struct, kw_only=True, frozen=True):
    """The outcome of one heartbeat interval.

    Args:
        heartbeat_interval_ms: the interval of every member, ms; `None` for the one that they had.
        heartbeats_per_s: how many heartbeats the coordinator would have had a second, from all members together.
        longest_silence_ms: the longest silence that a member would have come back from, at worst, ms: it hung just
            before a heartbeat was due. `None` if no member was ever silent and came back.
    """

    heartbeat_interval_ms: int | None
    heartbeats_per_s: float
    longest_silence_ms: int | None


class IntervalWhatIf(msgspec.Struct, kw_only=True, frozen=True):
    """The outcomes of heartbeat intervals on a log.

    Args:
        recorded: for the interval that the members had.
        scenarios: for other intervals.
        heartbeat_interval_ms: the median time between two heartbeats of a member, ms; `None` without heartbeats.
        members: how many members appear in the log.
        end_ms: end of the evaluated time, epoch ms.
    """

    recorded: IntervalScenario
    scenarios: list[IntervalScenario]
    heartbeat_interval_ms: int | None
    members: int
    end_ms: int
