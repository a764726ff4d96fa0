"""Follow the output topics, over every absence of the brokers, without gap and double.

How things stand and what was decided come in two lanes, each with a connection and a thread: when a million members
fall silent at once, reading their verdicts takes a while, and that the job lives must be known meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Self

from heartwheel.live.lane import Lane
from heartwheel.live.partitions import FollowedPartitions
from heartwheel.live.topic_rows import COMPACTED, Source, TopicRow, topic_names
from heartwheel.settings import Settings

__all__ = ["Follower", "Source", "TopicRow"]


class Follower:
    """A reader of the output topics, in threads of its own.

    Args:
        settings: where Kafka is and what the topics are called.
        sources: which topics to follow.
        since_ms: where to begin in topics that are not compacted, epoch ms; `None` begins with what comes from now on.
        tail_max: most records of a partition to begin with, however many there are since `since_ms`.
        positions: where to go on in partitions that were read before, by source and partition; wins over the two above.
        on_rows: called with rows in the order of their partition, from one thread at a time, never with none. What it
            raises ends the follower.
        on_link: called with `True` once the brokers answer, `False` once they do not; on changes only.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        sources: Collection[Source] = tuple(Source),
        since_ms: int | None = None,
        tail_max: int | None = None,
        positions: Mapping[tuple[Source, int], int] | None = None,
        on_rows: Callable[[Sequence[TopicRow]], None],
        on_link: Callable[[bool], None] = lambda _linked: None,
    ) -> None:
        names = topic_names(settings.kafka.topics)
        self._on_rows, self._on_link = on_rows, on_link
        self._handing, self._linking = threading.Lock(), threading.Lock()
        self._linked: bool | None = None
        standing = [source for source in sources if source in COMPACTED]
        decided = [source for source in sources if source not in COMPACTED]
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
            for some in (decided, standing)
            if some
        ]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def linked(self) -> bool:
        """Whether the brokers answered when they were last asked."""
        return self._linked is True

    @property
    def skipped(self) -> int:
        """Records that lay before the tail it began with, or were deleted before they could be read."""
        return sum(lane.skipped for lane in self._lanes)

    @property
    def undecodable(self) -> int:
        """Values that were passed over, as they are no rows of their topic or unpack to too much."""
        return sum(lane.undecodable for lane in self._lanes)

    @property
    def failure(self) -> BaseException | None:
        """What ended the follower, if something did: a bug, `on_rows`, or brokers that are gone at `finish`."""
        return next((lane.failure for lane in self._lanes if lane.failure is not None), None)

    def start(self) -> None:
        """Begin to follow, in daemon threads; brokers and topics may come later."""
        for lane in self._lanes:
            lane.start()

    def finish(self) -> None:
        """Read up to what is in the topics by now, then end it and wait until it has ended."""
        self._end(finish=True)

    def stop(self) -> None:
        """End it, and wait until it has ended; harmless when it has not begun."""
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
        """Tell whether the brokers answer all lanes; a lane that has failed ends the others."""
        with self._linking:
            if self.failure is not None:
                for lane in self._lanes:
                    lane.end(finish=False)
            states = [lane.linked for lane in self._lanes]
            if None in states and False not in states:
                return  # not all have asked yet
            linked = all(states)
            if linked is not self._linked:
                self._linked = linked
                self._on_link(linked)
