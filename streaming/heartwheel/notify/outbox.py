"""The outbox: messages that were made and are not delivered yet, retried in turn until they are, or are given up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from heartwheel.notify.message import Message
from heartwheel.notify.pace import Pause

MESSAGES_MAX: Final = 10
"""Most messages that wait; while there are as many, news is rolled up in the incidents."""


class Waiting(msgspec.Struct, kw_only=True):
    """A message that is not delivered yet.

    Args:
        message: as it was made.
        attempts: how often it was posted so far.
        fault: why the newest attempt failed.
    """

    message: Message
    attempts: int = 0
    fault: str = ""


class Outbox:
    """The messages that wait, and which is to be tried when.

    Those that were tried least come first: one that the receiver cannot handle must not hold up the others. All share
    one pause, as it is the receiver that fails.

    Args:
        pause: when to try again.
        give_up_after_ms: how long a message is retried, ms since it was made.
        waiting: what an earlier process saved.
    """

    def __init__(self, pause: Pause, *, give_up_after_ms: int, waiting: Iterable[Waiting] = ()) -> None:
        self._pause = pause
        self._give_up_after_ms = give_up_after_ms
        self._waiting = list(waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def waiting(self) -> list[Waiting]:
        """The messages, the oldest first."""
        return list(self._waiting)

    @property
    def failing(self) -> bool:
        """Whether the receiver did not take what it was last sent."""
        return self._pause.failures > 0

    @property
    def resume_ms(self) -> int:
        """When the receiver may be tried again, epoch ms; 0 if it does not fail."""
        return self._pause.until_ms

    def room(self) -> int:
        """Return how many messages may be added."""
        return MESSAGES_MAX - len(self._waiting)

    def busy(self) -> frozenset[str]:
        """Return the ids of the incidents that have a message here."""
        return frozenset(name for waiting in self._waiting for name in waiting.message.incidents)

    def add(self, message: Message) -> None:
        """Add a message."""
        self._waiting.append(Waiting(message=message))

    def next(self, now_ms: int) -> Waiting | None:
        """Return the message that is to be posted now, if there is one and the receiver is not left alone."""
        if now_ms < self._pause.until_ms:
            return None
        return min(self._waiting, key=lambda waiting: waiting.attempts, default=None)

    def delivered(self, waiting: Waiting) -> None:
        """Drop a message: the receiver has it."""
        self._waiting.remove(waiting)
        self._pause.succeed()

    def refused(self, waiting: Waiting, fault: str) -> None:
        """Drop a message: the receiver answers, and will never take it."""
        self._waiting.remove(waiting)
        self._pause.succeed()
        self._note(waiting, fault)

    def failed(self, waiting: Waiting, fault: str, now_ms: int, *, asked_ms: int = 0) -> bool:
        """Note that a message could not be delivered, and leave the receiver alone for a while.

        Args:
            waiting: which of them.
            fault: what went wrong, for the log.
            now_ms: epoch ms.
            asked_ms: how long the receiver asked to be left alone, ms.

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
    def _note(waiting: Waiting, fault: str) -> None:
        waiting.attempts += 1
        waiting.fault = fault
