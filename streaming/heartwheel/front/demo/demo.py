"""Run the demo: broker, topics, members that die, the job, and at the end the judge.

The job has the main thread, where Spark can be made to leave signals alone. One thread feeds, one follows the topics,
and one watches whether the shards come on; whatever ends one of them ends the demo. The judge reads the topics only
when nothing is written any more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.rules.config import coordinator_config
from heartwheel.front.demo.folder import DemoFolder
from heartwheel.front.demo.judge import judge_topics
from heartwheel.front.demo.lines import RollUp, expiration_line
from heartwheel.front.demo.report import report_of
from heartwheel.front.demo.shown_job import WATCH_EVERY_S, Screen, ShownJob
from heartwheel.front.demo.tally import News, Tally
from heartwheel.proof.audit.config import AuditConfig
from heartwheel.proof.members.feeder import Feeder
from heartwheel.proof.members.schedule import FeedPlan
from heartwheel.proof.members.truth import Summary
from heartwheel.settings import Settings

_PATIENCE_S: Final = 120.0


class DemoStalledError(HeartwheelError):
    """The job did not decide on all heartbeats that were fed."""


class Demo:
    """One demo, from its first heartbeat to its report.

    Args:
        settings: the checked configuration; its broker is the running one.
        folder: where the checkpoint, the truth and the logs go.
        plan: whom to simulate; with a duration the demo ends by itself.
        audited: what the job is set to, for the judge.
        jars: the Kafka connector's.
        on_live: called once, after the first batch that decides.
    """

    def __init__(
        self,
        settings: Settings,
        folder: DemoFolder,
        tally: Tally,
        screen: Screen,
        *,
        plan: FeedPlan,
        audited: AuditConfig,
        jars: Sequence[Path],
        on_live: Callable[[], None],
    ) -> None:
        self._settings, self._folder, self._tally, self._screen = settings, folder, tally, screen
        self._audited = audited
        topics = settings.kafka.topics
        coordinator = coordinator_config(settings.coordinator.model_dump(by_alias=False))
        bootstrap = settings.kafka.bootstrap_servers
        self._feeder = Feeder(plan, bootstrap, topics.heartbeats, folder.truth, coordinator=coordinator)
        self._job = ShownJob(settings, folder, tally, screen, jars=jars, on_decided=self._feed_once, on_news=self._show)
        self._on_live = on_live
        self._stop_feeding, self._stop_watching = threading.Event(), threading.Event()
        self._fed: Future[Summary] | None = None
        self._roll_up = RollUp()
        self._judged_from_ms: int | None = None
        self._moved = (-1, time.monotonic())
        self._threads = ThreadPoolExecutor(2, "demo")

    def stop(self) -> None:
        """Ask the demo to end in order; safe to call from a signal handler."""
        self._stop_feeding.set()
        self._job.engine.stop()

    def run(self) -> dict[str, Any] | None:
        """Run until stopped, or until all heartbeats that were fed are decided on.

        Returns:
            The report; `None` if the demo was stopped before anything was fed.

        Raises:
            JobFailedError: the job failed.
            DemoStalledError: the job stands still.
        """
        with self._threads, self._job:
            watched = self._threads.submit(self._watch)
            watched.add_done_callback(self._end_on_error)
            try:
                self._job.engine.run()
            finally:
                self._stop_feeding.set()
                self._stop_watching.set()
            watched.result()
            self._job.finish()
        self._say_all(self._roll_up.add(()))
        return self._judge(self._fed.result()) if self._fed else None

    def _feed_once(self) -> None:
        if self._fed is None and not self._stop_feeding.is_set():
            # Not before: who dies while the job starts is known late, and lateness is what is measured here.
            self._fed = self._threads.submit(self._feeder.run, self._stop_feeding)
            self._fed.add_done_callback(self._after_feed)
            self._on_live()

    def _after_feed(self, fed: Future[Summary]) -> None:
        self._end_on_error(fed)
        if fed.exception() is None:
            # One session after the end the last silence is over, and one tick later its timer has fired.
            self._judged_from_ms = (
                fed.result().ended_ms + self._settings.feed.session_timeout_ms + self._settings.wheel.tick_ms
            )
            self._moved = (self._tally.clock_ms, time.monotonic())
            self._tally.phase = "waiting for the last deadlines"

    def _end_on_error(self, future: Future[Any]) -> None:
        if future.exception() is not None:
            self.stop()

    def _show(self, news: News) -> None:
        for row, append_ms in news.expirations:
            self._screen.say(expiration_line(row, append_ms))
        self._say_all(self._roll_up.add(news.triggers))

    def _watch(self) -> None:
        """Show the figures regularly, and end the demo when it is over or makes no progress."""
        tally = self._tally
        while not self._stop_watching.wait(WATCH_EVERY_S):
            self._job.check()
            tally.sent, tally.turns = self._feeder.sent, {turn.value: n for turn, n in dict(self._feeder.turns).items()}
            self._screen.refresh()
            if self._judged_from_ms is not None:
                self._wait_for_clock(self._judged_from_ms)

    def _say_all(self, lines: Iterable[Text]) -> None:
        for line in lines:
            self._screen.say(line)

    def _wait_for_clock(self, clock_ms: int) -> None:
        """End the demo once every shard has fired its timers up to some time."""
        now_ms = self._tally.clock_ms
        if now_ms >= clock_ms:
            self._job.engine.stop()
        elif now_ms > self._moved[0]:
            self._moved = (now_ms, time.monotonic())
        elif time.monotonic() - self._moved[1] > _PATIENCE_S:
            raise DemoStalledError(
                f"the shards' clocks have not moved for {_PATIENCE_S:g} s, {clock_ms - now_ms} ms before the end",
                hint=f"the log of Spark may tell why: {self._folder.spark_log}",
            )

    def _judge(self, fed: Summary) -> dict[str, Any]:
        # Deadlines are rounded up to the tick: one within the last tick may not have fired.
        until_ms = self._tally.clock_ms - self._settings.wheel.tick_ms
        judged = judge_topics(self._settings, self._folder.truth, self._audited, until_ms=until_ms)
        return report_of(self._settings, judged, fed, self._tally)
