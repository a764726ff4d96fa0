"""Events at the very millisecond at which something ends or is forgotten: what random ones meet by luck alone."""

from __future__ import annotations

import pytest

from sessions.oracle import Oracle, Seen
from sessions.running import Shards, config_of, frame_of, plain

BATCH_MS = 10**9

MOMENTS = {
    "before the deadline": ([Seen(1_000, "a"), Seen(1_999, "a"), Seen(2_500, "z")], ["came", "came"]),
    "at the deadline": ([Seen(1_000, "a"), Seen(2_000, "a"), Seen(2_500, "z")], ["came", "gone", "back", "came"]),
    "an end at the deadline": ([Seen(1_000, "a"), Seen(2_000, "a", "bye"), Seen(2_500, "z")], ["came", "gone", "came"]),
    "an end of an unknown key": ([Seen(1_000, "a", "bye"), Seen(3_000, "z")], ["came"]),
    "before a key is forgotten": ([Seen(1_000, "a"), Seen(3_499, "a")], ["came", "gone", "back"]),
    "as a key is forgotten": ([Seen(1_000, "a"), Seen(3_500, "a")], ["came", "gone", "came"]),
}


@pytest.mark.parametrize("cut", ["one batch", "a batch an event"])
@pytest.mark.parametrize("timeout_ms", [1_000, None], ids=["one timeout", "a column of timeouts"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_an_event_at_the_moment_counts_as_the_oracle_says(moment: str, timeout_ms: int | None, cut: str) -> None:
    """With all events in one batch the sorted path decides, with one event a batch the fast one where it can."""
    events, kinds = MOMENTS[moment]
    oracle = Oracle(forget_ms=1_500)
    oracle.apply(events, events[-1].time_ms)
    shards = Shards(config_of(timeout_ms=timeout_ms, forget_ms=1_500))
    batches = [events] if cut == "one batch" else [[event] for event in events]
    rows = [row for batch in batches for row in shards.batch([frame_of(batch)], BATCH_MS)]
    assert plain(rows) == sorted(oracle.rows, key=repr)
    assert sorted(row["event"] for row in rows) == sorted(kinds)
