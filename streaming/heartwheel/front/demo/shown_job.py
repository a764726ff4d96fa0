"""The job of a demo: run here, followed by its topics, and shown while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from rich.text import Text

from heartwheel.base.wall_clock import wall_ms
from heartwheel.engine.heartbeats.plugin import heartbeat_job
from heartwheel.engine.runtime.driver.engine import Engine
from heartwheel.engine.runtime.driver.progress import Progress
from heartwheel.engine.runtime.driver.reporter import JobReporter
from heartwheel.front.demo.folder import DemoFolder
from heartwheel.front.demo.tally import News, Tally
from heartwheel.readers.live.follower import Follower
from heartwheel.readers.live.topic_rows import OutputTopic, TopicRow
from heartwheel.settings import Settings

WATCH_EVERY_S: Final = 0.2
"""How often what is shown is looked at, seconds."""


class Screen(Protocol):
    """What shows a demo; called from several threads."""

    def say(self, line: Text) -> None:
        """Show one line of events."""

    def refresh(self) -> None:
        """Show the figures again, if it is time to."""


class ShownJob:
    """The job, its reporter, and who follows its topics, for the length of a `with` block.

    Args:
        settings: the checked configuration; its broker is the running one.
        folder: where the log of Spark goes.
        jars: the Kafka connector's.
        on_decided: called after each batch that decides.
        on_news: called with what the topics tell, from a thread of its own.
    """

    def __init__(
        self,
        settings: Settings,
        folder: DemoFolder,
        tally: Tally,
        screen: Screen,
        *,
        jars: Sequence[Path],
        on_decided: Callable[[], None],
        on_news: Callable[[News], None],
    ) -> None:
        self._tally, self._screen = tally, screen
        self._on_decided, self._on_news = on_decided, on_news
        self._reporter = JobReporter(settings)
        self.engine = Engine(
            heartbeat_job(settings),
            list(jars),
            on_progress=self._after_batch,
            on_phase=self._enter,
            on_fault=self._reporter.on_fault,
            log_file=folder.spark_log,
        )
        self._follower = Follower(
            settings,
            sources=(OutputTopic.EXPIRATIONS, OutputTopic.TRIGGERS, OutputTopic.STATUS),
            since_ms=0,
            on_rows=self._take,
        )

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            opened.enter_context(self._reporter)
            opened.enter_context(self._follower)
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, trace)

    def finish(self) -> None:
        """Follow the topics to their ends, as nothing is written any more; raises as `check` does."""
        self._follower.finish()
        self.check()

    def check(self) -> None:
        """Raise what has ended the following of the topics, if anything has."""
        if self._follower.failure is not None:
            raise self._follower.failure

    def _enter(self, phase: str) -> None:
        self._tally.phase = phase
        self._reporter.on_phase(phase)
        self._screen.refresh()

    def _after_batch(self, batch: Progress) -> None:
        self._tally.add_batch(batch)
        self._reporter.on_progress(batch)
        if not batch.held:
            self._on_decided()

    def _take(self, rows: Sequence[TopicRow]) -> None:
        self._on_news(self._tally.take(rows, wall_ms()))
