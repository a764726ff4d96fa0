"""Many members that beat on in the background, whatever happens to the broker, at almost no cost."""

from __future__ import annotations

from typing import Final

from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError
from support.background import Background
from support.job import Topics
from support.rawfeed import RawFeed, RawMembers

BEAT_MS: Final = 2_000
"""How often every member beats, ms."""

_RECORDS_PER_BATCH: Final = 50
_RETRY_S: Final = 0.2


class Living(Background):
    """Let members beat every two seconds, evenly spread, for the length of a block.

    Args:
        topics: of the job.
    """

    def __init__(self, topics: Topics, who: RawMembers) -> None:
        super().__init__()
        self._topics, self._who = topics, who

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
            records_per_batch=_RECORDS_PER_BATCH,
            properties=self._topics.properties,
            first=first,
        )
