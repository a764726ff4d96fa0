"""The purgatory: where delayed operations wait for their keys to be checked, or for their deadline.

It follows Kafka's `DelayedOperationPurgatory`: an operation is filed in a timing wheel under its deadline, and watched
under every key that may satisfy it. One that ends leaves the wheel at once, and the watch lists by purge.

>>> class Arrival(DelayedOperation):
...     arrived = False
...     def is_satisfied(self):
...         return self.arrived
>>> purgatory = Purgatory()
>>> early, late = Arrival(timeout_ms=500), Arrival(timeout_ms=500)
>>> purgatory.try_complete_else_watch(early, ["train", "tram"], now_ms=0)
False
>>> purgatory.try_complete_else_watch(late, ["train"], now_ms=100)
False
>>> purgatory.delayed, purgatory.watched        # operations that wait; entries in watch lists
(2, 3)
>>> early.arrived = True
>>> purgatory.check_and_complete("train")
1
>>> purgatory.delayed, purgatory.watched        # still in the list of "tram", until that is checked or purged
(1, 2)
>>> [operation.outcome.value for operation in purgatory.advance(600)]
['expired']
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

from timing_wheel import invariants
from timing_wheel.delayed_operation import DelayedOperation
from timing_wheel.wheel import TimingWheel

KeyT = TypeVar("KeyT", bound=Hashable)
OperationT = TypeVar("OperationT", bound=DelayedOperation)

PURGE_INTERVAL: Final = 1_000
"""Fewest ended operations in watch lists that are worth a purge; Kafka's default."""


class Purgatory(Generic[KeyT, OperationT]):
    """Watch delayed operations under keys until each completes, expires or is cancelled, exactly once.

    Single-threaded by contract: so no completion can be lost between the look at a condition and the watch, and Kafka's
    second look is not needed. Callbacks of operations may call the purgatory. It reads no clock: who owns it advances
    it, and does so before it checks keys for what came later, since a check does not look at deadlines.

    Args:
        wheel: the timer; a fresh one with a tick of 1 ms when left out. It belongs to the purgatory from now on.
        purge_interval: fewest ended operations in watch lists that start a purge.

    Raises:
        ValueError: the wheel is in use already.
    """

    def __init__(self, *, wheel: TimingWheel | None = None, purge_interval: int = PURGE_INTERVAL) -> None:
        if wheel is not None and len(wheel):
            raise ValueError(f"the wheel holds {len(wheel)} handles of somebody else; give a wheel of its own")
        self._wheel = wheel if wheel is not None else TimingWheel(tick_ms=1)
        self._purge_interval = purge_interval
        self._watchers: dict[KeyT, list[OperationT]] = {}
        self._waiting: dict[int, OperationT] = {}
        self._expiring: deque[OperationT] = deque()
        self._free: list[int] = []
        self._arrivals = 0
        self._ended = 0

    @property
    def delayed(self) -> int:
        """How many operations wait; one that ends is out of this count, and of the wheel, at that moment."""
        return len(self._waiting)

    @property
    def watched(self) -> int:
        """How many entries the watch lists have: one a key of an operation, until it has ended and is purged."""
        return sum(map(len, self._watchers.values()))

    @property
    def clock_ms(self) -> int:
        """The last clock it was advanced to, milliseconds."""
        return self._wheel.clock_ms

    def next_expiration_ms(self) -> int | None:
        """Tell until when nothing can expire, milliseconds; `None` when nothing waits."""
        return self.clock_ms if self._expiring else self._wheel.next_expiration_ms()

    def try_complete_else_watch(self, operation: OperationT, keys: Iterable[KeyT], now_ms: int) -> bool:
        """Complete an operation at once if its condition holds, else let it wait.

        Args:
            operation: a new one.
            keys: what may satisfy it, at least one.
            now_ms: when its timeout begins, milliseconds.

        Returns:
            Whether it completed.

        Raises:
            ValueError: there is no key, the operation is no new one, or its deadline is beyond what a wheel takes.
        """
        distinct = tuple(dict.fromkeys(keys))
        if not distinct:
            raise ValueError("an operation without keys could only expire; give at least one key to watch")
        if operation.ended or operation.arrival:
            raise ValueError(f"the operation came before and is {operation.outcome}; an operation waits once")
        if operation.try_complete():
            return True
        self._file(operation, now_ms + operation.timeout_ms)
        for key in distinct:
            self._watchers.setdefault(key, []).append(operation)
        return False

    def _file(self, operation: OperationT, deadline_ms: int) -> None:
        # Handles in use are always 0..n-1 when none is free.
        handle = self._free[-1] if self._free else len(self._waiting)
        self._wheel.file_one(handle, deadline_ms)
        if self._free:
            self._free.pop()
        self._waiting[handle] = operation
        self._arrivals += 1
        operation.watch_until(deadline_ms, self._arrivals, lambda: self._leave(handle))

    def _leave(self, handle: int) -> None:
        self._wheel.cancel_one(handle)
        del self._waiting[handle]
        self._free.append(handle)
        self._ended += 1

    def check_and_complete(self, key: KeyT) -> int:
        """Look again at everything that is watched under a key, in the order it came.

        Returns:
            How many operations this call completed.
        """
        completed = sum(operation.try_complete() for operation in tuple(self._watchers.get(key, ())))
        self._purge_key(key)
        self._purge_if_worth()
        return completed

    def cancel_for_key(self, key: KeyT) -> list[OperationT]:
        """Cancel everything that waits under a key, under whatever other keys it waits as well.

        Returns:
            The operations that this call cancelled, in the order they came.
        """
        return [operation for operation in self._watchers.pop(key, ()) if operation.cancel()]

    def advance(self, clock_ms: int) -> list[OperationT]:
        """Move the clock on, and expire what is due.

        Should a callback raise, the operations after it expire with the next call.

        Args:
            clock_ms: the clock, milliseconds; one that goes back is ignored.

        Returns:
            The operations that this call expired, by deadline, then in the order they came.
        """
        due = [self._waiting[handle] for handle in self._wheel.advance(clock_ms).tolist()]
        self._expiring.extend(sorted(due, key=lambda operation: (operation.deadline_ms, operation.arrival)))
        expired = []
        while self._expiring:
            operation = self._expiring.popleft()
            # A callback of one before may have completed it.
            if operation.expire():
                expired.append(operation)
        self._purge_if_worth()
        return expired

    def purge(self) -> int:
        """Drop the operations that ended from all watch lists.

        It runs by itself once more than `purge_interval` operations ended, and more than still wait: so the lists stay
        within twice of what waits, at a constant cost an operation.

        Returns:
            How many entries were dropped.
        """
        before = self.watched
        for key in tuple(self._watchers):
            self._purge_key(key)
        self._ended = 0
        return before - self.watched

    def _purge_if_worth(self) -> None:
        if self._ended > max(self._purge_interval, self.delayed):
            self.purge()

    def _purge_key(self, key: KeyT) -> None:
        waiting = [operation for operation in self._watchers.get(key, ()) if not operation.ended]
        if waiting:
            self._watchers[key] = waiting
        else:
            self._watchers.pop(key, None)

    def check(self) -> None:
        """Assert every invariant; for tests, since it looks at every operation.

        Raises:
            AssertionError: the purgatory is broken.
        """
        invariants.check_purgatory(self._wheel, self._waiting, self._watchers.values(), len(self._expiring))
