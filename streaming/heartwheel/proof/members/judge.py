"""Hold the engine's expirations against the log and the truth.

The rule is derived again here, as simply as it can be said and sharing only the decoder with the engine: a member is
alive for one session timeout after each of its records, by append time; at that moment, unless another record or its
leave came before, it is expired, once. A leave with a failure expires it at that moment. Only presence groups are
judged: their members send no joins, no generations.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from heartwheel.base.percentiles import percentile
from heartwheel.kafka.readback import LogRecord
from heartwheel.proof.members.truth import LifeLine, TruthLine, Turn
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import UNCHECKED_GENERATION, Event, EventType, RejectedError

_PRESENCE: Final = frozenset({EventType.HEARTBEAT, EventType.LEAVE})
_SHOWN_MAX: Final = 20


class Silence(NamedTuple):
    """One silence that must end in one expiration: who, and when the session was over, epoch ms."""

    group_id: str
    member_id: str
    deadline_ms: int


class ObservedExpiration(NamedTuple):
    """One record of the expirations topic: its id, which silence it means, when it was appended, epoch ms."""

    id: str
    silence: Silence
    known_ms: int


class MeasuredLateness(msgspec.Struct, frozen=True):
    """How long after a deadline its expiration was in Kafka, ms; all zero if nothing was expired."""

    p50: int = 0
    p90: int = 0
    p99: int = 0
    max: int = 0


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a comparison.

    Args:
        fed: good records of judged groups in the heartbeat topic.
        members: distinct members seen there.
        killed: members that the truth says were killed.
        expected: silences that had to end in an expiration by the time of judgement.
        expired: silences that did.
        false: expirations that the log does not justify (promise P1).
        missed: expected expirations that are not there (promise P2).
        duplicates: repeated records of one expiration with the same id; allowed.
        conflicting: further ids for a silence that has one (promise P3).
        unread: killed members whose silence the log does not show: the log was not read whole, or the truth is not its.
        lateness_ms: of the first record of each expiration.
        examples_false: some of the false ones.
        examples_missed: some of the missed ones.
    """

    fed: int
    members: int
    killed: int
    expected: int
    expired: int
    false: int
    missed: int
    duplicates: int
    conflicting: int
    unread: int
    lateness_ms: MeasuredLateness
    examples_false: tuple[Silence, ...] = ()
    examples_missed: tuple[Silence, ...] = ()

    @property
    def ok(self) -> bool:
        """Return whether everything was as promised."""
        return not (self.false or self.missed or self.conflicting or self.unread)


class SentHeartbeats:
    """The records of a heartbeat topic, partition by partition in log order, and every silence in them.

    Args:
        default_session_timeout_ms: of members that never gave theirs, ms.
        left_out: what the names of groups begin with that are not judged, as somebody else feeds them; empty for none.
    """

    def __init__(self, default_session_timeout_ms: int = 45_000, *, left_out: str = "") -> None:
        self.fed = 0
        self._left_out = left_out
        self._default_ms = default_session_timeout_ms
        self._clocks: dict[str, int] = {}
        self._deadlines: dict[tuple[str, str], int] = {}
        self._timeouts: dict[tuple[str, str], int] = {}
        self._silences: set[Silence] = set()
        self._not_presence: set[str] = set()

    @property
    def members(self) -> int:
        """Count the distinct members seen in judged groups."""
        return sum(group_id not in self._not_presence for group_id, _ in self._timeouts)

    def judged(self, group_id: str) -> bool:
        """Return whether a group is one that this rule is about."""
        return group_id not in self._not_presence and not self._is_left_out(group_id)

    def add(self, record: LogRecord) -> None:
        """Take one record; what does not decode keeps nobody alive."""
        try:
            event = decode_event(record.value)
        except RejectedError:
            return
        if self._is_left_out(event.group_id):
            return
        if event.type not in _PRESENCE or event.generation_id != UNCHECKED_GENERATION:
            self._not_presence.add(event.group_id)
            return
        self.fed += 1
        now_ms = max(record.append_ms, self._clocks.get(event.group_id, 0))
        self._clocks[event.group_id] = now_ms
        for member_id in {event.member_id, *(leaver.member_id for leaver in event.leaving)} - {""}:
            self._turn((event.group_id, member_id), now_ms, event)

    def silences(self) -> set[Silence]:
        """List every silence of judged groups, with those that last until the end of the log.

        A last silence counts although the log ends: read the expirations before the heartbeats, and whatever kept a
        member alive when it was expired is in the log that was read.
        """
        lasting = {Silence(*member, deadline) for member, deadline in self._deadlines.items()}
        return {silence for silence in self._silences | lasting if self.judged(silence.group_id)}

    def _is_left_out(self, group_id: str) -> bool:
        return bool(self._left_out) and group_id.startswith(self._left_out)

    def _turn(self, member: tuple[str, str], now_ms: int, event: Event) -> None:
        deadline = self._deadlines.pop(member, None)
        if deadline is None or now_ms >= deadline:
            # Whoever was away is a newcomer, and what it gave before is forgotten.
            self._timeouts[member] = self._default_ms
        if deadline is not None and now_ms >= deadline:
            self._silences.add(Silence(*member, deadline))
        if event.type is EventType.LEAVE:
            if event.failure is not None:
                self._silences.add(Silence(*member, now_ms))
            return
        timeout_ms = self._timeouts[member] = event.session_timeout_ms or self._timeouts[member]
        self._deadlines[member] = now_ms + timeout_ms


