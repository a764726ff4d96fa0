"""Who must be expired by the log of heartbeats, by the rule of presence groups said as simply as it can be.

A member is alive for one session timeout after each of its records, by append time; at that moment, unless another
record or its leave came before, it is expired, once. A leave with a failure expires it at that moment. Only the decoder
is shared with the engine. Only presence groups are judged: their members send no joins, no generations.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from heartwheel.kafka.readback import LogRecord
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import UNCHECKED_GENERATION, Event, EventType, RejectedError

_PRESENCE: Final = frozenset({EventType.HEARTBEAT, EventType.LEAVE})


class Silence(NamedTuple):
    """One silence that must end in one expiration: who, and when the session was over, epoch ms."""

    group_id: str
    member_id: str
    deadline_ms: int


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
