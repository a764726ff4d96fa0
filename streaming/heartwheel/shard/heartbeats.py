"""Heartbeats that come without their bytes: what each of them says, by its fingerprint.

Nearly every heartbeat is one that its shard was given before, and the bytes are most of what travels. So a worker of
the map side leaves them out, and the shard says what the heartbeat says when the rules ask for it. Neither of them asks
the other, and none of it is a guess. It is done for heartbeats of the classic protocol alone (`Event`), in whatever
kind of group; those at a member epoch always have their bytes, and are neither kept nor said here:

- **The worker** leaves out the bytes of a heartbeat in batch N if it has itself packed the very same bytes in a batch M
  of the same query, with M < N <= M + `REMEMBERED_BATCHES`. Then batch M is committed, for Spark begins no batch before
  the one before it is; and the records of batch M are in it whoever packed them in the end, for a task that is done
  again, or twice, reads the same offsets.
- **The shard** can say, after every batch, what each heartbeat among the records of its last `REMEMBERED_BATCHES`
  batches says: it stands in the row of the member that it keeps alive, or it is *kept* here, with the number of the
  batch in which it was last among the records or was lost from its row. This holds by induction over the batches of a
  query, the first of which brings all bytes: a heartbeat came with its bytes, or it could be said by the batch before.
  What a new configuration makes of the state is no step of it, for that comes with another query.
  The shard counts only the batches that it was called in, so that it never forgets before a worker does.

A worker that forgets sends bytes that were not needed. One that remembers what it should not, or a shard whose memory
is full (`KEPT_BYTES_MAX`), is found out: what nobody can say is an `UnknownHeartbeatError`, which ends the query before
anything of the batch is written down. The job starts it again, and it reads the batch anew with all bytes.

Fingerprints stand for what a heartbeat says here as they do on the fast path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from heartwheel.errors import HeartwheelError
from heartwheel.wire.events import Event, decode_accepted, encode_event, encode_events

REMEMBERED_BATCHES: Final = 128
"""For how many batches a shard can say a heartbeat again, and a worker may leave out its bytes; about a minute."""

KEPT_BYTES_MAX: Final = 32 << 20
"""How many bytes of heartbeats without a row a shard keeps; then it forgets those first that were away longest."""


class UnknownHeartbeatError(HeartwheelError):
    """Tell that a heartbeat came without its bytes, and that its shard does not know what it says."""


class Said(msgspec.Struct, frozen=True, gc=False):
    """The heartbeat of a member, as its row has it.

    Args:
        group_id: its group.
        member_id: the member.
        rest: all else that it says, JSON.
    """

    group_id: str
    member_id: str
    rest: msgspec.Raw

    def event(self) -> Event:
        """Say it again."""
        event = decode_accepted(bytes(self.rest))
        return msgspec.structs.replace(event, group_id=self.group_id, member_id=self.member_id)

    def value(self) -> bytes:
        """Spell it again, as `encode_event` spells the event: the ids stand first, and are put into the rest."""
        rest = bytes(self.rest)[len(_NO_IDS) :]
        return b'{"group_id":%b,"member_id":%b%b' % (_encode(self.group_id), _encode(self.member_id), rest)


_encode: Final = msgspec.json.Encoder().encode
_NO_IDS: Final = b'{"group_id":""'
"""How what is said beside the ids begins (`rest_of`)."""


def rest_of(event: Event) -> msgspec.Raw:
    """Encode what a heartbeat says beside the ids of its group and its member."""
    return msgspec.Raw(encode_event(_without_ids(event)))


def rests_of(events: Iterable[Event]) -> list[msgspec.Raw]:
    """Encode many heartbeats, each as `rest_of` does."""
    return list(map(msgspec.Raw, encode_events(map(_without_ids, events))))


def _without_ids(event: Event) -> Event:
    return msgspec.structs.replace(event, group_id="", member_id="")


class Kept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A heartbeat that no row has.

    Args:
        batch: when it was last among the records, or was lost from its row; a number of the shard's own.
        value: its bytes.
    """

    batch: int
    value: bytes


class Heartbeats:
    """What heartbeats say that no row has, or whose rows are being changed.

    Args:
        kept: by fingerprint, the oldest first.
    """

    def __init__(self, kept: Mapping[int, Kept]) -> None:
        self._kept = dict(kept)
        self._bytes = sum(len(each.value) for each in self._kept.values())
        self._loaded: Mapping[int, Said] = {}
        self._batch = 0
        self.forgotten = 0
        """How many were forgotten for want of room since the batch began."""

    def begin(self, batch: int) -> None:
        """Begin with a batch of the shard, by its number."""
        self._batch = batch
        self.forgotten = 0

    def load(self, said: Mapping[int, Said]) -> None:
        """Take the heartbeats of the members of the group that is being run, by fingerprint."""
        self._loaded = said

    def event(self, fingerprint: int) -> Event | None:
        """Say what a heartbeat says, if that is known here."""
        if (said := self._loaded.get(fingerprint)) is not None:
            return said.event()
        kept = self._kept.get(fingerprint)
        return None if kept is None else decode_accepted(kept.value)

    def value(self, fingerprint: int) -> bytes | None:
        """Return a heartbeat as it may stand in the topic, if it is known here: equal in all that it says."""
        if (said := self._loaded.get(fingerprint)) is not None:
            return said.value()
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

    def keep_lost(self, said: Mapping[int, Said], stay: Iterable[int]) -> None:
        """Keep what the rows of a group's members said and say no more.

        Args:
            said: by fingerprint, as the group was loaded.
            stay: the fingerprints of its members now.
        """
        for fingerprint in said.keys() - set(stay):
            self.keep(fingerprint, said[fingerprint].value())

    def state(self) -> dict[int, Kept]:
        """Return what the next batch may ask for."""
        for fingerprint, kept in list(self._kept.items()):
            if kept.batch + REMEMBERED_BATCHES > self._batch:
                break
            self._forget(fingerprint)
        return self._kept

    def _forget(self, fingerprint: int) -> None:
        self._bytes -= len(self._kept.pop(fingerprint).value)
