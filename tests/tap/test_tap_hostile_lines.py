"""Requests that a client wrote to stop a tap: each is left out, counted and reported, and all other groups go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka.errors import MessageSizeTooLargeError

from heartwheel.sources.tap import requests
from heartwheel.sources.tap import run as run_module
from heartwheel.sources.tap.tap import Tap
from heartwheel.sources.tap.writer import Writer
from heartwheel.wire.events import ID_BYTES_MAX
from heartwheel.wire.relayed import HELD_BYTES_MAX
from support.request_lines import T0, fetch, heartbeat, line
from support.tap_scene import TapScene


@pytest.fixture
def scene(tmp_path: Path) -> TapScene:
    """Set up logs and a topic."""
    return TapScene(tmp_path)


def _join_of(protocols: int, letters: int) -> str:
    named = [{"name": f"{number}-" + "p" * letters, "metadata": ""} for number in range(protocols)]
    request = {"groupId": "g", "sessionTimeoutMs": 6_000, "rebalanceTimeoutMs": 6_000, "memberId": "m1"}
    answer = {"errorCode": 0, "generationId": 1, "leader": "m1", "memberId": "m1"}
    return line(T0 + 10, 11, {**request, "protocolType": "consumer", "protocols": named}, answer, version=9)


def _beat_of(group: str, member: str = "m1") -> str:
    request = {"groupId": group, "generationId": 1, "memberId": member, "groupInstanceId": None}
    return line(T0 + 10, 12, request, {"errorCode": 27})


HOSTILE: dict[str, str] = {
    "long names of protocols": _join_of(60, 3_000),
    "many protocols": _join_of(65, 1),
    "a long group id": _beat_of("g" * (ID_BYTES_MAX + 1)),
    "a long member id": _beat_of("g", "é" * (ID_BYTES_MAX // 2 + 1)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_request_that_is_too_large_is_left_out(scene: TapScene, name: str) -> None:
    """A request that the job would reject is not passed on, holds no group back, and the marks go on behind it."""
    scene.write(heartbeat(T0), HOSTILE[name], *(fetch(T0 + ms) for ms in range(500, 5_000, 500)), heartbeat(T0 + 5_000))
    tap = scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms > T0 + 4_500)
    assert (len(scene.topic.ids), tap.figures.too_large, tap.figures.retries) == (2, 1, 0)
    assert scene.topic.marks[-1].held == {}


def test_line_that_the_tap_trips_over_is_reported(scene: TapScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the tap's own costs one line: it is named by its place, and counted."""
    real = requests.event_of

    def event_of(answered: Any) -> Any:
        if answered.request.get("memberId") == "odd":
            raise OverflowError("int too large to convert")
        return real(answered)

    monkeypatch.setattr(run_module, "event_of", event_of)
    scene.write(heartbeat(T0), heartbeat(T0 + 100, "odd"), heartbeat(T0 + 1_000))
    said: list[str] = []
    monkeypatch.setattr(Tap, "report", said.append, raising=False)
    tap = scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms > T0 + 700)
    assert (len(scene.topic.ids), tap.figures.failed) == (2, 1)


def test_marks_hold_no_more_bytes_back_than_fit(scene: TapScene) -> None:
    """Many groups with long ids in join phases: the mark waits for all of them instead of naming each."""
    ids = [f"{number:03}" + "g" * (ID_BYTES_MAX - 3) for number in range(HELD_BYTES_MAX // ID_BYTES_MAX + 1)]
    scene.write(heartbeat(T0), *(_beat_of(group) for group in ids), heartbeat(T0 + 2_000))
    scene.run(lambda: len(scene.topic.ids) == len(ids) + 2 and len(scene.topic.marks) > 0)
    assert max(mark.passed_ms for mark in scene.topic.marks) <= T0 + 10
    assert all(not mark.held for mark in scene.topic.marks)


class _Producer:
    """A producer whose broker takes no value with `large` in it, and for it refuses the whole batch at first."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.first = True

    def send(self, topic: str, *, value: bytes, key: bytes | None, partition: int) -> Any:
        """Return a future of the record."""
        if value == b"too long for the client":
            raise MessageSizeTooLargeError
        return _Future(self, topic, value, partition, key)


class _Future:
    def __init__(self, producer: _Producer, topic: str, value: bytes, partition: int, key: bytes | None) -> None:
        self.producer, self.topic, self.value, self.partition, self.key = producer, topic, value, partition, key
        self.batched = producer.first
        self.offset = len(producer.taken)

    def get(self, timeout: float) -> Any:
        """Refuse what is in the first batch, and what is large for ever."""
        assert timeout > 0
        self.producer.first = False
        if self.batched or b"large" in self.value:
            raise MessageSizeTooLargeError
        self.producer.taken.append(self.value)
        return self


def test_record_that_kafka_refuses_is_not_tried_for_ever() -> None:
    """What is refused for its content is left out and counted; those that were refused beside it are written."""
    writer, producer = Writer.__new__(Writer), _Producer()
    writer._topic, writer._producer, writer.end = "t", producer, -1
    values = [b"one", b"large", b"two", b"too long for the client"]
    assert writer.write([("g", value) for value in values]) == 2
    assert producer.taken == [b"one", b"two"]


def test_unfinished_first_joins_stop_no_other_group(scene: TapScene) -> None:
    """First joins that are left at their answer, with the longest ids and timeouts, leave time to all others."""
    ids = [f"{number:03}" + "g" * (ID_BYTES_MAX - 3) for number in range(HELD_BYTES_MAX // ID_BYTES_MAX + 2)]
    asked = {"sessionTimeoutMs": 6_000, "rebalanceTimeoutMs": 2**31 - 1, "memberId": ""}
    first = [line(T0 + 10, 11, {**asked, "groupId": group}, {"errorCode": 79, "memberId": "m"}) for group in ids]
    scene.write(heartbeat(T0), *first, *(fetch(T0 + step * 1_000) for step in range(1, 21)))
    scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms >= T0 + 19_000)
    assert len(scene.topic.marks[-1].held) == HELD_BYTES_MAX // ID_BYTES_MAX
    scene.write(*(fetch(T0 + step * 1_000) for step in range(21, 400)))
    scene.run(lambda: scene.topic.marks[-1].passed_ms >= T0 + 398_000)
    assert scene.topic.marks[-1].held == {}
