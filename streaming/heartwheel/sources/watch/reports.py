"""Messages about what is new in the logs, posted from a thread of their own: a slow receiver delays no log."""

from __future__ import annotations

import logging
import queue
import random
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.wall_clock import wall_ms
from heartwheel.base.worker import Worker
from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.readers.notify.dispatcher import Dispatcher, Post
from heartwheel.readers.notify.outbox import PendingMessage
from heartwheel.readers.notify.store import NotifierState
from heartwheel.settings import Settings
from heartwheel.sources.explain.shown import ShownEvent
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.sources.watch.restarts import Restarts
from heartwheel.wire.verdict_rows import TriggerRow
from heartwheel.wire.verdicts import TRIGGER_TYPES, Kind

_STATE: Final = "reports"
_TURN_S: Final = 0.25

_log = logging.getLogger(__name__)


class ReportedState(msgspec.Struct, kw_only=True):
    """The state that one process leaves for the next.

    Args:
        explained: the number of the newest fact whose events are in the incidents.
        notifier: the incidents, and the messages that wait.
    """

    explained: int
    notifier: NotifierState


class _News(NamedTuple):
    """What is new.

    Args:
        rows: of new events.
        counted: those of them that count for troubles.
        explained: the number of the newest fact behind them; `None` for none.
        again: rows of removals that were reported before, with other causes.
    """

    rows: Sequence[TopicRow] = ()
    counted: Sequence[TopicRow] = ()
    explained: int | None = None
    again: Sequence[TopicRow] = ()


class Reports(Worker):
    """Posts incidents of groups, at least once, across restarts.

    What is saved are the incidents together with the number of the newest fact in them, and a message before it is
    first posted. So a crash makes it post a message again at worst, under the same id.

    Args:
        settings: the checked configuration.
        history: where the state is saved.
        post: posts a message once.
        storm: the definition of a storm.
        clock: returns epoch ms.

    Raises:
        HeartwheelError: the saved state cannot be read.
    """

    def __init__(
        self,
        settings: Settings,
        history: HistoryFile,
        post: Post,
        *,
        storm: StormRule,
        clock: Callable[[], int] = wall_ms,
    ) -> None:
        super().__init__(self._work, "heartwheel-reports")
        self._history, self._post, self._clock = history, post, clock
        state = _loaded(history)
        self.explained = state.explained
        """The number of the newest fact whose events are in the incidents."""
        self._dispatcher = Dispatcher(
            settings.notify,
            state.notifier,
            canary_prefix=settings.canary.group_prefix,
            on_dead_letter=_note_dead_letter,
            rng=random.Random(),  # noqa: S311 - jitter, no secret
            storm=storm,
            expected_members=settings.groups.expected_members,
        )
        self._restarts = Restarts(storm.window_ms)
        self._news: queue.SimpleQueue[_News] = queue.SimpleQueue()
        self._save()  # what the history has from now on, and these incidents have not, is to be reported

    def add(self, events: Sequence[ShownEvent], explained: int) -> None:
        """Add events that are new.

        Args:
            events: in the order of time.
            explained: the number of the newest fact of which all events were added.
        """
        rows, counted = list[TopicRow](), list[TopicRow]()
        for event, some in events:
            self._restarts.note(event)
            rows += some
            counted += some if not self._restarts.has(event) else [each for each in some if not _begins(each)]
        if rows or explained != self.explained:
            self._news.put(_News(rows, counted, explained))

    def explain_again(self, events: Sequence[ShownEvent]) -> None:
        """Add removals whose causes became known after they were added; what was reported already changes nothing."""
        self._news.put(_News(again=[row for each in events for row in each.rows]))

    def _work(self) -> None:
        while not self.stopping:
            changed = self._take()
            if self._dispatcher.compose(self._clock()) or changed:
                self._save()
            while not self.stopping and self._dispatcher.post(self._post, self._clock()):
                self._save()
        self._take()
        self._save()

    def _take(self) -> bool:
        """Wait a moment for news, apply what came, and return whether there was any."""
        wait_s = _TURN_S
        while True:
            try:
                news = self._news.get(timeout=wait_s) if wait_s else self._news.get_nowait()
            except queue.Empty:
                return wait_s == 0
            self._dispatcher.take(news.rows, now_ms=self._clock(), counted=news.counted)
            self._dispatcher.explain_again(news.again, now_ms=self._clock())
            self.explained = self.explained if news.explained is None else news.explained
            wait_s = 0

    def _save(self) -> None:
        state = ReportedState(explained=self.explained, notifier=self._dispatcher.state())
        self._history.put(_STATE, msgspec.json.encode(state))


def _loaded(history: HistoryFile) -> ReportedState:
    found = history.state(_STATE)
    if found is None:
        return ReportedState(explained=history.newest, notifier=NotifierState())
    try:
        return msgspec.json.decode(found, type=ReportedState)
    except msgspec.MsgspecError as error:
        words = f"the messages in {history.path} cannot be read: {error}"
        raise HeartwheelError(words, hint="use the release that wrote it") from None


def _begins(row: TopicRow) -> bool:
    """Return whether a row begins a rebalance, which counts for a storm."""
    return isinstance(row.row, TriggerRow) and row.row.type == TRIGGER_TYPES[Kind.REBALANCE_STARTED]


def _note_dead_letter(waiting: PendingMessage) -> None:
    _log.error("its body: %s", waiting.message.body)
