"""The log of one batch of one shard: its packs in the order of the log, decoded event by event where needed."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.shard.heartbeats import Heartbeats, UnknownHeartbeatError
from heartwheel.engine.shard.pack import Pack, select
from heartwheel.engine.time.log_time import UNKNOWN_MS
from heartwheel.wire.requests import Request, decode_accepted_request, decode_accepted_requests

T = TypeVar("T")
Ints = NDArray[np.int64]
Rows = NDArray[np.intp]


class BatchLog:
    """The records of a batch in the order of the log: by partition, then by offset.

    Records refer to *entries*, the distinct values of the packs. Most work is done once per entry.

    Attributes:
        fingerprint: int64 (entries,).
        entry_partition: int64 (entries,), the partition an entry's records come from.
        entry: intp (records,), the entry of each record.
        append_ms: int64 (records,), effective append times, epoch ms.
        offset: int64 (records,).

    Args:
        heartbeats: the contents of heartbeats that came without their bytes; left out, none are known.
    """

    def __init__(self, packs: Sequence[Pack], heartbeats: Heartbeats | None = None) -> None:
        ordered = sorted(packs, key=lambda pack: (pack.partition, int(pack.offset[0])))
        sizes = [len(pack.fingerprints) for pack in ordered]
        self._starts = list(accumulate(sizes, initial=0))
        self._packs = ordered
        self._heartbeats = heartbeats or Heartbeats({})
        self.fingerprint: Ints = _join([pack.fingerprints for pack in ordered], np.int64)
        self._decoded: list[Request | None] = [None] * len(self.fingerprint)
        self.entry: Rows = _join([p.entry + at for p, at in zip(ordered, self._starts, strict=False)], np.intp)
        self.append_ms: Ints = _join([pack.append_ms for pack in ordered], np.int64)
        self.offset: Ints = _join([pack.offset for pack in ordered], np.int64)
        self.entry_partition: Ints = np.repeat([pack.partition for pack in ordered], sizes).astype(np.int64)

    def __len__(self) -> int:
        return len(self.entry)

    def event(self, entry: int) -> Request:
        """Decode one entry; the map side has checked that it can be decoded.

        Raises:
            UnknownHeartbeatError: if it came without its bytes and is not known.
        """
        event = self._decoded[entry]
        if event is None:
            value = self._sent_body(entry)
            if value is None:
                event = self._require(self._heartbeats.event(int(self.fingerprint[entry])), entry)
            else:
                event = decode_accepted_request(value)
            self._decoded[entry] = event
        return event

    def events(self, entries: Rows) -> list[Request]:
        """Decode many entries, each as `event` does.

        Args:
            entries: intp (n,).

        Raises:
            UnknownHeartbeatError: if one came without its bytes and is not known.
        """
        decoded, wanted = self._decoded, entries.tolist()
        new = np.array([entry for entry in wanted if decoded[entry] is None], np.intp)
        pack = np.searchsorted(self._starts, new, side="right") - 1
        for number in np.unique(pack).tolist():
            here, start, bodies = new[pack == number], self._starts[number], self._packs[number].bodies
            here = here[here < start + len(bodies)]
            for entry, event in zip(here.tolist(), decode_accepted_requests(bodies.take(here - start)), strict=True):
                decoded[entry] = event
        return [decoded[entry] or self.event(entry) for entry in wanted]

    def body(self, entry: int) -> bytes:
        """Return the value of one entry as in the topic; one that came without its bytes may be encoded differently.

        Raises:
            UnknownHeartbeatError: if it came without its bytes and is not known.
        """
        value = self._sent_body(entry)
        return self._require(self._heartbeats.value(int(self.fingerprint[entry])), entry) if value is None else value

    def _sent_body(self, entry: int) -> bytes | None:
        """Return the bytes with which an entry came, if any."""
        pack = bisect.bisect_right(self._starts, entry) - 1
        bodies, index = self._packs[pack].bodies, entry - self._starts[pack]
        return bodies[index] if index < len(bodies) else None

    def _require(self, found: T | None, entry: int) -> T:
        if found is not None:
            return found
        offset = int(self.offset[self.entry == entry][0])
        raise UnknownHeartbeatError(
            f"the heartbeat at offset {offset} of partition {int(self.entry_partition[entry])} came without its bytes, "
            "and its shard does not know it",
            hint="the job continues from its checkpoint, and reads the batch again with all bytes",
        )

    def first_and_last_ms(self) -> tuple[Ints, Ints]:
        """Return the append time of each entry's first and last record, int64 (entries,) each.

        Assignment keeps the last of equal indices, so no slower minimum and maximum are needed: the records of an entry
        come from one partition, in its order, and effective times never go back. Every entry has a record.
        """
        first = np.empty(len(self.fingerprint), np.int64)
        last = np.empty(len(self.fingerprint), np.int64)
        last[self.entry] = self.append_ms
        first[self.entry[::-1]] = self.append_ms[::-1]
        return first, last

    def by_first_record(self, entries: Rows) -> Rows:
        """Sort entries by their first records: by effective time, then partition, then offset.

        Args:
            entries: intp (n,).
        """
        first = np.empty(len(self.fingerprint), np.intp)
        first[self.entry[::-1]] = np.arange(len(self.entry))[::-1]
        record = first[entries]
        return entries[np.lexsort((self.offset[record], self.entry_partition[entries], self.append_ms[record]))]

    def split(self, chosen: NDArray[np.bool_]) -> tuple[list[Pack], list[Pack]]:
        """Split the packs into the chosen records and the others; packs without a record are left out.

        Args:
            chosen: bool (records,).
        """
        ours: list[Pack] = []
        others: list[Pack] = []
        start = 0
        for pack in self._packs:
            here = chosen[start : start + len(pack.entry)]
            start += len(here)
            if here.all():
                ours.append(pack)
            elif not here.any():
                others.append(pack)
            else:
                ours.append(select(pack, here))
                others.append(select(pack, ~here))
        return ours, others

    def in_order(self, records: Rows) -> Rows:
        """Sort the records of one group into the order in which they count.

        Within a partition that is the order of offsets. Between partitions, where a group should not be, it is by
        effective time, then partition, then offset.

        Args:
            records: indices of records, ascending, that is by partition and offset.
        """
        partitions = self.entry_partition[self.entry[records]]
        if len(records) < 2 or partitions[0] == partitions[-1]:
            return records
        order: Rows = np.lexsort((self.offset[records], partitions, self.append_ms[records]))
        return records[order]


def _join(arrays: list[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype)


def not_before(pack: Pack, floors: Ints) -> Pack:
    """Raise the times of records that are earlier than what was read of their partition so far."""
    floor_ms = int(floors[pack.partition]) if pack.partition < len(floors) else UNKNOWN_MS
    if int(pack.append_ms[0]) >= floor_ms:
        return pack
    return pack._replace(append_ms=np.maximum(pack.append_ms, floor_ms))
