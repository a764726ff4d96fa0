"""The outbox: messages that are not delivered yet, retried in turn until they are delivered or given up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from heartwheel.readers.notify.message import Message
from heartwheel.readers.notify.pace import RetryDelay

MESSAGES_MAX: Final = 10
"""Most messages that wait; while there are as many, news is combined in the incidents."""


class PendingMessage(msgspec.Struct, kw_only=True):
    """A message that is not delivered yet.

    Args:
        fault: why the newest attempt failed.
    """

    message: Message
    attempts: int = 0
    fault: str = ""


class Outbox:
    """The waiting messages, and when each is to be tried.

    Messages with the fewest attempts come first: one that the receiver cannot handle must not block the others. All
    share one pause, because it is the receiver that fails.

    Args:
        pause: when to try again.
        give_up_after_ms: how long a message is retried, ms since it was made.
        waiting: the saved messages of an earlier process.
    """

    def __init__(self, pause: RetryDelay, *, give_up_after_ms: int, waiting: Iterable[PendingMessage] = ()) -> None:
        self._pause = pause
        self._give_up_after_ms = give_up_after_ms
        self._waiting = list(waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def waiting(self) -> list[PendingMessage]:
        """The messages, the oldest first."""
        return list(self._waiting)

    @property
    def failing(self) -> bool:
        """Whether the receiver did not accept the last message."""
        return self._pause.failures > 0

    @property
    def resume_ms(self) -> int:
        """When the receiver may be tried again, epoch ms; 0 if it does not fail."""
        return self._pause.until_ms

    def room(self) -> int:
        """The number of messages that may be added."""
        return MESSAGES_MAX - len(self._waiting)

    def busy(self) -> frozenset[str]:
        """The ids of the incidents that have a message here."""
        return frozenset(name for waiting in self._waiting for name in waiting.message.incidents)

    def add(self, message: Message) -> None:
        """Add a message."""
        self._waiting.append(PendingMessage(message=message))

    def next(self, now_ms: int) -> PendingMessage | None:
        """Return the message that is to be posted now, if there is one and the pause is over."""
        if now_ms < self._pause.until_ms:
            return None
        return min(self._waiting, key=lambda waiting: waiting.attempts, default=None)

    def delivered(self, waiting: PendingMessage) -> None:
        """Drop a message: the receiver has it."""
        self._waiting.remove(waiting)
        self._pause.succeed()

    def refused(self, waiting: PendingMessage, fault: str) -> None:
        """Drop a message: the receiver answers, and will never take it."""
        self._waiting.remove(waiting)
        self._pause.succeed()
        self._note(waiting, fault)

    def failed(self, waiting: PendingMessage, fault: str, now_ms: int, *, asked_ms: int = 0) -> bool:
        """Note that a message could not be delivered, and pause for a while.

        Args:
            fault: what went wrong, for the log.
            asked_ms: how long the receiver asked to wait, ms.

        Returns:
            Whether the message is given up, and dropped.
        """
        self._pause.fail(now_ms, asked_ms=asked_ms)
        is_over = now_ms >= waiting.message.made_ms + self._give_up_after_ms
        if is_over:
            self._waiting.remove(waiting)
        self._note(waiting, fault)
        return is_over

    @staticmethod
    def _note(waiting: PendingMessage, fault: str) -> None:
        waiting.attempts += 1
        waiting.fault = fault
