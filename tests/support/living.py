"""Many members that beat on in the background, whatever happens to the broker, at almost no cost."""

from __future__ import annotations

from typing import Final

from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError
from support.background import Background
from support.job import Topics
from support.rawfeed import RawFeed, RawMembers

BEAT_MS: Final = 2_000
"""How often every member beats, ms."""

_RETRY_S: Final = 0.2


class Living(Background):
    """Let members beat every two seconds, evenly spread, for the length of a block.

    Args:
        topics: of the job.
        records_per_batch: most records a batch. With as many as there are members, all those of a partition are heard
            at once, so that none of them is late where the broker is.
    """

    def __init__(self, topics: Topics, who: RawMembers, records_per_batch: int = 50) -> None:
        super().__init__()
        self._topics, self._who, self._records_per_batch = topics, who, records_per_batch

    def _run(self) -> None:
        first = 0
        while not self._over.is_set():
            try:
                with self._feed(first) as feed:
                    try:
                        while not self._over.is_set():
                            feed.run(rounds=1, interval_ms=BEAT_MS)
                    finally:
                        # A broker that comes back may refuse again and again: no member may be the last each time.
                        first = feed.next
            except (KafkaUnreachableError, KafkaRefusedError):
                self._over.wait(_RETRY_S)

    def _feed(self, first: int) -> RawFeed:
        return RawFeed(
            self._topics.bootstrap,
            self._topics.names["heartbeats"],
            self._who,
            records_per_batch=self._records_per_batch,
            properties=self._topics.properties,
            first=first,
        )