def judge(
    truth: Iterable[TruthLine], beats: SentHeartbeats, expirations: Iterable[ObservedExpiration], *, until_ms: int
) -> Judgement:
    """Compare what was expired with what had to be.

    Args:
        truth: what the feeder did.
        beats: the whole heartbeat topic, read after the expirations.
        expirations: the whole expirations topic, in the order of its partitions.
        until_ms: expirations whose deadline is later may still be under way and are not missed, epoch ms.
    """
    silences = beats.silences()
    lines = list(truth)
    first, duplicates, conflicting = _first_of_each(e for e in expirations if beats.judged(e.silence.group_id))
    false = sorted(first.keys() - silences)
    due = {silence for silence in silences if silence.deadline_ms <= until_ms}
    missed = sorted(due - first.keys())
    late = sorted(e.known_ms - silence.deadline_ms for silence, e in first.items() if silence in silences)
    return Judgement(
        fed=beats.fed,
        members=beats.members,
        killed=_killed(lines),
        expected=len(due),
        expired=len(first.keys() & silences),
        false=len(false),
        missed=len(missed),
        duplicates=duplicates,
        conflicting=conflicting,
        unread=_unread(lines, beats, silences),
        lateness_ms=MeasuredLateness(*(percentile(late, share) for share in (0.5, 0.9, 0.99, 1.0))),
        examples_false=tuple(false[:_SHOWN_MAX]),
        examples_missed=tuple(missed[:_SHOWN_MAX]),
    )


def decode_expiration(record: LogRecord) -> ObservedExpiration:
    """Decode a record of the expirations topic."""
    row = _decode_expiration(record.value or b"")
    return ObservedExpiration(row.id, Silence(row.group_id, row.member_id, row.deadline_ms), record.append_ms)


class _ExpirationRow(msgspec.Struct):
    id: str
    group_id: str
    member_id: str
    deadline_ms: int


_decode_expiration = msgspec.json.Decoder(_ExpirationRow).decode


def _first_of_each(expirations: Iterable[ObservedExpiration]) -> tuple[dict[Silence, ObservedExpiration], int, int]:
    first: dict[Silence, ObservedExpiration] = {}
    duplicates = conflicting = 0
    for expiration in expirations:
        known = first.setdefault(expiration.silence, expiration)
        if known is not expiration:
            duplicates += known.id == expiration.id
            conflicting += known.id != expiration.id
    return first, duplicates, conflicting


def _killed(lines: Iterable[TruthLine]) -> int:
    return sum(isinstance(line, LifeLine) and line.turn is Turn.KILLED for line in lines)


def _unread(lines: Iterable[TruthLine], beats: SentHeartbeats, silences: set[Silence]) -> int:
    killed: collections.Counter[Silence] = collections.Counter(
        Silence(line.group_id, line.member_id, line.last_beat_ms + line.session_timeout_ms)
        for line in lines
        if isinstance(line, LifeLine) and line.turn is Turn.KILLED and line.last_beat_ms is not None
    )
    return sum(silence not in silences and beats.judged(silence.group_id) for silence in killed)
