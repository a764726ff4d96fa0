"""The notifier: follows the topics, keeps the incidents, posts, and writes down what must not be forgotten."""

from __future__ import annotations

import logging
import queue
import random
import threading
from collections.abc import Callable, Sequence
from typing import Final

from heartwheel.live.follower import Follower
from heartwheel.live.storms import StormRule
from heartwheel.live.topic_rows import Source, TopicRow
from heartwheel.notify.dispatcher import Dispatcher, Post
from heartwheel.notify.outbox import Waiting
from heartwheel.notify.store import Counts, State, Store
from heartwheel.settings import Settings
from heartwheel.wall_clock import wall_ms

_log = logging.getLogger(__name__)

_TURN_S: Final = 0.25
_BATCHES_MAX: Final = 20
_SAVE_EVERY_MS: Final = 1_000
_BEAT_EVERY_MS: Final = 5_000


class Notifier:
    """The process that reports to a webhook who was expired and who came back, at least once, over restarts.

    What is read is not done with before the incidents that it led to are on disk, and a message is on disk before it
    is first posted. So a crash anywhere posts a message again under the same id at worst
    (tests/notify/test_notifier.py).

    Args:
        settings: the whole configuration.
        post: posts a message once.
        store: where the state is saved; `None` keeps it in memory.
        since_ms: from where to read at the very first start, epoch ms; `None` is now.
        clock: returns epoch ms.
    """

    def __init__(
        self,
        settings: Settings,
        post: Post,
        *,
        store: Store | None,
        since_ms: int | None = None,
        clock: Callable[[], int] = wall_ms,
    ) -> None:
        self._settings = settings
        self._post = post
        self._store = store
        self._clock = clock
        state = store.load() if store else None
        if state is None:
            state = State(began_ms=clock() if since_ms is None else since_ms)
        elif since_ms is not None:
            _log.warning("--since is for the first start; going on where the last one stopped")
        self._began_ms = state.began_ms
        self._positions = {(s, number): at for s, numbers in state.positions.items() for number, at in numbers.items()}
        self._dispatcher = Dispatcher(
            settings.notify,
            state,
            canary_prefix=settings.canary.group_prefix,
            on_dead_letter=self._on_dead_letter,
            rng=random.Random(),  # noqa: S311 - jitter, no secret
            storm=StormRule(settings.dashboard.storm_rebalances, settings.dashboard.storm_window_ms),
            expected_members=settings.groups.expected_members,
        )
        self._received: queue.Queue[Sequence[TopicRow]] = queue.Queue(_BATCHES_MAX)
        self._stopping = threading.Event()
        self._saved_ms = 0
        self._beat_ms = 0
        self._skipped = 0
        self._changed = False

    @property
    def counts(self) -> Counts:
        """What was done so far, earlier processes included."""
        return self._dispatcher.counts

    def stop(self) -> None:
        """Ask for the end; may be called from any thread or signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Go on until `stop` is called.

        Raises:
            RuntimeError: if following the topics failed by a bug.
        """
        follower = Follower(
            self._settings,
            sources=(Source.EXPIRATIONS, Source.TRIGGERS),
            since_ms=self._began_ms,
            positions=self._positions,
            on_rows=self._enqueue,
            on_link=self._log_link,
        )
        self._save()
        with follower:
            while not self._stopping.is_set():
                self._turn()
                if follower.failure is not None:
                    raise RuntimeError("following the topics failed") from follower.failure
                self._note_skipped(follower.skipped)
        self._save()
        _log.info("stopped; %d incidents are open, %d messages wait", self._dispatcher.open, self._dispatcher.waiting)

    def _turn(self) -> None:
        self._beat()
        self._changed |= self._take()
        made = self._dispatcher.compose(self._clock())
        if made or (self._changed and self._clock() >= self._saved_ms + _SAVE_EVERY_MS):
            self._save()
        while not self._stopping.is_set() and self._dispatcher.post(self._post, self._clock()):
            self._save()
            self._beat()  # a receiver that takes its time, message by message, does not stop it

    def _beat(self) -> None:
        now_ms = self._clock()
        if self._store and not 0 <= now_ms - self._beat_ms < _BEAT_EVERY_MS:
            self._store.beat()
            self._beat_ms = now_ms

    def _take(self) -> bool:
        """Wait a moment for rows, apply what has come, and return whether something has."""
        wait_s = _TURN_S
        for _ in range(_BATCHES_MAX):
            try:
                rows = self._received.get(timeout=wait_s)
            except queue.Empty:
                return wait_s == 0
            self._dispatcher.take(rows, now_ms=self._clock())
            wait_s = 0
        return True

    def _enqueue(self, rows: Sequence[TopicRow]) -> None:
        # A full queue holds the follower up, and nothing is lost: Kafka keeps what was not read.
        while not self._stopping.is_set():
            try:
                self._received.put(rows, timeout=_TURN_S)
            except queue.Full:
                continue
            return

    def _note_skipped(self, skipped: int) -> None:
        if skipped > self._skipped:
            _log.error("%d records were deleted before they could be read; their expirations are not reported", skipped)
            self.counts.skipped += skipped - self._skipped
            self._skipped = skipped

    def _log_link(self, linked: bool) -> None:  # noqa: FBT001 - the signature of a listener
        where = self._settings.kafka.bootstrap_servers
        if linked:
            _log.info("Kafka at %s answers", where)
        else:
            _log.warning("Kafka at %s does not answer; going on when it does", where)

    def _on_dead_letter(self, waiting: Waiting) -> None:
        if self._store:
            self._store.add_dead_letter(waiting, now_ms=self._clock())

    def _save(self) -> None:
        if self._store:
            self._store.save(self._dispatcher.state())
        self._saved_ms = self._clock()
        self._changed = False
