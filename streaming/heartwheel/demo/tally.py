"""What was seen so far: the figures of the live summary and of the report."""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import Final

from heartwheel.spark.progress import Progress
from heartwheel.wire.status import AtRiskMember, StatusRow
from heartwheel.wire.verdicts import ExpirationRow, TriggerRow

_LATENESS_KEPT: Final = 1_000


class Tally:
    """Figures of what comes back from the engine.

    Args:
        shards: how many shards report.
    """

    def __init__(self, shards: int) -> None:
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
        """Completed rebalances; who comes to a presence group and goes makes none."""
        self.batch_ms: list[int] = []
        """How long each live batch took, ms."""
        self.rejected = 0
        self.lateness_ms: deque[int] = deque(maxlen=_LATENESS_KEPT)
        """Of the newest expirations, ms."""
        self.first_expiration_s: float | None = None
        """How long after the start the first expiration was seen, s."""
        self._canaries: dict[str, int] = {}
        self._status: dict[int, StatusRow] = {}
        self._ids: set[str] = set()
        self._shards = shards
        self._began = time.monotonic()

    @property
    def running_s(self) -> float:
        """How long ago this was made, s."""
        return time.monotonic() - self._began

    @property
    def clock_ms(self) -> int:
        """Up to where every shard has fired its timers, epoch ms; -1 before all have."""
        clocks = [row.clock_ms for row in self._reports()]
        return min(clocks) if len(clocks) == self._shards else -1

    @property
    def members(self) -> int:
        """Members of all shards, as of their newest reports, those of the canary left out."""
        return max(0, sum(row.members for row in self._reports()) - sum(self._canaries.values()))

    @property
    def groups(self) -> int:
        """Groups of all shards, likewise."""
        return max(0, sum(row.groups for row in self._reports()) - len(self._canaries))

    def next_at_risk(self) -> AtRiskMember | None:
        """Return the member nearest to its expiry, if any."""
        nearest = [row.at_risk[0] for row in self._reports() if row.at_risk]
        return min(nearest, key=lambda member: member.deadline_ms, default=None)

    def add_expiration(self, row: ExpirationRow, known_ms: int) -> bool:
        """Count an expiration; return whether its id is new."""
        if row.id in self._ids:
            return False
        self._ids.add(row.id)
        self.expired[row.reason] += 1
        self.lateness_ms.append(known_ms - row.deadline_ms)
        if self.first_expiration_s is None:
            self.first_expiration_s = self.running_s
        return True

    def add_trigger(self, row: TriggerRow) -> bool:
        """Count a trigger; return whether its id is new."""
        if row.id in self._ids:
            return False
        self._ids.add(row.id)
        self.triggers[row.type] += 1
        self.rebalances += row.type == "rebalance_completed" and row.is_rebalance
        return True

    def add_canary(self, row: TriggerRow) -> None:
        """Take a trigger of one of the canary's groups, which are in the reports and nobody's to look at."""
        self._canaries = {**self._canaries, row.group_id: row.member_count}

    def add_status(self, row: StatusRow) -> None:
        """Take the report of a shard."""
        self._status[row.shard] = row

    def add_batch(self, batch: Progress) -> None:
        """Take the progress of a batch."""
        self.rejected += batch.rejected
        if not batch.held:
            self.batch_ms.append(batch.duration_ms)

    def _reports(self) -> list[StatusRow]:
        """Copy the newest reports: one thread writes them while others look."""
        return list(self._status.values())
