"""Groups run by their rules: by the records of a batch, by timers that are due, and anew after an outage."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heartwheel.coordinator.answer import Answer
from heartwheel.coordinator.model import GroupKind
from heartwheel.log_time import Outage, OutageKind
from heartwheel.shard.batch import Batch
from heartwheel.shard.fast_path import Route
from heartwheel.shard.fed_sources import PassedOn
from heartwheel.shard.group_times import GroupTimes
from heartwheel.shard.handles import groups_of
from heartwheel.shard.heartbeats import Heartbeats
from heartwheel.shard.limits import ShardLimits
from heartwheel.shard.log import BatchLog
from heartwheel.shard.renewal import renew_sessions
from heartwheel.shard.router import Router
from heartwheel.shard.rules_path import KINDS, GroupLoader, Loaded
from heartwheel.shard.tables import FREE, Table
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.requests import Request
from timing_wheel import TimingWheel

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

_NEW: Final = KINDS.index(GroupKind.NEW)
_MEMBERS_AT_ONCE: Final = 4096
"""Of about how many members due groups are run before the limit of verdicts is looked at again.

Their memory is used again by those after them. A group counts as some members more than it has.
"""
_MEMBERS_FOR_A_GROUP: Final = 16


class GroupRunner:
    """Runs groups through their state machines, and stores them back.

    Args:
        members: the table of members.
        groups: the table of groups.
        wheel: where the timers are.
        loader: makes groups of rows.
        router: has to learn of rows that move.
        limits: with `verdicts_max` verdicts in a batch no further due groups are run.
        heartbeats: keeps those that rows lose.
        group_times: learns from which partitions groups are heard.
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

    def apply(self, log: BatchLog, route: Route, times: Ints, passed_on: PassedOn, batch: Batch) -> None:
        """Apply the records of every busy group, and fire its timers up to its own time.

        Args:
            log: the records.
            route: where they go, and which groups are busy.
            times: int64 (groups,), epoch ms.
            passed_on: tells what the feeds have passed on.
            batch: what comes of it.
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
            self._heartbeats.load(loaded.said)
            self._apply_records(log, log.in_order(spans[loaded.row]), loaded, passed_on, batch)
            batch.counts["records_clamped"] += loaded.machine.clamped
            loaded.machine.advance(int(times[loaded.row]))
            done.append(loaded)
        self._heartbeats.load({})
        batch.counts["records_rules"] += len(records)
        self._store(done)
        self._keep_unknown(log, route)

    def _keep_unknown(self, log: BatchLog, route: Route) -> None:
        """Keep the heartbeats that no row had before the batch, and that none has now: they may come again."""
        entries = np.flatnonzero((route.member < 0) & (log.fingerprint != 0))
        entries = entries[self._router.find(log.fingerprint[entries]) < 0]
        for entry, fingerprint in zip(entries.tolist(), log.fingerprint[entries].tolist(), strict=True):
            if isinstance(log.event(entry), Event):  # others always have their bytes
                self._heartbeats.keep(fingerprint, log.body(entry))

    def _apply_records(self, log: BatchLog, records: Rows, loaded: Loaded, passed_on: PassedOn, batch: Batch) -> None:
        machine, admission = loaded.machine, batch.admission
        answers: Counter[Answer] = Counter()
        entries = log.entry[records]
        size = machine.size
        heard = self._group_times.heard_by(loaded.row)
        for record, entry, append_ms, mark in zip(
            records.tolist(),
            entries.tolist(),
            log.append_ms[records].tolist(),
            log.fingerprint[entries].tolist(),
            strict=True,
        ):
            event = log.event(entry)
            source = int(log.entry_partition[entry])
            if heard and source < 0 and not _moves(event, append_ms, source, loaded, heard, passed_on):
                continue
            if admission.is_full(size) and machine.is_stranger(event):
                # Who is gone by now makes room, wherever the batches are cut (`test_p6_the_gone_make_room_at_any_cut`).
                machine.advance(append_ms)
                size = admission.recount(machine.size, size)
                if admission.is_full(size):
                    admission.refuse_stranger(log, record)
                    continue
            if heard is not None or source < 0:
                # First, as a group that is forgotten by then has no time, also not that of what its feed has missed.
                machine.advance(append_ms)
            if heard is not None:
                if machine.is_forgettable():
                    heard.clear()  # it begins anew
                passed_on.hear(heard, source)
            answer = machine.apply(event, append_ms, mark)
            if mark and isinstance(event, Event):
                loaded.heard[mark] = event
            answers[answer] += 1
            size = admission.recount(machine.size, size)
            admission.hear(log, record, answer)
        batch.counts.update({f"answer_{answer}": n for answer, n in answers.items()})

    def fire(self, clock_ms: int, times: Ints, batch: Batch) -> None:
        """Run every group with a timer that is due by the group's time; those over the limit stay due.

        Args:
            clock_ms: the greatest of all times, epoch ms.
            times: int64 (groups,), epoch ms.
            batch: what comes of it.
        """
        deadlines = self._wheel.deadlines().copy()
        due = self._wheel.advance(max(self._wheel.clock_ms, clock_ms))
        if not len(due):
            return
        # The rules, not the wheel, decide what a timer does: they find it armed, and the store re-arms or cancels it.
        self._wheel.file(due, deadlines[due])
        owner = groups_of(due, self._members["group"])
        # The wheel goes by the partition that is furthest; others may be behind it.
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
        """Start the sessions of groups anew: each right after its last record before the outage.

        Args:
            rows: intp (n,), the groups.
            outage: everything before it has been applied to them.
            batch: what comes of it.
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
        if outage.kind is OutageKind.NOT_PASSED_ON:
            self._go_on_from(rows, outage.after_ms)

    def _go_on_from(self, rows: Rows, after_ms: int) -> None:
        """Let the time of groups go on at the end of what a feed has missed.

        The feed may have passed on what arrived just before that, and must not take the renewal back with it.
        """
        known = rows[(self._groups["state"][rows] != FREE) & (self._groups["kind"][rows] != _NEW)]
        self._groups["seen_ms"][known] = np.maximum(self._groups["seen_ms"][known], after_ms)

    def _store(self, loaded: list[Loaded]) -> None:
        for one in loaded:
            self._heartbeats.keep_lost(one.said, one.kept_fingerprints())
        if self._loader.store(loaded):
            self._router.forget()


def _moves(event: Request, at_ms: int, source: int, loaded: Loaded, heard: list[int], passed_on: PassedOn) -> bool:
    """Let a group go from one coordinator to another, if that is what an event of a feed says; tell if it counts.

    The one before may say that it has let the group go when it is loaded elsewhere already: that stops nothing. What it
    has decided since its feed was heard of last nobody knows, if that is not waited for any more: so nobody runs out in
    that time.

    Args:
        event: of a feed.
        at_ms: its time, epoch ms.
        source: the feed's.
        loaded: the group.
        heard: the sources it was heard from, whose newest coordinator's is the last.
        passed_on: as in `GroupRunner.apply`.
    """
    before, goes_on = heard[-1], passed_on.is_one_feed(heard[-1], source)
    if event.type is EventType.UNLOAD:
        return goes_on
    if event.type is not EventType.LOAD or goes_on:
        return True  # what the feed of a broker that loads a group once more has missed may still be heartbeats
    loaded.machine.go_back_to_load(at_ms)
    if before < 0:
        known_ms = passed_on.until_ms(heard, loaded.machine.group.group_id)
        if known_ms < at_ms:
            loaded.machine.renew(known_ms, at_ms)
    heard.sort(key=lambda each: passed_on.is_one_feed(each, source))
    return True
