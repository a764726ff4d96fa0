"""The desk: takes rows in, makes messages of incidents at the pace that is allowed, and says what becomes of each."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable

from heartwheel.live.told import Told
from heartwheel.notify.book import Book, Rules
from heartwheel.notify.delivery import Answer, Fate
from heartwheel.notify.incident import Incident
from heartwheel.notify.message import INCIDENTS_MAX, Message, message_of
from heartwheel.notify.outbox import Outbox, Waiting
from heartwheel.notify.pace import Pause, TokenBucket
from heartwheel.notify.store import Counts, Kept
from heartwheel.notify.told import ToldIncident, told
from heartwheel.settings import NotifySettings
from heartwheel.wire.verdicts import ExpirationRow, TriggerRow

_log = logging.getLogger(__name__)

Post = Callable[[Message], Answer]
"""Posts a message once."""

Bury = Callable[[Waiting], None]
"""Takes a message that will not be delivered."""


class Desk:
    """Do everything but waiting: reads no clock, no topic and no network of its own.

    Args:
        settings: the section `[notify]`.
        canary_prefix: what the groups begin with whose members go silent on purpose; nobody is told of them.
        kept: what an earlier process left, or a fresh one; is kept up to date.
        bury: takes messages that will not be delivered.
        chance: gives the jitter of the pauses.
    """

    def __init__(
        self, settings: NotifySettings, kept: Kept, *, canary_prefix: str, bury: Bury, chance: random.Random
    ) -> None:
        rules = Rules(
            gather_ms=settings.gather_ms,
            min_interval_ms=settings.min_interval_ms,
            close_after_ms=settings.close_after_ms,
            incidents_max=settings.incidents_max,
        )
        self._kept = kept
        self._canary_prefix = canary_prefix
        self._bury = bury
        self._book = Book(rules, kept.pages)
        self._bucket = TokenBucket(per_minute=settings.per_minute, burst=settings.burst)
        self._outbox = Outbox(Pause(chance), give_up_after_ms=settings.give_up_after_ms, waiting=kept.waiting)

    @property
    def counts(self) -> Counts:
        """What was done so far."""
        return self._kept.counts

    @property
    def open(self) -> int:
        """How many incidents are open."""
        return len(self._book.incidents)

    @property
    def waiting(self) -> int:
        """How many messages are not delivered yet."""
        return len(self._outbox)

    def kept(self) -> Kept:
        """Give what is to be kept, as it is now."""
        self._kept.pages = self._book.pages()
        self._kept.waiting = self._outbox.waiting
        return self._kept

    def take(self, rows: Iterable[Told], *, now_ms: int) -> None:
        """Take in what the topics told, and note that it was read."""
        for each in rows:
            if isinstance(each.row, ExpirationRow | TriggerRow):
                self._take(each.row, now_ms)
            self._kept.positions.setdefault(each.source, {})[each.partition] = each.offset + 1

    def _take(self, row: ExpirationRow | TriggerRow, now_ms: int) -> None:
        if row.group_id.startswith(self._canary_prefix):
            return
        if isinstance(row, ExpirationRow):
            self._book.expired(row, now_ms=now_ms)
        else:
            self._book.triggered(row, now_ms=now_ms)

    def compose(self, now_ms: int) -> int:
        """Make messages of what is due, as many as may be sent; what is more is rolled up in fewer of them.

        Returns:
            How many were made.
        """
        due = self._book.due(now_ms, busy=self._outbox.busy())
        messages_max = self._messages_max(now_ms)
        if not due or not messages_max:
            return 0
        size = min(INCIDENTS_MAX, -(-len(due) // messages_max))
        parts = [due[start : start + size] for start in range(0, len(due), size)][:messages_max]
        for part in parts:
            self._outbox.add(self._message(part, now_ms))
        return len(parts)

    def _messages_max(self, now_ms: int) -> int:
        # Those that wait need tokens too. While the receiver fails there is at most one that was not tried yet, so that
        # nearly all news stays in the incidents, where it is rolled up.
        free = min(self._bucket.tokens(now_ms) - len(self._outbox), self._outbox.room())
        if not self._outbox.failing:
            return max(0, free)
        has_fresh = any(not waiting.attempts for waiting in self._outbox.waiting)
        return 0 if has_fresh or now_ms < self._outbox.resume_ms else min(1, self._outbox.room())

    def _message(self, incidents: list[Incident], now_ms: int) -> Message:
        waited_ms = now_ms - self._book.due_ms(incidents[0])
        return message_of([self._told(one, now_ms) for one in incidents], now_ms=now_ms, waited_ms=waited_ms)

    def _told(self, incident: Incident, now_ms: int) -> ToldIncident:
        expired_before = incident.told_expired
        step, closed_by = self._book.tell(incident, now_ms)
        return told(incident, step, closed_by, expired_before=expired_before)

    def post(self, post: Post, now_ms: int) -> bool:
        """Post one message, if one waits and may be sent.

        Args:
            post: does it.
            now_ms: the time, epoch ms.

        Returns:
            Whether something was posted, whatever came of it.
        """
        waiting = self._outbox.next(now_ms)
        if waiting is None or not self._bucket.take(now_ms):
            return False
        self._settle(waiting, post(waiting.message), now_ms)
        return True

    def _settle(self, waiting: Waiting, answer: Answer, now_ms: int) -> None:
        title = waiting.message.title
        if answer.fate is Fate.DELIVERED:
            self._outbox.delivered(waiting)
            self.counts.delivered += 1
            _log.info("posted: %s", title)
        elif answer.fate is Fate.REFUSED:
            self._outbox.refused(waiting, answer.fault)
            self.counts.refused += 1
            self._give_up(waiting)
        else:
            self.counts.failed += 1
            is_over = self._outbox.failed(waiting, answer.fault, now_ms, asked_ms=answer.asked_ms)
            pause_s = (self._outbox.resume_ms - now_ms) / 1000
            _log.warning("not delivered, again in %.1f s: %s: %s", pause_s, answer.fault, title)
            if is_over:
                self.counts.given_up += 1
                self._give_up(waiting)

    def _give_up(self, waiting: Waiting) -> None:
        _log.error("will not be delivered, now a dead letter: %s: %s", waiting.fault, waiting.message.title)
        self._bury(waiting)
