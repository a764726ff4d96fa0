"""The tests' own rule of presence groups."""

from __future__ import annotations

from heartwheel.kafka.readback import LogRecord
from heartwheel.wire.event_codec import encode_event
from heartwheel.wire.events import Event, EventType, Leaving
from support.silences import SentHeartbeats, Silence

T = 1000


def log(*records: tuple[int, Event | bytes | None]) -> SentHeartbeats:
    """Collect records, given as append time and event, of one partition."""
    beats = SentHeartbeats()
    for offset, (append_ms, event) in enumerate(records):
        value = encode_event(event) if isinstance(event, Event) else event
        beats.add(LogRecord(0, offset, append_ms, b"g", value, []))
    return beats


def beat(member: str = "m", timeout_ms: int | None = T) -> Event:
    """Make a presence heartbeat."""
    return Event(group_id="g", member_id=member, session_timeout_ms=timeout_ms)


def silence(deadline_ms: int, member: str = "m") -> Silence:
    """Name a silence in the group of these tests."""
    return Silence("g", member, deadline_ms)


class TestSilences:
    """When a member must be expired."""

    def test_alive_while_before_the_deadline_expired_at_it(self) -> None:
        """A beat one ms before the deadline saves, a beat at the deadline is too late: half-open intervals."""
        assert log((0, beat()), (T - 1, beat())).silences() == {silence(2 * T - 1)}
        assert log((0, beat()), (T, beat())).silences() == {silence(T), silence(2 * T)}

    def test_leave_in_time_ends_without_expiration(self) -> None:
        """Who leaves in time, alone or named in a batch, is not expired; at the deadline it is too late to leave."""
        gone = Event(type=EventType.LEAVE, group_id="g", member_id="m")
        batch = Event(type=EventType.LEAVE, group_id="g", leaving=(Leaving(member_id="m"),))
        assert log((0, beat()), (T - 1, gone)).silences() == set()
        assert log((0, beat()), (T - 1, batch)).silences() == set()
        assert log((0, beat()), (T, gone)).silences() == {silence(T)}

    def test_a_failure_is_an_expiration_at_once(self) -> None:
        """Who says that it failed is expired at that moment, before its first beat too, and then no more."""
        failed = Event(type=EventType.LEAVE, group_id="g", member_id="m", failure="exit code 3")
        assert log((0, beat()), (T - 1, failed)).silences() == {silence(T - 1)}
        assert log((5, failed)).silences() == {silence(5)}
        assert log((0, beat()), (T, failed)).silences() == {silence(T)}

    def test_groups_that_somebody_else_feeds_are_left_out(self) -> None:
        """Nobody of a group whose name begins so is fed, a member, or judged; all others are."""
        beats = SentHeartbeats(left_out="canary")
        for offset, group_id in enumerate(("canary-1", "g")):
            event = Event(group_id=group_id, member_id="m", session_timeout_ms=T)
            beats.add(LogRecord(0, offset, 0, b"k", encode_event(event), []))
        assert (beats.fed, beats.members, beats.silences()) == (1, 1, {silence(T)})
        assert (beats.judged("canary-1"), beats.judged("g")) == (False, True)

    def test_timeout_of_a_member_is_the_last_it_told(self) -> None:
        """A beat without a timeout keeps the one named before; a member that never named one has the default."""
        assert log((0, beat()), (10, beat(timeout_ms=None))).silences() == {silence(10 + T)}
        assert log((0, beat(timeout_ms=None))).silences() == {silence(45_000)}

    def test_time_of_a_group_never_goes_back(self) -> None:
        """A record stamped earlier than the one before it counts as stamped at the same time."""
        assert log((500, beat()), (200, beat())).silences() == {silence(500 + T)}

    def test_garbage_keeps_nobody_alive(self) -> None:
        """What does not decode is neither counted nor seen."""
        beats = log((0, beat()), (T - 1, None), (T - 1, b"{"), (T - 1, b'{"group_id":"g","type":"hello"}'))
        assert beats.silences() == {silence(T)}
        assert beats.fed == 1

    def test_groups_with_a_protocol_are_not_judged(self) -> None:
        """A join or a generation makes a group one of Kafka's own, with other rules."""
        join = Event(type=EventType.JOIN, group_id="g", member_id="x", session_timeout_ms=T)
        assert log((0, beat()), (1, join)).silences() == set()
        assert log((0, Event(group_id="g", member_id="m", generation_id=3))).members == 0
