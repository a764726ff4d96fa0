"""The lanes of a follower, without a broker: what ends one ends all."""

from __future__ import annotations

import pytest

from heartwheel.readers.live.follower import Follower
from heartwheel.readers.live.lane import Lane
from heartwheel.settings import Settings
from support.job import wait_for


@pytest.mark.parametrize("away", [0, 1])
def test_a_lane_that_fails_ends_the_others(monkeypatch: pytest.MonkeyPatch, away: int) -> None:
    """A fault with the first rows after the brokers were away ends the follower, as one at any other time does."""
    calls: list[Lane] = []

    def follow(lane: Lane) -> None:
        _, other = follower._lanes
        if lane is other:
            lane._link(linked=True)
            lane._worker.wait(60)
            return
        calls.append(lane)
        if len(calls) <= away:
            raise OSError("the brokers are away")
        raise ValueError("a fault of who takes the rows")

    monkeypatch.setattr("heartwheel.readers.live.lane._BACKOFF_S", (0.0,))
    monkeypatch.setattr(Lane, "_follow", follow)
    follower = Follower(Settings(), on_rows=lambda _: None)
    with follower:
        wait_for(lambda: all(lane._worker.stopping for lane in follower._lanes[1:]), "the other lane to end")
        assert isinstance(follower.failure, ValueError)
        assert not follower.linked
