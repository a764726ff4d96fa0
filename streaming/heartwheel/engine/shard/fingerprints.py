"""Lookup of members by fingerprint: a hash table over a column, built and searched by whole columns.

It uses open addressing with linear probing. A fingerprint is a hash already, so its lowest bits are its first place.
Every round handles all that have not found their place yet, and after a few rounds none is left.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

NONE: Final = 0
"""The fingerprint of a member that has none, and of a value that is no heartbeat."""

_UNKNOWN: Final = -1
_PLACES_A_ROW: Final = 3
_FLAGS_A_FINGERPRINT: Final = 8


class FingerprintIndex:
    """An index of rows by fingerprint.

    Args:
        fingerprints: int64 (rows,), of the members; it must not change while the index is in use.
        among: intp (n,), the rows that are in the index; `None` for all.
    """

    def __init__(self, fingerprints: Ints, among: Rows | None = None) -> None:
        self._known = fingerprints
        rows = np.arange(len(fingerprints), dtype=np.int32) if among is None else among.astype(np.int32)
        rows = rows[fingerprints[rows] != NONE]
        self._mask = (1 << (_PLACES_A_ROW * len(rows)).bit_length()) - 1
        self._rows = np.full(self._mask + 1, _UNKNOWN, np.int32)
        place = fingerprints[rows] & self._mask
        while len(rows):
            free = self._rows[place] == _UNKNOWN
            self._rows[place[free]] = rows[free]  # if several have one place, the last stays
            lost = self._rows[place] != rows
            rows, place = rows[lost], (place[lost] + 1) & self._mask

    def find(self, fingerprints: Ints) -> Rows:
        """Return the rows of fingerprints; -1 for fingerprints of no member.

        Args:
            fingerprints: int64 (n,).
        """
        place = fingerprints & self._mask
        found: Rows = self._rows[place].astype(np.intp)
        if not len(self._known):
            return found
        # An empty place reads the last row; that row's fingerprint does not count.
        search = np.flatnonzero((self._known[found] != fingerprints) & (found != _UNKNOWN))
        while len(search):
            place[search] = next_place = (place[search] + 1) & self._mask
            found[search] = row = self._rows[next_place]
            search = search[(self._known[row] != fingerprints[search]) & (row != _UNKNOWN)]
        return found


def find_few(known: Ints, fingerprints: Ints) -> Rows:
    """Return the rows of fingerprints as an index does, without one of all rows.

    Where few of many members beat, most of an index would be built for nobody. So it is built of the rows whose lowest
    bits are those of a wanted fingerprint: what is wanted, and an eighth of the others at most.

    Args:
        known: int64 (rows,), of the members.
        fingerprints: int64 (n,).
    """
    mask = (1 << (_FLAGS_A_FINGERPRINT * len(fingerprints)).bit_length()) - 1
    wanted = np.zeros(mask + 1, np.bool_)
    wanted[fingerprints & mask] = True
    return FingerprintIndex(known, np.flatnonzero(wanted[known & mask])).find(fingerprints)
