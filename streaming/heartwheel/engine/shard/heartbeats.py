"""Heartbeats that come without their bytes, and their contents by fingerprint.

Nearly every heartbeat repeats one that its shard has received before, and its bytes are most of what is sent. So a
worker of the map side leaves them out, and the shard supplies the contents when the rules ask for them. Neither of them
asks the other, and nothing is guessed. This is done only for heartbeats of the classic protocol (`Event`), in any kind
of group. Those with a member epoch always have their bytes and are not kept here:

- **The worker** leaves out the bytes of a heartbeat in batch N if it has itself packed the very same bytes in a batch M
  of the same query, with M < N <= M + `REMEMBERED_BATCHES`. Then batch M is committed, because Spark begins no batch
  before the previous one is. The records of batch M are in it whichever worker packed them in the end, because a task
  that is repeated, or run twice, reads the same offsets.
- **The shard** can supply, after every batch, the contents of each heartbeat among the records of its last
  `REMEMBERED_BATCHES` batches. The heartbeat is in the row of the member that it keeps alive, or it is *kept* here,
  with the number of the batch in which it was last among the records or was lost from its row. This holds by induction
  over the batches of a query, the first of which brings all bytes: a heartbeat came with its bytes, or the batch before
  could supply it. Changes by a new configuration are no step of the induction, because they come with another query.
  The shard counts only the batches in which it was called, so it never forgets before a worker does.

A worker that forgets sends bytes that were not needed. A worker that remembers too much, or a shard whose memory is
full (`KEPT_BYTES_MAX`), is detected: a heartbeat that cannot be supplied is an `UnknownHeartbeatError`, which ends the
query before anything of the batch is written. The job restarts the query, which reads the batch again with all bytes.

As on the fast path, a fingerprint stands for the contents of a heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.wire.event_codec import decode_accepted, encode_event, encode_events
from heartwheel.wire.events import Event

REMEMBERED_BATCHES: Final = 128
"""For how many batches a shard can supply a heartbeat, and a worker may leave out its bytes; about a minute."""

KEPT_BYTES_MAX: Final = 32 << 20
"""How many bytes of heartbeats without a row a shard keeps. Beyond that it forgets the ones unused for the longest
time."""


class UnknownHeartbeatError(HeartwheelError):
    """A heartbeat came without its bytes, and its shard does not know its contents."""


class KnownHeartbeat(msgspec.Struct, frozen=True, gc=False):
    """The heartbeat of a member, as its row has it.

    Args:
        rest: its other fields, JSON.
    """

    group_id: str
    member_id: str
    rest: msgspec.Raw

    def event(self) -> Event:
        """Return the heartbeat as an event."""
        event = decode_accepted(bytes(self.rest))
        return msgspec.structs.replace(event, group_id=self.group_id, member_id=self.member_id)

    def value(self) -> bytes:
        """Return the heartbeat as `encode_event` encodes it: the ids come first and are put into the rest."""
        rest = bytes(self.rest)[len(_NO_IDS) :]
        return b'{"group_id":%b,"member_id":%b%b' % (_encode(self.group_id), _encode(self.member_id), rest)


_encode: Final = msgspec.json.Encoder().encode
_NO_IDS: Final = b'{"group_id":""'
"""The beginning of an encoded heartbeat without ids (`rest_of`)."""


def rest_of(event: Event) -> msgspec.Raw:
    """Encode the fields of a heartbeat other than the ids of its group and its member."""
    return msgspec.Raw(encode_event(_without_ids(event)))


def rests_of(events: Iterable[Event]) -> list[msgspec.Raw]:
    """Encode many heartbeats, each as `rest_of` does."""
    return list(map(msgspec.Raw, encode_events(map(_without_ids, events))))


def _without_ids(event: Event) -> Event:
    return msgspec.structs.replace(event, group_id="", member_id="")


class Kept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A heartbeat that no row has.

    Args:
        batch: the batch in which it was last among the records or was lost from its row, in the shard's own count.
    """

    batch: int
    value: bytes


class Heartbeats:
    """The heartbeats that no row has, or whose rows are being changed.

    Args:
        kept: by fingerprint, the oldest first.
    """

    def __init__(self, kept: Mapping[int, Kept]) -> None:
        self._kept = dict(kept)
        self._bytes = sum(len(each.value) for each in self._kept.values())
        self._loaded: Mapping[int, KnownHeartbeat] = {}
        self._batch = 0
        self.forgotten = 0
        """The number forgotten since the batch began, for lack of room."""

    def begin(self, batch: int) -> None:
        """Begin a batch of the shard, given its number."""
        self._batch = batch
        self.forgotten = 0

    def load(self, known: Mapping[int, KnownHeartbeat]) -> None:
        """Set the known heartbeats of the members of the group that is being run, by fingerprint."""
        self._loaded = known

    def event(self, fingerprint: int) -> Event | None:
        """Return a heartbeat as an event, if it is known here."""
        if (known := self._loaded.get(fingerprint)) is not None:
            return known.event()
        kept = self._kept.get(fingerprint)
        return None if kept is None else decode_accepted(kept.value)

    def value(self, fingerprint: int) -> bytes | None:
        """Return the value of a heartbeat, if it is known here; its fields equal those in the topic."""
        if (known := self._loaded.get(fingerprint)) is not None:
            return known.value()
        kept = self._kept.get(fingerprint)
        return None if kept is None else kept.value

    def keep(self, fingerprint: int, value: bytes) -> None:
        """Keep a heartbeat that no row has for the next batches."""
        before = self._kept.pop(fingerprint, None)
        self._kept[fingerprint] = Kept(self._batch, value)
        self._bytes += len(value) - (0 if before is None else len(before.value))
        while self._bytes > KEPT_BYTES_MAX:
            self._forget(next(iter(self._kept)))
            self.forgotten += 1

    def keep_lost(self, known: Mapping[int, KnownHeartbeat], stay: Iterable[int]) -> None:
        """Keep the heartbeats that the rows of a group's members have lost.

        Args:
            known: by fingerprint, when the group was loaded.
            stay: the present fingerprints of its members.
        """
        for fingerprint in known.keys() - set(stay):
            self.keep(fingerprint, known[fingerprint].value())

    def state(self) -> dict[int, Kept]:
        """Return the heartbeats that the next batch may need."""
        for fingerprint, kept in list(self._kept.items()):
            if kept.batch + REMEMBERED_BATCHES > self._batch:
                break
            self._forget(fingerprint)
        return self._kept

    def _forget(self, fingerprint: int) -> None:
        self._bytes -= len(self._kept.pop(fingerprint).value)
