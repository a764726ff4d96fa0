"""In which order the records of a group count, and up to when its timers may run: by the log alone.

Records of one group in several partitions are merged by effective time, partition and offset. So a record waits until
every partition that the group writes to has been read beyond it: those in which it was seen, and the one that its id
hashes to. The *time of a group* is the least of theirs.

An outage of a partition stands right after its begin: what ended before has fired, and every timer that runs then
starts anew at its end, before any later record of the group, in whichever partition that is.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from heartwheel.audit.config import AuditConfig
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
        advance: runs a group's timers up to a moment.
    """

    def __init__(
        self,
        state: State,
        config: AuditConfig,
        *,
        use: Callable[[Held, Waiting, Request], None],
        renew: Callable[[Held, Outage], None],
        advance: Callable[[Held, int], None],
    ) -> None:
        self._state = state
        self._config = config
        self._use = use
        self._renew = renew
        self._advance = advance

    # What is read

    def read(self, partition: int, append_ms: int, tick: Tick | None) -> int:
        """Let time pass in a partition by its next record; return the record's effective time, epoch ms.

        Args:
            partition: which.
            append_ms: the record's own append time, epoch ms.
            tick: what it says, if it is a tick.
        """
        config, state = self.config, self._state
        part = self._partition(partition)
        if append_ms < part.watermark_ms:
            state.counts["clamped"] = state.counts.get("clamped", 0) + 1
        runs = config.runs
        outages = part.read(append_ms, tick, runs=runs, outage_min_ms=config.outage_min_ms)
        believed = tick is not None and tick.run and (not runs or tick.run in runs)
        count = max(state.partition_counts[-1], partition + 1, tick.partitions if tick and believed else 0)
        if count > state.partition_counts[-1]:
            state.partition_counts.append(count)
        if outages:
            self._place_outages(outages)
        return part.watermark_ms

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
        part = self._state.partitions[partition]
        alone = len(held.parts) == 1 and self._home(held) == partition
        if alone and not held.waiting and not part.gaps:
            self._use(held, place, event)
            self.file(held)
            return
        heapq.heappush(held.waiting, (place.time_ms, _RECORD, partition, place.offset, encode_request(event)))
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
        return min(self._decided_ms(partition) for partition in self._parts(held))

    def settled_ms(self, group_id: str) -> int:
        """Tell up to when nothing can change any more for a group, epoch ms."""
        held = self._state.groups.get(group_id)
        if held is None:
            return self._decided_ms(home_of(group_id, self._state.partition_counts[-1]))
        # Between partitions a record of the very millisecond may still come first.
        return self.time_of(held) - (len(self._parts(held)) > 1)

    def least_ms(self) -> int:
        """Tell up to when everything is known of every partition, epoch ms."""
        read = [part.decided_ms for part in self._state.partitions.values() if part.watermark_ms >= 0]
        return min(read, default=-1)

    def is_stray(self, held: Held) -> bool:
        """Tell whether a group is in several partitions, and not because the topic has grown."""
        homes = {held.hash % count for count in self._state.partition_counts if count}
        return len(held.parts) > 1 and not homes.issuperset(held.parts)

    # Inside

    def _partition(self, number: int) -> Partition:
        part = self._state.partitions.get(number)
        if part is None:
            part = self._state.partitions[number] = Partition(number)
        return part

    def _decided_ms(self, partition: int) -> int:
        part = self._state.partitions.get(partition)
        return -1 if part is None else part.decided_ms

    def _home(self, held: Held) -> int:
        if held.hash < 0:
            held.hash = home_of(held.group.group_id, _ANY_HOME)
        return held.hash % self._state.partition_counts[-1]

    def _parts(self, held: Held) -> list[int]:
        home = self._home(held)
        return held.parts if home in held.parts else [*held.parts, home]

    def _place_outages(self, outages: list[Outage]) -> None:
        """Place the outages that one tick proves, all of them before any group goes on."""
        counts = self._state.counts
        counts["outages"] = counts.get("outages", 0) + len(outages)
        for held in list(self._state.groups.values()):
            mine = [each for each in outages if each.partition in held.parts]
            for outage in mine:
                entry = (outage.from_ms, _OUTAGE, outage.partition, outage.to_ms, b"")
                heapq.heappush(held.waiting, entry)
            if mine:
                self._run(held)

    def _run(self, held: Held) -> None:
        """Apply what nothing can come before, and run the timers as far as the group's time has come."""
        while held.waiting and self._blocking(held) is None:
            time_ms, kind, partition, number, value = heapq.heappop(held.waiting)
            if kind == _OUTAGE:
                self._advance(held, time_ms)
                self._renew(held, Outage(time_ms, number, partition))
            else:
                self._use(held, Waiting(time_ms, partition, number), decode_accepted_request(value))
        now_ms = self.time_of(held)
        if next_deadline_ms(held.group) <= now_ms:
            self._advance(held, now_ms)
        self.file(held)

    def _blocking(self, held: Held) -> tuple[int, int] | None:
        """Name what the first of a group waits for: a partition, and how far it has to come, epoch ms."""
        time_ms, kind, partition, _, _ = held.waiting[0]
        for other in self._parts(held):
            # Of one millisecond the lower partition comes first, and an outage last.
            needed_ms = time_ms + (other < partition or (kind == _OUTAGE and other != partition))
            if self._decided_ms(other) < needed_ms:
                return other, needed_ms
        return None

    def file(self, held: Held) -> None:
        """Have a group run again as soon as anything can happen to it, or drop it if it is like one never seen."""
        if held.waiting and (blocking := self._blocking(held)):
            self._file_under(held, *blocking)
        deadline = next_deadline_ms(held.group)
        if deadline != NEVER:
            last = min(self._parts(held), key=self._decided_ms)
            self._file_under(held, last, deadline)
        elif not held.waiting and is_gone(held.group) and len(held.parts) == 1:
            del self._state.groups[held.group.group_id]

    def _file_under(self, held: Held, partition: int, moment_ms: int) -> None:
        if moment_ms < held.filed.get(partition, NEVER):
            held.filed[partition] = moment_ms
            heapq.heappush(self._partition(partition).due, (moment_ms, held.group.group_id))
