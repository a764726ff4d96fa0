"""A member's last events: picked, measured, bounded, and read from the right partition of a real topic."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.readers.live import history, scan
from heartwheel.readers.live.history import (
    EVENTS_MAX,
    HistoryReader,
    is_about,
    member_history,
    members_seen,
)
from heartwheel.readers.live.history_documents import HistoryBusyError
from heartwheel.readers.live.scan import Beat, ScanBounds
from heartwheel.settings import Settings
from heartwheel.wire.events import Event, EventType, Leaving
from support.job import Topics, beats_of
from support.output_rows import T0, expired


def beats(*at_ms: int, member: str = "m") -> list[Beat]:
    """Make heartbeats of one member."""
    return [Beat(at, Event(group_id="g", member_id=member, session_timeout_ms=4_000)) for at in at_ms]


def test_gaps_are_between_the_events_of_the_member() -> None:
    """The others of the group do not count: each gap is from one event of the member to its next."""
    events = [*beats(1_000), *beats(1_500, member="other"), *beats(2_000, 9_000)]
    found = member_history("m", events, expired("g", "m", T0), lambda: "")
    assert [event.at_ms for event in found.events] == [1_000, 2_000, 9_000]
    assert [(gap.from_ms, gap.gap_ms) for gap in found.gaps] == [(1_000, 1_000), (2_000, 7_000)]
    assert (found.session_timeout_ms, found.deadline_ms) == (6_000, T0)
    assert (found.truncated, found.note) == (False, "")


def test_events_are_bounded_and_it_says_so() -> None:
    """Of too many events the newest are shown, and a bound of the reading is named in its own words."""
    found = member_history("m", beats(*range(EVENTS_MAX + 7)), None, lambda: "Reading stopped after 5 seconds.")
    assert (len(found.events), found.events[0].at_ms, found.truncated) == (EVENTS_MAX, 7, True)
    assert "5 seconds" in found.note
    assert f"newest {EVENTS_MAX} of {EVENTS_MAX + 7:,}" in found.note
    assert (found.session_timeout_ms, found.deadline_ms) == (4_000, None)


def test_nothing_found_is_said() -> None:
    """When the topic has no event of the member any more, the page says why that may be."""
    assert "no event of this member" in member_history("m", [], expired("g", "m"), lambda: "").note
    assert not member_history("m", [], None, lambda: "").note


@pytest.mark.parametrize(
    ("event", "about"),
    [
        (Event(group_id="g", member_id="m"), True),
        (Event(group_id="g", type=EventType.JOIN, assigned_member_id="m"), True),
        (Event(group_id="g", type=EventType.LEAVE, leaving=(Leaving(member_id="m"),)), True),
        (Event(group_id="g", type=EventType.LOAD), False),
        (Event(group_id="g", member_id="n"), False),
    ],
)
def test_an_event_is_about_whoever_it_names(event: Event, about: bool) -> None:  # noqa: FBT001 - a parameter
    """Sent by it, answered with its id, or named in a leave: all are events of a member."""
    assert is_about(event, "m") is about


def test_members_seen_last_come_first() -> None:
    """Who sent something last stands first, with how often it did."""
    seen = members_seen([*beats(1, 5), *beats(3, member="a"), *beats(5, member="b")])
    assert [(each.member_id, each.last_seen_ms, each.beats) for each in seen] == [("b", 5, 1), ("m", 5, 2), ("a", 3, 1)]


def test_a_failure_is_shown_as_one() -> None:
    """A leave with a failure is a failure and no polite leave, with its words; the next beat takes it back."""
    leave = Event(type=EventType.LEAVE, group_id="g", member_id="m", failure="exit code 3")
    (seen,) = members_seen([*beats(1), Beat(2, leave)])
    assert (seen.left, seen.failed) == (None, "exit code 3")
    assert [each.failure for each in member_history("m", [Beat(2, leave)], None, lambda: "").events] == ["exit code 3"]
    (back,) = members_seen([Beat(2, leave), *beats(3)])
    assert (back.left, back.failed) == (None, None)


@pytest.mark.kafka
def test_history_is_read_from_the_topic(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """Of a group, whichever partition its key is in, the events of a member, and who else is there; cut by a bound."""
    ours = Topics(kafka_broker.bootstrap, topics, partitions=4)
    ours.send([event for _ in range(3) for group in ("g", "h", "i") for event in beats_of(group, 2)])
    (record, *_) = [each for each in ours.read("heartbeats") if each.key == b"h"]
    now_ms = record.append_ms + 1_000
    reader = HistoryReader(ours.settings())
    found = reader.member("h", "h-m1", newest=None, now_ms=now_ms)
    assert ([event.type for event in found.events], found.note) == ([EventType.HEARTBEAT] * 3, "")
    assert reader.member("h", "h-m1", newest=None, now_ms=now_ms) is found
    newest = expired("h", "h-m0", record.append_ms + 500)
    assert len(reader.member("h", "h-m0", newest=newest, now_ms=now_ms).events) == 3
    assert sorted((each.member_id, each.beats) for each in reader.tail("h", now_ms=now_ms).members) == [
        ("h-m0", 3),
        ("h-m1", 3),
    ]
    bounded = HistoryReader(ours.settings(), ScanBounds(records_max=1)).member("h", "h-m1", newest=None, now_ms=now_ms)
    assert (bounded.truncated, "Reading stopped after" in bounded.note) == (True, True)


def test_without_kafka_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that does not answer is no error of the page: there is no history, and the note tells why."""
    monkeypatch.setattr(scan, "WATCHED_TIMEOUT_MS", 100)
    settings = Settings()
    kafka = settings.kafka.model_copy(update={"bootstrap_servers": "127.0.0.1:1"})
    reader = HistoryReader(settings.model_copy(update={"kafka": kafka}))
    assert "127.0.0.1:1" in reader.member("g", "m", newest=None, now_ms=T0).note


def test_few_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who finds all places taken has to come again, and takes no thread for long."""
    monkeypatch.setattr(history, "_WAIT_S", 0.01)
    reader = HistoryReader(Settings())
    for _ in range(history.READERS_MAX):
        assert reader._readers.acquire(blocking=False)
    with pytest.raises(HistoryBusyError):
        reader.tail("g", now_ms=T0)


def test_a_leave_says_why() -> None:
    """Who left shows the client's own words for it, such as a poll timeout; who came back since shows none."""
    late = Event(type=EventType.LEAVE, group_id="g", member_id="m", reason="consumer poll timeout has expired.")
    many = Event(type=EventType.LEAVE, group_id="g", leaving=(Leaving(member_id="a", reason="drained"), Leaving("b")))
    log = [*beats(1, 2), Beat(3, late), *beats(4, member="a"), *beats(5, member="b"), Beat(6, many)]
    assert {each.member_id: each.left for each in members_seen(log)} == {
        "m": "consumer poll timeout has expired.",
        "a": "drained",
        "b": "",
    }
    assert [each.left for each in members_seen([*log, *beats(9)]) if each.member_id == "m"] == [None]
    assert [each.reason for each in member_history("m", log, None, lambda: "").events][-1] == late.reason
