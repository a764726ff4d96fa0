"""Many members that beat on in the background, whatever happens to the broker, at almost no cost."""

from __future__ import annotations

import threading
from typing import Final

from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError
from support.job import Topics
from support.rawfeed import RawFeed, RawMembers

BEAT_MS: Final = 2_000
"""How often every member beats, ms."""

_RECORDS_PER_BATCH: Final = 50
_RETRY_S: Final = 0.2


class Living:
    """Let members beat every two seconds, evenly spread, for the length of a block.

    Args:
        topics: of the job.
        who: the members.
    """

    def __init__(self, topics: Topics, who: RawMembers) -> None:
        self._topics, self._who = topics, who
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="living")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                with self._feed() as feed:
                    while not self._over.is_set():
                        feed.run(rounds=1, interval_ms=BEAT_MS)
            except (KafkaUnreachableError, KafkaRefusedError):
                self._over.wait(_RETRY_S)

    def _feed(self) -> RawFeed:
        return RawFeed(
            self._topics.bootstrap,
            self._topics.names["heartbeats"],
            self._who,
            records_per_batch=_RECORDS_PER_BATCH,
            properties=self._topics.properties,
        )
