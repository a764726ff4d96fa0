"""Feeds that lag are spoken of: whoever sees nobody expired must learn that nobody can be."""

from __future__ import annotations

import msgspec

from heartwheel.readers.live.health import Signs, health_of
from heartwheel.readers.live.warnings import FEED_LAGS_MS
from support.output_rows import status

NOW = 1_795_239_795_000


def _reasons(*feeds: dict[str, int]) -> list[str]:
    shards = tuple(
        msgspec.structs.replace(status(shard=shard, batch_ms=NOW), feeds=each) for shard, each in enumerate(feeds)
    )
    return health_of(Signs(True, NOW, "kafka:9092", None, shards), now_ms=NOW).reasons


def test_feed_that_lags_is_named() -> None:
    """The least of what the shards know of a feed counts; one that is a little behind is not spoken of."""
    near, far = NOW - FEED_LAGS_MS, NOW - 60_000
    assert _reasons({"broker-1": near}, {"broker-1": near}) == []
    (said,) = _reasons({"broker-1": near, "broker-2": far}, {"broker-2": NOW})
    assert "Feed broker-2 has relayed nothing for" in said
    assert "no member of its groups expires" in said
