"""The dispatcher: applies rows, makes messages of incidents at the allowed pace, and records each delivery."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping, Sequence

from heartwheel.readers.live.expiration import LoggedExpiration
from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.readers.notify.delivery import DeliveryResult, DeliveryStatus
from heartwheel.readers.notify.incident import Incident
from heartwheel.readers.notify.incidents import Incidents, Rules
from heartwheel.readers.notify.message import INCIDENTS_MAX, Message, message_of
from heartwheel.readers.notify.outbox import Outbox, PendingMessage
from heartwheel.readers.notify.pace import RetryDelay, TokenBucket
from heartwheel.readers.notify.payload import IncidentPayload, incident_payload
from heartwheel.readers.notify.store import Counts, NotifierState
from heartwheel.readers.notify.troubles import TroubleWatch
from heartwheel.settings import NotifySettings
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

_log = logging.getLogger(__name__)

Post = Callable[[Message], DeliveryResult]
"""Posts a message once."""

OnDeadLetter = Callable[[PendingMessage], None]
"""Called with a message that will not be delivered."""


class Dispatcher:
    """The notifier without its loop: it reads no clock, no topic and no network of its own.

    Args:
        canary_prefix: the prefix of groups whose members fall silent on purpose; they are not reported.
        state: the saved state of an earlier process, or a new one; the dispatcher updates it.
        on_dead_letter: called with messages that will not be delivered.
        rng: draws the jitter of the pauses.
        expected_members: how many members groups should have, by the group's id.
    """

    def __init__(
        self,
        settings: NotifySettings,
        state: NotifierState,
        *,
        canary_prefix: str,
        on_dead_letter: OnDeadLetter,
        rng: random.Random,
        storm: StormRule,
        expected_members: Mapping[str, int] | None = None,
    ) -> None:
        rules = Rules(
            gather_ms=settings.gather_ms,
            min_interval_ms=settings.min_interval_ms,
            close_after_ms=settings.close_after_ms,
            incidents_max=settings.incidents_max,
        )
        self._incidents_max = INCIDENTS_MAX if settings.kind == "webhook" else 1  # a pager has one event an incident
        self._state = state
        self._canary_prefix = canary_prefix
        self._on_dead_letter = on_dead_letter
        self._incidents = Incidents(rules, state.snapshot)
        self._troubles = TroubleWatch(storm, canary_prefix=canary_prefix, expected_members=expected_members)
        self._bucket = TokenBucket(per_minute=settings.per_minute, burst=settings.burst)
        self._outbox = Outbox(RetryDelay(rng), give_up_after_ms=settings.give_up_after_ms, waiting=state.waiting)

    @property
    def counts(self) -> Counts:
        """The counts so far."""
        return self._state.counts

    @property
    def open(self) -> int:
        """The number of open incidents."""
        return len(self._incidents.incidents)

    @property
    def waiting(self) -> int:
        """The number of messages that are not delivered yet."""
        return len(self._outbox)

    def state(self) -> NotifierState:
        """Return the present state, for saving."""
        self._state.snapshot = self._incidents.snapshot()
        self._state.waiting = self._outbox.waiting
        return self._state

    def take(self, rows: Sequence[TopicRow], *, now_ms: int, counted: Sequence[TopicRow] | None = None) -> None:
        """Apply rows of the topics, and note that they were read.

        Args:
            rows: those of one partition in their order.
            now_ms: epoch ms.
            counted: those that count for troubles of groups; by default all.
        """
        self._troubles.take(rows if counted is None else counted, now_ms=now_ms)
        for each in rows:
            if isinstance(each.row, ExpirationRow | TriggerRow):
                self._take(each.row, now_ms)
            self._state.positions.setdefault(each.source, {})[each.partition] = each.offset + 1

    def explain_again(self, rows: Sequence[TopicRow], *, now_ms: int) -> None:
        """Replace the causes of expirations that were taken before; a cause that changes what to do is news."""
        for each in rows:
            if isinstance(each.row, LoggedExpiration):
                self._incidents.explain_again(each.row, now_ms=now_ms)

    def _take(self, row: ExpirationRow | TriggerRow, now_ms: int) -> None:
        if row.group_id.startswith(self._canary_prefix):
            return
        if isinstance(row, ExpirationRow):
            self._incidents.expired(row, now_ms=now_ms)
        else:
            self._incidents.triggered(row, now_ms=now_ms)

    def compose(self, now_ms: int) -> int:
        """Make messages of the incidents that are due, combined if more are due than may be sent.

        Returns:
            How many were made.
        """
        if self._troubles.is_due(now_ms):
            found = self._troubles.find(self._incidents.troubles(), now_ms=now_ms)
            self._incidents.troubled(found, now_ms=now_ms)
        due = self._incidents.due(now_ms, busy=self._outbox.busy())
        messages_max = self._messages_max(now_ms)
        if not due or not messages_max:
            return 0
        size = min(self._incidents_max, -(-len(due) // messages_max))
        parts = [due[start : start + size] for start in range(0, len(due), size)][:messages_max]
        for part in parts:
            self._outbox.add(self._message(part, now_ms))
        return len(parts)

    def _messages_max(self, now_ms: int) -> int:
        # Waiting messages need tokens too. While the receiver fails, at most one of them was not tried yet, so that
        # nearly all news stays in the incidents, where it is combined.
        free = min(self._bucket.tokens(now_ms) - len(self._outbox), self._outbox.room())
        if not self._outbox.failing:
            return max(0, free)
        has_fresh = any(not waiting.attempts for waiting in self._outbox.waiting)
        return 0 if has_fresh or now_ms < self._outbox.resume_ms else min(1, self._outbox.room())

    def _message(self, incidents: list[Incident], now_ms: int) -> Message:
        waited_ms = now_ms - self._incidents.due_ms(incidents[0])
        return message_of([self._payload(one, now_ms) for one in incidents], now_ms=now_ms, waited_ms=waited_ms)

    def _payload(self, incident: Incident, now_ms: int) -> IncidentPayload:
        expired_before = incident.reported_expired
        step, closed_by = self._incidents.report(incident, now_ms)
        return incident_payload(incident, step, closed_by, expired_before=expired_before)

    def post(self, post: Post, now_ms: int) -> bool:
        """Post one message, if one waits and may be sent.

        Returns:
            Whether something was posted, whatever the result.
        """
        waiting = self._outbox.next(now_ms)
        if waiting is None or not self._bucket.take(now_ms):
            return False
        self._settle(waiting, post(waiting.message), now_ms)
        return True

    def _settle(self, waiting: PendingMessage, result: DeliveryResult, now_ms: int) -> None:
        title = waiting.message.title
        if result.status is DeliveryStatus.DELIVERED:
            self._outbox.delivered(waiting)
            self.counts.delivered += 1
            _log.info("posted: %s", title)
        elif result.status is DeliveryStatus.REFUSED:
            self._outbox.refused(waiting, result.fault)
            self.counts.refused += 1
            self._give_up(waiting)
        else:
            self.counts.failed += 1
            is_over = self._outbox.failed(waiting, result.fault, now_ms, asked_ms=result.asked_ms)
            pause_s = (self._outbox.resume_ms - now_ms) / 1000
            _log.warning("not delivered, again in %.1f s: %s: %s", pause_s, result.fault, title)
            if is_over:
                self.counts.given_up += 1
                self._give_up(waiting)

    def _give_up(self, waiting: PendingMessage) -> None:
        _log.error("will not be delivered, now a dead letter: %s: %s", waiting.fault, waiting.message.title)
        self._on_dead_letter(waiting)
