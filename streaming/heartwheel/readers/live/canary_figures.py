"""A canary's measurements, as the API shows them."""

from __future__ import annotations

import msgspec


class CanaryLateness(msgspec.Struct, frozen=True, kw_only=True):
    """How long after their deadlines the newest expirations were in Kafka, ms; `None` before the first.

    Args:
        p50: median.
        p99: 99th percentile.
        max: the longest.
    """

    p50: int | None
    p99: int | None
    max: int | None


class CanaryFigures(msgspec.Struct, frozen=True, kw_only=True, rename={"false_": "false"}):
    """A canary's measurements; `expected` is the sum of `known`, `missed`, `void` and `pending`.

    Args:
        enabled: whether it runs.
        shards: how many shards it checks.
        expected: silences that had to end in an expiration.
        known: those whose expiration came, in time or late.
        late: those of them that came later than the objective.
        missed: those whose expiration was not known in time, or never.
        false_: expirations of members that were alive.
        void: silences without a result, because Kafka was away or did not answer.
        void_reason: the reason of the newest such silence.
        pending: silences whose expiration may still come in time.
        lateness_ms: how late the newest ones were known.
        objective_ms: how late they should be at most.
        last_ms: when the newest expiration was appended, epoch ms; `None` before the first.
        beats: heartbeats sent.
        unknown: heartbeats that the broker did not answer for.
    """

    enabled: bool
    shards: int
    expected: int
    known: int
    late: int
    missed: int
    false_: int
    void: int
    void_reason: str | None
    pending: int
    lateness_ms: CanaryLateness
    objective_ms: int
    last_ms: int | None
    beats: int
    unknown: int
