"""The logs of a broker, and a topic in memory: taps run on them without a Kafka."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafka.errors import KafkaTimeoutError

from heartwheel.settings import Settings
from heartwheel.sources.tap.plan import TapPlan
from heartwheel.sources.tap.positions import Positions, PositionsFolder
from heartwheel.sources.tap.tap import Tap
from heartwheel.wire.relayed import FeedWatermark, read_feed_fields, read_mark
from support.job import wait_for


class MemoryTopic:
    """A heartbeat topic of one partition.

    Attributes:
        values: of its records.
        breaks_after: after how many more records it takes no more, once; `None` for never.
    """

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.breaks_after: int | None = None

    def writer(self, *_: Any) -> Any:
        """Make what stands in the place of the tap's `Writer`."""
        return MemoryWriter(self)

    @property
    def ids(self) -> list[str]:
        """The ids of the events in it, in their order."""
        return [said.id for value in self.values if b'"mark"' not in value and (said := read_feed_fields(value))]

    @property
    def marks(self) -> list[FeedWatermark]:
        """The marks in it, in their order."""
        return [mark for value in self.values if (mark := read_mark(value)) is not None]

    def append(self, value: bytes) -> None:
        """Append a record, or fail."""
        if self.breaks_after == 0:
            self.breaks_after = None
            raise KafkaTimeoutError("nobody answers")
        if self.breaks_after is not None:
            self.breaks_after -= 1
        self.values.append(value)


class MemoryWriter:
    """Write to a `MemoryTopic` as `heartwheel.sources.tap.writer.Writer` does to Kafka."""

    def __init__(self, topic: MemoryTopic) -> None:
        self._topic = topic
        self.end = -1

    def write(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Append the values."""
        for _, value in records:
            self._topic.append(value)
            self.end = len(self._topic.values)

    def write_mark(self, value: bytes) -> None:
        """Append the mark."""
        self.write([("", value)])

    def read_back(self, feed: str, end: int) -> set[str]:
        """Return the ids that were written behind an offset."""
        found = (read_feed_fields(value) for value in self._topic.values[end:])
        return {said.id for said in found if said is not None and said.feed == feed}

    def end_offset(self) -> int:
        """Return where the topic ends."""
        return len(self._topic.values)

    def close(self) -> None:
        """Leave the topic as it is."""


class TapScene:
    """The logs of a broker, a topic, and taps that are started and stopped on them.

    Args:
        root: a folder.
    """

    def __init__(self, root: Path) -> None:
        self.log, self.own, self._root = root / "requests.log", root / "server.log", root
        self.log.touch()
        self.own.touch()
        self.topic = MemoryTopic()

    def write(self, *lines: str) -> None:
        """Append lines to the request log."""
        with self.log.open("a") as file:
            file.writelines(f"{text}\n" for text in lines)

    def say(self, at_ms: int, text: str) -> None:
        """Append a line to the coordinator's own log."""
        stamp = datetime.fromtimestamp(at_ms / 1000, UTC)
        prefix = "INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=0]"
        with self.own.open("a") as file:
            file.write(f"[{stamp:%Y-%m-%d %H:%M:%S},{at_ms % 1000:03d}] {prefix} {text} (o.a.k.GroupMetadataManager)\n")

    def kept(self) -> Positions:
        """Read the positions that a tap has kept."""
        found = PositionsFolder(self._root / "positions").load("tap")
        assert found is not None
        return found

    def run(self, seen: Callable[[], object]) -> Tap:
        """Run a tap until something is seen, and stop it in order."""
        with self.running() as tap:
            wait_for(lambda: bool(seen()), "the tap to have written it")
        return tap

    @contextmanager
    def running(self) -> Iterator[Tap]:
        """Run a tap for the length of a `with` block."""
        plan = TapPlan("tap", self.log, self._root / "positions", self.own, from_begin=True)
        tap = Tap(Settings(), plan, open_writer=self.topic.writer)
        thread = threading.Thread(target=tap.run, daemon=True)
        thread.start()
        try:
            yield tap
        finally:
            tap.stop()
            thread.join(10)
