"""Sentences about what a person should know although the engine runs; `health` shows them beside its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from heartwheel.base.percentiles import HUNDRED
from heartwheel.base.phrases import ago, count, length, setting
from heartwheel.readers.live.canary_figures import CanaryFigures
from heartwheel.readers.live.figures import Lateness
from heartwheel.readers.live.log_clock import clock_reasons
from heartwheel.wire.job import JobRow
from heartwheel.wire.status import StatusRow

OUTAGE_SHOWN_MS: Final = 600_000
"""How long an outage of Kafka is mentioned, ms."""

FEED_LAGS_MS: Final = 15_000
"""How far a feed may lag before that is mentioned, ms."""


def ticker_warnings(job: JobRow) -> list[str]:
    """Return sentences about the ticker and recent outages."""
    found = []
    if job.ticker is not None and job.ticker.silent:
        first = job.ticker.silent[0]
        where = count(job.ticker.silent_count, "partition")
        found.append(f"No ticks come to {where}; partition {first.partition}: {first.reason}.")
    outage = job.last_outage
    if outage is not None and job.at_ms - outage.seen_ms < OUTAGE_SHOWN_MS:
        renewed = count(outage.sessions_renewed, "session")
        found.append(f"Kafka was not writable for {outage.duration_ms / 1000:.0f} s: {renewed} renewed.")
    return found + clock_reasons(job)


def feed_warnings(shards: Sequence[StatusRow]) -> list[str]:
    """Return sentences about feeds that have relayed nothing for long, and so stop the time of their groups."""
    newest_ms = max((row.batch_ms for row in shards), default=0)
    passed_ms: dict[str, int] = {}
    for row in shards:
        for feed, at_ms in row.feeds.items():
            passed_ms[feed] = min(at_ms, passed_ms.get(feed, at_ms))
    return [
        f"Feed {feed} has relayed nothing for {ago(at_ms, newest_ms)}: no member of its groups expires until it does."
        for feed, at_ms in sorted(passed_ms.items())
        if newest_ms - at_ms > FEED_LAGS_MS
    ]


def verdict_warnings(lateness: Lateness, strays: Mapping[str, int], canary: CanaryFigures | None) -> tuple[str, ...]:
    """Return sentences about verdicts that were late, may be wrong, or that the canary missed."""
    return tuple(line for line in (_late(lateness), _stray(strays), *_canary(canary)) if line)


def _late(lateness: Lateness) -> str:
    if lateness.objective is None or lateness.p99 <= lateness.objective:
        return ""
    if lateness.count < HUNDRED:
        which = "The only expiration" if lateness.count == 1 else f"The slowest of {lateness.count} expirations"
        late = f"{which} was known {length(lateness.max)} after its deadline"
    else:
        late = f"One expiration in a hundred was known {length(lateness.p99)} after its deadline, or later"
    return f"{late}; the objective is {setting(lateness.objective)}."


def _stray(strays: Mapping[str, int]) -> str:
    if not strays:
        return ""
    names = ", ".join(sorted(strays)[:3])
    return f"Groups send to more than one partition: {names}. Use one partitioner (murmur2) in all producers."


def _canary(canary: CanaryFigures | None) -> list[str]:
    if canary is None:
        return []
    missed, false, late, lines = canary.missed, canary.false_, canary.late, list[str]()
    if missed:
        lines.append(f"The canary was not expired in time {count(missed, 'time')}: real members may be missed too.")
    if false:
        lines.append(f"The canary was expired {count(false, 'time')} though it was alive: real members may be too.")
    if late:
        lines.append(f"The canary was expired late {count(late, 'time')}: real members may be, too.")
    return lines
