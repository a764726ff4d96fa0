"""The shard: one coordinator partition with its groups, their members and one timing wheel.

A batch goes through it in steps:

1. *time*: the readings of the batch say how far every partition has come, and which gaps were outages; those part the
   batch in the order of time;
2. *route*: each distinct value is looked up by its fingerprint; what is not known is decoded. Records that something
   unread may come before wait in the state;
3. *fast path*: the groups of which nothing but known heartbeats came, and none of whose timers falls due meanwhile, are
   kept alive with a few array operations;
4. *rules path*: every other group is run event by event through its `GroupMachine`;
5. *timers*: the wheel is advanced, and each group of what is due is run up to its own time;
6. *outage*: the sessions of its partition start anew, before any record after it.

The list of verdicts of a group is a function of the log alone: it depends neither on how the log was cut into batches,
nor on how far its partitions were read in each, nor on which path a group took (`test_shard_paths.py`,
`test_shard_time.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heartwheel.coordinator.answer import Answer
from heartwheel.coordinator.config import CoordinatorConfig
from heartwheel.coordinator.manager import AnyGroup
from heartwheel.coordinator.model import NEVER
from heartwheel.log_time import LogTime, Outage, Reading
from heartwheel.log_time.log_time import UNKNOWN_MS
from heartwheel.pack import Pack
from heartwheel.shard.admission import Admission, Refusal
from heartwheel.shard.codec import ShardState, decode_state, encode_state, new_state
from heartwheel.shard.fast_path import Route, keep_alive, mark_busy
from heartwheel.shard.figures import Figures
from heartwheel.shard.group_times import GroupTimes
from heartwheel.shard.handles import group_deadlines, groups_of, member_deadlines, member_handle
from heartwheel.shard.limits import ShardLimits
from heartwheel.shard.listing import Listed, Rebalancing, page_of, rebalancing
from heartwheel.shard.log import BatchLog
from heartwheel.shard.renewal import renew_sessions
from heartwheel.shard.router import Router
from heartwheel.shard.rules_path import Loaded, Workshop
from heartwheel.shard.tables import FREE
from heartwheel.wire.verdicts import Verdict
from timing_wheel import TIME_MS_MAX, TimingWheel

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

STANDING_MS: Final = 5_000
"""How far a partition may be behind the newest before its time counts as standing still, ms."""

_GROUPS_AT_ONCE: Final = 256
"""How many due groups are run before the limit of verdicts is looked at again."""


class Outcome(NamedTuple):
    """Hold what one batch came to.

    Args:
        verdicts: in the order in which they were reached; of each group in the order of time.
        refused: records that met a limit.
        outages: gaps that turned out to be outages, in the order of their ends.
        counts: how often what happened in this batch, by name.
    """

    verdicts: list[Verdict]
    refused: list[Refusal]
    outages: list[Outage]
    counts: Counter[str]


class Shard:
    """Run one coordinator partition.

    Args:
        coordinator: the rules' configuration.
        limits: what the shard may hold and write.
        tick_ms: resolution of the wheel, ms; left out, that of the blob.
        wheel_size: buckets a level of the wheel; left out, those of the blob.
        outage_min_ms: shortest gap in a partition that may be an outage, ms.
        partitions: how many partitions the topic is known to have; 0 if that is to be learned from it.
        blob: the state from `encode`, or empty for a new shard.

    Raises:
        StateBlobError: the blob cannot be read.
    """

    def __init__(
        self,
        *,
        coordinator: CoordinatorConfig,
        limits: ShardLimits,
        tick_ms: int | None = None,
        wheel_size: int | None = None,
        outage_min_ms: int = 3_000,
        partitions: int = 0,
        blob: str = "",
    ) -> None:
        self._limits = limits
        self._outage_min_ms = outage_min_ms
        self._partitions = partitions
        state = decode_state(blob) if blob else new_state()
        self._members, self._groups = state.members, state.groups
        self._wheel = _shaped(state.wheel, tick_ms, wheel_size)
        self._heavy = len(blob) >= limits.state_bytes_max
        groups_max = 0 if self._heavy else limits.groups_max
        self._router = Router(self._members, self._groups, groups_max, state.fingerprint_order)
        self._time = state.time
        self._group_times = GroupTimes(self._groups, state.elsewhere)
        self._waiting = state.waiting
        self._owed = state.owed
        self.totals: Counter[str] = Counter(state.counts)
        self._verdicts: list[Verdict] = []
        self._admission = Admission(limits, heavy=self._heavy, members=len(self._members))
        self._counts: Counter[str] = Counter()
        self._workshop = Workshop(self._members, self._groups, self._wheel, coordinator, self._verdicts.append)
        self._sessions = state.sessions

    # -- what it is

    @property
    def member_count(self) -> int:
        """How many members there are, pending ones included."""
        return len(self._members)

    @property
    def group_count(self) -> int:
        """How many groups there are, those without members included."""
        return len(self._groups)

    def listed(self, size: int) -> list[Listed]:
        """List one page of the groups, after each batch the next."""
        return page_of(self._groups, self._members, self.totals["batches"], size)

    def rebalancing(self, most: int, names_max: int) -> list[Rebalancing]:
        """List the groups that rebalance, each with the first members that it waits for."""
        return rebalancing(self._groups, self._members, self._workshop, most, names_max)

    @property
    def clock_ms(self) -> int:
        """Up to when every partition is decided, epoch ms; -1 while nothing was read from one of them."""
        return int(self._time.decided().min(initial=TIME_MS_MAX)) if self._time.count else UNKNOWN_MS

    @property
    def newest_ms(self) -> int:
        """Time of the newest record read from any partition, epoch ms; -1 if there was none."""
        return int(self._time.watermarks().max(initial=UNKNOWN_MS))

    @property
    def time(self) -> LogTime:
        """The time of every partition."""
        return self._time

    def standing(self) -> list[tuple[int, int]]:
        """List the partitions that are far behind the newest, and up to when each is decided, the oldest first."""
        decided = self._time.decided()
        behind = np.flatnonzero(decided < self.newest_ms - STANDING_MS)
        return sorted(zip(behind.tolist(), decided[behind].tolist(), strict=True), key=lambda each: each[1])

    @property
    def waiting_count(self) -> int:
        """How many records wait until what comes before them has been read."""
        return sum(len(pack.entry) for pack in self._waiting)

    @property
    def figures(self) -> Figures:
        """What it tells about itself; it shows the shard as it is now, whenever that is."""
        return Figures(self._members, self._groups, self._wheel)

    def dump(self) -> list[tuple[AnyGroup, bool]]:
        """Decode every group with its members, for people; the shard itself is not changed."""
        return [(loaded.group, loaded.machine.is_forgettable()) for loaded in self._workshop.load(self._groups.used())]

    def encode(self) -> str:
        """Encode the state; `Shard(blob=...)` carries on from it."""
        if self._members.wasteful():
            self._renumber_members()
        if self._heavy:
            # A full shard must not stay full for ever of those who are gone (`test_p6_state_bytes_max`).
            self._members.drop_free_text()
            self._groups.drop_free_text()
        return encode_state(
            ShardState(
                self._members,
                self._groups,
                self._wheel,
                self._router.order(),
                dict(self.totals),
                self._time,
                self._group_times.elsewhere(),
                self._waiting,
                {row: self._owed[row] for row in self._owing().tolist()},
                self._sessions,
            )
        )

    # -- what it does

    def apply(self, packs: Sequence[Pack], readings: Sequence[Reading]) -> Outcome:
        """Apply the records of a batch, and fire what is due by the time that it proves.

        Args:
            packs: the records.
            readings: what was read of each partition, whichever shard it was for; of every partition of the packs.
        """
        self._begin()
        floors = self._time.watermarks()
        outages = self._time.read(readings, outage_min_ms=self._outage_min_ms, partitions=self._partitions)
        self._counts["records"] += sum(len(pack.entry) for pack in packs)
        packs = [*self._waiting, *(_not_before(pack, floors) for pack in packs)]
        decided = self._time.decided()
        for outage in outages:
            packs = self._step(packs, decided, until_ms=outage.before_ms)
            self._renew(outage, decided)
            self._counts[f"outage_{outage.kind}"] += 1
        self._waiting = self._step(packs, decided)
        while self._settle(decided):
            self._waiting = self._step(self._waiting, decided)
        return self._end(outages)

    def apply_apart(self, packs: Sequence[Pack]) -> Outcome:
        """Apply records of groups whose times have nothing to do with each other, as a replay has them.

        Timers fire only as far as a group's own records prove that time has passed; `advance` fires the others.

        Args:
            packs: the records; times may only step back between records of different groups.
        """
        self._begin()
        log = BatchLog(packs)
        self._counts["records"] += len(log)
        route = self._router.route(log)
        self._apply_log(log, route, np.full(self._groups.rows, UNKNOWN_MS, np.int64))
        return self._end([])

    def advance(self, clock_ms: int) -> Outcome:
        """Fire what is due in every group, epoch ms; the other half of `apply_apart`."""
        self._begin()
        self._fire(clock_ms, np.full(self._groups.rows, clock_ms, np.int64))
        return self._end([])

    def _begin(self) -> None:
        self._verdicts.clear()
        self._counts = Counter(batches=1)
        self._admission = Admission(self._limits, heavy=self._heavy, members=len(self._members))
        if self._sessions != self._workshop.sessions:
            self._workshop.look_at_epoch_members()
            self._router.forget_order()
            self._sessions = self._workshop.sessions

    def _end(self, outages: list[Outage]) -> Outcome:
        for verdict in self._verdicts:
            self._counts[f"verdict_{verdict.kind}"] += 1
        self.totals.update(self._counts)
        return Outcome(list(self._verdicts), self._admission.refused, outages, self._counts)

    def count(self, outcome: Outcome, more: Counter[str]) -> None:
        """Add what was counted outside of the rules, such as rejected records, to a batch and to the totals."""
        outcome.counts.update(more)
        self.totals.update(more)

    def _step(self, packs: list[Pack], decided: Ints, *, until_ms: int = TIME_MS_MAX) -> list[Pack]:
        """Apply the records up to a moment for which nothing unread can come first, and fire what is due.

        Args:
            packs: the records.
            decided: int64 (partitions,), up to where each is decided, epoch ms.
            until_ms: records after that wait, epoch ms.

        Returns:
            The records that wait.
        """
        reached = np.minimum(decided, until_ms)
        log = BatchLog(packs)
        rest: list[Pack] = []
        late: list[Pack] = []
        if len(log) and until_ms < TIME_MS_MAX:
            # What comes later is not looked at: where a group is seen after an outage says nothing about before.
            packs, rest = log.split(log.append_ms <= until_ms)
            log = BatchLog(packs)
        if len(log):
            route = self._router.route(log)
            self._group_times.note(log, route)
            until = self._group_times.until(log, route, self._time, decided)
            for row in self._owing().tolist():
                mine = route.group == row
                until[mine] = np.minimum(until[mine], self._owed[row][0].before_ms)
            ripe = log.append_ms <= until[log.entry]
            if not ripe.all():
                packs, late = log.split(ripe)
                log = BatchLog(packs)
                route = self._router.route(log)
            if len(log):
                self._apply_log(log, route, self._times(reached))
        self._fire(int(reached.max(initial=0)), self._times(reached))
        if late:
            # A group may have been forgotten by now; what waits of it says that it was seen.
            waiting = BatchLog(late)
            self._group_times.note(waiting, self._router.route(waiting))
        return [*late, *rest]

    def _times(self, decided: Ints) -> Ints:
        """Return the time of every group, epoch ms: of one that is owed a renewal not beyond the outage's begin."""
        times = self._group_times.times(self._time, decided)
        for row in self._owing().tolist():
            times[row] = min(times[row], self._owed[row][0].before_ms)
        return times

    def _owing(self) -> Rows:
        """Return the groups that an outage has yet to renew."""
        return np.flatnonzero(self._groups["owed"]) if self._owed else np.empty(0, np.intp)

    def _settle(self, decided: Ints) -> bool:
        """Renew the sessions of groups of which everything up to an outage has been read by now; tell if there were."""
        renewed = False
        for row in self._owing().tolist():
            outage, *more = self._owed[row]
            at = np.array([row])
            if self._group_times.read_beyond(at, outage.before_ms, outage.partition, self._time, decided)[0]:
                self._owed[row] = more
                self._groups["owed"][row] = bool(more)
                self._renew_rows(at, outage)
                renewed = True
        return renewed

    def _apply_log(self, log: BatchLog, route: Route, times: Ints) -> None:
        if not self._wheel.clock_ms:
            # A new wheel starts where the log does, so that its first deadlines are filed on fine levels.
            self._wheel.advance(max(0, int(log.append_ms.min())))
        self._counts["records_astray"] += self._router.count_strays(log, route.group)
        mark_busy(
            log,
            route,
            self._members,
            self._groups,
            member_deadlines(self._wheel, self._members.rows),
            group_deadlines(self._wheel, self._groups.rows),
        )
        alive = keep_alive(log, route, self._groups)
        self._members["seen_ms"][alive.rows] = alive.seen_ms
        self._wheel.file(member_handle(alive.rows), alive.seen_ms + self._members["timeout_ms"][alive.rows])
        self._counts["records_fast"] += alive.records
        self._counts["records_clamped"] += alive.clamped
        self._run_busy(log, route, times)

    def _renew(self, outage: Outage, decided: Ints) -> None:
        """Start the sessions of a partition's groups anew: each right after its last record before the outage."""
        seen = self._group_times.seen_in(outage.partition)
        ready = self._group_times.read_beyond(seen, outage.before_ms, outage.partition, self._time, decided)
        ready &= self._groups["owed"][seen] == 0
        for row in seen[~ready].tolist():
            owed = [*(self._owed[row] if self._groups["owed"][row] else ()), outage]
            # A partition that is behind may prove an outage that began before those that are owed already.
            self._owed[row] = sorted(owed, key=lambda each: (each.before_ms, each.partition))
            self._groups["owed"][row] = 1
        self._renew_rows(seen[ready], outage)

    def _renew_rows(self, rows: Rows, outage: Outage) -> None:
        renewal = renew_sessions(
            rows,
            outage.before_ms,
            outage.after_ms,
            members=self._members,
            groups=self._groups,
            wheel=self._wheel,
        )
        renewed, done = renewal.members, []
        for loaded in self._workshop.load(renewal.busy):
            renewed += loaded.machine.renew(outage.before_ms, outage.after_ms)
            done.append(loaded)
        self._store(done)
        self._counts["sessions_renewed"] += renewed

    def _run_busy(self, log: BatchLog, route: Route, times: Ints) -> None:
        group = route.group[log.entry]
        records = np.flatnonzero(route.busy[group])
        if not len(records):
            return
        records = records[np.argsort(group[records], kind="stable")]
        rows, starts = np.unique(group[records], return_index=True)
        spans = dict(zip(rows.tolist(), np.split(records, starts[1:]), strict=True))
        for record in spans.pop(FREE, ()):
            self._admission.refuse_group(log, int(record))
        done = []
        for loaded in self._workshop.load(rows[rows >= 0]):
            self._apply_records(log, log.in_order(spans[loaded.row]), loaded)
            self._counts["records_clamped"] += loaded.machine.clamped
            loaded.machine.advance(int(times[loaded.row]))
            done.append(loaded)
        self._counts["records_rules"] += len(records)
        self._store(done)

    def _apply_records(self, log: BatchLog, records: Rows, loaded: Loaded) -> None:
        machine, admission = loaded.machine, self._admission
        answers: Counter[Answer] = Counter()
        entries = log.entry[records]
        size = machine.size
        for record, entry, append_ms, mark in zip(
            records.tolist(),
            entries.tolist(),
            log.append_ms[records].tolist(),
            log.fingerprint[entries].tolist(),
            strict=True,
        ):
            event = log.event(entry)
            if admission.is_full(size) and machine.is_stranger(event):
                # Who is gone by now makes room, wherever the batches are cut (`test_p6_the_gone_make_room_at_any_cut`).
                machine.advance(append_ms)
                size = admission.recount(machine.size, size)
                if admission.is_full(size):
                    admission.refuse_stranger(log, record)
                    continue
            answer = machine.apply(event, append_ms, mark)
            answers[answer] += 1
            size = admission.recount(machine.size, size)
            admission.hear(log, record, answer)
        self._counts.update({f"answer_{answer}": n for answer, n in answers.items()})

    def _fire(self, clock_ms: int, times: Ints) -> None:
        """Run every group with a timer that is due by the group's time; those over the limit stay due.

        Args:
            clock_ms: the greatest of all times, epoch ms.
            times: int64 (groups,), epoch ms.
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
        for start in range(0, len(rows), _GROUPS_AT_ONCE):
            if len(self._verdicts) >= self._limits.verdicts_max:
                self._counts["groups_deferred"] += len(rows) - start
                return
            done = []
            for loaded in self._workshop.load(np.sort(rows[start : start + _GROUPS_AT_ONCE])):
                loaded.machine.advance(int(times[loaded.row]))
                done.append(loaded)
            self._store(done)

    def _store(self, loaded: list[Loaded]) -> None:
        if self._workshop.store(loaded):
            self._router.forget_order()

    def _renumber_members(self) -> None:
        kept = self._members.used()
        deadlines = member_deadlines(self._wheel, self._members.rows)[kept]
        self._wheel.cancel(member_handle(np.arange(self._members.rows)))
        self._members.keep(kept)
        armed = np.flatnonzero(deadlines != NEVER)
        self._wheel.file(member_handle(armed), deadlines[armed])
        self._router.forget_order()


def _not_before(pack: Pack, floors: Ints) -> Pack:
    """Raise the times of records that were appended, by their time, before what was read of their partition so far."""
    floor_ms = int(floors[pack.partition]) if pack.partition < len(floors) else UNKNOWN_MS
    if int(pack.append_ms[0]) >= floor_ms:
        return pack
    return pack._replace(append_ms=np.maximum(pack.append_ms, floor_ms))


def _shaped(wheel: TimingWheel, tick_ms: int | None, wheel_size: int | None) -> TimingWheel:
    """File the timers of a wheel anew if the configuration asks for another geometry than it was made with."""
    old = wheel.geometry
    wanted = (tick_ms or old.tick_ms, wheel_size or old.wheel_size)
    if wanted == (old.tick_ms, old.wheel_size):
        return wheel
    deadlines = wheel.deadlines()
    armed = np.flatnonzero(deadlines != NEVER)
    shaped = TimingWheel(tick_ms=wanted[0], wheel_size=wanted[1], start_ms=wheel.clock_ms, capacity=len(deadlines))
    shaped.file(armed, deadlines[armed])
    return shaped
