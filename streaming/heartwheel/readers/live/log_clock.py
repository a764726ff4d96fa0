"""Problems with the times in the log itself, in sentences: clocks of brokers, and of producers."""

from __future__ import annotations

from typing import Final, NamedTuple

from heartwheel.base.phrases import count
from heartwheel.wire.job import JobRow

UNTIMED_SHOWN_MS: Final = 600_000
"""How long records without append times are mentioned, ms."""

STEPPED_BACK_MS_MIN: Final = 2_000
"""How far a broker's clock must have stepped back for time to count as standing still, ms."""

SKEW_MS_MIN: Final = 1_000
"""How far brokers' clocks must be apart to be mentioned, ms. NTP keeps them within some tens."""

_TYPE: Final = "message.timestamp.type"


class Standstill(NamedTuple):
    """Why time stands still, what to do, and the heading of docs/troubleshooting.md about it."""

    sentence: str
    hint: str
    topic: str


def standstill(job: JobRow) -> Standstill | None:
    """Return why new records give no time; `None` if some do."""
    wrong = next((each for each in job.topic_problems if each.setting == _TYPE), None)
    if wrong is not None:
        return Standstill(
            f"Time has stopped: {wrong.topic} has {_TYPE}={wrong.found}, and producers' clocks are not believed.",
            "No member expires during that time. kafka-configs.sh --alter --entity-type topics "
            f"--entity-name {wrong.topic} --add-config {_TYPE}={wrong.wanted}",
            "wrong-timestamp-type",
        )
    if job.stepped_back_ms < STEPPED_BACK_MS_MIN:
        return None
    by = f"{job.stepped_back_ms / 1000:.1f} s"
    return Standstill(
        f"Time has stopped in a partition for {by} more: the clock of its leader was set back, or it has a new leader "
        "whose clock is behind.",
        f"No member there expires during that time, and expirations come {by} late. Synchronise the brokers' clocks.",
        "time-has-stopped",
    )


def clock_reasons(job: JobRow) -> list[str]:
    """Return problems of the topic's settings and of records without append times."""
    found = [
        f"Topic {each.topic} has {each.setting}={each.found}, it must be {each.wanted}: heartbeats may be lost."
        for each in job.topic_problems
        if each.setting != _TYPE
    ]
    if job.ticker is not None and (job.ticker.skew_ms or 0) >= SKEW_MS_MIN:
        apart = f"{(job.ticker.skew_ms or 0) / 1000:.1f} s"
        found.append(f"The brokers' clocks are {apart} apart: a new leader may let time jump. Synchronise them.")
    if job.untimed_at_ms is not None and job.at_ms - job.untimed_at_ms < UNTIMED_SHOWN_MS:
        records = count(job.untimed, "heartbeat record")
        found.append(f"{records} carried the producer's time, which is not believed: set {_TYPE}=LogAppendTime.")
    return found
