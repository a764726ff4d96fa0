"""In which order the records of a group count, and up to when its timers may run: by the log alone.

Records of one group in several partitions are merged by effective time, partition and offset. So a record waits until
every partition that the group writes to has been read beyond it: those in which it was seen, and the one that its id
hashes to. The *time of a group* is the least of theirs.

An outage of a partition stands right after its begin: what ended before has fired, and every timer that runs then
starts anew at its end, before any later record of the group, in whichever partition that is.

A group that feeds pass on is read from their sources in place of partitions (`heartwheel.audit.fed`), in the partitions
where it was told of and in the one that its id hashes to. Of several feeds one that has written no mark for long is
waited for no more, and none where it has long ceased to write. What a feed has missed is an outage to its groups, after
which their time goes on from its end.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from heartwheel.audit.config import AuditConfig
from heartwheel.audit.fed import GONE_AFTER_MS, HEARS_WITHIN_MS, UNMET, FeedMark, Source
from heartwheel.audit.fed_sources import FIRST_SOURCE, FedSources
from heartwheel.audit.partitions import Outage, Partition, home_of
from heartwheel.audit.rules.groups import is_gone, next_deadline_ms
from heartwheel.audit.rules.model import NEVER
from heartwheel.audit.state import Held, State, Waiting
from heartwheel.audit.ticks import Tick
from heartwheel.wire.requests import Request, decode_accepted_request, encode_request

_RECORD, _OUTAGE = range(2)
_ANY_HOME = 2**31


class Timeline:
    """Bring what is read into the order in which it counts.

    Args:
        state: what the audit knows; changed in place.
        config: what the audited job was set to.
        use: applies a record to its group.
        renew: applies an outage to a group.
        moves: lets a group go over to another source if an event of that says so; tells whether the event counts.
        advance: runs a group's timers up to a moment.

    Attributes:
        fed: the sources of feeds.
    """

    def __init__(
        self,
        state: State,
        config: AuditConfig,
        *,
        use: Callable[[Held, Waiting, Request], None],
        renew: Callable[[Held, Outage], None],
        moves: Callable[[Held, int, int, Request], bool],
        advance: Callable[[Held, int], None],
    ) -> None:
        self._state = state
        self.fed = FedSources(state)
        self._config = config
        self._use = use
        self._renew = renew
        self._moves = moves
        self._advance = advance

    # What is read

    def read(self, partition: int, append_ms: int, tick: Tick | None) -> int:
        """Let time pass in a partition by its next record; return the record's effective time, epoch ms.

        Args:
            partition: which.
            append_ms: the record's own append time, epoch ms; negative if it has none.
            tick: what it says, if it is a tick.

        Returns:
            Negative before the first append time of the partition.
        """
        config, state = self.config, self._state
        part = self._partition(partition)
        is_new = part.watermark_ms < 0 <= append_ms
        if append_ms < 0:
            state.counts["untimed"] = state.counts.get("untimed", 0) + 1
        elif append_ms < part.watermark_ms:
            state.counts["clamped"] = state.counts.get("clamped", 0) + 1
        runs = config.runs
        outages = part.read(append_ms, tick, runs=runs, outage_min_ms=config.outage_min_ms)
        believed = tick is not None and tick.run and (not runs or tick.run in runs)
        named = tick.partitions if tick and believed and tick.partitions <= state.partitions_max else 0
        count = max(state.partition_counts[-1], partition + 1, named)
        if count > state.partition_counts[-1]:
            state.partition_counts.append(count)
            is_new = True
        if is_new:
            state.grown_ms = max(state.grown_ms, part.watermark_ms)
        if named:
            self.fed.note_growth(named, self.least_ms())
        if outages:
            self._place_outages(outages)
        return part.watermark_ms

    def source(self, feed: str, partition: int) -> Source:
        """Find a feed's source in a partition; one that was not met before gets a number."""
        sources = self._state.sources
        for known in sources:
            if (known.feed, known.partition) == (feed, partition):
                return known
        written_ms = self._partition(partition).watermark_ms
        source = Source(FIRST_SOURCE - len(sources), feed, partition, written_ms=written_ms)
        self._note_behind(source)
        sources.append(source)
        for held in list(self._state.groups.values()):
            # Those that have waited for the feed to come here wait for its marks from now on.
            if held.parts and held.parts[0] < 0 and partition in self._places(held):
                self._run(held)
        return source

    def mark(self, mark: FeedMark, partition: int, time_ms: int, append_ms: int) -> None:
        """Take a mark of a feed that is believed, and run the feed's groups as far as it lets them.

        Args:
            mark: what it says.
            partition: where it is.
            time_ms: its effective append time, epoch ms.
            append_ms: its own, epoch ms.
        """
        if append_ms < 0:
            return  # how far ahead of its time it is cannot be told; the next one says the same
        source = self.source(mark.feed, partition)
        if self.fed.is_gone(source.number):
            self._note_behind(source)
        if missed := source.read(mark, time_ms, append_ms):
            self._place_outages(missed, "missed_by_feeds")
        ready = []
        while source.due and source.due[0][0] <= source.passed_ms:
            moment_ms, group_id = heapq.heappop(source.due)
            held = self._state.groups.get(group_id)
            if held is not None and held.filed.get(source.number) == moment_ms:
                del held.filed[source.number]
                ready.append(held)
        # One that the feed holds back is filed again under a moment that has passed, so that the next mark runs it.
        for held in ready:
            self._run(held)

    def partition_of(self, number: int) -> int:
        """Name the partition of the heartbeat topic that a partition or a source is."""
        return number if number >= 0 else self.fed.source(number).partition

    def is_fed(self, group_id: str) -> bool:
        """Tell whether a group is one that feeds pass on."""
        held = self._state.groups.get(group_id)
        return held is not None and bool(held.parts) and held.parts[0] < 0

    def put(self, held: Held, place: Waiting, event: Request) -> None:
        """Take a record of a group: it is applied now, or once nothing can come before it.

        Args:
            held: the group.
            place: where the record stands.
            event: what it says.
        """
        partition = place.partition
        if partition not in held.parts:
            held.parts.append(partition)
            if (partition < 0) is not (held.parts[0] < 0):
                held.unknown = True  # it is passed on, and speaks for itself: two times that have no common order
        if partition < 0:
            self._wait(held, place, event)
            return
        part = self._state.partitions[partition]
        alone = len(held.parts) == 1 and self._home(held) == partition
        if alone and not held.waiting and not part.gaps:
            self._use(held, place, event)
            self.file(held)
            return
        self._wait(held, place, event)

    def _wait(self, held: Held, place: Waiting, event: Request) -> None:
        entry = (place.time_ms, _RECORD, place.partition, place.offset, encode_request(event))
        applied = (held.newest_ms, _RECORD, held.newest_from)
        if (
            len(held.parts) > 1
            and place.partition < 0
            and any(other[0] == entry[0] and other[2] != entry[2] for other in (*held.waiting, applied))
        ):
            held.unknown = True  # two brokers in one millisecond: nothing says which was first
        if place.partition < 0 and self._is_too_late(held, place):
            held.unknown = True  # how far it went without this feed, the ends of the job's batches decided
        heapq.heappush(held.waiting, entry)
        self._run(held)

    def go_on(self, partition: int) -> None:
        """Run every group for which a partition has come far enough."""
        part = self._state.partitions[partition]
        while part.due and part.due[0][0] <= part.decided_ms:
            moment_ms, group_id = heapq.heappop(part.due)
            held = self._state.groups.get(group_id)
            if held is not None and held.filed.get(partition) == moment_ms:
                del held.filed[partition]
                self._run(held)

    # How far things are

    @property
    def config(self) -> AuditConfig:
        """What the audited job was set to."""
        return self._config

    def time_of(self, held: Held) -> int:
        """Tell up to when all that a group wrote was read, epoch ms."""
        now_ms = min(self._decided_ms(part, held.group.group_id) for part in self._parts(held))
        if held.parts and held.parts[0] < 0:
            # Nothing was heard of it since: it may have moved to a broker whose feed is behind.
            everywhere = min((self._decided_ms(number) for number in self._living(held)), default=NEVER)
            now_ms = min(now_ms, max(held.group.now_ms, everywhere))
        return now_ms

    def settled_ms(self, group_id: str) -> int:
        """Tell up to when nothing can change any more for a group, epoch ms."""
        held = self._state.groups.get(group_id)
        if held is None:
            return self._decided_ms(home_of(group_id, self._state.partition_counts[-1]))
        # Between partitions a record of the very millisecond may still come first.
        return self.time_of(held) - (len(self._parts(held)) > 1)

    def passed_by_all_ms(self, group_id: str) -> int:
        """Tell up to when nothing of a group that feeds pass on can come any more from any of them, epoch ms."""
        held = self._state.groups[group_id]
        numbers = {*self._parts(held), *self._living(held)}
        return min(self._decided_ms(number, group_id) for number in numbers)

    def passed_on_ms(self, seen: list[int], group_id: str) -> int:
        """Tell up to when the feed of the last of some sources has passed on everything of a group, epoch ms."""
        mine = [number for number in seen if self.fed.is_same(number, seen[-1])]
        return min(self._decided_ms(number, group_id) for number in mine)

    def least_ms(self) -> int:
        """Tell up to when everything is known of every partition, epoch ms."""
        read = [part.decided_ms for part in self._state.partitions.values() if part.watermark_ms >= 0]
        return min(read, default=-1)

    def is_stray(self, held: Held) -> bool:
        """Tell whether a group is in several partitions, and not because the topic has grown.

        One that feeds pass on is as one that is, if one of them said too late what happened.
        """
        if held.parts and held.parts[0] < 0:
            return held.unknown
        homes = {held.hash % count for count in self._state.partition_counts if count}
        return len(held.parts) > 1 and not homes.issuperset(held.parts)

    # Inside

    def _partition(self, number: int) -> Partition:
        part = self._state.partitions.get(number)
        if part is None:
            part = self._state.partitions[number] = Partition(number)
        return part

    def _note_behind(self, source: Source) -> None:
        """Note how far groups may have gone without a feed that is new, or was gone."""
        others = (other.passed_ms for other in self._state.sources if other.partition == source.partition)
        source.behind_ms = max(others, default=-1)

    def _is_too_late(self, held: Held, place: Waiting) -> bool:
        """Tell whether a group's time may be beyond an event, and not as a feed of it had missed something then."""
        source, time_ms = self.fed.source(place.partition), place.time_ms
        now_ms = max(held.group.now_ms, held.newest_ms)
        if now_ms <= 0:
            # What is forgotten may have come as far as the feed had.
            now_ms = source.passed_of(held.group.group_id)
        if self.fed.is_gone(source.number):
            self._note_behind(source)
        _, from_ms, to_ms = held.missed
        falls_into_it = from_ms < time_ms and now_ms == to_ms
        return time_ms < source.behind_ms or (time_ms < now_ms and not falls_into_it)

    def _living(self, held: Held) -> list[int]:
        """List the sources of all feeds of a group's partitions that are not gone, `UNMET` for one yet to write."""
        places = self._places(held)
        names = dict.fromkeys(source.feed for source in self._state.sources if source.partition in places)
        return [number for name in names for number in self.fed.of_feed(name, places)]

    def _places(self, held: Held) -> set[int]:
        """List the partitions in which a group that feeds pass on may be told of."""
        # Where a record shows that there are more before a tick does, what the ticks name is the count before.
        counts = (*self._state.former, self._state.named)
        homes = {self._home(held), *(held.hash % count for count in counts if count)}
        return homes.union(self.partition_of(number) for number in held.parts)

    def _decided_ms(self, partition: int, group_id: str = "") -> int:
        if partition < UNMET:
            return self.fed.source(partition).passed_of(group_id)
        part = self._state.partitions.get(partition)
        return -1 if part is None else part.decided_ms

    def _home(self, held: Held) -> int:
        if held.hash < 0:
            held.hash = home_of(held.group.group_id, _ANY_HOME)
        return held.hash % self._state.partition_counts[-1]

    def _parts(self, held: Held) -> list[int]:
        if held.parts and held.parts[0] < 0:
            places = self._places(held)
            feeds = self.fed.names(held.parts)
            living = [part for part in held.parts if part >= 0]
            living += [number for feed in feeds for number in self.fed.of_feed(feed, places)]
            return living or [source.number for feed in feeds for source in self.fed.written_by(feed, places)]
        home = self._home(held)
        return held.parts if home in held.parts else [*held.parts, home]

    def _place_outages(self, outages: list[Outage], counted: str = "outages") -> None:
        """Place the outages that one tick or mark proves, all of them before any group goes on."""
        counts = self._state.counts
        counts[counted] = counts.get(counted, 0) + len(outages)
        for held in list(self._state.groups.values()):
            wanted = ("", held.group.group_id)
            mine = [each for each in outages if each.partition in held.parts and each.group_id in wanted]
            for outage in mine:
                entry = (outage.from_ms, _OUTAGE, outage.partition, outage.to_ms, b"")
                heapq.heappush(held.waiting, entry)
            if mine:
                self._run(held)

    def _run(self, held: Held) -> None:
        """Apply what nothing can come before, and run the timers as far as the group's time has come."""
        was_there = not is_gone(held.group)
        while held.waiting and self._blocking(held) is None:
            time_ms, kind, partition, number, value = heapq.heappop(held.waiting)
            if kind == _OUTAGE:
                self._advance(held, time_ms)
                self._renew(held, Outage(time_ms, number, partition))
            else:
                event = decode_accepted_request(value)
                # First where it moves, for from then on it is another source that ends its sessions.
                counts = partition >= 0 or not held.seen or self._moves(held, partition, time_ms, event)
                if partition < 0:
                    self._note_fed(held, time_ms, partition)
                if counts:
                    self._use(held, Waiting(time_ms, partition, number), event)
        now_ms = self.time_of(held)
        if next_deadline_ms(held.group) <= now_ms:
            self._advance(held, now_ms)
        if was_there and held.parts[0] < 0 and is_gone(held.group):
            # It was forgotten by then; what another feed tells of before comes too late for it.
            held.newest_ms = max(held.newest_ms, now_ms)
        self.file(held)

    def _note_fed(self, held: Held, time_ms: int, source: int) -> None:
        """Note an event that a feed passes on, before it is applied."""
        if len(self.fed.names(held.parts)) > 1 and held.newest_ms >= 0:
            self._advance(held, time_ms)
            if is_gone(held.group):
                held.unknown = True  # it was forgotten, and which feeds had told of it, too; not so in any batch
        if time_ms >= held.newest_ms:
            held.newest_ms, held.newest_from = time_ms, source

    def _blocking(self, held: Held) -> tuple[int, int] | None:
        """Name what the first of a group waits for: a partition, and how far it has to come, epoch ms."""
        time_ms, kind, partition, _, _ = held.waiting[0]
        for other in self._parts(held):
            # Of one millisecond the lower partition comes first, and an outage last.
            needed_ms = time_ms + (other < partition or (kind == _OUTAGE and other != partition))
            if kind == _OUTAGE and other == partition < 0:
                continue  # the mark that tells it may hold the group back at a moment before
            if self._decided_ms(other, held.group.group_id) < needed_ms:
                return other, needed_ms
        return None

    def file(self, held: Held) -> None:
        """Have a group run again as soon as anything can happen to it, or drop it if it is like one never seen."""
        if held.waiting and (blocking := self._blocking(held)):
            self._file_under(held, *blocking)
        deadline = next_deadline_ms(held.group)
        if deadline != NEVER:
            parts = self._parts(held)
            if parts[0] < 0:
                parts = [*parts, *self._living(held)]
            last = min(parts, key=lambda part: self._decided_ms(part, held.group.group_id))
            self._file_under(held, last, deadline)
        elif not held.waiting and is_gone(held.group) and len(held.parts) == 1:
            fed = held.parts[0] < 0
            behind = [each for each in self._living(held) if self._decided_ms(each) <= held.newest_ms] if fed else ()
            if behind:
                # Another feed may still tell what came before.
                self._file_under(held, behind[0], held.newest_ms + 1)
                return
            if held.parts[0] < 0 and held.unknown:
                return  # what is written of it is put aside, also once there is nobody left in it
            del self._state.groups[held.group.group_id]

    def _file_under(self, held: Held, partition: int, moment_ms: int) -> None:
        if partition == UNMET:
            # Once the feed comes there it runs the group; else as soon as it is plain that it never will.
            written_ms = [source.written_ms + GONE_AFTER_MS for source in self._state.sources]
            for place in self._places(held):
                for last_ms in (self._state.grown_ms + HEARS_WITHIN_MS, *written_ms):
                    if last_ms >= self._partition(place).watermark_ms:
                        self._file_under(held, place, last_ms + 1)
        elif moment_ms < held.filed.get(partition, NEVER):
            held.filed[partition] = moment_ms
            due = self._partition(partition).due if partition >= 0 else self.fed.source(partition).due
            heapq.heappush(due, (moment_ms, held.group.group_id))
        if partition < 0 and len(self._state.sources) > 1:
            # Once a feed is gone, in every partition where it is waited for, the group goes on without it.
            for number in {partition, *self._parts(held), *self._living(held)}:
                if number < UNMET and not self.fed.is_gone(number):
                    source = self.fed.source(number)
                    self._file_under(held, source.partition, source.written_ms + GONE_AFTER_MS + 1)
