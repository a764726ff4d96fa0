"""The purgatory, in which delayed operations wait for a check of their keys, or for their deadline.

It follows Kafka's `DelayedOperationPurgatory`: an operation is filed in a timing wheel under its deadline, and watched
under every key that may satisfy it. An operation that ends leaves the wheel at once, and the watch lists by purge.

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
"""Number of ended operations in watch lists above which a purge runs; Kafka's default."""


class Purgatory(Generic[KeyT, OperationT]):
    """Delayed operations, watched under keys until each completes, expires or is cancelled, exactly once.

    It is single-threaded by contract. So no completion can be lost between the check of a condition and the watch, and
    Kafka's second check is not needed. Callbacks of operations may call the purgatory. It reads no clock: its owner
    advances it, and must do so before it checks keys for later events, since a check ignores deadlines.

    Args:
        wheel: the timer, which belongs to the purgatory from now on; by default a new one with a tick of 1 ms.
        purge_interval: number of ended operations in watch lists above which a purge runs.

    Raises:
        ValueError: the wheel is not empty.
    """

    def __init__(self, *, wheel: TimingWheel | None = None, purge_interval: int = PURGE_INTERVAL) -> None:
        if wheel is not None and len(wheel):
            raise ValueError(f"the wheel has {len(wheel)} handles already; give the purgatory its own wheel")
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
        """The number of waiting operations; an operation leaves this count, and the wheel, the moment it ends."""
        return len(self._waiting)

    @property
    def watched(self) -> int:
        """The number of entries in the watch lists: one per key of an operation, until it has ended and is purged."""
        return sum(map(len, self._watchers.values()))

    @property
    def clock_ms(self) -> int:
        """The last clock it was advanced to, milliseconds."""
        return self._wheel.clock_ms

    def next_expiration_ms(self) -> int | None:
        """Return the time before which no operation can expire, milliseconds; `None` if none waits."""
        return self.clock_ms if self._expiring else self._wheel.next_expiration_ms()

    def try_complete_else_watch(self, operation: OperationT, keys: Iterable[KeyT], now_ms: int) -> bool:
        """Complete an operation at once if its condition holds, else watch it.

        Args:
            operation: a new operation.
            keys: the keys whose check may satisfy it, at least one.
            now_ms: when its timeout begins, milliseconds.

        Returns:
            Whether it completed.

        Raises:
            ValueError: there is no key, the operation is not new, or its deadline is too late for a wheel.
        """
        distinct = tuple(dict.fromkeys(keys))
        if not distinct:
            raise ValueError("an operation without keys could only expire; give at least one key to watch")
        if operation.ended or operation.arrival:
            raise ValueError(f"the operation was used before and is {operation.outcome}; an operation waits only once")
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
        """Check the conditions of all operations under a key, in the order of their arrival.

        Returns:
            How many operations this call completed.
        """
        completed = sum(operation.try_complete() for operation in tuple(self._watchers.get(key, ())))
        self._purge_key(key)
        self._purge_if_worth()
        return completed

    def cancel_for_key(self, key: KeyT) -> list[OperationT]:
        """Cancel all operations that wait under a key, also if they wait under other keys as well.

        Returns:
            The operations that this call cancelled, in the order of their arrival.
        """
        return [operation for operation in self._watchers.pop(key, ()) if operation.cancel()]

    def advance(self, clock_ms: int) -> list[OperationT]:
        """Advance the clock, and expire the operations that are due.

        If a callback raises, the operations after it expire in the next call.

        Args:
            clock_ms: the clock, milliseconds; a clock that goes back is ignored.

        Returns:
            The operations that this call expired, by deadline, then in the order of their arrival.
        """
        due = [self._waiting[handle] for handle in self._wheel.advance(clock_ms).tolist()]
        self._expiring.extend(sorted(due, key=lambda operation: (operation.deadline_ms, operation.arrival)))
        expired = []
        while self._expiring:
            operation = self._expiring.popleft()
            # A callback of an earlier one may have completed it.
            if operation.expire():
                expired.append(operation)
        self._purge_if_worth()
        return expired

    def purge(self) -> int:
        """Drop ended operations from all watch lists.

        It runs by itself once more operations have ended than `purge_interval`, and more than still wait. So the lists
        have at most twice the waiting entries, at a constant cost per operation.

        Returns:
            The number of dropped entries.
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
        """Assert every invariant; for tests, since it checks every operation.

        Raises:
            AssertionError: the purgatory is broken.
        """
        invariants.check_purgatory(self._wheel, self._waiting, self._watchers.values(), len(self._expiring))
