"""Histories chosen because one mistake in the engine breaks a promise in them: the tests that kill the mutants."""

from __future__ import annotations

from typing import Final

import pytest

from heartwheel.proof.simulation import simulate

CHOSEN: Final = {
    "dead ticker": 7,
    "effective time": 15,
    "emit before state": 0,
    "fast path": 1,
    "fast path at the deadline": 24,
    "feed gone": 8,
    "fingerprints": 1,
    "held back": 30,
    "home of a group": 39,
    "id of the batch": 0,
    "join phase": 78,
    "order of packs": 7,
    "owners": 1,
    "pending": 1,
    "place of a phase": 428,
    "seams of partitions": 0,
    "silence in a batch": 24,
    "static": 10,
    "true deadline": 0,
    "waiting": 0,
}
"""A seed for each mutant of `tests/mutation/mutants.py` that no narrower test kills."""


@pytest.mark.parametrize("mistake", CHOSEN)
def test_chosen_history(mistake: str) -> None:
    """P1-P6 hold in the history of the seed; with the mistake of that name in the engine they would not."""
    assert simulate(CHOSEN[mistake]).problems == []


def test_p3_epochs_that_two_members_begin_in_one_millisecond_have_two_ids() -> None:
    """P3: a group may end and come to the same epoch again while append times stand still, by another member."""
    assert simulate(329562).problems == []


@pytest.mark.parametrize("seed", [49, 209, 428, 838, 1046, 7832])
def test_outages_found_by_the_simulator(seed: int) -> None:
    """P1: groups that wait for a partition, write to two, or wait for syncs, are renewed as any other by an outage."""
    assert simulate(seed).problems == []
