"""The expirations that are kept: the newest of a stretch of time, bounded in number."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final

from heartwheel.readers.live.expiration import FROM_A_LOG, Expiration, expiration_of
from heartwheel.readers.live.seen import Seen
from heartwheel.wire.verdict_rows import ExpirationRow

_IDS_A_ROW: Final = 4


class ExpirationWindow:
    """The expirations in the order of arrival, found by id, until they are too old or too many.

    Args:
        rows_max: most that are kept.
        window_ms: for how long, by append time, ms.
    """

    def __init__(self, rows_max: int, window_ms: int) -> None:
        self.rows_max, self.window_ms = rows_max, window_ms
        self.rows: deque[Expiration] = deque()
        self.newest_seq = 0
        self.dropped = 0
        """How many were dropped early, because there were too many."""
        self.known_from_ms: int | None = None
        """From when on it has all that were not too old, by append time, epoch ms; `None`: from the first on."""
        self.duplicates = 0
        self._by_id: dict[str, Expiration] = {}
        # Ids are remembered for longer than their rows: a crash of the engine may repeat rows older than a busy minute.
        self._seen = Seen(_IDS_A_ROW * rows_max)

    def add(self, row: ExpirationRow, *, append_ms: int, partition: int, offset: int) -> Expiration | None:
        """Keep an expiration; `None` if its id was seen before."""
        is_of_log = row.shard == FROM_A_LOG  # nothing repeats its older rows
        if row.id in self._by_id if is_of_log else not self._seen.is_new(row.id):
            self.duplicates += 1
            return None
        self.newest_seq += 1
        kept = expiration_of(row, seq=self.newest_seq, append_ms=append_ms, partition=partition, offset=offset)
        self.rows.append(kept)
        self._by_id[row.id] = kept
        return kept

    def evict(self, now_ms: int) -> Iterator[Expiration]:
        """Remove, one by one, the expirations that are too old or too many, and yield them, the oldest first."""
        while self.rows and self.rows[0].append_ms < now_ms - self.window_ms:
            yield self._pop()
        while len(self.rows) > self.rows_max:
            self.dropped += 1
            gone = self._pop()
            self.known_from_ms = gone.append_ms + 1  # others of that moment may be gone, too
            yield gone

    def by_id(self, id_: str) -> Expiration | None:
        """Return an expiration by its id."""
        return self._by_id.get(id_)

    def after(self, seq: int) -> list[Expiration]:
        """Return the expirations after a number, the newest first."""
        return list(islice(reversed(self.rows), min(len(self.rows), max(0, self.newest_seq - seq))))

    def _pop(self) -> Expiration:
        gone = self.rows.popleft()
        del self._by_id[gone.id]
        return gone
