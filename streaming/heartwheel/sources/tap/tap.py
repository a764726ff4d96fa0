"""A tap: it runs again and again until it is stopped, because each run ends when Kafka fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

from kafka.errors import KafkaError

from heartwheel.settings import Settings
from heartwheel.sources.explain.log_tail import LogTail
from heartwheel.sources.tap.plan import TapPlan
from heartwheel.sources.tap.positions import Positions
from heartwheel.sources.tap.run import TapProcess, TapRun
from heartwheel.sources.tap.writer import Writer

_REQUEST_LOG: Final = "name the file of the broker's logger kafka.request.logger; docs/tap.md shows how to switch it on"
_RETRY_S: Final = 0.5


class Tap(TapProcess):
    """One tap, from its start to its stop.

    Args:
        open_writer: connects to the heartbeat topic.
    """

    def __init__(
        self,
        settings: Settings,
        plan: TapPlan,
        report: Callable[[str], None] = lambda _: None,
        *,
        open_writer: Callable[..., Writer] = Writer,
    ) -> None:
        super().__init__(plan, report)
        self._kafka, self._open_writer = settings.kafka, open_writer

    def stop(self) -> None:
        """Ask the tap to end; safe to call from a signal handler."""
        self.ending.set()

    def run(self) -> None:
        """Relay until stopped.

        Raises:
            HeartwheelError: a log cannot be read, another tap runs on the same positions, or Kafka refuses.
        """
        with self.folder.locked():
            while not self.ending.is_set():
                try:
                    self._run_once()
                except (KafkaError, ConnectionError) as error:
                    self.figures.retries += 1
                    self.report(f"a request to Kafka failed, trying again: {error or type(error).__name__}")
                    self.ending.wait(_RETRY_S)

    def _run_once(self) -> None:
        """Continue from the positions, until stopped or until Kafka fails; the next run reads the positions again."""
        known = self.folder.load(self.plan.feed)
        with contextlib.ExitStack() as stack:
            writer = self._open_writer(self._kafka.bootstrap_servers, self._kafka.topics.heartbeats, self._kafka.client)
            stack.callback(writer.close)
            already = writer.read_back(self.plan.feed, known.end) if known is not None and known.end >= 0 else set()
            writer.end = known.end if known is not None and known.end >= 0 else writer.end_offset()
            position = known.request_log if known else None
            requests = LogTail(self.plan.request_log, position, from_begin=self.plan.from_begin, hint=_REQUEST_LOG)
            stack.callback(requests.close)
            broker = self._broker_tail(known)
            if broker is not None:
                stack.callback(broker.close)
            TapRun(self, writer, requests, broker, known, already).run()

    def _broker_tail(self, known: Positions | None) -> LogTail | None:
        if self.plan.broker_log is None:
            return None
        position = known.broker_log if known else None
        return LogTail(self.plan.broker_log, position, from_begin=self.plan.from_begin)
