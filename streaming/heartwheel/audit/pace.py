"""Promise P2: was a verdict known in time? Only while the job ran, which its own status rows tell.

The bound counts from when a verdict is true, or, if time passes late in its partition, from the record by which the log
itself first shows it: without a tick or a heartbeat nobody can know. All these are append times, so no clock but the
brokers' is looked at.

A status row says that a shard went through a batch. Between two rows that are further apart than the bound the job was
down, or one batch took so long; a row whose clock is further behind than the bound says that a backlog was read, or
that time stood still. None of that is lateness. So a verdict is late only if the rows around it come in step. Where
rows are missing, as compaction removes them, nobody is accused.
"""

from __future__ import annotations

import msgspec


class Candidate(msgspec.Struct, frozen=True):
    """Hold a verdict that was known later than the bound, and may have an excuse.

    Args:
        time_ms: when it is true, epoch ms.
        ready_ms: effective time of the record by which it could be known, epoch ms.
        append_ms: append time of its row, epoch ms.
        topic: of the row.
        partition: likewise.
        offset: likewise.
        group_id: about which group.
        member_id: about which member, if it is about one.
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
    """Hold the steps of one shard: when it last went through a batch, since when in step, and who waits for more."""

    last_ms: int
    in_step_since_ms: int
    waiting: list[Candidate] = []


class Pace(msgspec.Struct):
    """Judge lateness.

    Args:
        late_ms_max: the bound, ms; `None` judges nothing.
        shards: the steps of each shard.
        pauses: when the job is known to have been down, (from, to), epoch ms.
        has_batches: whether any batch is known: without status rows all of the time counts as running.
    """

    late_ms_max: int | None
    shards: dict[int, _ShardPace] = {}
    pauses: list[tuple[int, int]] = []
    has_batches: bool = False
    alone: list[Candidate] = []

    def batch(self, shard: int, append_ms: int, *, clock_ms: int | None) -> list[Candidate]:
        """Note that a shard went through a batch; return who is late by that.

        Args:
            shard: which.
            append_ms: append time of its status row, epoch ms.
            clock_ms: up to when it has decided, epoch ms; `None` if that is not known.
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
        """Take a verdict that was written; it is looked at again only if it is over the bound."""
        bound = self.late_ms_max
        if bound is None or candidate.append_ms - max(candidate.time_ms, candidate.ready_ms) <= bound:
            return
        pace = self.shards.get(shard)
        if pace is None:
            self.alone.append(candidate)
        else:
            pace.waiting.append(candidate)

    def rest(self) -> list[Candidate]:
        """Return who is late of those that no later batch has settled."""
        if self.has_batches or self.late_ms_max is None:
            return []  # the rows that would show that the job ran are not there
        return [c for c in self.alone if not self._is_paused(c)]

    def _is_excused(self, candidate: Candidate, pace: _ShardPace) -> bool:
        # What fell due before the job was in step, or before the log showed it, has the bound from then on.
        bound = self.late_ms_max or 0
        due_ms = max(candidate.time_ms, candidate.ready_ms, pace.in_step_since_ms)
        return candidate.append_ms - due_ms <= bound or self._is_paused(candidate)

    def _is_paused(self, candidate: Candidate) -> bool:
        bound = self.late_ms_max or 0
        return any(start <= candidate.append_ms and candidate.time_ms <= end + bound for start, end in self.pauses)
