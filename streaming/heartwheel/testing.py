"""The testing kit: logs written by hand, run through real shards without Spark (`heartwheel.proof.testing`).

For keys of a DataFrame of yours, `sessions.test` runs the same logic on a list.
"""

from heartwheel.proof.testing import (
    OUTAGE_MIN_MS,
    RUN,
    TICK_INTERVAL_MS,
    LogBuilder,
    ProducedRecord,
    Read,
    arrivals,
    by_group,
    frame_of,
    read_records,
    run_rules,
    run_shard,
    until,
)

__all__ = [
    "OUTAGE_MIN_MS",
    "RUN",
    "TICK_INTERVAL_MS",
    "LogBuilder",
    "ProducedRecord",
    "Read",
    "arrivals",
    "by_group",
    "frame_of",
    "read_records",
    "run_rules",
    "run_shard",
    "until",
]
