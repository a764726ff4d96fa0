"""The order of the records of a group, and up to when its timers may run, by the log alone.

Records of one group in several partitions are merged by effective time, partition and offset. So a record waits until
every partition of the group has been read beyond it: those in which it was seen, and the one that its id hashes to. The
*clock of a group* is the minimum of theirs.

An outage of a partition counts at its begin: timers that ended before have fired. Every timer that runs then starts
again at the end of the outage, before any later record of the group in any partition.

A group that feeds relay is read from their sources instead of partitions (`heartwheel.proof.audit.fed`). Of several
feeds, the audit does not wait for one that has written no mark for long. A span that a feed has missed is an outage for
its groups, after which their clock continues from its end.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from heartwheel.proof.audit.config import AuditConfig
from heartwheel.proof.audit.fed import FIRST_SOURCE, PLACE_OF_FEEDS, SILENT_AFTER_MS, AuditedFeedMark, FeedSource
from heartwheel.proof.audit.partitions import AuditedOutage, Partition, home_of
from heartwheel.proof.audit.rules.groups import is_forgotten, next_deadline_ms
from heartwheel.proof.audit.rules.model import NEVER
from heartwheel.proof.audit.state import AuditState, GroupNotes, RecordPlace
from heartwheel.proof.audit.ticks import AuditedTick
from heartwheel.wire.requests import Request, decode_accepted_request, encode_request

_RECORD, _OUTAGE = range(2)
_ANY_HOME = 2**31


class Timeline:
    """The order of all records, outages and timers of all groups.

    Args:
        state: the audit's state; changed in place.
        move: moves a group to another source if an event of that source says so; returns whether the event counts.
        advance: runs a group's timers up to a moment.
    """

    def __init__(
        self,
        state: AuditState,
        config: AuditConfig,
        *,
        use: Callable[[GroupNotes, RecordPlace, Request], None],
        renew: Callable[[GroupNotes, AuditedOutage], None],
        move: Callable[[GroupNotes, int, int, Request], bool],
        advance: Callable[[GroupNotes, int], None],
    ) -> None:
        self._state = state
        self._config = config
        self._use = use
        self._renew = renew
        self._move = move
        self._advance = advance

    # Records

    def read(self, partition: int, append_ms: int, tick: AuditedTick | None) -> int:
        """Advance the time of a partition by its next record; return the record's effective time, epoch ms.

        Args:
            append_ms: the record's own append time, epoch ms; negative if it has none.
            tick: the decoded tick, if it is a tick.

        Returns:
            The effective time; negative before the first append time of the partition.
        """
        config, state = self.config, self._state
        part = self._partition(partition)
        if append_ms < 0:
            state.count("untimed")
        elif append_ms < part.watermark_ms:
            state.count("clamped")
        runs = config.runs
        outages = part.read(append_ms, tick, runs=runs, outage_min_ms=config.outage_min_ms)
        believed = tick is not None and tick.run and (not runs or tick.run in runs)
        named = tick.partitions if tick and believed and tick.partitions <= state.partitions_max else 0
        count = max(state.partition_counts[-1], partition + 1, named)
        if count > state.partition_counts[-1]:
            state.partition_counts.append(count)
        if outages:
            self._place_outages(outages)
        return part.watermark_ms

    def source(self, feed: str) -> FeedSource:
        """Return a feed's source; a new one gets a number."""
        sources = self._state.sources
        for known in sources:
            if known.feed == feed:
                return known
        written_ms = self._partition(PLACE_OF_FEEDS).watermark_ms
        source = FeedSource(FIRST_SOURCE - len(sources), feed, written_ms=written_ms)
        self._note_behind(source)
        sources.append(source)
        return source

    def mark(self, mark: AuditedFeedMark, time_ms: int, append_ms: int) -> None:
        """Read a mark of a believed feed, and run the feed's groups as far as it allows.

        Args:
            time_ms: its effective append time, epoch ms.
        """
        if append_ms < 0:
            return  # how far ahead it is cannot be checked; the next mark repeats it
        source = self.source(mark.feed)
        if self._is_silent(source):
            self._note_behind(source)
        if missed := source.read(mark, time_ms, append_ms):
            self._place_outages(missed, "missed_by_feeds")
        ready = []
        while source.due and source.due[0][0] <= source.passed_ms:
            moment_ms, group_id = heapq.heappop(source.due)
            notes = self._state.groups.get(group_id)
            if notes is not None and notes.filed.get(source.number) == moment_ms:
                del notes.filed[source.number]
                ready.append(notes)
        # A group that the feed holds back is filed again under a past moment, so that the next mark runs it.
        for notes in ready:
            self._run(notes)

    def partition_of(self, number: int) -> int:
        """Return the partition of the heartbeat topic for the number of a partition or a source."""
        return number if number >= 0 else PLACE_OF_FEEDS

    def is_fed(self, group_id: str) -> bool:
        """Return whether feeds relay a group."""
        notes = self._state.groups.get(group_id)
        return notes is not None and bool(notes.parts) and notes.parts[0] < 0

    def put(self, notes: GroupNotes, place: RecordPlace, event: Request) -> None:
        """Add a record of a group. It is applied now, or once no earlier record can follow."""
        partition = place.partition
        if partition not in notes.parts:
            notes.parts.append(partition)
            if (partition < 0) is not (notes.parts[0] < 0):
                notes.unknown = True  # its members write, too: a feed's times and theirs have no common order
        if partition < 0:
            self._wait(notes, place, event)
            return
        part = self._state.partitions[partition]
        alone = len(notes.parts) == 1 and self._home(notes) == partition
        if alone and not notes.waiting and not part.gaps:
            self._use(notes, place, event)
            self.file(notes)
            return
        self._wait(notes, place, event)

    def _wait(self, notes: GroupNotes, place: RecordPlace, event: Request) -> None:
        entry = (place.time_ms, _RECORD, place.partition, place.offset, encode_request(event))
        applied = (notes.newest_ms, _RECORD, notes.newest_from)
        if (
            len(notes.parts) > 1
            and place.partition < 0
            and any(other[0] == entry[0] and other[2] != entry[2] for other in (*notes.waiting, applied))
        ):
            notes.unknown = True  # two brokers in one millisecond: their order is unknown
        if place.partition < 0 and self._is_too_late(notes, place):
            notes.unknown = True  # how far the job advanced it without this feed depended on the ends of its batches
        heapq.heappush(notes.waiting, entry)
        self._run(notes)

    def run_due(self, partition: int) -> None:
        """Run every group that is due in a partition."""
        part = self._state.partitions[partition]
        while part.due and part.due[0][0] <= part.decided_ms:
            moment_ms, group_id = heapq.heappop(part.due)
            notes = self._state.groups.get(group_id)
            if notes is not None and notes.filed.get(partition) == moment_ms:
                del notes.filed[partition]
                self._run(notes)

    # Clocks

    @property
    def config(self) -> AuditConfig:
        """The settings of the audited job."""
        return self._config

    def time_of(self, notes: GroupNotes) -> int:
        """Return up to when everything that a group wrote was read, epoch ms."""
        now_ms = min(self._decided_ms(part, notes.group.group_id) for part in self._parts(notes))
        if notes.parts and notes.parts[0] < 0:
            # No record of it has come since then: it may have moved to a broker whose feed is behind.
            everywhere = min((self._decided_ms(number) for number in self._active_sources()), default=NEVER)
            now_ms = min(now_ms, max(notes.group.now_ms, everywhere))
        return now_ms

    def settled_ms(self, group_id: str) -> int:
        """Return up to when nothing can change any more for a group, epoch ms."""
        notes = self._state.groups.get(group_id)
        if notes is None:
            return self._decided_ms(home_of(group_id, self._state.partition_counts[-1]))
        # In another partition a record of the same millisecond may still come first.
        return self.time_of(notes) - (len(self._parts(notes)) > 1)

    def passed_by_all_ms(self, group_id: str) -> int:
        """Return up to when no feed can relay an event of a relayed group any more, epoch ms."""
        notes = self._state.groups[group_id]
        numbers = {*self._parts(notes), *self._active_sources()}
        return min(self._decided_ms(number, group_id) for number in numbers)

    def relayed_ms(self, number: int, group_id: str) -> int:
        """Return up to when the feed of a source has relayed everything of a group, epoch ms."""
        return self._decided_ms(number, group_id)

    def least_ms(self) -> int:
        """Return up to when every partition is decided, epoch ms."""
        read = [part.decided_ms for part in self._state.partitions.values() if part.watermark_ms >= 0]
        return min(read, default=-1)

    def is_stray(self, notes: GroupNotes) -> bool:
        """Return whether a group is in several partitions for a reason other than a growth of the topic.

        The same holds for a relayed group if one of its feeds relayed an event too late.
        """
        if notes.parts and notes.parts[0] < 0:
            return notes.unknown
        homes = {notes.hash % count for count in self._state.partition_counts if count}
        return len(notes.parts) > 1 and not homes.issuperset(notes.parts)

    # Inside

    def _partition(self, number: int) -> Partition:
        part = self._state.partitions.get(number)
        if part is None:
            part = self._state.partitions[number] = Partition(number)
        return part

    def _note_behind(self, source: FeedSource) -> None:
        """Record how far groups may have advanced without a feed that is new, or was silent."""
        source.behind_ms = max((other.passed_ms for other in self._state.sources), default=-1)

    def _is_too_late(self, notes: GroupNotes, place: RecordPlace) -> bool:
        """Return whether the group's clock may have passed the event, for a reason other than a gap in its feed."""
        source, time_ms = self._source(place.partition), place.time_ms
        now_ms = max(notes.group.now_ms, notes.newest_ms)
        if now_ms <= 0:
            # The clock of a forgotten group may have reached the feed's.
            now_ms = source.passed_of(notes.group.group_id)
        if self._is_silent(source):
            self._note_behind(source)
        _, from_ms, to_ms = notes.missed
        falls_into_it = from_ms < time_ms and now_ms == to_ms
        return time_ms < source.behind_ms or (time_ms < now_ms and not falls_into_it)

    def _source(self, number: int) -> FeedSource:
        return self._state.sources[FIRST_SOURCE - number]

    def _is_silent(self, source: FeedSource) -> bool:
        """Return whether a source's last mark is older than `SILENT_AFTER_MS`."""
        return self._partition(PLACE_OF_FEEDS).watermark_ms - source.written_ms > SILENT_AFTER_MS

    def _active_sources(self) -> list[int]:
        """Return the sources of all feeds that are not silent."""
        return [source.number for source in self._state.sources if not self._is_silent(source)]

    def _decided_ms(self, partition: int, group_id: str = "") -> int:
        if partition < 0:
            return self._source(partition).passed_of(group_id)
        part = self._state.partitions.get(partition)
        return -1 if part is None else part.decided_ms

    def _home(self, notes: GroupNotes) -> int:
        if notes.hash < 0:
            notes.hash = home_of(notes.group.group_id, _ANY_HOME)
        return notes.hash % self._state.partition_counts[-1]

    def _parts(self, notes: GroupNotes) -> list[int]:
        if notes.parts and notes.parts[0] < 0:
            active = [part for part in notes.parts if part >= 0 or not self._is_silent(self._source(part))]
            return active or notes.parts
        home = self._home(notes)
        return notes.parts if home in notes.parts else [*notes.parts, home]

    def _place_outages(self, outages: list[AuditedOutage], counted: str = "outages") -> None:
        """Add the outages that one tick or mark proves, all of them before any group continues."""
        self._state.count(counted, len(outages))
        for notes in list(self._state.groups.values()):
            wanted = ("", notes.group.group_id)
            mine = [each for each in outages if each.partition in notes.parts and each.group_id in wanted]
            for outage in mine:
                entry = (outage.from_ms, _OUTAGE, outage.partition, outage.to_ms, b"")
                heapq.heappush(notes.waiting, entry)
            if mine:
                self._run(notes)

    def _run(self, notes: GroupNotes) -> None:
        """Apply the records that no earlier one can precede, and run the timers up to the group's clock."""
        was_there = not is_forgotten(notes.group)
        while notes.waiting and self._blocking(notes) is None:
            time_ms, kind, partition, number, value = heapq.heappop(notes.waiting)
            if kind == _OUTAGE:
                self._advance(notes, time_ms)
                self._renew(notes, AuditedOutage(time_ms, number, partition))
            else:
                event = decode_accepted_request(value)
                # The move comes first, as from then on another source decides when its sessions end.
                counts = partition >= 0 or not notes.seen or self._move(notes, partition, time_ms, event)
                if partition < 0:
                    self._note_fed(notes, time_ms, partition)
                if counts:
                    self._use(notes, RecordPlace(time_ms, partition, number), event)
        now_ms = self.time_of(notes)
        if next_deadline_ms(notes.group) <= now_ms:
            self._advance(notes, now_ms)
        if was_there and notes.parts[0] < 0 and is_forgotten(notes.group):
            # It was forgotten by then; earlier events that another feed relays come too late for it.
            notes.newest_ms = max(notes.newest_ms, now_ms)
        self.file(notes)

    def _note_fed(self, notes: GroupNotes, time_ms: int, source: int) -> None:
        """Record an event that a feed relays, before it is applied."""
        if sum(part < 0 for part in notes.parts) > 1 and notes.newest_ms >= 0:
            self._advance(notes, time_ms)
            if is_forgotten(notes.group):
                notes.unknown = True  # the job forgot the group and its feeds, or not: that depended on its batches
        if time_ms >= notes.newest_ms:
            notes.newest_ms, notes.newest_from = time_ms, source

    def _blocking(self, notes: GroupNotes) -> tuple[int, int] | None:
        """Return what a group's first entry waits for: a partition, and the time that it must reach, epoch ms."""
        time_ms, kind, partition, _, _ = notes.waiting[0]
        for other in self._parts(notes):
            # Within one millisecond the lower partition comes first, and an outage last.
            needed_ms = time_ms + (other < partition or (kind == _OUTAGE and other != partition))
            if kind == _OUTAGE and other == partition < 0:
                continue  # the mark that reports it may hold the group back at an earlier time
            if self._decided_ms(other, notes.group.group_id) < needed_ms:
                return other, needed_ms
        return None

    def file(self, notes: GroupNotes) -> None:
        """Schedule a group to run as soon as anything can happen to it, or drop it if it is like one never seen."""
        if notes.waiting and (blocking := self._blocking(notes)):
            self._file_under(notes, *blocking)
        deadline = next_deadline_ms(notes.group)
        if deadline != NEVER:
            parts = self._parts(notes)
            if parts[0] < 0:
                parts = [*parts, *self._active_sources()]
            last = min(parts, key=lambda part: self._decided_ms(part, notes.group.group_id))
            self._file_under(notes, last, deadline)
        elif not notes.waiting and is_forgotten(notes.group) and len(notes.parts) == 1:
            fed = notes.parts[0] < 0
            behind = (
                [each for each in self._active_sources() if self._decided_ms(each) <= notes.newest_ms] if fed else ()
            )
            if behind:
                # Another feed may still relay earlier events.
                self._file_under(notes, behind[0], notes.newest_ms + 1)
                return
            if notes.parts[0] < 0 and notes.unknown:
                return  # rows about it are unsettled, even after its last member has left
            del self._state.groups[notes.group.group_id]

    def _file_under(self, notes: GroupNotes, partition: int, moment_ms: int) -> None:
        if moment_ms < notes.filed.get(partition, NEVER):
            notes.filed[partition] = moment_ms
            due = self._partition(partition).due if partition >= 0 else self._source(partition).due
            heapq.heappush(due, (moment_ms, notes.group.group_id))
        if partition < 0 and len(self._state.sources) > 1:
            # Once a feed is silent, the group continues without it.
            for number in {partition, *self._parts(notes), *self._active_sources()}:
                if number < 0 and not self._is_silent(source := self._source(number)):
                    self._file_under(notes, PLACE_OF_FEEDS, source.written_ms + SILENT_AFTER_MS + 1)
