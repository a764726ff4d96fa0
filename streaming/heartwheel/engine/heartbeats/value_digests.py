"""A number of 120 bits for each of many byte strings, by which a worker knows a value again without keeping its bytes.

The numbers are sums of products with secret keys (a universal hash: Carter and Wegman, "Universal classes of hash
functions", 1979). A value is read as words of 16 bits, in blocks that each begin with two words for its length. Each of
four sums is `words . keys mod P` with keys of its own, drawn at random for each process. Of two different values let
`d` be the difference of one word where they differ. It is smaller than P, so that for any keys of the other words
exactly one of the P keys of this word makes the two sums equal. So two different values have one digest with a
probability of `P ** -4`, 2^-120, whatever they are and whoever chose them, as nobody outside of the process knows its
keys.

The sums are products of matrices in double precision, and exact: what is added up at once, 122 words times their keys
and a sum from before, stays below 2^53, up to which a double holds every integer, in whatever order it is added.
"""

from __future__ import annotations

import secrets
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Digests = NDArray[np.uint64]
"""The digests of some values, uint64 (values, 2): two sums in each, as two numbers of 32 bits."""

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Doubles = NDArray[np.float64]

P: Final = 2**30 - 35
"""The largest prime below 2^30."""

BLOCK_BYTES: Final = 240
"""How much of a value is multiplied at once: 120 words of less than 2^16 with keys of less than 2^30."""

_WORD_BITS: Final = 16

_SUMS: Final = 4
_LENGTH_WORDS: Final = 2
_WORDS_A_BLOCK: Final = _LENGTH_WORDS + BLOCK_BYTES // 2
_LONG: Final = 8
"""Bytes are cut out and masked in long words of so many."""

_WORDS_AT_ONCE: Final = 1 << 16
"""How many words are multiplied together: they fit into a core's cache, and OpenBLAS gives no part of so small a
product to other threads, whose cores the other workers need."""

_MASKS: Final = np.ascontiguousarray(
    np.where(np.arange(BLOCK_BYTES) < np.arange(BLOCK_BYTES + 1)[:, None], 0xFF, 0).astype(np.uint8).view(np.uint64).T
)
"""The masks that leave so many bytes of a block: uint64 (long words, numbers of bytes)."""


