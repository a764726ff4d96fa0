"""The table of decoded values: never confused, bounded, and of use when its bound is too small."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heartwheel.engine.heartbeats.value_digests import Digests
from heartwheel.engine.heartbeats.value_table import PROBES_MAX, UNKNOWN, ValueTable


def _digests(numbers: list[int]) -> Digests:
    """Return a digest for each number, other ones for others."""
    halves = np.random.default_rng(7).permutation(1 << 18)[numbers].astype(np.uint64) << np.uint64(42)
    return np.stack((halves, np.array(numbers, np.uint64)), axis=1)


def _add(table: ValueTable, digests: Digests) -> None:
    """Remember values under shards and fingerprints that follow from their digests."""
    follows = digests[:, 1].astype(np.int64)
    table.add(digests, (follows % 7).astype(np.int16), follows)


def _known(table: ValueTable, digests: Digests) -> list[bool]:
    """Look values up, and hold that what is found is what was remembered of just these digests."""
    codes = table.find(digests)
    for (_, follows), code in zip(digests.tolist(), codes.tolist(), strict=True):
        if code != UNKNOWN:
            assert (table.fingerprints[code], table.shards[code]) == (follows, follows % 7)
    return [code != UNKNOWN for code in codes.tolist()]


def _keep(table: ValueTable, digests: Digests) -> int:
    """Look values up, remember those that are new, and return how many were known."""
    known = np.array(_known(table, digests), np.bool_)
    _add(table, digests[~known])
    return int(known.sum())


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6)), max_size=12, unique=True), max_size=8),
    st.integers(1, 8),
)
def test_what_is_found_is_what_was_remembered_whatever_the_digests(
    rounds: list[list[tuple[int, int]]], entries_max: int
) -> None:
    """Digests of which one half is equal lose values at worst and never confuse them."""
    table = ValueTable(entries_max=entries_max)
    for digests in rounds:
        _keep(table, np.array(digests, np.uint64).reshape(-1, 2))
        assert len(table) <= entries_max


def test_all_are_found_again_after_the_table_has_grown() -> None:
    """A table with room finds every value of a hundred thousand, one batch after the other."""
    digests = _digests(list(range(100_000)))
    table = ValueTable(entries_max=100_000)
    for start in range(0, len(digests), 30_000):
        assert _keep(table, digests[start : start + 30_000]) == 0
    assert all(_known(table, digests))


def test_every_one_of_many_is_compared() -> None:
    """Of five thousand that are looked up together, each that has half a digest of a held value is told from it."""
    digests = _digests(list(range(5000)))
    table = ValueTable(entries_max=5000)
    _add(table, digests)
    for half in (0, 1):
        others = {7, 1023, 1024, 2500, 4999}
        asked = digests.copy()
        asked[list(others), half] += np.uint64(1 << 41)
        assert {i for i, known in enumerate(_known(table, asked)) if not known} == others


def test_twice_the_bound_is_still_half_found() -> None:
    """A working set of twice the bound, read in a cycle, is half found in every round: it does not drive itself out."""
    digests = _digests(list(range(2000)))
    table = ValueTable(entries_max=1000)
    found = [sum(_keep(table, digests[start : start + 100]) for start in range(0, 2000, 100)) for _ in range(6)]
    assert min(found[1:]) >= 900


def test_values_that_are_gone_make_room() -> None:
    """A full table forgets what was not looked up for a while, so that the members of today are found."""
    yesterday, today = _digests(list(range(1000))), _digests(list(range(1000, 2000)))
    table = ValueTable(entries_max=1000)
    _add(table, yesterday)
    for _ in range(8):
        _keep(table, today)
    assert all(_known(table, today))


def test_values_that_share_their_slots_cost_bounded_probes() -> None:
    """Of thousands of values that share a first slot so many are found as are probed; the others are decoded anew."""
    digests = _digests(list(range(5000)))
    digests[:, 0] = 17
    table = ValueTable(entries_max=10_000)
    _add(table, digests)
    assert sum(_known(table, digests)) == PROBES_MAX < 100
