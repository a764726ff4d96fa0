"""Follow the output topics through every absence of the brokers, without gaps and duplicates.

State topics and decision topics are read in two lanes, each with a connection and a thread: when a million members fall
silent at once, reading their expirations takes a while, and during that time it must be known that the job is alive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Self

from heartwheel.readers.live.lane import Lane
from heartwheel.readers.live.partitions import FollowedPartitions
from heartwheel.readers.live.topic_rows import COMPACTED, OutputTopic, TopicRow, topic_names
from heartwheel.settings import Settings

__all__ = ["Follower", "OutputTopic", "TopicRow"]


class Follower:
    """A reader of the output topics, in threads of its own.

    Args:
        settings: where Kafka is, and the names of the topics.
        sources: which topics to follow.
        since_ms: where to begin in topics that are not compacted, epoch ms; `None` begins at their end.
        tail_max: most records of a partition to begin with, however many there are since `since_ms`.
        positions: where to continue in partitions that were read before, by source and partition; overrides the two
            above.
        on_rows: called with rows in the order of their partition, from one thread at a time, never with none. An
            exception from it ends the follower.
        on_link: called with `True` once the brokers answer, `False` once they do not; only on changes.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        sources: Collection[OutputTopic] = tuple(OutputTopic),
        since_ms: int | None = None,
        tail_max: int | None = None,
        positions: Mapping[tuple[OutputTopic, int], int] | None = None,
        on_rows: Callable[[Sequence[TopicRow]], None],
        on_link: Callable[[bool], None] = lambda _linked: None,
    ) -> None:
        names = topic_names(settings.kafka.topics)
        self._on_rows, self._on_link = on_rows, on_link
        self._handing, self._linking = threading.Lock(), threading.Lock()
        self._linked: bool | None = None
        states = [source for source in sources if source in COMPACTED]
        decisions = [source for source in sources if source not in COMPACTED]
        self._lanes = [
            Lane(
                settings.kafka,
                FollowedPartitions(
                    {names[source]: source for source in some},
                    since_ms=since_ms,
                    tail_max=tail_max,
                    positions=positions,
                ),
                on_rows=self._take,
                on_link=self._link,
            )
            for some in (decisions, states)
            if some
        ]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def linked(self) -> bool:
        """Whether the brokers answered the last request."""
        return self._linked is True

    @property
    def skipped(self) -> int:
        """The number of records that lay before the tail it began with, or were deleted before they could be read."""
        return sum(lane.skipped for lane in self._lanes)

    @property
    def undecodable(self) -> int:
        """The number of values that were skipped, because they are no rows of their topic or decompress to too much."""
        return sum(lane.undecodable for lane in self._lanes)

    @property
    def failure(self) -> BaseException | None:
        """The exception that ended the follower, if one did: a bug, `on_rows`, or brokers that are away at `finish`."""
        return next((lane.failure for lane in self._lanes if lane.failure is not None), None)

    def start(self) -> None:
        """Start to follow, in daemon threads; brokers and topics may appear later."""
        for lane in self._lanes:
            lane.start()

    def finish(self) -> None:
        """Read up to the present ends of the topics, then stop and wait until the threads have ended."""
        self._end(finish=True)

    def stop(self) -> None:
        """Stop, and wait until the threads have ended; does nothing if it has not started."""
        self._end(finish=False)

    def _end(self, *, finish: bool) -> None:
        for lane in self._lanes:
            lane.end(finish=finish)
        for lane in self._lanes:
            lane.join()

    def _take(self, rows: Sequence[TopicRow]) -> None:
        with self._handing:
            self._on_rows(rows)

    def _link(self) -> None:
        """Report whether the brokers answer all lanes; a lane that has failed ends the others."""
        with self._linking:
            if self.failure is not None:
                for lane in self._lanes:
                    lane.end(finish=False)
            states = [lane.linked for lane in self._lanes]
            if None in states and False not in states:
                return  # not all lanes have sent a request yet
            linked = all(states)
            if linked is not self._linked:
                self._linked = linked
                self._on_link(linked)
