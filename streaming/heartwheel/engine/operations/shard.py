"""A shard of operations: the operations whose ids hash to it. Only this shard ends them.

**Which shard owns an operation.** An operation may watch keys that hash to any shard. If it were stored on each of
those, two shards could end it at the same time and would have to agree. So an operation is stored on one shard, that of
its *id*, and records about a *key* (a completion, a high watermark) are sent to every shard. Such records are small: a
shard that does not have the key finds that out with one search of a sorted array. Agreement between shards would cost a
second shuffle, and a second batch for every outcome. So whatever an operation watches, one single-threaded shard sees
everything that can end it, in one order, and ends it once
(`test_an_operation_that_watches_keys_of_all_shards_ends_once`).

**What "before" means.** The records of one operation may be in several partitions of the topic. They count in the order
of the log (`heartwheel.engine.operations.log`): by effective append time, then partition, then offset. The completion
of a key counts for operations that were watched before it, and not for later ones; high watermarks are remembered. An
operation waits while now < deadline: a completion exactly at the deadline is late.

**Why the outcomes are a function of the log.** A record is applied only when nothing unread can come before it. Before
that, everything that is due by its time expires. The wheel has a tick of one millisecond, so this is exact to the
millisecond (`test_p3_any_cut_and_any_restart_give_the_outcomes_of_the_reference`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from heartwheel.engine.operations.codec import OperationState, decode_operations, encode_operations, new_state
from heartwheel.engine.operations.condition import Watched, ended, settle_key, settle_watermarks, watched_of
from heartwheel.engine.operations.limits import OperationLimits
from heartwheel.engine.operations.log import OperationEntry, OperationLog, Packet
from heartwheel.engine.operations.table import Operations
from heartwheel.engine.operations.watermarks import Watermarks
from heartwheel.wire.events import RejectCause
from heartwheel.wire.operations import OperationEvent, OperationEventType, decode_operation
from heartwheel.wire.outcomes import Ended, Ending


class Refused(NamedTuple):
    """One record that could not be applied.

    Args:
        everywhere: whether every shard was sent it, so that only one of them should report it.
    """

    entry: OperationEntry
    cause: RejectCause
    detail: str
    everywhere: bool


class Result(NamedTuple):
    """The result of one batch.

    Args:
        ended: the operations that ended, by time, then by operation id.
        refused: the records that could not be applied.
        counts: the number of occurrences in this batch, by name.
    """

    ended: list[Ended]
    refused: list[Refused]
    counts: Counter[str]


class OperationShard:
    """The operations of one shard.

    Args:
        clock_ms: the frontier so far, epoch ms; -1 if there is none.
        blob: the state from `encode`, or empty for a new shard.

    Raises:
        StateBlobError: the blob cannot be decoded.
    """

    def __init__(self, limits: OperationLimits, *, clock_ms: int = -1, blob: str = "") -> None:
        self.clock_ms = clock_ms
        self._limits = limits
        state = decode_operations(blob) if blob else new_state()
        self.totals: Counter[str] = Counter(state.counts)
        self._log = OperationLog(state.waiting, state.newest_ms, state.partitions)
        self._operations = Operations(state.table, state.wheel, state.key_hashes, state.key_rows)
        self._watermarks = Watermarks(
            remembered_ms=limits.remembered_ms,
            timeout_ms_max=limits.timeout_ms_max,
            watermarks_max=limits.watermarks_max,
            encoded=state.watermarks,
        )
        self._ended: list[Ended] = []
        self._refused: list[Refused] = []
        self._counts: Counter[str] = Counter()

    @property
    def waiting_count(self) -> int:
        """How many operations wait."""
        return self._operations.waiting

    @property
    def remembered_count(self) -> int:
        """The number of operations that ended and whose ids are remembered."""
        return len(self._operations) - self._operations.waiting

    def encode(self) -> str:
        """Encode the state; `OperationShard(blob=...)` continues from it."""
        hashes, rows = self._operations.watches()
        return encode_operations(
            OperationState(
                table=self._operations.table,
                wheel=self._operations.wheel,
                key_hashes=hashes,
                key_rows=rows,
                watermarks=self._watermarks.encode(),
                waiting=self._log.waiting,
                newest_ms=self._log.newest_ms,
                counts=dict(self.totals),
                partitions=self._log.partitions,
            )
        )

    def apply(self, packets: Sequence[Packet], clock_ms: int | None = None, *, partitions: int = 0) -> Result:
        """Apply the records of a batch whose order is certain, and expire the operations that are due by then.

        Args:
            clock_ms: the time up to which all records have been read, epoch ms; by default what the packets prove.
            partitions: the number of partitions of the topic, as known from elsewhere.
        """
        self._ended, self._refused, self._counts = [], [], Counter()
        self._counts["records"] = sum(len(packet.records) for packet in packets)
        self._counts["records_late"] = self._log.add(packets, not_before_ms=self.clock_ms)
        self._log.partitions = max(self._log.partitions, partitions)
        if clock_ms is None:
            clock_ms = self._log.proven_ms()
        elif clock_ms < self.clock_ms:
            self._counts["clock_stepped_back"] += 1
        self.clock_ms = max(self.clock_ms, clock_ms)
        for entry in self._log.take(self.clock_ms):
            self._advance(entry.time_ms)
            self._apply_entry(entry)
        self._advance(self.clock_ms)
        for entry in self._log.cut(self._limits.waiting_max):
            self._refuse(entry, RejectCause.SHARD_FULL, f"{self._limits.waiting_max} records wait for their order")
        self._ended.sort(key=lambda each: (each.time_ms, each.operation_id))
        self.totals.update(self._counts)
        return Result(self._ended, self._refused, self._counts)

    def _advance(self, now_ms: int) -> None:
        """Expire and forget what is due. An operation that expired long after its deadline may be forgotten at once."""
        wheel = self._operations.wheel
        while now_ms > wheel.clock_ms or wheel.overdue:
            self._due(wheel.advance(max(now_ms, wheel.clock_ms)).tolist())

    def _due(self, rows: list[int]) -> None:
        expired = [row for row in rows if self._operations.waits(row)]
        for row in set(rows).difference(expired):
            self._operations.forget(row)
        for row, operation in zip(expired, self._operations.read_all(expired), strict=True):
            self._end(row, operation, Ending.EXPIRED, operation.deadline_ms)

    def _apply_entry(self, entry: OperationEntry) -> None:
        event = decode_operation(entry.value, size_max=2**31)
        if event.type is OperationEventType.WATCH:
            self._watch(event, entry)
        elif event.type is OperationEventType.HIGH_WATERMARK:
            self._update_watermark(event, entry)
        elif event.key:
            self._complete_key(event.key, entry.time_ms)
        else:
            self._complete(event.operation_id, entry.time_ms)

    def _watch(self, event: OperationEvent, entry: OperationEntry) -> None:
        if self._operations.find(event.operation_id) is not None:
            words = f"operation {event.operation_id} waits, or ended less than {self._limits.remembered_ms} ms ago"
            self._refuse(entry, RejectCause.DUPLICATE_OPERATION, words)
            return
        if len(self._operations) >= self._limits.operations_max:
            self._refuse(entry, RejectCause.SHARD_FULL, f"the shard holds {self._limits.operations_max} operations")
            return
        self._counts["watched"] += 1
        operation = watched_of(event, entry.time_ms)
        satisfied = settle_watermarks(operation, self._watermarks)
        row = self._operations.add(operation)
        if satisfied:
            self._end(row, operation, Ending.COMPLETED, entry.time_ms)

    def _update_watermark(self, event: OperationEvent, entry: OperationEntry) -> None:
        if not self._watermarks.update(event.key, event.offset or 0, event.size_bytes, entry.time_ms):
            words = f"the shard remembers {self._limits.watermarks_max} high watermarks"
            self._refuse(entry, RejectCause.SHARD_FULL, words)
            return
        for row, operation in self._operations.watching(event.key):
            if settle_watermarks(operation, self._watermarks):
                self._end(row, operation, Ending.COMPLETED, entry.time_ms, completed_by=event.key)
            else:
                self._operations.write(row, operation)

    def _complete_key(self, key: str, now_ms: int) -> None:
        for row, operation in self._operations.watching(key):
            if settle_key(operation, key):
                self._end(row, operation, Ending.COMPLETED, now_ms, completed_by=key)
            else:
                self._operations.write(row, operation)

    def _complete(self, operation_id: str, now_ms: int) -> None:
        row = self._operations.find(operation_id)
        if row is None or not self._operations.waits(row):
            self._counts["completed_in_vain"] += 1
            return
        self._end(row, self._operations.read(row), Ending.COMPLETED, now_ms)

    def _end(
        self, row: int, operation: Watched, ending: Ending, now_ms: int, *, completed_by: str | None = None
    ) -> None:
        self._ended.append(ended(operation, ending, now_ms, self._watermarks, completed_by=completed_by))
        self._counts[ending.value] += 1
        self._operations.remember(row, operation.operation_id, now_ms + self._limits.remembered_ms)

    def _refuse(self, entry: OperationEntry, cause: RejectCause, detail: str) -> None:
        self._counts[f"refused_{cause}"] += 1
        about_key = bool(decode_operation(entry.value, size_max=2**31).key)
        self._refused.append(Refused(entry, cause, detail, everywhere=about_key))
