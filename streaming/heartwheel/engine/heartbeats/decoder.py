"""What the values of a frame of records decode to: each distinct value once, for as long as it is remembered."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from heartwheel.engine.heartbeats.repeats import ALWAYS_WHOLE, BatchOf, Repeats, Stamps
from heartwheel.engine.heartbeats.value_digests import Digests, ValueDigests
from heartwheel.engine.heartbeats.value_table import UNKNOWN, Codes, Ints, Rows, Shards, ValueTable
from heartwheel.engine.runtime.map.java_hashes import shards_of
from heartwheel.wire.event_codec import digests
from heartwheel.wire.events import Event, EventType, RejectCause, RejectedError, TickError
from heartwheel.wire.group_heartbeats import GroupHeartbeat
from heartwheel.wire.relayed import FEED_FIELD, FEEDS_PARTITION, FeedFields, may_be_relayed, read_feed, read_feed_fields
from heartwheel.wire.requests import Request, decode_requests, fingerprint_of

BAD: Final = -1
TICK: Final = -2
"""What stands in the place of a shard for a value that is no event: neither is remembered."""

REMEMBERED_MAX: Final = 1 << 24
"""How many distinct values a worker remembers, 50 bytes each; memory is taken as they come (`docs/performance.md`)."""

_DECODED_AT_ONCE: Final = 2048
"""How many values are decoded together: so many events fit into a core's cache."""

_GROUP_HEARTBEAT: Final = 1
_KIND_OF: Final = {Event: 0, GroupHeartbeat: _GROUP_HEARTBEAT, TickError: TICK}


class Decoded(NamedTuple):
    """What the distinct values of a frame of records decode to.

    Args:
        bodies: large binary, the values of the first of the entries; the others are sent without their bytes.
        shard: int16 (entries,), `BAD` or `TICK` where the value is no event.
        fingerprints: int64 (entries,), the fingerprint of a heartbeat, else 0.
        entry: int32 (records,), which of them a record has.
        feed_fields: what events of feeds say beside the event, by their entry.
    """

    bodies: pa.LargeBinaryArray
    shard: Shards
    fingerprints: Ints
    entry: Codes
    feed_fields: dict[int, FeedFields]


