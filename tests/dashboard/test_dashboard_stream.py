"""The stream: who is cut off goes on without a gap and without a double, who is slow costs nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from heartwheel.readers.dashboard.channel import ROWS_MAX, Channel
from heartwheel.readers.dashboard.hub import Hub
from heartwheel.readers.dashboard.ring import Ring, StreamFrame
from heartwheel.readers.dashboard.stream import Listener
from heartwheel.readers.live.now import View
from heartwheel.readers.live.picture import Picture
from support.output_rows import T0, begun, expired, joined, status, topic_rows


class Sent(NamedTuple):
    """Hold one event as a browser reads it."""

    event: str
    id: str | None
    data: Any


def parsed(text: bytes) -> Iterator[Sent]:
    """Read a stream as a browser does."""
    for block in text.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in fields:
            yield Sent(fields["event"], fields.get("id"), json.loads(fields["data"]))


class Stage:
    """A hub that beats by hand, over a picture that a test feeds."""

    def __init__(self, *, epoch: str = "e1") -> None:
        self.picture = Picture()
        self.hub = Hub(self.picture, epoch=epoch, view=lambda canary: View(show_canary=canary), now_ms=lambda: T0)
        self.sent = 0

    def expire(self, count: int, group: str = "g") -> None:
        """Let some members expire."""
        rows = [expired(group, f"m{self.sent + i}", T0 + i) for i in range(count)]
        self.sent += count
        self.picture.apply(topic_rows(*rows), now_ms=T0)

    def listen(self, last_id: str | None = None, *, canary: bool = False, shard: int | None = None) -> Listener:
        """Let somebody listen."""
        return Listener(self.hub, self.picture, canary=canary, shard=shard, last_id=last_id, now_ms=T0)


def members(sent: list[Sent]) -> list[str]:
    """Name the members that were sent, each frame's oldest first."""
    return [row["member_id"] for each in sent if each.event == "expirations" for row in reversed(each.data["rows"])]


def test_who_comes_back_gets_what_it_missed_once() -> None:
    """From any id that was seen, what follows is sent, in order, each row once: no gap and no double."""

    async def play() -> None:
        stage = Stage()
        listener = stage.listen()
        seen = list(parsed(listener._first()))
        assert (seen[0].event, seen[0].data["from_seq"], seen[0].data["resumed"]) == ("hello", 0, False)
        for _ in range(5):
            stage.expire(3)
            stage.hub.tick(state=False)
            seen += parsed(listener._news())
        assert members(seen) == [f"m{i}" for i in range(15)]
        frames = [each for each in seen if each.event == "expirations"]
        for at, frame in enumerate(frames):
            again = list(parsed(stage.listen(frame.id)._first()))
            hello = next(each for each in again if each.event == "hello")
            assert (hello.data["resumed"], hello.data["from_seq"], hello.id) == (True, (at + 1) * 3, frame.id)
            assert members(again) == [f"m{i}" for i in range((at + 1) * 3, 15)]

    asyncio.run(play())


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=20))
def test_no_schedule_of_cuts_loses_or_doubles(schedule: list[tuple[int, bool]]) -> None:
    """However expirations, beats and broken connections fall, by its last id a listener sees each once, in order."""

    async def play() -> None:
        stage = Stage()
        listener = stage.listen()
        seen = list(parsed(listener._first()))
        for count, cut in schedule:
            stage.expire(count)
            stage.hub.tick(state=False)
            sent = list(parsed(listener._news()))
            if cut:
                # What was sent on a connection that broke was not seen: it is asked for again by the last id that was.
                last_id = next(each.id for each in reversed(seen) if each.id)
                listener = stage.listen(last_id)
                sent = list(parsed(listener._first()))
            seen += sent
        assert members(seen) == [f"m{i}" for i in range(stage.sent)]
        assert [each for each in seen if each.event == "gap"] == []

    asyncio.run(play())


def test_an_id_that_can_not_be_gone_on_from_is_a_gap() -> None:
    """Another life of the server, an id that was never given, or one too old: the listener has to load anew."""

    async def play() -> None:
        stage = Stage()
        stage.expire(1)
        stage.hub.tick()
        for last_id in ("e0-1", "e1-99", "garbage", "e1-", "e1--1", "e1-0x1", ""):
            sent = list(parsed(stage.listen(last_id)._first()))
            assert [each.event for each in sent[:2]] == ["gap", "hello"], last_id
            assert members(sent) == []

    asyncio.run(play())


def test_who_is_too_slow_is_told_so_and_goes_on() -> None:
    """A listener that the ring has left behind gets a gap, and from then on what is new; nothing is kept for it."""

    async def play() -> None:
        stage = Stage()
        slow = stage.listen()
        slow._channel.ring = ring = Ring(frames_max=3)
        for _ in range(9):
            stage.expire(1)
            stage.hub.tick(state=False)
        (gap,) = parsed(slow._news())
        assert (gap.event, gap.id) == ("gap", f"e1-{ring.newest}")
        stage.expire(1)
        stage.hub.tick(state=False)
        assert members(list(parsed(slow._news()))) == ["m9"]

    asyncio.run(play())


