"""Bugs of the track record that a history found: each has a history in which the checkers find it again.

`docs/track-record.md` names the seeds that found them at first. Where the simulator draws another history from that
seed now, another seed has taken its place: 9739 that of 1837, and 1809 also that of 2389. Of 3105 and 60307 no seed
has; `test_p3_a_batch_that_is_done_again_after_a_growth_says_the_same` holds what they found.
"""

from __future__ import annotations

from typing import Final

import pytest

from heartwheel.proof.simulation import simulate

FOUND_AGAIN: Final = {
    "a pending renewal": 43,
    "a refused failure": 4981,
    "syncs of a stable group": 838,
    "two loads in one millisecond": 1899,
    "a growth in the first batch": 1809,
    "two outages by one tick": 7832,
    "the last group of a full shard": 9739,
    "heard from a partition after its outage": 11220,
    "room for members of new groups": 15749,
}
"""A seed for each bug. With its fix taken out the history of that seed breaks a promise."""


@pytest.mark.parametrize("bug", FOUND_AGAIN)
def test_bug_of_the_track_record_is_found_again(bug: str) -> None:
    """P1-P6 hold in the history of the seed; without the fix of that bug they would not."""
    assert simulate(FOUND_AGAIN[bug]).problems == []
