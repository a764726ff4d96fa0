"""What a worker remembers of values that it has decoded: a hash table over whole columns.

A member's heartbeats are mostly the same bytes, so that decoding each distinct value once is what makes the map side
fast. A Python dictionary costs a call a record; this table looks up a column at a time, with open addressing and linear
probing (Knuth, The Art of Computer Programming 3, 6.4, algorithm L).

It keeps no bytes. A value is known again by its digest (`heartwheel.engine.heartbeats.value_digests`), so that each
costs some 50 bytes, however long it is. Nobody outside of this process can compute digests, so nobody can prepare
values that share their slots; probing is bounded all the same.
"""

from __future__ import annotations

import secrets
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.heartbeats.value_digests import Digests

Ints = NDArray[np.int64]
Shards = NDArray[np.int16]
Codes = NDArray[np.int32]
Rows = NDArray[np.intp]

UNKNOWN: Final = -1
"""The code of a value that the table does not hold."""

PROBES_MAX: Final = 32
"""How many slots are looked at for a value; at most half of them are taken, so that hardly any value needs ten."""

_SLOT_BITS_MIN: Final = 12


class ValueTable:
    """A bounded table from values, by their digests, to what they decode to.

    It is a cache of a pure function of the value: what it holds may be lost at any time. When it is full, values that
    were not looked up since the last time it was full make room; if all were, it takes no new ones. So a working set of
    twice the bound is half found, and does not drive itself out in turn
    (`test_twice_the_bound_is_still_half_found`).
    """

    def __init__(self, *, entries_max: int) -> None:
        self._entries_max = entries_max
        self._multiplier = np.uint64(secrets.randbits(64) | 1)
        # As large as they may become: the system hands out memory as it is written to, and nothing is ever moved.
        self._digests = np.empty((entries_max, 2), np.uint64)
        self._shards = np.empty(entries_max, np.int16)
        self._fingerprints = np.empty(entries_max, np.int64)
        self._used = np.empty(entries_max, np.bool_)
        self._stamps = np.empty(entries_max, np.int32)
        self._clear()

    def _clear(self) -> None:
        self._count = 0
        self._lookups = 0
        self._make_slots(_SLOT_BITS_MIN)

    def __len__(self) -> int:
        return self._count

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

    def find(self, digests: Digests) -> Codes:
        """Look up values by their digests.

        Returns:
            int32 (n,), the code of each value, `UNKNOWN` where it is not in the table.
        """
        self._lookups += len(digests)
        codes = self._probe(digests)
        self._used[codes[codes != UNKNOWN]] = True
        return codes

    def add(self, digests: Digests, shards: Shards, fingerprints: Ints, stamps: Codes | None = None) -> None:
        """Remember values, as many of them as there is room for.

        Args:
            digests: uint64 (n, 2), distinct, none of them in the table.
            shards: int16 (n,).
            fingerprints: int64 (n,).
            stamps: int32 (n,); 0 if left out.
        """
        if self._count + len(digests) > self._entries_max and self._lookups >= 2 * self._count:
            self._forget_unused()
        # Those that came first are kept if there is no room for all, as they will come in that order again.
        room = slice(self._entries_max - self._count)
        start = self._count
        self._append(digests[room], shards[room], fingerprints[room])
        self._stamps[start : self._count] = 0 if stamps is None else stamps[room]

    def _forget_unused(self) -> None:
        kept = np.flatnonzero(self._used[: self._count])
        digests, shards, fingerprints = self._digests[kept], self._shards[kept], self._fingerprints[kept]
        stamps = self._stamps[kept]
        self._clear()
        self._append(digests, shards, fingerprints)
        self._stamps[: len(kept)] = stamps
        self._used[: len(kept)] = False

    def _append(self, digests: Digests, shards: Shards, fingerprints: Ints) -> None:
        start, stop = self._count, self._count + len(digests)
        self._digests[start:stop] = digests
        self._shards[start:stop] = shards
        self._fingerprints[start:stop] = fingerprints
        self._used[start:stop] = True
        self._count = stop
        if 2 * stop > len(self._slots):
            self._make_slots(max(self._slot_bits + 1, int(2 * stop - 1).bit_length()))
            start = 0
        self._insert(np.arange(start, stop, dtype=np.int32))

    # -- the slots

    def _make_slots(self, bits: int) -> None:
        self._slot_bits = bits
        self._slots = np.full(1 << bits, UNKNOWN, np.int32)

    def _first_slots(self, digests: Digests) -> Rows:
        # Multiplicative hashing (Knuth 6.4): the highest bits depend on all bits of the number and on the multiplier.
        return (digests[:, 0] * self._multiplier >> np.uint64(64 - self._slot_bits)).astype(np.intp)

    def _probe(self, digests: Digests) -> Codes:
        slots = self._first_slots(digests)
        codes: Codes = self._slots[slots]
        rest = np.flatnonzero((codes != UNKNOWN) & ~self._are(codes, digests))
        for _ in range(PROBES_MAX - 1):
            if not len(rest):
                break
            slots[rest] = next_slots = (slots[rest] + 1) & (len(self._slots) - 1)
            codes[rest] = found = self._slots[next_slots]
            rest = rest[(found != UNKNOWN) & ~self._are(found, digests[rest])]
        codes[rest] = UNKNOWN
        return codes

    def _are(self, codes: Codes, digests: Digests) -> NDArray[np.bool_]:
        """Return which codes are those of the values with these digests; of `UNKNOWN` the answer means nothing."""
        held = self._digests[codes]
        same: NDArray[np.bool_] = (held[:, 0] == digests[:, 0]) & (held[:, 1] == digests[:, 1])
        return same

    def _insert(self, codes: Codes) -> None:
        """File distinct new values; one that finds no slot within the probes stays unknown, and costs its place."""
        slots = self._first_slots(self._digests[codes])
        for _ in range(PROBES_MAX):
            free = np.flatnonzero(self._slots[slots] == UNKNOWN)
            # Where several want one free slot, all write and the last one has it; the others see that and go on.
            self._slots[slots[free]] = codes[free]
            waiting = self._slots[slots] != codes
            codes, slots = codes[waiting], slots[waiting]
            if not len(codes):
                return
            slots = (slots + 1) & (len(self._slots) - 1)
