"""How many tasks read the topic: one while little comes, as many as there are cores while much does.

With one task on the map side and one state partition Spark needs no shuffle: a batch is one stage of one task, which
costs the JVM and the workers about a quarter less (docs/performance.md, with fewer shards). But that task reads and
packs a backlog on one core. How many tasks read is not part of a checkpoint, so the query is started again with other
ones where it pays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from heartwheel.engine.runtime.driver.progress import Progress

BUSY_RECORDS_MIN: Final = 50_000
"""A batch that reads so many records is a busy one: about 200 thousand a second at the default trigger interval, half
of what one task can do."""

BUSY_BATCHES: Final = 3
"""After how many busy batches in a row all tasks read; after one of a backlog at once."""

CALM_S: Final = 20.0
"""How long no batch is busy before one task reads again, seconds; each time twice as long, as a restart of the query
makes verdicts of that moment a second late."""

CALM_S_MAX: Final = 1_200.0


class MapTasks:
    """Choose how many tasks read, by what the batches were.

    Args:
        most: tasks under load: one a core.
        state_partitions: of the checkpoint. With more than one there is a shuffle, and nothing to gain.
        clock_s: a monotonic clock, seconds.
    """

    def __init__(self, most: int, *, state_partitions: int, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock_s = most, clock_s
        self._least = 1 if state_partitions == 1 else most
        self._calm_s, self._busy_s, self._busy = CALM_S, clock_s(), 0
        self.tasks = self._least
        """How many tasks the next start of the query is to have."""

    def look(self, batches: Sequence[Progress]) -> None:
        """Look at the batches since."""
        for batch in batches:
            self._busy = self._busy + 1 if batch.held or batch.heartbeats >= BUSY_RECORDS_MIN else 0
            if self._busy:
                self._busy_s = self._clock_s()
            if batch.held or self._busy >= BUSY_BATCHES:
                self.tasks = self._most
        if self.tasks > self._least and self._clock_s() - self._busy_s >= self._calm_s:
            self.tasks = self._least
            self._calm_s = min(2 * self._calm_s, CALM_S_MAX)
