"""Promise P2: a verdict is written in time, while the job runs. The job's own status rows show when it ran.

The bound counts from the moment a verdict becomes true. If time passes late in its partition, it counts from the record
that first proves the verdict: without a tick or a heartbeat, no program can know it. All these are append times, so the
audit uses no clock but the brokers'.

A status row says that a shard ran a batch. If two rows are further apart than the bound, the job was down, or one batch
took that long. If a row's clock is further behind than the bound, the job read a backlog, or its time stood still. None
of that is lateness. So a verdict is late only if the rows around it come at the usual pace. Compaction removes status
rows; where they are missing, no verdict counts as late.
"""

from __future__ import annotations

import msgspec


class Candidate(msgspec.Struct, frozen=True):
    """A verdict that was written later than the bound, and may have an excuse.

    Args:
        time_ms: when it becomes true, epoch ms.
        ready_ms: effective time of the record that first proves it, epoch ms.
    """

    time_ms: int
    ready_ms: int
    append_ms: int
    topic: str
    partition: int
    offset: int
    group_id: str
    member_id: str | None


class _ShardPace(msgspec.Struct):
    """The batches of one shard: the time of the last one, since when they come at pace, and the open candidates."""

    last_ms: int
    in_step_since_ms: int
    waiting: list[Candidate] = []


class LatenessJudge(msgspec.Struct):
    """The judge of lateness.

    Args:
        late_ms_max: the bound, ms; `None` judges nothing.
        shards: the batches of each shard.
        pauses: (from, to) of the times when the job is known to have been down, epoch ms.
        has_batches: whether any status row was read; without status rows the job counts as always running.
        alone: candidates of shards without a status row.
    """

    late_ms_max: int | None
    shards: dict[int, _ShardPace] = {}
    pauses: list[tuple[int, int]] = []
    has_batches: bool = False
    alone: list[Candidate] = []

    def batch(self, shard: int, append_ms: int, *, clock_ms: int | None) -> list[Candidate]:
        """Record that a shard ran a batch; return the verdicts that this proves late.

        Args:
            clock_ms: up to when it has decided, epoch ms; `None` if unknown.
        """
        bound = self.late_ms_max
        if bound is None:
            return []
        self.has_batches = True
        pace = self.shards.get(shard)
        if pace is None:
            pace = self.shards[shard] = _ShardPace(append_ms, append_ms)
        behind = clock_ms is not None and append_ms - clock_ms > bound
        if behind or append_ms - pace.last_ms > bound:
            pace.in_step_since_ms = append_ms
        pace.last_ms = max(pace.last_ms, append_ms)
        ready = [c for c in pace.waiting if c.append_ms <= append_ms]
        pace.waiting = [c for c in pace.waiting if c.append_ms > append_ms]
        return [c for c in ready if not self._is_excused(c, pace)]

    def known(self, candidate: Candidate, shard: int) -> None:
        """Add a verdict that was written; it is kept only if it is over the bound."""
        bound = self.late_ms_max
        if bound is None or candidate.append_ms - max(candidate.time_ms, candidate.ready_ms) <= bound:
            return
        pace = self.shards.get(shard)
        if pace is None:
            self.alone.append(candidate)
        else:
            pace.waiting.append(candidate)

    def rest(self) -> list[Candidate]:
        """Return the late verdicts of shards without a status row."""
        if self.has_batches or self.late_ms_max is None:
            return []  # the rows that would show that the job ran are missing
        return [c for c in self.alone if not self._is_paused(c)]

    def _is_excused(self, candidate: Candidate, pace: _ShardPace) -> bool:
        # For a verdict due before the batches came at pace, or before the log proved it, the bound counts from then.
        bound = self.late_ms_max or 0
        due_ms = max(candidate.time_ms, candidate.ready_ms, pace.in_step_since_ms)
        return candidate.append_ms - due_ms <= bound or self._is_paused(candidate)

    def _is_paused(self, candidate: Candidate) -> bool:
        bound = self.late_ms_max or 0
        return any(start <= candidate.append_ms and candidate.time_ms <= end + bound for start, end in self.pauses)
