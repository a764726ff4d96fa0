"""A shard whose state is written down and read again after each batch, and names of groups for a partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.shard import BatchResult, Shard, ShardLimits
from heartwheel.proof.testing import OUTAGE_MIN_MS, Read
from heartwheel.wire.partitioner import partition_of


def shard_runs(
    reads: Iterable[Read],
    config: CoordinatorConfig,
    *,
    limits: ShardLimits | None = None,
    counts: Sequence[int] = (),
) -> Iterator[tuple[Shard, BatchResult]]:
    """Yield the shard after each batch, and what came of the batch."""
    blob = ""
    for read in reads:
        shard = Shard(
            coordinator=config, limits=limits or ShardLimits(), outage_min_ms=OUTAGE_MIN_MS, counts=counts, blob=blob
        )
        yield shard, shard.apply(*read)
        blob = shard.encode()


def group_in(home: int, partitions: int) -> str:
    """Name a group whose id says a partition."""
    names = map(str, range(999))
    return next(name for name in names if partition_of(name.encode(), partitions) == home)
