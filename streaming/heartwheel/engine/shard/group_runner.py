"""Running groups by their rules: for the records of a batch, for due timers, and after an outage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.model import GroupKind
from heartwheel.engine.shard.batch import Batch
from heartwheel.engine.shard.fast_path import Route
from heartwheel.engine.shard.group_times import GroupTimes
from heartwheel.engine.shard.handles import groups_of
from heartwheel.engine.shard.heartbeats import Heartbeats
from heartwheel.engine.shard.limits import ShardLimits
from heartwheel.engine.shard.log import BatchLog
from heartwheel.engine.shard.renewal import renew_sessions
from heartwheel.engine.shard.router import Router
from heartwheel.engine.shard.rules_path import KINDS, GroupLoader, Loaded
from heartwheel.engine.shard.tables import FREE, Table
from heartwheel.engine.time import Outage, OutageKind
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.requests import Request
from timing_wheel import TimingWheel

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]
RelayedUntil = Callable[[int, str], int]

_NEW: Final = KINDS.index(GroupKind.NEW)
_MEMBERS_AT_ONCE: Final = 4096
"""The approximate number of members of due groups to run before the limit of verdicts is checked again.

Their memory is reused for the next ones. A group counts as some members more than it has.
"""
_MEMBERS_FOR_A_GROUP: Final = 16


class GroupRunner:
    """Runs groups through their state machines, and stores them back.

    Args:
        loader: loads groups from rows.
        router: is told when fingerprints change.
        limits: after `verdicts_max` verdicts in a batch no further due groups are run.
        heartbeats: keeps the heartbeats that rows lose.
        group_times: is told from which partitions groups have records.
    """

    def __init__(
        self,
        members: Table,
        groups: Table,
        wheel: TimingWheel,
        loader: GroupLoader,
        router: Router,
        limits: ShardLimits,
        heartbeats: Heartbeats,
        group_times: GroupTimes,
    ) -> None:
        self._members = members
        self._groups = groups
        self._wheel = wheel
        self._loader = loader
        self._router = router
        self._verdicts_max = limits.verdicts_max
        self._heartbeats = heartbeats
        self._group_times = group_times

    def apply(self, log: BatchLog, route: Route, times: Ints, relayed: RelayedUntil, batch: Batch) -> None:
        """Apply the records of every busy group, and fire its timers up to its own time.

        Args:
            route: their members and groups, and which groups are busy.
            times: int64 (groups,), epoch ms.
            relayed: `LogTime.relayed_until_ms` of a source and a group.
            batch: changed in place.
        """
        group = route.group[log.entry]
        records = np.flatnonzero(route.busy[group])
        if not len(records):
            return
        records = records[np.argsort(group[records], kind="stable")]
        rows, starts = np.unique(group[records], return_index=True)
        spans = dict(zip(rows.tolist(), np.split(records, starts[1:]), strict=True))
        for record in spans.pop(FREE, ()):
            batch.admission.refuse_group(log, int(record))
        done = []
        for loaded in self._loader.load(rows[rows >= 0]):
            self._heartbeats.load(loaded.known_heartbeats)
            self._apply_records(log, log.in_order(spans[loaded.row]), loaded, relayed, batch)
            batch.counts["records_clamped"] += loaded.machine.clamped
            loaded.machine.advance(int(times[loaded.row]))
            done.append(loaded)
        self._heartbeats.load({})
        batch.counts["records_rules"] += len(records)
        self._store(done)
        self._keep_unknown(log, route)

    def _keep_unknown(self, log: BatchLog, route: Route) -> None:
        """Keep the heartbeats that had no row before the batch and have none now, because they may be repeated."""
        entries = np.flatnonzero((route.member < 0) & (log.fingerprint != 0))
        entries = entries[self._router.find(log.fingerprint[entries]) < 0]
        for entry, fingerprint in zip(entries.tolist(), log.fingerprint[entries].tolist(), strict=True):
            if isinstance(log.event(entry), Event):  # others always come with their bytes
                self._heartbeats.keep(fingerprint, log.body(entry))

    def _apply_records(self, log: BatchLog, records: Rows, loaded: Loaded, relayed: RelayedUntil, batch: Batch) -> None:
        machine, admission = loaded.machine, batch.admission
        answers: Counter[Answer] = Counter()
        entries = log.entry[records]
        size = machine.size
        sources = self._group_times.sources_of(loaded.row)
        for record, entry, append_ms, fingerprint in zip(
            records.tolist(),
            entries.tolist(),
            log.append_ms[records].tolist(),
            log.fingerprint[entries].tolist(),
            strict=True,
        ):
            event = log.event(entry)
            source = int(log.entry_partition[entry])
            if sources and source < 0 and not _changes_coordinator(event, append_ms, source, loaded, sources, relayed):
                continue
            if admission.is_full(size) and machine.may_add_member(event):
                # Members that are gone by now make room, wherever the batches are cut
                # (`test_p6_the_gone_make_room_at_any_cut`).
                machine.advance(append_ms)
                size = admission.recount(machine.size, size)
                if admission.is_full(size):
                    admission.refuse_member(log, record)
                    continue
            if sources is not None or source < 0:
                # This comes first, because a group that is forgotten by then has no time, not even that of its feed's
                # gap.
                machine.advance(append_ms)
            if sources is not None:
                if machine.is_forgettable():
                    sources.clear()  # the group starts again
                if source not in sources:
                    sources.append(source)
            answer = machine.apply(event, append_ms, fingerprint)
            if fingerprint and isinstance(event, Event):
                loaded.applied[fingerprint] = event
            answers[answer] += 1
            size = admission.recount(machine.size, size)
            admission.check_answer(log, record, answer)
        batch.counts.update({f"answer_{answer}": n for answer, n in answers.items()})

    def fire(self, clock_ms: int, times: Ints, batch: Batch) -> None:
        """Run every group with a timer that is due by the group's time; groups beyond the limit stay due.

        Args:
            clock_ms: the latest of all times, epoch ms.
            times: int64 (groups,), epoch ms.
            batch: changed in place.
        """
        deadlines = self._wheel.deadlines().copy()
        due = self._wheel.advance(max(self._wheel.clock_ms, clock_ms))
        if not len(due):
            return
        # The rules, not the wheel, decide what a timer does: they find it armed, and the store re-arms or cancels it.
        self._wheel.file(due, deadlines[due])
        owner = groups_of(due, self._members["group"])
        # The wheel goes by the partition that is furthest ahead; others may be behind it.
        owner = owner[deadlines[due] <= times[owner]]
        _, first = np.unique(owner, return_index=True)
        rows = owner[np.sort(first)]
        left = len(rows)
        for part in self._some_at_once(rows):
            if len(batch.verdicts) >= self._verdicts_max:
                batch.counts["groups_deferred"] += left
                return
            done = []
            for loaded in self._loader.load(np.sort(part)):
                loaded.fire(int(times[loaded.row]))
                done.append(loaded)
            self._store(done)
            left -= len(part)

    def _some_at_once(self, rows: Rows) -> list[Rows]:
        sizes = np.bincount(self._members["group"] + 1, minlength=self._groups.rows + 1)[1:]  # the first are free rows
        turns = np.cumsum(sizes[rows] + _MEMBERS_FOR_A_GROUP) // _MEMBERS_AT_ONCE
        return np.split(rows, np.flatnonzero(np.diff(turns)) + 1)

    def renew(self, rows: Rows, outage: Outage, batch: Batch) -> None:
        """Restart the sessions of groups, in each right after its last record before the outage.

        Args:
            rows: intp (n,), the groups.
            outage: the outage; everything before it has been applied to the groups.
            batch: changed in place.
        """
        renewal = renew_sessions(
            rows,
            outage.before_ms,
            outage.after_ms,
            members=self._members,
            groups=self._groups,
            wheel=self._wheel,
        )
        renewed, done = renewal.members, []
        for loaded in self._loader.load(renewal.busy):
            renewed += loaded.machine.renew(outage.before_ms, outage.after_ms)
            done.append(loaded)
        self._groups["renewed_ms"][rows] = np.maximum(self._groups["renewed_ms"][rows], outage.after_ms)
        self._store(done)
        batch.counts["sessions_renewed"] += renewed
        if outage.kind is OutageKind.NOT_RELAYED:
            self._advance_to(rows, outage.after_ms)

    def _advance_to(self, rows: Rows, after_ms: int) -> None:
        """Advance the time of groups to the end of a gap in their feed.

        The feed may relay events from just before the end, which must not undo the renewal.
        """
        known = rows[(self._groups["state"][rows] != FREE) & (self._groups["kind"][rows] != _NEW)]
        self._groups["seen_ms"][known] = np.maximum(self._groups["seen_ms"][known], after_ms)

    def _store(self, loaded: list[Loaded]) -> None:
        for one in loaded:
            self._heartbeats.keep_lost(one.known_heartbeats, one.kept_fingerprints())
        if self._loader.store(loaded):
            self._router.forget()


def _changes_coordinator(
    event: Request, at_ms: int, source: int, loaded: Loaded, sources: list[int], relayed: RelayedUntil
) -> bool:
    """Change a group's coordinator if an event of a feed says so; return whether the event counts.

    The previous coordinator may report the unload after the next one has loaded the group; that stops nothing. If the
    feed of the previous one is no longer waited for, its decisions since its last record are unknown, so no member
    expires in that time.

    Args:
        sources: the sources of its records; that of its newest coordinator is last.
        relayed: as in `GroupRunner.apply`.
    """
    before, goes_on = sources[-1], sources[-1] == source
    if event.type is EventType.UNLOAD:
        return goes_on
    if event.type is not EventType.LOAD or goes_on:
        return True  # a feed whose broker loads a group again may have missed only heartbeats
    loaded.machine.rewind_to_load(at_ms)
    if before < 0:
        known_ms = relayed(before, loaded.machine.group.group_id)
        if known_ms < at_ms:
            loaded.machine.renew(known_ms, at_ms)
    sources.sort(key=lambda each: each == source)
    return True
