"""The judgement of one history: every checker, then the audit, and what the history has met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from heartwheel.proof.simulation.checkers.audited import AuditedHistory, audited
from heartwheel.proof.simulation.checkers.clock import check_bound, check_clocks
from heartwheel.proof.simulation.checkers.contents import check_contents
from heartwheel.proof.simulation.checkers.cut import check_cut
from heartwheel.proof.simulation.checkers.fed_log import FedLog
from heartwheel.proof.simulation.checkers.marks import check_marks
from heartwheel.proof.simulation.checkers.problem import BrokenPromise
from heartwheel.proof.simulation.checkers.read_log import ReadLog
from heartwheel.proof.simulation.checkers.rejects import check_rejects
from heartwheel.proof.simulation.checkers.rows import WrittenRows
from heartwheel.proof.simulation.checkers.silences import check_silences
from heartwheel.proof.simulation.checkers.strays import Strays, UnorderedReason
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.world.checkpoint import Checkpoint
from heartwheel.proof.simulation.world.topic import SimulatedTopic
from heartwheel.wire.relayed import FEEDS_PARTITION
from heartwheel.wire.verdict_rows import ExpirationRow


class HistoryJudge:
    """The judge of one history.

    Args:
        topic: the heartbeats, with the broken records.
        checkpoint: after the job has ended.
        runs: of the job's ticker.
    """

    def __init__(self, plan: Plan, topic: SimulatedTopic, checkpoint: Checkpoint, runs: tuple[str, ...]) -> None:
        self._plan, self._topic, self._checkpoint, self._runs = plan, topic, checkpoint, runs
        self._rows = WrittenRows(checkpoint.sink)
        self._log = ReadLog(plan, topic, checkpoint)
        strays = Strays(plan, self._log, checkpoint)
        self._fed = FedLog(plan, self._log.records, [one.ends.get(FEEDS_PARTITION, 0) for one in checkpoint.offsets])
        written = {*self._log.entries, *self._rows.first} - {*self._fed}
        self._strays = {group_id: why for group_id in written if (why := strays.why(group_id)) is not None}
        self._audited: AuditedHistory = audited(plan, topic, checkpoint, runs, self._excused())

    def problems(self) -> Iterator[BrokenPromise]:
        """Return every broken promise."""
        plan, checkpoint, rows, fed = self._plan, self._checkpoint, self._rows, self._fed
        late = {group_id for group_id in fed if not self._is_in_order(group_id)}
        yield from check_contents(plan, checkpoint, rows, late)
        yield from check_clocks(plan, checkpoint)
        yield from check_bound(plan, self._log, checkpoint, rows, {*fed})
        yield from check_cut(plan, self._log, checkpoint, self._runs, rows, {*self._strays, *late})
        for group_id in sorted({*self._log.entries, *rows.first, *fed}):
            yield from self._check_group(group_id)
        yield from check_rejects(self._topic, checkpoint, rows)
        yield from self._audited.problems

    def _check_group(self, group_id: str) -> Iterator[BrokenPromise]:
        plan, rows = self._plan, self._rows
        first, why = rows.first.get(group_id, []), self._strays.get(group_id)
        if group_id in self._fed:
            in_order, entries = self._is_in_order(group_id), self._fed.entries(group_id)
            yield from check_marks(plan, self._fed, group_id, first, in_order=in_order)
        else:
            in_order, entries = why in (None, UnorderedReason.PARTITIONER), self._log.entries.get(group_id, [])
        if in_order:
            yield from check_silences(plan, group_id, entries, rows.refused, [one.row for one in first])

    def _is_in_order(self, group_id: str) -> bool:
        """Return whether the verdicts about a group of feeds are promised."""
        return self._fed.why_aside(group_id) is None and group_id not in self._audited.put_aside

    def _excused(self) -> set[str]:
        """Return the groups that the audit cannot judge, as it does not know what the job could not know."""
        return {*self._strays, *(group_id for group_id in self._fed if self._fed.why_aside(group_id))}

    def seen(self) -> Counter[str]:
        """Count what the history has met."""
        seen: Counter[str] = Counter({"outage renews": self._audited.outages})
        for one in self._rows.all:
            seen["written again"] += one not in self._rows.first[one.row.group_id]
        for row in (one.row for first in self._rows.first.values() for one in first):
            if isinstance(row, ExpirationRow):
                seen[f"expired {row.reason}"] += 1
            else:
                seen.update((row.type, f"cause {row.cause}"))
        rejects = {(reject.partition, reject.offset, reject.cause) for reject, _ in self._rows.rejects}
        seen.update(f"reject {cause}" for _, _, cause in rejects)
        seen["group in two partitions"] = sum(len(self._log.partitions_of(each)) > 1 for each in [*self._log.entries])
        seen.update(f"group stray, {why}" for why in self._strays.values())
        for group_id in self._fed:
            seen["fed group heard by two feeds"] += self._fed.feeds_of(group_id) > 1
            if self._is_in_order(group_id):
                seen["fed group judged"] += 1
                seen["fed group judged in a topic that grows"] += self._plan.grown is not None
                seen["fed verdicts"] += len(self._rows.first.get(group_id, []))
            else:
                seen[f"fed group put aside, {self._fed.why_aside(group_id) or 'by the audit'}"] += 1
        return seen
