"""What a worker remembers of values that it has decoded: a hash table over whole columns.

A member's heartbeats are mostly the same bytes, so that decoding each distinct value once is what makes the map side
fast. A Python dictionary costs a call a record; this table looks up a column at a time, by the hash that the JVM has
computed of each value (`xxhash64`, free beside reading it), with open addressing and linear probing (Knuth, The Art of
Computer Programming 3, 6.4, algorithm L).

Nobody has to trust that hash: what is found is compared byte by byte, so a value that was made to collide with another
one is decoded each time, as if it were new. Probing is bounded, and starts at a slot that depends on a random number of
this process, so that nobody can prepare values that share their slots.
"""

from __future__ import annotations

import secrets
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Shards = NDArray[np.int16]
Codes = NDArray[np.int32]
Rows = NDArray[np.intp]

UNKNOWN: Final = -1
"""The code of a value that the table does not hold."""

PROBES_MAX: Final = 32
"""How many slots are looked at for a value; at most half of them are taken, so that hardly any value needs ten."""

_SLOT_BITS_MIN: Final = 12
_COMPARED_AT_ONCE: Final = 1024
"""How many values are fetched and compared together: so many fit into a core's cache."""

_FREE: Final = 0


class ValueTable:
    """A bounded table from values to what they decode to.

    It is a cache of a pure function of the bytes: what it holds may be lost at any time. When it is full, values that
    were not looked up since the last time it was full make room; if all were, it takes no new ones. So a working set of
    twice the bound is half found, and does not drive itself out in turn
    (`test_twice_the_bound_is_still_half_found`).

    Args:
        bytes_max: most bytes that these values have together.
    """

    def __init__(self, *, entries_max: int, bytes_max: int) -> None:
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._multiplier = np.uint64(secrets.randbits(64) | 1)
        # As large as they may become: the system hands out memory as it is written to, and nothing is ever moved.
        self._shards = np.empty(entries_max, np.int16)
        self._fingerprints = np.empty(entries_max, np.int64)
        self._hashes = np.empty(entries_max, np.int64)
        self._used = np.empty(entries_max, np.bool_)
        self._stamps = np.empty(entries_max, np.int32)
        self._ends = np.empty(entries_max + 1, np.int64)
        self._bytes = np.empty(bytes_max, np.uint8)
        self._clear()

    def _clear(self) -> None:
        self._count = 0
        self._lookups = 0
        self._ends[0] = 0
        self._make_slots(_SLOT_BITS_MIN)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """The bytes of the values in the table."""
        return int(self._ends[self._count])

    @property
    def shards(self) -> Shards:
        """The shard of each value, int16 (values,), by code."""
        return self._shards[: self._count]

    @property
    def fingerprints(self) -> Ints:
        """The fingerprint of each value, int64 (values,), by code; 0 where it is not a heartbeat."""
        return self._fingerprints[: self._count]

    @property
    def stamps(self) -> Codes:
        """A number beside each value, int32 (values,), by code: the owner of the table may change it."""
        return self._stamps[: self._count]

    def values(self) -> pa.LargeBinaryArray:
        """Return the values in the table, by code, without copying them."""
        buffers = [None, pa.py_buffer(self._ends[: self._count + 1]), pa.py_buffer(self._bytes)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), self._count, buffers)

    def find(self, hashes: Ints, values: pa.LargeBinaryArray) -> Codes:
        """Look up values.

        Args:
            hashes: int64 (n,), the hash of each value; any 64-bit hash, but always the same one.
            values: large binary (n,), without nulls.

        Returns:
            int32 (n,), the code of each value, `UNKNOWN` where it is not in the table.
        """
        self._lookups += len(hashes)
        codes = self._probe(_keys(hashes))
        hits = np.flatnonzero(codes != UNKNOWN)
        if not len(hits):
            return codes
        asked = values if len(hits) == len(codes) else values.take(pa.array(hits))
        held, found, same = self.values(), pa.array(codes[hits]), np.empty(len(hits), np.bool_)
        for start in range(0, len(hits), _COMPARED_AT_ONCE):
            here = slice(start, start + _COMPARED_AT_ONCE)
            same[here] = pc.equal(held.take(found[here]), asked[here]).to_numpy(zero_copy_only=False)
        codes[hits[~same]] = UNKNOWN
        self._used[codes[hits[same]]] = True
        return codes

    def add(
        self, hashes: Ints, values: pa.LargeBinaryArray, shards: Shards, fingerprints: Ints, stamps: Codes | None = None
    ) -> None:
        """Remember values, as many of them as there is room for.

        Args:
            hashes: int64 (n,).
            values: large binary (n,), distinct, none of them in the table.
            shards: int16 (n,).
            fingerprints: int64 (n,).
            stamps: int32 (n,); 0 if left out.
        """
        if not len(hashes):
            return
        keys, first = np.unique(_keys(hashes), return_index=True)
        # Of values with one hash, the first is kept. They are kept in the order in which they came, as they will come
        # in that order again.
        new = np.sort(first[self._probe(keys) == UNKNOWN])
        sizes = pc.binary_length(values).to_numpy(zero_copy_only=False)
        if not self._has_room(len(new), int(sizes[new].sum())) and self._lookups >= 2 * self._count:
            self._forget_unused()
        room = np.cumsum(sizes[new]) <= self._bytes_max - self.nbytes
        new = new[room][: self._entries_max - self._count]
        if len(new):
            start = self._count
            self._append(_keys(hashes)[new], values.take(pa.array(new)), shards[new], fingerprints[new])
            self._stamps[start : self._count] = 0 if stamps is None else stamps[new]

    def _has_room(self, count: int, size: int) -> bool:
        return self._count + count <= self._entries_max and self.nbytes + size <= self._bytes_max

    def _forget_unused(self) -> None:
        kept = np.flatnonzero(self._used[: self._count])
        hashes, values = self._hashes[kept], self.values().take(pa.array(kept))
        shards, fingerprints, stamps = self._shards[kept], self._fingerprints[kept], self._stamps[kept]
        self._clear()
        if len(kept):
            self._append(hashes, values, shards, fingerprints)
        self._stamps[: len(kept)] = stamps
        self._used[: len(kept)] = False

    def _append(self, keys: Ints, values: pa.LargeBinaryArray, shards: Shards, fingerprints: Ints) -> None:
        start, stop = self._count, self._count + len(keys)
        ends, data = _contents(values)
        self._bytes[self.nbytes : self.nbytes + len(data)] = data
        self._ends[start + 1 : stop + 1] = ends + self.nbytes
        self._hashes[start:stop] = keys
        self._shards[start:stop] = shards
        self._fingerprints[start:stop] = fingerprints
        self._used[start:stop] = True
        self._count = stop
        if 2 * stop > len(self._slot_keys):
            self._make_slots(max(self._slot_bits + 1, int(2 * stop - 1).bit_length()))
            self._insert(self._hashes[:stop], np.arange(stop, dtype=np.int32))
        else:
            self._insert(keys, np.arange(start, stop, dtype=np.int32))

    # -- the slots

    def _make_slots(self, bits: int) -> None:
        self._slot_bits = bits
        self._slot_keys = np.full(1 << bits, _FREE, np.int64)
        self._slot_codes = np.full(1 << bits, UNKNOWN, np.int32)

    def _first_slots(self, keys: Ints) -> Rows:
        # Multiplicative hashing (Knuth 6.4): the highest bits depend on all bits of the key and on the multiplier.
        mixed = keys.view(np.uint64) * self._multiplier
        return (mixed >> np.uint64(64 - self._slot_bits)).astype(np.intp)

    def _probe(self, keys: Ints) -> Codes:
        """Return the code of each key, without a look at the values."""
        slots = self._first_slots(keys)
        found = self._slot_keys[slots]
        codes: Codes = np.where(found == keys, self._slot_codes[slots], np.int32(UNKNOWN))
        rest = np.flatnonzero((found != keys) & (found != _FREE))
        slots, keys = slots[rest], keys[rest]
        for _ in range(PROBES_MAX - 1):
            if not len(rest):
                break
            slots = (slots + 1) & (len(self._slot_keys) - 1)
            found = self._slot_keys[slots]
            hit = found == keys
            codes[rest[hit]] = self._slot_codes[slots[hit]]
            going_on = ~hit & (found != _FREE)
            rest, slots, keys = rest[going_on], slots[going_on], keys[going_on]
        return codes

    def _insert(self, keys: Ints, codes: Codes) -> None:
        """File distinct new keys; one that finds no slot within the probes stays unknown, and costs its place."""
        slots = self._first_slots(keys)
        for _ in range(PROBES_MAX):
            free = np.flatnonzero(self._slot_keys[slots] == _FREE)
            # Where several keys want one free slot, all write and the last one has it; the others see that and go on.
            self._slot_keys[slots[free]] = keys[free]
            won = free[self._slot_keys[slots[free]] == keys[free]]
            self._slot_codes[slots[won]] = codes[won]
            waiting = np.ones(len(keys), np.bool_)
            waiting[won] = False
            keys, codes, slots = keys[waiting], codes[waiting], slots[waiting]
            if not len(keys):
                return
            slots = (slots + 1) & (len(self._slot_keys) - 1)


def _keys(hashes: Ints) -> Ints:
    """Return the hashes with 1 for 0, which marks free slots; values are compared anyway."""
    return np.where(hashes == _FREE, np.int64(1), hashes)


def _contents(values: pa.LargeBinaryArray) -> tuple[Ints, NDArray[np.uint8]]:
    """Return where each value ends, counted from the first one's start, and all their bytes."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    start, stop = int(ends[0]), int(ends[-1])
    contents = np.frombuffer(data, np.uint8)[start:stop] if data is not None else np.empty(0, np.uint8)
    return ends[1:] - start, contents
