"""The notifier: follows the topics, keeps the incidents, posts messages, and saves its state."""

from __future__ import annotations

import logging
import queue
import random
import threading
from collections.abc import Callable, Sequence
from typing import Final

from heartwheel.base.wall_clock import wall_ms
from heartwheel.readers.live.follower import Follower
from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.live.topic_rows import OutputTopic, TopicRow
from heartwheel.readers.notify.dispatcher import Dispatcher, Post
from heartwheel.readers.notify.outbox import PendingMessage
from heartwheel.readers.notify.store import Counts, NotifierState, Store
from heartwheel.settings import Settings

_log = logging.getLogger(__name__)

_TURN_S: Final = 0.25
_BATCHES_MAX: Final = 20
_SAVE_EVERY_MS: Final = 1_000
_BEAT_EVERY_MS: Final = 5_000


class Notifier:
    """The process that reports expirations and returns to a webhook, at least once, across restarts.

    A position is saved only together with the incidents that resulted from it, and a message is saved before it is
    first posted. So at worst a crash makes it post a message again, under the same id (tests/notify/test_notifier.py).

    Args:
        post: posts a message once.
        store: where the state is saved; `None` keeps it in memory.
        since_ms: where to begin reading at the very first start, epoch ms; `None` is now.
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
            state = NotifierState(began_ms=clock() if since_ms is None else since_ms)
        elif since_ms is not None:
            _log.warning("--since is for the first start; continuing where the last one stopped")
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
        """The counts so far, including those of earlier processes."""
        return self._dispatcher.counts

    def stop(self) -> None:
        """Ask the notifier to stop; may be called from any thread or signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Run until `stop` is called.

        Raises:
            RuntimeError: following the topics failed by a bug.
        """
        follower = Follower(
            self._settings,
            sources=(OutputTopic.EXPIRATIONS, OutputTopic.TRIGGERS),
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
            self._beat()  # a receiver that is slow with each message does not stop it

    def _beat(self) -> None:
        now_ms = self._clock()
        if self._store and not 0 <= now_ms - self._beat_ms < _BEAT_EVERY_MS:
            self._store.beat()
            self._beat_ms = now_ms

    def _take(self) -> bool:
        """Wait a moment for rows, apply those that came, and return whether there were any."""
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
        # A full queue blocks the follower, and nothing is lost: Kafka keeps the unread records.
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
            _log.warning("Kafka at %s does not answer; continuing when it does", where)

    def _on_dead_letter(self, waiting: PendingMessage) -> None:
        if self._store:
            self._store.add_dead_letter(waiting, now_ms=self._clock())

    def _save(self) -> None:
        if self._store:
            self._store.save(self._dispatcher.state())
        self._saved_ms = self._clock()
        self._changed = False