class Decoder:
    """Decodes values, each distinct one once for as long as it is remembered.

    Args:
        feeds: the feeds whose times are believed.
    """

    def __init__(
        self, shards: int, value_bytes_max: int, remembered_max: int, feeds: Collection[str] = frozenset()
    ) -> None:
        self._shards = shards
        self.feeds = frozenset(feeds)
        self.value_bytes_max = value_bytes_max
        self._digests = ValueDigests()
        self._table = ValueTable(entries_max=remembered_max)
        self._repeats = Repeats()
        self._place = np.empty(remembered_max, np.int32)

    def begin(self, batch: BatchOf | None) -> None:
        """Begin with a batch; `None` if all values are to have their bytes."""
        self._repeats.begin(batch, self._table.stamps)

    def decode(self, values: pa.LargeBinaryArray, partition: int) -> Decoded:
        """Decode the values of a frame of one partition, large binary (records,) without nulls."""
        digests = self._digests.of(values)
        codes = self._table.find(digests)
        unknown, known = np.flatnonzero(codes == UNKNOWN), np.flatnonzero(codes != UNKNOWN)
        entry = np.empty(len(codes), np.int32)
        first, which = _distinct_values(digests, unknown)
        entry[unknown] = which
        new = values.take(pa.array(first))
        shard, fingerprints, stamps = self._decode(new)
        feed_fields = self._feed_fields(new, shard, partition)
        again, with_bytes = self._distinct(codes[known])
        distinct = codes[known[again]]
        self._place[distinct] = np.arange(len(new), len(new) + len(distinct), dtype=np.int32)
        entry[known] = self._place[codes[known]]
        decoded = Decoded(
            pa.concat_arrays([new, values.take(pa.array(known[again[:with_bytes]]))]),
            np.concatenate((shard, self._table.shards[distinct])),
            np.concatenate((fingerprints, self._table.fingerprints[distinct])),
            entry,
            feed_fields,
        )
        lasts = shard >= 0
        lasts[list(feed_fields)] = False  # an event of a feed has a time of its own in it, so it does not come again
        self._table.add(digests[first[lasts]], shard[lasts], fingerprints[lasts], stamps[lasts])
        return decoded

    def _feed_fields(self, values: pa.LargeBinaryArray, shard: Shards, partition: int) -> dict[int, FeedFields]:
        """Return what events of feeds say beside the event, by their place; those of others become `BAD`."""
        found: dict[int, FeedFields] = {}
        for at in np.flatnonzero(pc.match_substring(values, FEED_FIELD).to_numpy(zero_copy_only=False)).tolist():
            if shard[at] < 0:
                continue
            try:
                relayed = require_trusted(values[at].as_py(), self.feeds, partition)
            except RejectedError:
                shard[at] = BAD
            else:
                if relayed is not None:
                    found[at] = relayed
        return found

    def _distinct(self, codes: Codes) -> tuple[Rows, int]:
        """Return one place of each distinct code, those that need their bytes first, and how many do."""
        at = np.arange(len(codes), dtype=np.int32)
        self._place[codes] = at
        places = np.flatnonzero(self._place[codes] == at)
        distinct = codes[places]
        without = self._repeats.take(self._table.stamps, distinct) & (self._table.fingerprints[distinct] != 0)
        return np.concatenate((places[~without], places[without])), int(np.count_nonzero(~without))

    def _decode(self, values: pa.LargeBinaryArray) -> tuple[Shards, Ints, Stamps]:
        """Return the shard and the fingerprint of each value, as in `Decoded`, and its stamp."""
        shard = np.full(len(values), BAD, np.int16)
        fingerprints = np.zeros(len(values), np.int64)
        stamps = np.full(len(values), self._repeats.stamp, np.int32)
        for start in range(0, len(values), _DECODED_AT_ONCE):
            here = slice(start, start + _DECODED_AT_ONCE)
            self._decode_some(values[here].to_pylist(), shard[here], fingerprints[here], stamps[here])
        return shard, fingerprints, stamps

    def _decode_some(self, values: list[bytes], shard: Shards, fingerprints: Ints, stamps: Stamps) -> None:
        found = decode_requests(values, size_max=self.value_bytes_max)
        events = [event for event in found if type(event) is Event]
        kind = np.array([_KIND_OF.get(type(each), BAD) for each in found]) if len(events) < len(found) else None
        good = slice(None) if kind is None else kind == 0
        if kind is not None:
            shard[:] = kind
        if events:
            shard[good] = shards_of([event.group_id for event in events], self._shards)
            digested = np.frombuffer(digests(events), "<i8")
            beats = np.array([event.type is EventType.HEARTBEAT for event in events])
            fingerprints[good] = np.where(beats, np.where((digested == 0) | (digested == 1), 2, digested), 0)
        if kind is not None:
            stamps[kind == _GROUP_HEARTBEAT] = ALWAYS_WHOLE
            self._place_group_heartbeats(found, kind, shard, fingerprints)

    def _place_group_heartbeats(
        self, found: list[Request | RejectedError], kind: NDArray[np.int_], shard: Shards, fingerprints: Ints
    ) -> None:
        """Fill in the shard and the fingerprint of heartbeats at a member epoch."""
        at = np.flatnonzero(kind == _GROUP_HEARTBEAT)
        beats = [each for each in found if isinstance(each, GroupHeartbeat)]
        if beats:
            shard[at] = shards_of([beat.group_id for beat in beats], self._shards)
            fingerprints[at] = [fingerprint_of(beat) for beat in beats]


def _distinct_values(digests: Digests, rows: Rows) -> tuple[Rows, Rows]:
    """Find the distinct ones among some values.

    Args:
        digests: uint64 (records, 2).
        rows: intp (rows,), which of them.

    Returns:
        The rows of the distinct values, in their order, and for each of `rows` which of them it has.
    """
    mine = digests[rows]
    _, first, which = np.unique(mine[:, 0], return_index=True, return_inverse=True)
    if not np.array_equal(mine[first[which], 1], mine[:, 1]):  # half a digest is not enough
        _, first, which = np.unique(mine, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    return rows[first[order]], rank[which]


def require_trusted(value: bytes, feeds: Collection[str], partition: int) -> FeedFields | None:
    """Read what an event of a feed says beside the event; `None` for an event of no feed.

    Args:
        feeds: the feeds whose times are believed.

    Raises:
        RejectedError: it is of another feed, is in another partition than feeds write to, or does not say when it
            happened.
    """
    if not may_be_relayed(value) or not (feed := read_feed(value)):
        return None
    if feed not in feeds:
        raise RejectedError(RejectCause.UNTRUSTED_FEED, f"engine.feeds does not name the feed {feed}")
    if partition != FEEDS_PARTITION:
        raise RejectedError(RejectCause.BAD_FIELD, f"feeds write to partition {FEEDS_PARTITION}, not {partition}")
    feed_fields = read_feed_fields(value)
    if feed_fields is None:
        raise RejectedError(RejectCause.BAD_FIELD, "an event of a feed needs `at_ms`, when it happened, epoch ms")
    return feed_fields
