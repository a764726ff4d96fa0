"""What the values of a frame of records decode to: each distinct value once, for as long as it is remembered."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heartwheel.coordinator.partition import shard_of
from heartwheel.spark.value_table import UNKNOWN, ValueTable
from heartwheel.wire.events import RejectedError, TickError
from heartwheel.wire.requests import decode_request, fingerprint_of
from heartwheel.wire.tick import TICK_PREFIX, read_tick

BAD: Final = -1
TICK: Final = -2
"""What stands in the place of a shard for a value that is no event: neither is remembered."""

REMEMBERED_MAX: Final = 4_000_000
"""How many distinct values a worker remembers; each costs 30 to 60 bytes beside its own."""

REMEMBERED_BYTES_MAX: Final = 512 << 20
"""How many bytes these values may have together; memory is taken as they come (`docs/performance.md`)."""


class Decoded(NamedTuple):
    """What the distinct values of a frame of records decode to.

    Args:
        bodies: large binary (entries,), the values.
        shard: int64 (entries,), `BAD` or `TICK` where the value is no event.
        marks: int64 (entries,), the fingerprint of a heartbeat, else 0.
        entry: intp (records,), which of them a record has.
    """

    bodies: pa.LargeBinaryArray
    shard: NDArray[np.int64]
    marks: NDArray[np.int64]
    entry: NDArray[np.intp]


class Decoder:
    """Decodes values, each distinct one once for as long as it is remembered.

    Args:
        shards: how many shards there are.
        value_bytes_max: longest value that is accepted.
        remembered_max: how many values are remembered.
    """

    def __init__(self, shards: int, value_bytes_max: int, remembered_max: int) -> None:
        self._shards = shards
        self.value_bytes_max = value_bytes_max
        self._table = ValueTable(entries_max=remembered_max, bytes_max=REMEMBERED_BYTES_MAX)
        self._place = np.empty(0, np.int32)

    def decode(self, values: pa.LargeBinaryArray, hashes: NDArray[np.int64]) -> Decoded:
        """Decode the values of a frame, large binary (records,) without nulls, with their hashes."""
        codes = self._table.find(hashes, values)
        unknown = np.flatnonzero(codes == UNKNOWN)
        if not len(unknown):
            distinct, entry = self._distinct(codes)
            return Decoded(self._bodies(distinct), self._shard(distinct), self._table.marks[distinct], entry)
        missing = values.take(pa.array(unknown)).dictionary_encode()
        which = missing.indices.to_numpy()
        found = [self._decode(value) for value in missing.dictionary.to_pylist()]
        shard = np.array([hit[0] for hit in found], np.int64)
        marks = np.array([hit[1] for hit in found], np.int64)
        held = np.flatnonzero(codes != UNKNOWN)
        distinct, held_entry = self._distinct(codes[held])
        entry = np.empty(len(codes), np.intp)
        entry[held] = held_entry
        entry[unknown] = which + len(distinct)
        decoded = Decoded(
            pa.concat_arrays([self._bodies(distinct), missing.dictionary]),
            np.concatenate((self._shard(distinct), shard)),
            np.concatenate((self._table.marks[distinct], marks)),
            entry,
        )
        hash_of = np.empty(len(found), np.int64)
        hash_of[which] = hashes[unknown]
        good = np.flatnonzero(shard >= 0)
        self._table.add(hash_of[good], missing.dictionary.take(pa.array(good)), shard[good], marks[good])
        return decoded

    def _bodies(self, codes: NDArray[np.int32]) -> pa.LargeBinaryArray:
        return self._table.values().take(pa.array(codes))

    def _shard(self, codes: NDArray[np.int32]) -> NDArray[np.int64]:
        return self._table.shards[codes].astype(np.int64)

    def _distinct(self, codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """Return the distinct codes, and for each record which of them it has; without a sort."""
        if len(self._place) < len(self._table):
            self._place = np.empty(2 * len(self._table), np.int32)
        at = np.arange(len(codes), dtype=np.int32)
        self._place[codes] = at
        distinct = codes[self._place[codes] == at]
        self._place[distinct] = np.arange(len(distinct), dtype=np.int32)
        return distinct, self._place[codes].astype(np.intp)

    def _decode(self, value: bytes) -> tuple[int, int]:
        if value.startswith(TICK_PREFIX) and len(value) <= self.value_bytes_max and read_tick(value) is not None:
            return TICK, 0
        try:
            request = decode_request(value, size_max=self.value_bytes_max)
        except TickError:
            return TICK, 0
        except RejectedError:
            return BAD, 0
        return shard_of(request.group_id, self._shards), fingerprint_of(request)
