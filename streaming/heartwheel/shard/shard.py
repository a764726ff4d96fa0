"""The shard: one coordinator partition with its groups, their members and one timing wheel.

A batch goes through it in four steps:

1. *route*: each distinct value of the batch is looked up by its fingerprint; what is not known is decoded;
2. *fast path*: the groups of which nothing but known heartbeats came, and none of whose timers falls due meanwhile, are
   kept alive with a few array operations;
3. *rules path*: every other group of the batch is run event by event through its `GroupMachine`;
4. *clock*: the wheel is advanced, and the groups of what is due are run up to the clock.

The list of verdicts is a function of the log and the clocks alone: it depends neither on how the log was cut into
batches, nor on which path a group took (`test_shard_paths.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heartwheel.coordinator.answer import Answer
from heartwheel.coordinator.config import CoordinatorConfig
from heartwheel.coordinator.model import NEVER, Group
from heartwheel.pack import Pack
from heartwheel.shard.admission import Admission, Refusal, is_stranger
from heartwheel.shard.codec import ShardState, decode_state, encode_state
from heartwheel.shard.fast_path import Route, keep_alive, mark_busy
from heartwheel.shard.figures import Figures
from heartwheel.shard.handles import group_deadlines, groups_of, member_deadlines, member_handle
from heartwheel.shard.limits import ShardLimits
from heartwheel.shard.log import BatchLog
from heartwheel.shard.router import Router
from heartwheel.shard.rules_path import Loaded, Workshop
from heartwheel.shard.tables import FREE, group_table, member_table
from heartwheel.wire.verdicts import Verdict
from timing_wheel import TimingWheel

Rows = NDArray[np.intp]

_GROUPS_AT_ONCE: Final = 256
"""How many due groups are run before the limit of verdicts is looked at again."""


class Outcome(NamedTuple):
    """Hold what one batch came to.

    Args:
        verdicts: in the order in which they were reached; of each group in the order of time.
        refused: records that met a limit.
        counts: how often what happened in this batch, by name.
    """

    verdicts: list[Verdict]
    refused: list[Refusal]
    counts: Counter[str]


class Shard:
    """Run one coordinator partition.

    Args:
        coordinator: the rules' configuration.
        limits: what the shard may hold and write.
        tick_ms: resolution of the wheel, ms; left out, that of the blob.
        wheel_size: buckets a level of the wheel; left out, those of the blob.
        clock_ms: the clock it was last advanced to, epoch ms; -1 if never.
        blob: the state from `encode`, or empty for a new shard.

    Raises:
        StateBlobError: the blob can not be read.
    """

    def __init__(
        self,
        *,
        coordinator: CoordinatorConfig,
        limits: ShardLimits,
        tick_ms: int | None = None,
        wheel_size: int | None = None,
        clock_ms: int = -1,
        blob: str = "",
    ) -> None:
        self.clock_ms = clock_ms
        self._config = coordinator
        self._limits = limits
        if blob:
            state = decode_state(blob)
        else:
            state = ShardState(member_table(), group_table(), TimingWheel(), np.empty(0, np.intp), {})
        self._members, self._groups = state.members, state.groups
        self._wheel = _shaped(state.wheel, tick_ms, wheel_size)
        self._heavy = len(blob) >= limits.state_bytes_max
        groups_max = 0 if self._heavy else limits.groups_max
        self._router = Router(self._members, self._groups, groups_max, state.fingerprint_order)
        self.totals: Counter[str] = Counter(state.counts)
        self._verdicts: list[Verdict] = []
        self._admission = self._admit()
        self._counts: Counter[str] = Counter()
        self._workshop = Workshop(self._members, self._groups, self._wheel, coordinator, self._verdicts.append)

    # -- what it is

    @property
    def member_count(self) -> int:
        """How many members there are, pending ones included."""
        return len(self._members)

    @property
    def group_count(self) -> int:
        """How many groups there are, those without members included."""
        return len(self._groups)

    @property
    def figures(self) -> Figures:
        """What it tells about itself; it shows the shard as it is now, whenever that is."""
        return Figures(self._members, self._groups, self._wheel)

    def dump(self) -> list[tuple[Group, bool]]:
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
        order = self._router.order()
        return encode_state(ShardState(self._members, self._groups, self._wheel, order, dict(self.totals)))

    # -- what it does

    def apply(self, packs: Sequence[Pack], clock_ms: int | None) -> Outcome:
        """Apply the records of a batch, then fire what is due at the clock.

        Args:
            packs: the records.
            clock_ms: up to where all records have been read, epoch ms; `None` while that is not known: then timers fire
                only as far as the group's own records prove that time has passed.
        """
        self._verdicts.clear()
        self._counts = Counter()
        self._admission = self._admit()
        clock = self._clock(clock_ms)
        if packs:
            log = BatchLog(packs)
            self._counts["records"] += len(log)
            self._apply_log(log, clock)
        if clock is not None:
            self._fire(clock)
            self.clock_ms = clock
        for verdict in self._verdicts:
            self._counts[f"verdict_{verdict.kind}"] += 1
        self.totals.update(self._counts)
        return Outcome(list(self._verdicts), self._admission.refused, self._counts)

    def count(self, outcome: Outcome, more: Counter[str]) -> None:
        """Add what was counted outside of the rules, such as rejected records, to a batch and to the totals."""
        outcome.counts.update(more)
        self.totals.update(more)

    def _admit(self) -> Admission:
        return Admission(self._limits, heavy=self._heavy, members=len(self._members))

    def _clock(self, clock_ms: int | None) -> int | None:
        if clock_ms is not None and clock_ms < self.clock_ms:
            self._counts["clock_stepped_back"] += 1
            return self.clock_ms
        return clock_ms

    def _apply_log(self, log: BatchLog, clock: int | None) -> None:
        if not self._wheel.clock_ms:
            # A new wheel starts where the log does, so that its first deadlines are filed on fine levels.
            self._wheel.advance(max(0, int(log.append_ms.min())))
        route, astray = self._router.route(log)
        self._counts["records_astray"] += astray
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
        self._run_busy(log, route, clock)

    def _run_busy(self, log: BatchLog, route: Route, clock: int | None) -> None:
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
            if clock is not None:
                loaded.machine.advance(clock)
            done.append(loaded)
        self._counts["records_rules"] += len(records)
        self._store(done)

    def _apply_records(self, log: BatchLog, records: Rows, loaded: Loaded) -> None:
        group, machine, admission = loaded.group, loaded.machine, self._admission
        answers: Counter[Answer] = Counter()
        entries = log.entry[records]
        size = len(group.members) + len(group.pending)
        for record, entry, append_ms, mark in zip(
            records.tolist(),
            entries.tolist(),
            log.append_ms[records].tolist(),
            log.fingerprint[entries].tolist(),
            strict=True,
        ):
            event = log.event(entry)
            if admission.is_full(size) and is_stranger(event, group):
                # Who is gone by now makes room, wherever the batches are cut (`test_p6_the_gone_make_room_at_any_cut`).
                machine.advance(append_ms)
                size = admission.recount(group, size)
                if admission.is_full(size):
                    admission.refuse_stranger(log, record)
                    continue
            answer = machine.apply(event, append_ms, mark)
            answers[answer] += 1
            size = admission.recount(group, size)
            admission.hear(log, record, answer)
        self._counts.update({f"answer_{answer}": n for answer, n in answers.items()})

    def _fire(self, clock: int) -> None:
        """Advance the wheel, and run the groups of what is due; those over the limit stay due for the next batch."""
        deadlines = self._wheel.deadlines().copy()
        due = self._wheel.advance(clock)
        if not len(due):
            return
        # The rules, not the wheel, decide what a timer does: they find it armed, and the store re-arms or cancels it.
        self._wheel.file(due, deadlines[due])
        owner = groups_of(due, self._members["group"])
        _, first = np.unique(owner, return_index=True)
        rows = owner[np.sort(first)]
        for start in range(0, len(rows), _GROUPS_AT_ONCE):
            if len(self._verdicts) >= self._limits.verdicts_max:
                self._counts["groups_deferred"] += len(rows) - start
                return
            done = []
            for loaded in self._workshop.load(np.sort(rows[start : start + _GROUPS_AT_ONCE])):
                loaded.machine.advance(clock)
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
