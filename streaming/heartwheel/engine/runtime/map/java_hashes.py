"""`String.hashCode` of a column of names at once: which shard each of many groups belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_FACTOR: Final = 31


def shards_of(group_ids: Sequence[str], shards: int) -> NDArray[np.int64]:
    """Return the shard of each group, as `heartwheel.wire.partitioner.shard_of` has it.

    Args:
        group_ids: the groups, none of them empty.

    Returns:
        int64 (groups,).
    """
    units = np.frombuffer("".join(group_ids).encode("utf-16-le", "surrogatepass"), "<u2").astype(np.uint32)
    sizes = np.fromiter(map(len, group_ids), np.int64, len(group_ids))
    if int(sizes.sum()) != len(units):  # somebody has characters of two units each
        sizes = np.array([len(name.encode("utf-16-le", "surrogatepass")) // 2 for name in group_ids], np.int64)
    ends = np.cumsum(sizes)
    # The hash is the sum of each unit times 31 to the power of how many units follow it, modulo 2**32.
    following = np.repeat(ends, sizes) - 1 - np.arange(len(units))
    powers = np.full(int(sizes.max(initial=1)), _FACTOR, np.uint32)
    powers[0] = 1
    hashes = np.add.reduceat(units * np.cumprod(powers, dtype=np.uint32)[following], ends - sizes, dtype=np.uint32)
    signed = hashes.view(np.int32).astype(np.int64)
    # Utils.abs gives 0 for Integer.MIN_VALUE, whose absolute value does not fit 32 bits.
    return np.where(signed == -(1 << 31), 0, np.abs(signed)) % shards
