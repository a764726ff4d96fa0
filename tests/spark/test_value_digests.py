"""Digests of values: the sums of the docstring, whatever the values are and however they lie in their column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heartwheel.engine.heartbeats.value_digests import BLOCK_BYTES, Digests, P, ValueDigests

_sizes = st.one_of(st.integers(0, 20), st.integers(BLOCK_BYTES - 9, BLOCK_BYTES + 9), st.just(3 * BLOCK_BYTES + 5))
_values = st.lists(_sizes.flatmap(lambda size: st.binary(min_size=size, max_size=size)), max_size=30)


def _column(values: list[bytes]) -> pa.LargeBinaryArray:
    return pa.array(values, pa.large_binary())


def _expected(digests: ValueDigests, value: bytes) -> list[int]:
    """Return the sums of a value modulo P, by whole numbers of Python, one word after the other."""
    sums = [0] * 4
    for number in range(max(1, -(-len(value) // BLOCK_BYTES))):
        block = value[number * BLOCK_BYTES : (number + 1) * BLOCK_BYTES]
        block += bytes(-len(block) % 2)
        words = [int.from_bytes(block[at : at + 2], "little") for at in range(0, len(block), 2)]
        for word, keys in zip([len(value) & 0xFFFF, len(value) >> 16, *words], digests._keys[number], strict=False):
            sums = [(total + word * int(key)) % P for total, key in zip(sums, keys, strict=True)]
    return sums


def _residues(digests: Digests) -> list[list[int]]:
    """Return the four sums in each digest, modulo P."""
    sums = digests.view(np.uint32)
    assert int(sums.max(initial=0)) < P + 4
    found: list[list[int]] = (sums % np.uint32(P)).tolist()
    return found


@given(_values, st.integers(0, 3), st.sampled_from([1, 600]))
@example([b"\xff" * BLOCK_BYTES * 2], 0, 1)
@example([b"\xff" * (1 << 17)], 0, 1)
@example([b"", b"", b"x" * BLOCK_BYTES, b""], 1, 600)
def test_digests_are_exact_sums_modulo_p(values: list[bytes], skipped: int, least: int) -> None:
    """In a column of its own or in the middle of another, alone or among more than are multiplied at once."""
    digests = ValueDigests()
    asked = values * max(1, least // max(1, len(values)))
    column = _column([b"before"] * skipped + asked + [b"behind"] * skipped)[skipped : skipped + len(asked)]
    found = _residues(digests.of(column))
    expected = {value: _expected(digests, value) for value in set(values)}
    assert found == [expected[value] for value in asked]


def test_the_largest_sums_are_exact() -> None:
    """Words and keys as large as they may be: doubles hold the sum of a block to the last bit."""
    digests = ValueDigests()
    values = [b"\xff" * size for size in (1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 1 << 17)]
    digests.of(_column(values))  # draws keys for the longest
    digests._keys[:] = P - 1
    assert _residues(digests.of(_column(values))) == [_expected(digests, value) for value in values]


def test_zeros_at_the_end_count() -> None:
    """What only fills up the last word is told from a zero of the value itself."""
    values = [b"", b"\0", b"\0\0", b"a", b"a\0", b"a\0\0", bytes(1 << 16), bytes((1 << 16) + 1), bytes(1 << 17)]
    assert len({tuple(digest) for digest in ValueDigests().of(_column(values)).tolist()}) == len(values)


def test_keys_are_drawn_anew_and_stay() -> None:
    """No process knows the digests of another; longer values that come later do not change those of shorter ones."""
    one, other, column = ValueDigests(), ValueDigests(), _column([b"some", b"values"])
    before = one.of(column)
    assert not (before == other.of(column)).any()
    one.of(_column([b"x" * 10 * BLOCK_BYTES]))
    assert np.array_equal(one.of(column), before)


def test_keys_are_below_a_prime() -> None:
    """The bound on collisions needs a prime, larger than any word, and keys that may be anything below it."""
    assert all(P % factor for factor in range(2, 1 << 15))
    assert (1 << 16) < P < 1 << 30
    keys = ValueDigests()._keys
    assert keys.min() >= 0
    assert keys.max() < P
    assert keys.mean() == pytest.approx(P / 2, rel=0.25)
    assert len(np.unique(keys)) > 0.99 * keys.size
