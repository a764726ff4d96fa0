"""Run a canary: a thread that beats for its members and judges, and a follower that hears what the engine says."""

from __future__ import annotations

import collections
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Self

from heartwheel.base.wall_clock import wall_ms
from heartwheel.base.worker import Worker
from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError
from heartwheel.kafka.sender import Sender, Stamp
from heartwheel.readers.canary.judge import JudgedOutcome
from heartwheel.readers.canary.members import CanaryMembers
from heartwheel.readers.canary.plan import Probe, plan_of
from heartwheel.readers.live.canary_figures import CanaryFigures
from heartwheel.readers.live.follower import Follower
from heartwheel.readers.live.topic_rows import OutputTopic, TopicRow
from heartwheel.settings import Settings
from heartwheel.settings.objective import lateness_objective_ms
from heartwheel.wire.event_codec import encode_event
from heartwheel.wire.job import JobRow, Phase
from heartwheel.wire.verdict_rows import ExpirationRow

_TICK_S: Final = 0.05
_LOOK_BACK_MS: Final = 60_000
_PAUSE_S: Final = 5.0
_BACKOFF_S: Final = 1.0
_GOODBYE_MS: Final = 2_000
_NO_JOB: Final = "no job has been seen yet"
_WARMING_UP: Final = "the job had just started, and its first batches are slow"

WARM_UP_MS: Final = 60_000
"""For how long after a start the batches of a job may be slow, as Spark's JVM and Python workers warm up, ms."""


def _ignore(_probe: Probe, _judged: JudgedOutcome) -> None:
    """Do nothing: the caller gave no listener."""


class Canary:
    """Members that fall silent on schedule: whether they are expired in time, and never falsely, is measured.

    It writes to the topic of heartbeats, and holds against the log alone: append times come from the broker's answers.
    Nothing is missed while Kafka is away or the job is not live; those silences are `void` unless they end in time.

    Args:
        on_judged: called with each outcome, from the canary's thread.
    """

    def __init__(self, settings: Settings, *, on_judged: Callable[[Probe, JudgedOutcome], None] = _ignore) -> None:
        self._settings, self._on_judged = settings, on_judged
        self._members = CanaryMembers(
            plan_of(settings),
            member_id=f"canary-{uuid.uuid4().hex[:12]}",
            missed_after_ms=settings.canary.missed_after_ms,
            objective_ms=lateness_objective_ms(settings),
        )
        # Rows come on the follower's thread and are judged on the canary's: it alone touches the members.
        self._received: collections.deque[TopicRow] = collections.deque(maxlen=100_000)
        self._phase: Phase | None = None
        self._slow: str | None = None
        self._broker_ahead_s: float | None = None
        self._paused_until_s = self._ticked_s = 0.0
        self._figures = self._members.figures(enabled=False)
        self._worker = Worker(self._run, "heartwheel-canary")
        self._follower = Follower(
            settings,
            sources=(OutputTopic.EXPIRATIONS, OutputTopic.JOB),
            since_ms=wall_ms() - _LOOK_BACK_MS,
            on_rows=self._hear,
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, in threads of its own; brokers, topics and the job may come later."""
        self._follower.start()
        self._worker.start()

    def stop(self) -> None:
        """Stop the canary: its members leave, so that none of them expires later."""
        self._worker.stop()
        self._follower.stop()

    def figures(self) -> CanaryFigures:
        """Return the figures until now; safe to call from any thread."""
        return self._figures

    def _hear(self, rows: Sequence[TopicRow]) -> None:
        prefix = self._settings.canary.group_prefix
        for each in rows:
            if isinstance(each.row, JobRow) or (
                isinstance(each.row, ExpirationRow) and each.row.group_id.startswith(prefix)
            ):
                self._received.append(each)

    def _run(self) -> None:
        started_s = self._ticked_s = time.monotonic()
        while not self._worker.stopping:
            try:
                sender = self._connect()
            except (KafkaUnreachableError, KafkaRefusedError):
                self._judge()
                self._worker.wait(_BACKOFF_S)
                continue
            try:
                self._beat(sender, started_s)
            finally:
                self._leave(sender)
        self._figures = self._members.figures(enabled=False)

    def _connect(self) -> Sender:
        kafka = self._settings.kafka
        return Sender(kafka.bootstrap_servers, kafka.topics.heartbeats, properties=kafka.client, linger_ms=0)

    def _beat(self, sender: Sender, started_s: float) -> None:
        while not self._worker.wait(_TICK_S):
            for probe in self._members.due(int((time.monotonic() - started_s) * 1000)):
                beat = encode_event(self._members.beat_of(probe))
                sender.send(probe.group_id.encode(), beat, partial(self._answer, probe))
            sender.poll()
            self._judge()

    def _leave(self, sender: Sender) -> None:
        for probe in self._members.plan.probes:
            sender.send(probe.group_id.encode(), encode_event(self._members.goodbye_of(probe)))
        sender.flush(_GOODBYE_MS)
        sender.close()

    def _answer(self, probe: Probe, stamp: Stamp | None) -> None:
        if stamp is not None:
            # Appended before now, so this is at most what the broker's clock says.
            self._broker_ahead_s = stamp.append_ms / 1000 - time.monotonic()
        self._members.answered(probe, stamp.append_ms if stamp is not None else None)

    def _judge(self) -> None:
        now_s = time.monotonic()
        if now_s - self._ticked_s > _PAUSE_S:
            self._paused_until_s = now_s + _PAUSE_S
        self._ticked_s = now_s
        self._take_heard()
        if self._broker_ahead_s is not None:
            now_ms = int((self._broker_ahead_s + now_s) * 1000)
            self._members.settle(now_ms, trouble=self._trouble(now_s), slow=self._slow, on_judged=self._on_judged)
        self._figures = self._members.figures(enabled=True)

    def _take_heard(self) -> None:
        while self._received:
            each = self._received.popleft()
            if isinstance(each.row, ExpirationRow):
                self._members.claimed(each.row, each.append_ms)
            elif isinstance(each.row, JobRow):
                self._phase = each.row.phase
                self._slow = slow_words(each.row)
                self._members.aim(each.row.lateness_objective_ms)

    def _trouble(self, now_s: float) -> str | None:
        """Return why expirations cannot come for now; a job that has died without a word is no excuse."""
        if not self._follower.linked:
            return "Kafka did not answer"
        if now_s < self._paused_until_s:
            return "the canary's own process was stopped"
        if self._phase is None:
            return _NO_JOB
        return None if self._phase is Phase.LIVE else f"the job was {_IN_WORDS[self._phase]}"


def slow_words(job: JobRow) -> str | None:
    """Return why expirations may be late for now: for `WARM_UP_MS` after it went live a job is still warming up."""
    is_young = job.phase is Phase.LIVE and job.at_ms - job.phase_since_ms < WARM_UP_MS
    return _WARMING_UP if is_young else None


_IN_WORDS: Final = {
    Phase.STARTING: "starting",
    Phase.CATCHING_UP: "catching up",
    Phase.RETRYING: "coming back from a fault",
    Phase.STOPPED: "stopped",
}