def test_many_at_once_are_counted_not_dropped_in_silence() -> None:
    """A frame has at most so many rows, the newest, and says how many it left out."""

    async def play() -> None:
        stage = Stage()
        listener = stage.listen()
        stage.expire(ROWS_MAX + 50)
        stage.hub.tick(state=False)
        (frame,) = [each for each in parsed(listener._news()) if each.event == "expirations"]
        assert (len(frame.data["rows"]), frame.data["skipped"]) == (ROWS_MAX, 50)
        assert frame.data["rows"][0]["member_id"] == f"m{ROWS_MAX + 49}"

    asyncio.run(play())


def test_what_left_the_window_before_it_was_told_is_skipped_too() -> None:
    """Rows that came and went between two beats are counted as skipped, so that the sum stays true."""

    async def play() -> None:
        stage = Stage()
        stage.picture = Picture(expirations_max=100)
        stage.hub = Hub(stage.picture, epoch="e1", view=lambda canary: View(show_canary=canary), now_ms=lambda: T0)
        listener = stage.listen()
        stage.expire(500)
        stage.hub.tick(state=False)
        (frame,) = [each for each in parsed(listener._news()) if each.event == "expirations"]
        assert (len(frame.data["rows"]), frame.data["skipped"]) == (100, 400)

    asyncio.run(play())


def test_returns_groups_and_how_things_stand_are_told() -> None:
    """A return, the groups that changed, once a second how all stands, and the wheel of the shard asked for."""

    async def play() -> None:
        stage = Stage()
        listener = stage.listen(shard=0)
        assert {each.event for each in parsed(listener._first())} == {"hello", "at_risk", "series"}
        stage.expire(1)
        stage.picture.apply(topic_rows(begun("g", "n"), joined("g", "m0"), status(0)), now_ms=T0)
        stage.hub.tick()
        sent = {each.event: each.data for each in parsed(listener._news())}
        assert set(sent) == {"expirations", "returned", "groups", "now", "at_risk", "series", "wheel"}
        assert sent["returned"] == [{"id": f"g/m0/{T0}", "returned_ms": T0 + 10_000, "advice": "", "cause": ""}]
        assert [group["group_id"] for group in sent["groups"]["rows"]] == ["g"]
        assert (sent["wheel"]["shard"], sent["now"]["expirations_total"]) == (0, 1)
        stage.hub.tick()
        assert {each.event for each in parsed(listener._news())} == {"now", "at_risk", "series"}

    asyncio.run(play())


def test_the_canary_is_told_to_those_who_ask() -> None:
    """Two listeners at one hub: one hears of the canary's groups, the other is not."""

    async def play() -> None:
        stage = Stage()
        without, with_canary = stage.listen(), stage.listen(canary=True)
        stage.expire(1, "heartwheel-canary-1")
        stage.hub.tick(state=False)
        assert without._news() == b""
        assert members(list(parsed(with_canary._news()))) == ["m0"]

    asyncio.run(play())


def test_a_listener_that_goes_away_is_forgotten() -> None:
    """When a stream is closed, or the server ends, nobody is counted as listening any more."""

    async def play() -> None:
        stage = Stage()
        events = stage.listen().events()
        await anext(events)
        assert stage.hub.listeners == 1
        await events.aclose()
        assert stage.hub.listeners == 0
        events = stage.listen().events()
        await anext(events)
        stage.hub.close()
        assert [each async for each in events] in ([], [b""])
        assert stage.hub.listeners == 0

    asyncio.run(play())


def test_the_ring_is_bounded_in_frames_and_bytes() -> None:
    """The ring forgets the oldest frames, by number and by size, but never the newest one."""
    ring = Ring(frames_max=5, bytes_max=100)
    for number in range(1, 11):
        ring.add(StreamFrame(number, number, b"x" * 10))
    assert (ring.oldest, ring.newest) == (5, 10)
    assert [frame.number for frame in ring.after(5) or ()] == [6, 7, 8, 9, 10]
    assert ring.after(4) is None
    assert ring.after(11) is None
    ring.add(StreamFrame(11, 11, b"x" * 1_000))
    assert [frame.number for frame in ring.after(10) or ()] == [11]
    assert ring.after(9) is None


def test_numbers_of_another_life_mean_nothing() -> None:
    """An id is only as good as the life of the server that gave it."""
    channel = Channel(Picture(), "abc", View())
    assert channel.number_of(channel.id_of(7)) == 7
    assert [channel.number_of(bad) for bad in ("abd-7", "abc7", "abc-", "abc-7x", "7")] == [None] * 5
