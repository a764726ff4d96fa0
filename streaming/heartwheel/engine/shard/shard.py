"""The shard: one coordinator partition with its groups, their members and one timing wheel.

A batch goes through it in steps:

1. *time*: the readings of the batch show how far every partition has come, and which gaps were outages; outages split
   the batch in the order of time;
2. *route*: each distinct value is looked up by its fingerprint; unknown values are decoded. Records that may follow
   something unread wait in the state;
3. *fast path*: groups with only known heartbeats, and without a timer that falls due in the batch, are kept alive with
   a few array operations; new members with plain heartbeats are added before;
4. *rules path*: every other group is run event by event through its `GroupMachine`;
5. *timers*: the wheel is advanced, and each group with a due timer is run up to its own time;
6. *outage*: the sessions of its partition restart, before any record after it.

The list of verdicts of a group is a function of the log alone. It depends neither on how the log was cut into batches,
nor on how far its partitions were read in each, nor on which path a group took (`test_shard_paths.py`,
`test_shard_crowds.py`, `test_shard_time.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.manager import AnyGroup
from heartwheel.engine.shard.admission import Admission
from heartwheel.engine.shard.arrivals import ArrivingCrowd, take_out
from heartwheel.engine.shard.batch import Batch, BatchResult
from heartwheel.engine.shard.block_files import BlockFiles
from heartwheel.engine.shard.codec import ShardState, decode_state, encode_state, new_state
from heartwheel.engine.shard.fast_path import Route, keep_alive, mark_busy
from heartwheel.engine.shard.figures import ShardFigures
from heartwheel.engine.shard.group_runner import GroupRunner
from heartwheel.engine.shard.group_times import GroupTimes
from heartwheel.engine.shard.handles import group_deadlines, member_deadlines, member_handle
from heartwheel.engine.shard.heartbeats import Heartbeats
from heartwheel.engine.shard.limits import ShardLimits
from heartwheel.engine.shard.listing import Listed, ListedRebalance, page_of, rebalancing
from heartwheel.engine.shard.log import BatchLog, not_before
from heartwheel.engine.shard.pack import Bodies, Pack, in_order_of_time, select
from heartwheel.engine.shard.pending_renewals import PendingRenewals
from heartwheel.engine.shard.refiling import renumber_members, shaped
from heartwheel.engine.shard.router import Router
from heartwheel.engine.shard.rules_path import GroupLoader
from heartwheel.engine.time import Outage, Reading
from heartwheel.engine.time.log_time import UNKNOWN_MS
from heartwheel.wire.requests import is_group_heartbeat
from heartwheel.wire.verdicts import Verdict
from timing_wheel import TIME_MS_MAX

Ints = NDArray[np.int64]


class Shard:
    """One coordinator partition.

    Args:
        tick_ms: resolution of the wheel, ms; by default, that in the blob.
        wheel_size: buckets a level of the wheel; by default, that in the blob.
        outage_min_ms: shortest gap in a partition that may be an outage, ms.
        counts: the known partition counts of the topic since the job was first started, ascending; later ones are
            learned from the topic.
        partitions_max: the most partitions that a tick may name; `None` for any number.
        blob: the state from `encode`, or empty for a new shard.
        files: where blocks of a large state lie; `None` to keep all of it in the blob.

    Raises:
        StateBlobError: if the blob cannot be read.
    """

    def __init__(  # noqa: PLR0913 - each is said by name
        self,
        *,
        coordinator: CoordinatorConfig,
        limits: ShardLimits,
        tick_ms: int | None = None,
        wheel_size: int | None = None,
        outage_min_ms: int = 3_000,
        counts: Sequence[int] = (),
        partitions_max: int | None = None,
        blob: str = "",
        files: BlockFiles | None = None,
    ) -> None:
        self._limits, self._outage_min_ms = limits, outage_min_ms
        self._counts, self._partitions_max = counts, partitions_max
        state = decode_state(blob, files) if blob else new_state(files)
        self._members, self._groups = state.members, state.groups
        self._wheel = shaped(state.wheel, tick_ms, wheel_size)
        self._files, self._fingerprints = files, state.fingerprints
        # The heartbeats of members that left have a limit of their own and must not keep others out.
        self._heavy = len(blob) + self.filed_bytes - state.kept_bytes >= limits.state_bytes_max
        groups_max = 0 if self._heavy else limits.groups_max
        self._router = Router(self._members, self._groups, groups_max, limits.members_max)
        self.time = state.time
        self._group_times = GroupTimes(self._groups, state.elsewhere, state.sources)
        self._waiting = state.waiting
        self._pending = PendingRenewals(self._groups, self._group_times, state.pending_renewals)
        self._encoded = state.encoded
        self.totals: Counter[str] = Counter(state.counts)
        self._verdicts: list[Verdict] = []
        where = (self._members, self._groups, self._wheel, coordinator, self._verdicts.append)
        self._loader, self._arrivals = GroupLoader(*where), ArrivingCrowd(*where)
        self._sessions = state.sessions
        self._heartbeats = Heartbeats(state.kept)
        self._runner = GroupRunner(
            self._members,
            self._groups,
            self._wheel,
            self._loader,
            self._router,
            limits,
            self._heartbeats,
            self._group_times,
        )

    @property
    def member_count(self) -> int:
        """The number of members, pending ones included."""
        return len(self._members)

    @property
    def group_count(self) -> int:
        """The number of groups, those without members included."""
        return len(self._groups)

    @property
    def filed_bytes(self) -> int:
        """The size of the blocks of the state that lie in files, bytes; as of the last `encode`."""
        return 0 if self._files is None else self._files.filed_bytes

    def listed(self, size: int) -> list[Listed]:
        """Return one page of the groups; after each batch the next one."""
        return page_of(self._groups, self._members, self.totals["batches"], size)

    def rebalancing(self, most: int, names_max: int) -> list[ListedRebalance]:
        """Return the groups that rebalance, each with the first members that it waits for."""
        return rebalancing(self._groups, self._members, self._loader, most, names_max)

    @property
    def clock_ms(self) -> int:
        """The time up to which every partition is decided, epoch ms; -1 while nothing was read from one of them."""
        return self.time.clock_ms()

    @property
    def newest_ms(self) -> int:
        """Time of the newest record read from any partition, epoch ms; -1 if there was none."""
        return self.time.newest_ms()

    def stalled(self) -> list[tuple[int, int]]:
        """The partitions that are far behind the newest, and the time up to which each is decided, the oldest first."""
        return self.time.stalled()

    @property
    def waiting_count(self) -> int:
        """The number of records that wait until what comes before them has been read."""
        return sum(len(pack.entry) for pack in self._waiting)

    @property
    def figures(self) -> ShardFigures:
        """The shard's figures; they always show its present state."""
        return ShardFigures(self._members, self._groups, self._wheel)

    def dump(self) -> list[tuple[AnyGroup, bool]]:
        """Return every group with its members, decoded for people; the shard itself is not changed."""
        return [(loaded.group, loaded.machine.is_forgettable()) for loaded in self._loader.load(self._groups.used())]

    def encode(self) -> str:
        """Encode the state; `Shard(blob=...)` continues from it."""
        if self._members.wasteful():
            renumber_members(self._members, self._wheel)
            self._router.forget()
        if self._heavy:
            # A shard that is full only with kept heartbeats of members that left must not stay full
            # (`test_p6_state_bytes_max`).
            self._members.drop_free_text()
            self._groups.drop_free_text()
        return encode_state(
            ShardState(
                self._members,
                self._groups,
                self._wheel,
                dict(self.totals),
                self.time,
                self._group_times.elsewhere(),
                self._group_times.sources(),
                self._waiting,
                self._pending.state(),
                self._encoded,
                self._heartbeats.state(),
                self._files,
                self._fingerprints,
                sessions=self._sessions,
            )
        )

    def apply(
        self, packs: Sequence[Pack], readings: Sequence[Reading], relayed: Sequence[tuple[str, Pack]] = ()
    ) -> BatchResult:
        """Apply the records of a batch, and fire what is due by the time that it proves.

        Args:
            readings: the read positions of each partition, whichever shard they were for; at least of every partition
                of the packs.
            relayed: the records of feeds, with the feed's name; their times are those of the feed.
        """
        batch = self._begin()
        floors = self.time.watermarks()
        outages = self.time.read(
            readings, outage_min_ms=self._outage_min_ms, counts=self._counts, partitions_max=self._partitions_max
        )
        from_feeds = [pack._replace(partition=self.time.source(feed)) for feed, pack in relayed]
        batch.counts["records"] += sum(len(pack.entry) for pack in (*packs, *from_feeds))
        batch.counts["values_without_bytes"] += sum(len(pack.fingerprints) - len(pack.bodies) for pack in packs)
        timed = (part for pack in packs for part in self._without_untimed(not_before(pack, floors), batch))
        packs = [*self._waiting, *timed, *from_feeds]
        decided = self.time.with_feeds(self.time.decided())
        for outage in outages:
            packs = self._step(packs, decided, batch, until_ms=outage.before_ms)
            self._runner.renew(self._pending.add(outage, self.time, decided), outage, batch)
            batch.counts[f"outage_{outage.kind}"] += not outage.group_id
        self._waiting = self._step(packs, decided, batch)
        while self._run_pending_renewals(decided, batch):
            self._waiting = self._step(self._waiting, decided, batch)
        self._waiting = [self._with_bytes(pack) for pack in self._waiting]
        batch.counts["heartbeats_forgotten"] += self._heartbeats.forgotten
        return self._end(batch, outages)

    def _without_untimed(self, pack: Pack, batch: Batch) -> list[Pack]:
        """Remove records before the first append time of their partition, because their time is unknown.

        A partition begins with the first record that has an append time, as if its first records had been deleted.
        """
        if int(pack.append_ms[0]) != UNKNOWN_MS:
            return [pack]
        timed = pack.append_ms != UNKNOWN_MS
        batch.counts["records_unplaced"] += int(np.count_nonzero(~timed))
        self._with_bytes(select(pack, ~timed))  # their heartbeats may be repeated without their bytes
        return [select(pack, timed)] if timed.any() else []

    def _with_bytes(self, pack: Pack) -> Pack:
        """Return a pack of waiting records with all its bytes: they may wait for longer than heartbeats are kept."""
        log = BatchLog([pack], self._heartbeats)
        rows = self._router.find(pack.fingerprints)
        without = np.arange(len(rows)) >= len(pack.bodies)
        known = np.flatnonzero(without & (rows >= 0))
        known_heartbeats = dict(zip(known.tolist(), self._loader.heartbeats(rows[known]), strict=True))
        bodies = []
        for entry, (fingerprint, row) in enumerate(zip(pack.fingerprints.tolist(), rows.tolist(), strict=True)):
            bodies.append(known_heartbeats[entry].value() if entry in known_heartbeats else log.body(entry))
            if row < 0 and fingerprint and not is_group_heartbeat(bodies[-1]):
                self._heartbeats.keep(fingerprint, bodies[-1])
        return pack._replace(bodies=Bodies.of(bodies))

    def _begin(self) -> Batch:
        self._verdicts.clear()
        self._heartbeats.begin(self.totals["batches"] + 1)
        if self._sessions != self._loader.sessions:
            self._loader.clear_epoch_fingerprints()
            self._router.forget()
            self._sessions = self._loader.sessions
        admission = Admission(self._limits, heavy=self._heavy, members=len(self._members))
        return Batch(self._verdicts, admission, Counter(batches=1))

    def _end(self, batch: Batch, outages: list[Outage]) -> BatchResult:
        result = batch.result(outages)
        self.totals.update(result.counts)
        refused = [one._replace(partition=self.time.partition_of(one.partition)) for one in result.refused]
        return result._replace(refused=refused)

    def count(self, outcome: BatchResult, more: Counter[str]) -> None:
        """Add counts from outside the rules, such as rejected records, to a batch and to the totals."""
        outcome.counts.update(more)
        self.totals.update(more)

    def _step(self, packs: list[Pack], decided: Ints, batch: Batch, *, until_ms: int = TIME_MS_MAX) -> list[Pack]:
        """Apply the records up to a time before which nothing is unread, and fire the timers that are due by then.

        Args:
            decided: int64 (sources,), the time up to which each is decided, epoch ms.
            batch: changed in place.
            until_ms: records after that time wait, epoch ms.

        Returns:
            The records that wait.
        """
        reached = np.minimum(decided, until_ms)
        packs = _ascending(packs)
        packs, rest = self._split_at(packs, until_ms)
        late = self._apply_ripe(packs, decided, reached, batch)
        self._runner.fire(int(reached.max(initial=0)), self._times(reached), batch)
        forgotten = self._pending.find_forgotten()
        if late and self._may_apply_more(late, forgotten=forgotten):
            return self._step([*late, *rest], decided, batch, until_ms=until_ms)
        return [*late, *rest]

    def _split_at(self, packs: list[Pack], until_ms: int) -> tuple[list[Pack], list[Pack]]:
        """Split records into those up to a time, epoch ms, and the later ones.

        The later ones must not be routed yet: where a group is seen after an outage does not show where it was before.
        """
        if until_ms == TIME_MS_MAX:
            return packs, []
        log = BatchLog(packs, self._heartbeats)
        return log.split(log.append_ms <= until_ms)

    def _apply_ripe(self, packs: list[Pack], decided: Ints, reached: Ints, batch: Batch) -> list[Pack]:
        """Apply the records before which everything of their groups has been read; return the others."""
        late: list[Pack] = []
        log = BatchLog(packs, self._heartbeats)
        if not len(log):
            return late
        route = self._router.route(log)
        self._group_times.note(log, route)
        self._pending.carry_over(log, route)
        until = self._group_times.until(log, route, self.time, decided)
        self._pending.cap_entries(until, route)
        ripe = log.append_ms <= until[log.entry]
        if not ripe.all():
            packs, late = log.split(ripe)
            log = BatchLog(packs, self._heartbeats)
            route = self._router.route(log)
        if len(log):
            self._apply_log(log, route, self._times(reached), reached, batch)
        return late

    def _may_apply_more(self, late: list[Pack], *, forgotten: bool) -> bool:
        """Return whether waiting records may be applied now, because groups have been forgotten since they were split.

        Such a group begins again with its waiting records, which show where it was seen. It then waits for fewer
        partitions than before, or for no renewal.

        Args:
            forgotten: whether a group with a pending renewal has been forgotten.
        """
        waiting = BatchLog(late, self._heartbeats)
        route = self._router.route(waiting)
        self._group_times.note(waiting, route)
        return self._pending.carry_over(waiting, route) or forgotten

    def _times(self, decided: Ints) -> Ints:
        """Return the time of every group, epoch ms; a pending renewal limits it to the beginning of the outage."""
        times = self._group_times.times(self.time, decided)
        self._pending.cap(times)
        return times

    def _run_pending_renewals(self, decided: Ints, batch: Batch) -> bool:
        """Renew the sessions of groups of which all up to an outage has been read; return whether there were any."""
        paid = list(self._pending.pop_ready(self.time, decided))
        for rows, outage in paid:
            self._runner.renew(rows, outage, batch)
        self._pending.find_forgotten()
        return bool(paid)

    def _apply_log(self, log: BatchLog, route: Route, times: Ints, reached: Ints, batch: Batch) -> None:
        if not self._wheel.clock_ms:
            # A new wheel starts at the log's time, so that its first deadlines are filed on fine levels.
            self._wheel.advance(max(0, int(log.append_ms.min())))
        batch.counts["records_astray"] += self._router.count_strays(log, route.group)
        arriving = take_out(log, route, self._groups)
        mark_busy(
            log,
            route,
            self._members,
            self._groups,
            member_deadlines(self._wheel, self._members.rows),
            group_deadlines(self._wheel, self._groups.rows),
        )
        if len(arriving) and self._arrivals.admit(log, route, batch.admission):
            self._router.forget()
        alive = keep_alive(log, route, self._groups)
        self._members["seen_ms"][alive.rows] = alive.seen_ms
        self._wheel.file(member_handle(alive.rows), alive.seen_ms + self._members["timeout_ms"][alive.rows])
        self._group_times.add_sources(log, route)
        batch.counts["records_fast"] += alive.records
        batch.counts["records_clamped"] += alive.clamped
        self._runner.apply(log, route, times, partial(self.time.relayed_until_ms, reached), batch)


def _ascending(packs: list[Pack]) -> list[Pack]:
    """Sort the records of each feed by their times; those of a partition are sorted already."""
    from_feeds: dict[int, list[Pack]] = {}
    for pack in packs:
        if pack.partition < 0:
            from_feeds.setdefault(pack.partition, []).append(pack)
    return (
        [*(pack for pack in packs if pack.partition >= 0), *map(in_order_of_time, from_feeds.values())]
        if from_feeds
        else packs
    )
