"""The demo on real groups: real consumers, a tap on their broker, the job, and Kafka's own coordinator beside it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

from heartwheel.front.demo.beside import Agreement, Beside
from heartwheel.front.demo.director import Cast, Director
from heartwheel.front.demo.folder import DemoFolder
from heartwheel.front.demo.lines import removal_line
from heartwheel.front.demo.shown_job import WATCH_EVERY_S, Screen, ShownJob
from heartwheel.front.demo.tally import News, Tally
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.proof.audit.match.pairs import RemovalPair
from heartwheel.readers.live.topic_rows import OutputTopic, TopicRow
from heartwheel.settings import Settings
from heartwheel.sources.explain.run import follow_logs
from heartwheel.sources.explain.scan import Scanned
from heartwheel.sources.explain.shown import rows_of_log
from heartwheel.sources.tap.echo import Echo
from heartwheel.sources.tap.plan import TapPlan
from heartwheel.sources.tap.tap import Tap

FEED: Final = "tap"
"""What the demo's tap is called."""

BROKER_ID: Final = 1

_SETTLE_S: Final = 5.0
_PATIENCE_S: Final = 60.0


class RealDemo:
    """One demo on real groups.

    Args:
        settings: the checked configuration; its broker is the running one, and its feeds name the demo's tap.
        folder: where everything goes.
        broker: with its request log on.
        jars: the Kafka connector's.
        duration_ms: how long consumers are acted on; `None` until stopped.
        restarts: how often the broker is stopped and started meanwhile.
        on_kafka: called with the expirations that the coordinator's own log tells, as rows that a page can show.
    """

    def __init__(  # noqa: PLR0913 - each is said by name
        self,
        settings: Settings,
        folder: DemoFolder,
        broker: EmbeddedKafka,
        cast: Cast,
        tally: Tally,
        screen: Screen,
        *,
        jars: Sequence[Path],
        duration_ms: int | None = None,
        restarts: int = 0,
        on_kafka: Callable[[Sequence[TopicRow]], object] = len,
    ) -> None:
        self._on_kafka = on_kafka
        self._settings, self._broker, self._cast = settings, broker, cast
        self._tally, self._screen, self._duration_ms, self._restarts = tally, screen, duration_ms, restarts
        self._errors = (folder.root / "consumers.log").open("wb")
        self._director = Director(cast, self._errors)
        plan = TapPlan(FEED, broker.request_log, folder.tap, broker.log_file, from_begin=True)
        self._tap = Tap(settings, plan)
        self._beside, self._lock = Beside(cast.groups), threading.Lock()
        self._job = ShownJob(settings, folder, tally, screen, jars=jars, on_decided=self._act_once, on_news=self._take)
        self._stop_acting, self._stop_following = threading.Event(), threading.Event()
        self._acted: Future[None] | None = None
        self._threads = ThreadPoolExecutor(6, "demo")

    def stop(self) -> None:
        """Ask the demo to end in order; safe to call from a signal handler."""
        self._stop_acting.set()
        if self._acted is None:
            self._job.engine.stop()

    def run(self) -> dict[str, Any] | None:
        """Run until stopped, or for the duration, and then until what was done is known on both sides.

        Returns:
            The report; `None` if the demo was stopped before anybody was started.

        Raises:
            JobFailedError: the job failed.
            HeartwheelError: the tap, or who follows the topics and the broker's log, failed.
        """
        bootstrap = self._settings.kafka.bootstrap_servers
        with (
            self._errors,
            self._threads,
            self._job,
            Echo(bootstrap, BROKER_ID, properties={}, token=self._tap.token),
        ):
            helpers = [self._start(work) for work in (self._watch, self._follow_broker, self._tap.run)]
            try:
                self._job.engine.run()
            finally:
                self._stop_acting.set()
                self._tap.stop()
                self._stop_following.set()
                self._director.end()
            for helper in helpers:
                helper.result()
            self._job.finish()
            return None if self._acted is None else self._report(self._acted)

    def _start(self, work: Callable[..., None], *arguments: Any) -> Future[None]:
        future = self._threads.submit(work, *arguments)
        future.add_done_callback(lambda done: self._job.engine.stop() if done.exception() is not None else None)
        return future

    def _act_once(self) -> None:
        if self._acted is None and not self._stop_acting.is_set():
            self._acted = self._start(self._act)

    def _act(self) -> None:
        """Act on the consumers, with the broker's restarts between, then wait until both sides know of everybody."""
        for _ in range(self._restarts):
            self._director.run(self._share_ms(), self._stop_acting)
            if not self._stop_acting.is_set():
                self._broker.stop()
                self._broker.start()
        self._director.run(self._share_ms(), self._stop_acting)
        self._director.end()
        self._tally.phase = "waiting for the last deadlines"
        ended_s = time.monotonic()
        while time.monotonic() - ended_s < _PATIENCE_S and not self._stop_following.is_set():
            # Who joined while the others were dead falls silent when those are removed: one session more.
            settled_s = 2 * self._cast.longest_session_ms / 1000 + _SETTLE_S
            if time.monotonic() - ended_s >= settled_s and not self._agreement().waiting:
                break
            time.sleep(0.2)
        self._job.engine.stop()

    def _share_ms(self) -> int | None:
        return None if self._duration_ms is None else self._duration_ms // (self._restarts + 1)

    def _follow_broker(self) -> None:
        name = str(self._broker.log_file)
        go_on = lambda: not self._stop_following.is_set()  # noqa: E731 - it reads as what it is
        for events in follow_logs([name], Scanned(), stdin=None, go_on=go_on):
            with self._lock:
                pairs = [self._beside.add_event(event) for event in events]
            self._show(pairs)
            self._on_kafka([row for row in rows_of_log(events) if row.source is OutputTopic.EXPIRATIONS])

    def _take(self, news: News) -> None:
        pairs: list[RemovalPair | None] = []
        with self._lock:
            pairs += [self._beside.add_expiration(row, append_ms) for row, append_ms in news.expirations]
            for trigger, append_ms in news.triggers:
                pairs += self._beside.add_trigger(trigger, append_ms)
        self._show(pairs)

    def _watch(self) -> None:
        """Show the figures now and then."""
        tally, acts = self._tally, self._director.acts
        while not self._stop_following.wait(WATCH_EVERY_S):
            self._job.check()
            tally.sent = self._tap.figures.relayed
            tally.turns = {"killed": acts["kill"], "paused": acts["freeze"], "left": acts["close"]}
            self._screen.refresh()

    def _show(self, pairs: Sequence[RemovalPair | None]) -> None:
        for pair in pairs:
            if pair is not None and pair.there is not None and pair.here is not None:
                self._screen.say(removal_line(pair.there, pair.here))

    def _agreement(self) -> Agreement:
        with self._lock:
            return self._beside.agreement()

    def _report(self, acted: Future[None]) -> dict[str, Any]:
        acted.result()
        agreement = self._agreement()
        figures = self._tap.figures
        return {
            "ok": agreement.ok and agreement.agree > 0,
            **msgspec.to_builtins(agreement),
            "groups": dict(self._cast.groups),
            "acts": dict(self._director.acts),
            "restarts": self._restarts,
            "tap": msgspec.to_builtins(figures),
            "rejected": self._tally.rejected,
            "batches": len(self._tally.batch_ms),
            "trigger_interval_ms": self._settings.engine.trigger_interval_ms,
            "tick_interval_ms": self._settings.engine.tick_interval_ms,
            "seed": self._cast.seed,
        }
