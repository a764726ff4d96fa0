"""A topic is looked at twice through one consumer, which keeps what the first look has paused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from heartwheel.kafka import ends
from heartwheel.kafka.ends import Untimed, find_untimed
from kafka import TopicPartition

_CREATE, _APPEND = 0, 1


class _Consumer:
    """A consumer as kafka-python's is: one partition a poll, and a pause outlives an assignment of the same ones."""

    def __init__(self, kinds: Mapping[int, list[int]]) -> None:
        self._kinds = {TopicPartition("beats", number): kept for number, kept in kinds.items()}
        self._at: dict[Any, int] = {}
        self._paused: set[Any] = set()

    def partitions_for_topic(self, _topic: str) -> set[int]:
        return {place.partition for place in self._kinds}

    def beginning_offsets(self, places: Iterable[Any]) -> dict[Any, int]:
        return dict.fromkeys(places, 0)

    def end_offsets(self, places: Iterable[Any]) -> dict[Any, int]:
        return {place: len(self._kinds[place]) for place in places}

    def assign(self, places: Iterable[Any]) -> None:
        self._paused &= set(places)

    def resume(self, *places: Any) -> None:
        self._paused -= set(places)

    def pause(self, *places: Any) -> None:
        self._paused |= set(places)

    def seek(self, place: Any, offset: int) -> None:
        self._at[place] = offset

    def position(self, place: Any) -> int:
        return self._at[place]

    def poll(self, _timeout_ms: int, *, max_records: int) -> dict[Any, list[Any]]:
        for place, kept in self._kinds.items():
            start = self._at[place]
            if place not in self._paused and start < len(kept):
                self._at[place] = min(len(kept), start + max_records)
                return {place: [SimpleNamespace(offset=start, timestamp_type=kind) for kind in kept[start:]]}
        return {}


def test_ends_are_read_of_partitions_whose_begins_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """A healthy topic is no fault of `doctor`: the second look reads what the first one has paused."""

    @contextmanager
    def reader(*_: object, **__: object) -> Any:
        yield _Consumer({0: [_APPEND] * 3, 1: [_APPEND, _CREATE], 2: [_CREATE]})

    monkeypatch.setattr(ends, "reader", reader)
    monkeypatch.setattr(ends, "_STALL_S_MAX", 0)
    assert find_untimed("here:9092", "beats") == Untimed((2,), (1, 2))
