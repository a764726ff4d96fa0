"""An operation that waits. It either completes when its condition holds, or expires at its deadline, exactly once.

The rules are those of Kafka's `DelayedOperation`, without its locks: everything here is single-threaded by contract.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable
from typing import Final

from timing_wheel.columns import NEVER


class Outcome(enum.StrEnum):
    """The ways in which a delayed operation ends, and `PENDING` for one that has not ended."""

    PENDING = "pending"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class DelayedOperation(abc.ABC):
    """An operation that waits for a condition, but not for longer than a timeout.

    A subclass defines the condition (`is_satisfied`) and the callbacks. `on_complete` runs once when the operation ends
    by its condition or by its deadline; after a deadline `on_expiration` follows. A cancelled operation runs neither,
    as the caller of `cancel` knows that it ended.

    Args:
        timeout_ms: how long it may wait after it is watched, milliseconds.

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
        """Whether it completed, expired or was cancelled."""
        return self._outcome is not Outcome.PENDING

    @property
    def deadline_ms(self) -> int:
        """When it expires, milliseconds; `NEVER` before it is watched."""
        return self._deadline_ms

    @property
    def arrival(self) -> int:
        """Its number among all operations that the purgatory has watched, from 1; 0 before it is watched."""
        return self._arrival

    @abc.abstractmethod
    def is_satisfied(self) -> bool:
        """Return whether its condition holds. The purgatory calls this whenever one of its keys is checked."""

    def on_complete(self) -> None:  # noqa: B027 - an operation may have nothing to do
        """Handle the end of the operation, by condition or by deadline; by default do nothing."""

    def on_expiration(self) -> None:  # noqa: B027 - likewise
        """Handle the deadline, after `on_complete`; by default do nothing."""

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
        """Set its deadline, and the callback that removes it from the purgatory; the purgatory calls this.

        Args:
            deadline_ms: when it expires, milliseconds.
            arrival: its number among all operations; it decides between equal deadlines.
            leave: called once when it ends, before its other callbacks.
        """
        self._deadline_ms = deadline_ms
        self._arrival = arrival
        self._leave = leave

    def expire(self) -> bool:
        """End it by its deadline; the purgatory calls this.

        Returns:
            Whether this call ended it.
        """
        return self._end(Outcome.EXPIRED)

    def cancel(self) -> bool:
        """End it without its callbacks.

        Returns:
            Whether this call ended it.
        """
        return self._end(Outcome.CANCELLED)

    def _end(self, outcome: Outcome) -> bool:
        if self.ended:
            return False
        # It ends and leaves the wheel before its callbacks run: they may call this method again, or raise.
        self._outcome = outcome
        if self._leave is not None:
            self._leave()
        if outcome is not Outcome.CANCELLED:
            self.on_complete()
        if outcome is Outcome.EXPIRED:
            self.on_expiration()
        return True