class ValueDigests:
    """Computes digests; those of two objects of this class have nothing in common."""

    def __init__(self) -> None:
        self._keys = _random_keys(1)
        self._bytes = np.empty(2 * _WORDS_AT_ONCE, np.uint8)
        self._words = np.empty(_WORDS_AT_ONCE, np.float64)

    def of(self, values: pa.LargeBinaryArray) -> Digests:
        """Return the digest of each value, large binary (n,), without nulls."""
        starts, sizes, data = _contents(values)
        longest = int(sizes.max(initial=0))
        self._draw_keys_for(longest)
        source = _Source(data)
        digests = np.empty((len(sizes), 2), np.uint64)
        # Long values together, as each block costs all that are multiplied with it. The sort is a radix sort.
        is_long = longest > BLOCK_BYTES
        order = np.argsort(np.minimum(sizes, 0xFFFF).astype(np.uint16), kind="stable") if is_long else None
        at_once = _WORDS_AT_ONCE // _words_of(_longs_of(min(longest, BLOCK_BYTES)))
        for start in range(0, len(sizes), at_once):
            here = slice(start, start + at_once)
            rows = here if order is None else order[here]
            digests[rows] = self._sums(source, starts[rows], sizes[rows]).astype(np.uint32).view(np.uint64)
        return digests

    def _draw_keys_for(self, size: int) -> None:
        """Have keys for each block of the longest value; those that were drawn before stay what they are."""
        missing = -(-size // BLOCK_BYTES) - len(self._keys)
        if missing > 0:
            self._keys = np.concatenate((self._keys, _random_keys(missing)))

    def _sums(self, source: _Source, starts: Ints, sizes: Ints) -> Doubles:
        """Return the sums of some values, float64 (values, 4)."""
        sums = _modulo_p(self._block(source, starts, sizes, 0))
        for number in range(1, -(-int(sizes.max()) // BLOCK_BYTES)):
            rows = np.flatnonzero(sizes > number * BLOCK_BYTES)
            sums[rows] = _modulo_p(sums[rows] + self._block(source, starts[rows], sizes[rows], number))
        return sums

    def _block(self, source: _Source, starts: Ints, sizes: Ints, number: int) -> Doubles:
        """Return the sums over one block of some values, float64 (values, 4)."""
        at = number * BLOCK_BYTES
        left = np.minimum(sizes - at, BLOCK_BYTES)
        count, longs, whole = len(starts), _longs_of(int(left.max())), int(left.min()) // _LONG
        # In memory that is used again and again: fresh pages would cost more than the arithmetic.
        cut = source.cut(starts + at, longs * _LONG, self._bytes[: count * longs * _LONG])
        block = cut.view(np.uint64).reshape(count, longs)
        for long in range(whole, longs):
            block[:, long] &= _MASKS[long][left]
        words = _words_of(longs)
        factors = self._words[: count * words].reshape(count, words)
        factors[:, 0] = sizes & 0xFFFF
        factors[:, 1] = sizes >> _WORD_BITS
        factors[:, _LENGTH_WORDS:] = block.view(np.uint16)
        return factors @ self._keys[number, :words]


def _longs_of(size: int) -> int:
    """Return in how many long words so many bytes are, at least one."""
    return max(1, -(-size // _LONG))


def _words_of(longs: int) -> int:
    """Return how many words are multiplied for so many long words."""
    return _LENGTH_WORDS + longs * _LONG // 2


class _Source:
    """The bytes of all values, to cut pieces of one size out of them; behind their end are zeros."""

    def __init__(self, data: Bytes) -> None:
        padding = np.zeros(BLOCK_BYTES, np.uint8)
        self._data = data if len(data) >= BLOCK_BYTES else np.concatenate((data, padding))
        self._end_at = len(self._data) - BLOCK_BYTES
        self._end = np.concatenate((self._data[self._end_at :], padding))

    def cut(self, starts: Ints, size: int, into: Bytes) -> Bytes:
        """Cut a piece out from each start on, and return all of them end to end."""
        last = len(self._data) - size
        pieces = into.view(f"V{size}")
        beyond = np.flatnonzero(starts > last)
        # `take` would first copy the view, which is as many times as large as its data as a piece has bytes.
        pieces[:] = _pieces(self._data, size)[np.minimum(starts, last) if len(beyond) else starts]
        if len(beyond):
            pieces[beyond] = _pieces(self._end, size)[starts[beyond] - self._end_at]
        return into


def _pieces(data: Bytes, size: int) -> NDArray[np.void]:
    """Return a view of all pieces of a size, one from each byte on."""
    return np.ndarray((len(data) - size + 1,), f"V{size}", data, strides=(1,))


def _modulo_p(sums: Doubles) -> Doubles:
    """Return numbers from 0 to P + 3, each the same as its sum modulo P; equal sums give equal ones."""
    # A quotient that is computed by 1 / P is wrong by less than 2 / P.
    quotients = sums - 2
    quotients *= 1 / P
    np.floor(quotients, out=quotients)
    quotients *= P
    rest: Doubles = np.subtract(sums, quotients, out=quotients)
    return rest


def _random_keys(blocks: int) -> Doubles:
    """Draw four keys a word, float64 (blocks, words, 4): integers below P."""
    drawn = np.frombuffer(secrets.token_bytes(blocks * _WORDS_A_BLOCK * _SUMS * 8), np.uint64)
    return (drawn % np.uint64(P)).astype(np.float64).reshape(blocks, _WORDS_A_BLOCK, _SUMS)


def _contents(values: pa.LargeBinaryArray) -> tuple[Ints, Ints, Bytes]:
    """Return where each value starts, its size, and the bytes of all."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return ends[:-1], np.diff(ends), np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
