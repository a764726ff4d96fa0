"""The figures of the live summary and of the report."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from heartwheel.engine.runtime.driver.progress import Progress
from heartwheel.readers.live.at_risk import AtRisk, at_risk
from heartwheel.readers.live.picture import CANARY_PREFIX, Picture
from heartwheel.readers.live.seen import Seen
from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.readers.live.totals import Totals, totals_of
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

_LATENESS_KEPT: Final = 1_000
_IDS_MAX: Final = 100_000


class News(NamedTuple):
    """Rows that were not seen before, the canary's left out, each with its append time, epoch ms."""

    expirations: list[tuple[ExpirationRow, int]]
    triggers: list[tuple[TriggerRow, int]]


class Tally:
    """Figures of what comes back from the engine.

    Args:
        canary_prefix: what the names of groups begin with that are nobody's to look at.
    """

    def __init__(self, shards: int, canary_prefix: str = CANARY_PREFIX) -> None:
        self.phase = "starting"
        self.sent = 0
        """Records sent by the feeder."""
        self.turns: dict[str, int] = {}
        """How often members started, died, paused and so on, by name."""
        self.expired: Counter[str] = Counter()
        """Expirations by reason, each id once."""
        self.triggers: Counter[str] = Counter()
        """Triggers by type."""
        self.rebalances = 0
        """Rebalances that began, as page *Rebalances* counts them; presence groups have none."""
        self.batch_ms: list[int] = []
        """How long each live batch took, ms."""
        self.rejected = 0
        self.lateness_ms: deque[int] = deque(maxlen=_LATENESS_KEPT)
        """Of the newest expirations, ms."""
        self.first_expiration_s: float | None = None
        """How long after the start the first expiration was seen, s."""
        self._picture = Picture(canary_prefix=canary_prefix)
        self._seen = Seen(_IDS_MAX)
        self._shards = shards
        self._began = time.monotonic()

    @property
    def running_s(self) -> float:
        """How long ago this was made, s."""
        return time.monotonic() - self._began

    @property
    def clock_ms(self) -> int:
        """Up to where every shard has fired its timers, epoch ms; -1 before all have."""
        return self._totals().clock_ms

    @property
    def members(self) -> int:
        """Members of all shards, as of their newest reports, those of the canary left out."""
        return self._totals().members

    @property
    def groups(self) -> int:
        """The number of groups of all shards."""
        return self._totals().groups

    def next_at_risk(self, now_ms: int) -> AtRisk | None:
        """Return the member nearest to its expiry, if any; `now_ms` is the wall clock, epoch ms."""
        return next(iter(at_risk(self._picture, now_ms=now_ms, limit=1).rows), None)

    def take(self, rows: Sequence[TopicRow], now_ms: int) -> News:
        """Count rows of the output topics, each id once, and return what is new.

        Args:
            rows: those of one partition in their order.
        """
        self._picture.apply(rows, now_ms=now_ms)
        news = News([], [])
        for each in rows:
            row = each.row
            if isinstance(row, ExpirationRow) and self._is_news(row):
                news.expirations.append((row, each.append_ms))
                self._count_expiration(row, each.append_ms)
            elif isinstance(row, TriggerRow) and self._is_news(row):
                news.triggers.append((row, each.append_ms))
                self.triggers[row.type] += 1
                self.rebalances += row.type == "rebalance_triggered" and row.is_rebalance
        return news

    def _is_news(self, row: ExpirationRow | TriggerRow) -> bool:
        return not self._picture.is_canary(row.group_id) and self._seen.is_new(row.id)

    def _count_expiration(self, row: ExpirationRow, known_ms: int) -> None:
        self.expired[row.reason] += 1
        self.lateness_ms.append(known_ms - row.deadline_ms)
        if self.first_expiration_s is None:
            self.first_expiration_s = self.running_s

    def add_batch(self, batch: Progress) -> None:
        """Take the progress of a batch."""
        self.rejected += batch.rejected
        if not batch.held:
            self.batch_ms.append(batch.duration_ms)

    def _totals(self) -> Totals:
        with self._picture.lock:
            return totals_of(self._picture, shards=self._shards, hidden=self._picture.canaries())
