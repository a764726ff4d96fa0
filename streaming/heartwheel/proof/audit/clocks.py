"""The clocks of a job's shards, as their status rows show them."""

from __future__ import annotations

import msgspec


class _Shard(msgspec.Struct):
    batch_ms: int
    clock_ms: int
    proven_ms: int = -1
    before_ms: int = -1


class Clocks(msgspec.Struct):
    """The clocks of all shards.

    A batch writes its verdicts and its status rows side by side. So a status row proves only the batch *before* its
    own: all that the earlier batch decided is in the topics.

    A trigger's timestamp is the driver's clock, which may be set back. So the next batch is one with another timestamp,
    not one with a later one. An attempt that was given up may write the row of the batch before once more; held by
    `test_the_clock_of_a_driver_that_was_set_back_is_proven` and `test_a_row_of_the_batch_before_proves_nothing`.
    """

    shards: dict[int, _Shard] = {}

    def batch(self, shard: int, batch_ms: int, clock_ms: int) -> None:
        """Read a status row: its shard, its trigger's timestamp, and the clock after it, epoch ms."""
        known = self.shards.get(shard)
        if known is None:
            self.shards[shard] = _Shard(batch_ms, clock_ms)
        elif batch_ms not in (known.batch_ms, known.before_ms):
            known.proven_ms = max(known.proven_ms, known.clock_ms)
            known.before_ms, known.batch_ms, known.clock_ms = known.batch_ms, batch_ms, clock_ms

    def proven_ms(self, shards: int) -> int:
        """Return up to when all verdicts must be in the topics, epoch ms; -1 if that is unknown for some shard.

        A batch may have ended between records of the same append time, so the clock's own millisecond is not proven.
        """
        known = self.shards
        least_ms = min((known[shard].proven_ms if shard in known else -1 for shard in range(shards)), default=-1)
        return max(-1, least_ms - 1)
