"""An operation that waits: it completes when its condition holds, or expires at its deadline, exactly one of them once.

The rules are those of Kafka's `DelayedOperation`, without its locks: everything here is single-threaded by contract.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable
from typing import Final

from timing_wheel.columns import NEVER


class Outcome(enum.StrEnum):
    """Name how a delayed operation ended, or that it has not."""

    PENDING = "pending"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class DelayedOperation(abc.ABC):
    """Wait for a condition, but not for longer than a timeout.

    A subclass says what the condition is (`is_satisfied`), and what follows: `on_complete` runs once when the operation
    ends by its condition or by its deadline, `on_expiration` after it when it was the deadline. A cancelled operation
    runs neither: whoever cancels it has it in hand.

    Args:
        timeout_ms: how long it may wait from when it is watched, milliseconds.

    Raises:
        ValueError: the timeout is negative.
    """

    def __init__(self, timeout_ms: int) -> None:
        if timeout_ms < 0:
            raise ValueError(f"timeout_ms is {timeout_ms}; an operation cannot end before it began")
        self.timeout_ms: Final = timeout_ms
        self._deadline_ms = NEVER
        self._outcome = Outcome.PENDING
        self._arrival = 0
        self._leave: Callable[[], None] | None = None

    @property
    def outcome(self) -> Outcome:
        """How it ended; `PENDING` while it has not."""
        return self._outcome

    @property
    def ended(self) -> bool:
        """Tell whether it completed, expired or was cancelled."""
        return self._outcome is not Outcome.PENDING

    @property
    def deadline_ms(self) -> int:
        """When it expires, milliseconds; `NEVER` before it is watched."""
        return self._deadline_ms

    @property
    def arrival(self) -> int:
        """Its number among all that the purgatory has watched, from 1; 0 before it is watched."""
        return self._arrival

    @abc.abstractmethod
    def is_satisfied(self) -> bool:
        """Tell whether its condition holds by now. It is asked again whenever one of its keys is checked."""

    def on_complete(self) -> None:  # noqa: B027 - an operation may have nothing to do
        """Act on the end of the operation, by condition or by deadline; by default nothing."""

    def on_expiration(self) -> None:  # noqa: B027 - likewise
        """Act on the deadline, after `on_complete`; by default nothing."""

    def force_complete(self) -> bool:
        """Complete it whatever its condition says.

        Returns:
            Whether this call ended it; false when it had ended before.
        """
        return self._end(Outcome.COMPLETED)

    def try_complete(self) -> bool:
        """Complete it if its condition holds.

        Returns:
            Whether this call ended it.
        """
        return not self.ended and self.is_satisfied() and self.force_complete()

    def watch_until(self, deadline_ms: int, arrival: int, leave: Callable[[], None]) -> None:
        """Give it a deadline and a way out of where it waits; the purgatory calls it.

        Args:
            deadline_ms: when it expires, milliseconds.
            arrival: its number among all that came; it decides between equal deadlines.
            leave: called once when it ends, before it acts on its end.
        """
        self._deadline_ms = deadline_ms
        self._arrival = arrival
        self._leave = leave

    def expire(self) -> bool:
        """End it by its deadline; the purgatory calls it.

        Returns:
            Whether this call ended it.
        """
        return self._end(Outcome.EXPIRED)

    def cancel(self) -> bool:
        """End it without acting on it.

        Returns:
            Whether this call ended it.
        """
        return self._end(Outcome.CANCELLED)

    def _end(self, outcome: Outcome) -> bool:
        if self.ended:
            return False
        # It has ended and left the wheel before its callbacks run: they may come back in here, or raise.
        self._outcome = outcome
        if self._leave is not None:
            self._leave()
        if outcome is not Outcome.CANCELLED:
            self.on_complete()
        if outcome is Outcome.EXPIRED:
            self.on_expiration()
        return True
