"""What a task of the map side sends to the shards: rows of a slot, a kind and a payload."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

PACKED_SCHEMA: Final = pa.schema([("slot", pa.int32()), ("kind", pa.int32()), ("payload", pa.binary())])
"""One row a pack: the shard's slot, what the payload is (`PayloadKind`), and the bytes."""


class PayloadKind(enum.IntEnum):
    """What a row on its way to a shard holds."""

    RECORDS = 0
    REJECTS = 1
    READINGS = 2
    RELAYED = 3


PackedRow = tuple[int, PayloadKind, bytes]
"""(shard, kind, payload)."""


def by_partition(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Cut a batch at the seams between partitions: a task reads several of them, one after the other."""
    partitions = batch.column("partition").to_numpy(zero_copy_only=False)
    cuts = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]
    for start, stop in pairwise(cuts):
        if stop > start:
            yield int(partitions[start]), batch.slice(start, stop - start)


def packed_batch(rows: Iterable[PackedRow], slots: tuple[int, ...]) -> pa.RecordBatch:
    """Shape rows as an Arrow batch of `PACKED_SCHEMA`."""
    shards, kinds, payloads = zip(*rows, strict=True)
    columns = [
        pa.array([slots[shard] for shard in shards], pa.int32()),
        pa.array(kinds, pa.int32()),
        pa.array(payloads, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PACKED_SCHEMA)
