"""Where a follower goes on that knows how far somebody has read."""

from __future__ import annotations

from typing import Any

import pytest

from heartwheel.readers.live.partitions import FollowedPartitions
from heartwheel.readers.live.topic_rows import OutputTopic


class Log:
    """A consumer of one topic with one partition, as far as places ask one.

    Args:
        first: the oldest offset that is still there.
        end: the next offset to be written.
    """

    def __init__(self, first: int, end: int) -> None:
        self._first, self._end = first, end
        self.sought: int | None = None
        self.is_there = True

    def partitions_for_topic(self, _topic: str) -> set[int]:
        """Name the partitions."""
        return {0} if self.is_there else set()

    def beginning_offsets(self, places: list[Any], *, timeout_ms: int) -> dict[Any, int]:
        """Tell where they begin."""
        assert timeout_ms > 0
        return dict.fromkeys(places, self._first)

    def end_offsets(self, places: list[Any], *, timeout_ms: int) -> dict[Any, int]:
        """Tell where they end."""
        assert timeout_ms > 0
        return dict.fromkeys(places, self._end)

    def assign(self, places: list[Any]) -> None:
        """Take what is to be read."""
        assert len(places) <= 1

    def seek(self, _place: Any, offset: int) -> None:
        """Take from where on."""
        self.sought = offset


def places_at(position: int | None) -> FollowedPartitions:
    """Make places that are given one position, or none, and else begin at the end."""
    positions = {} if position is None else {(OutputTopic.EXPIRATIONS, 0): position}
    return FollowedPartitions({"topic": OutputTopic.EXPIRATIONS}, since_ms=None, tail_max=None, positions=positions)


@pytest.mark.parametrize(
    ("position", "begins", "skipped"),
    [
        (None, 90, 0),  # nobody has read: the end, as it was asked for
        (50, 50, 0),
        (90, 90, 0),  # everything was read
        (20, 20, 0),
        (7, 20, 13),  # 13 records were deleted before they could be read, and that is said
        (91, 20, 0),  # the topic is shorter than it was: it was made anew, and nobody has read it
    ],
)
def test_reading_goes_on_where_it_stopped(position: int | None, begins: int, skipped: int) -> None:
    """Of a partition that holds the offsets 20 to 89."""
    places, log = places_at(position), Log(20, 90)
    places.refresh(log, timeout_ms=1)
    assert (log.sought, places.skipped) == (begins, skipped)


@pytest.mark.parametrize(("position", "begins"), [(None, 20), (50, 50), (7, 20)])
def test_a_topic_that_is_seen_late_is_not_read_twice(position: int | None, begins: int) -> None:
    """A broker that names a topic only at a second look makes nobody read again what was read before."""
    places, log = places_at(position), Log(20, 90)
    log.is_there = False
    places.refresh(log, timeout_ms=1)
    log.is_there = True
    places.refresh(log, timeout_ms=1)
    assert log.sought == begins
