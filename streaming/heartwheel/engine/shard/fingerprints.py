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


class FingerprintIndex:
    """An index of rows by fingerprint.

    Args:
        fingerprints: int64 (rows,), of the members; it must not change while the index is in use.
    """

    def __init__(self, fingerprints: Ints) -> None:
        self._known = fingerprints
        rows = np.flatnonzero(fingerprints != NONE).astype(np.int32)
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
