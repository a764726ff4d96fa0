"""Kafka's `DelayedOperationTest`, re-expressed under the upstream names.

What upstream asserts of locks and threads becomes an assertion on the order of calls: the purgatory is single-threaded.
"""

from __future__ import annotations

import random

import pytest

from timing_wheel import DelayedOperation, Outcome, Purgatory


class MockOperation(DelayedOperation):
    """Upstream's `MockDelayedOperation`: completes once it is told that it may."""

    def __init__(self, timeout_ms: int = 100_000) -> None:
        super().__init__(timeout_ms)
        self.completable = False
        self.asked = 0
        self.calls: list[str] = []

    def is_satisfied(self) -> bool:
        """Tell what it was told."""
        self.asked += 1
        return self.completable

    def on_complete(self) -> None:
        """Note the call."""
        self.calls.append("complete")

    def on_expiration(self) -> None:
        """Note the call."""
        self.calls.append("expiration")


MockPurgatory = Purgatory[str, MockOperation]


@pytest.fixture
def purgatory() -> MockPurgatory:
    """Make a purgatory at clock 0."""
    return Purgatory()


def test_safe_try_complete_or_else(purgatory: MockPurgatory) -> None:
    """`testSafeTryCompleteOrElse`: what cannot complete is watched; what can is not, and is asked only once."""
    waits, completes = MockOperation(), MockOperation()
    completes.completable = True
    assert not purgatory.try_complete_else_watch(waits, ["key"], 0)
    assert purgatory.try_complete_else_watch(completes, ["key"], 0)
    assert (purgatory.delayed, purgatory.watched) == (1, 1)
    assert (completes.asked, completes.calls) == (1, ["complete"])


def test_request_satisfaction(purgatory: MockPurgatory) -> None:
    """`testRequestSatisfaction`: a check completes what can complete under its key, once."""
    first, second = MockOperation(), MockOperation()
    assert purgatory.check_and_complete("test1") == 0
    assert not purgatory.try_complete_else_watch(first, ["test1"], 0)
    assert purgatory.check_and_complete("test1") == 0
    assert not purgatory.try_complete_else_watch(second, ["test2"], 0)
    assert purgatory.check_and_complete("test2") == 0
    for key, operation in (("test1", first), ("test2", second)):
        operation.completable = True
        assert purgatory.check_and_complete(key) == 1
        assert purgatory.check_and_complete(key) == 0


def test_request_expiry(purgatory: MockPurgatory) -> None:
    """`testRequestExpiry`: the one with 20 ms expires at 20 ms and not before, the one with 200 s goes on waiting."""
    short, long = MockOperation(20), MockOperation(200_000)
    purgatory.try_complete_else_watch(short, ["test1"], 0)
    purgatory.try_complete_else_watch(long, ["test2"], 0)
    assert purgatory.advance(19) == []
    assert purgatory.advance(20) == [short]
    assert (short.outcome, short.calls) == (Outcome.EXPIRED, ["complete", "expiration"])
    assert (long.outcome, long.calls) == (Outcome.PENDING, [])


class Futures(DelayedOperation):
    """Upstream's `DelayedFuture`: waits for results that may come or not."""

    def __init__(self, timeout_ms: int, *results: int | None) -> None:
        super().__init__(timeout_ms)
        self.results = list(results)
        self.total = -1

    def is_satisfied(self) -> bool:
        """Tell whether all results are there."""
        return None not in self.results

    def on_complete(self) -> None:
        """Add up the results that are there."""
        self.total = sum(result for result in self.results if result is not None)


def test_delayed_future() -> None:
    """`testDelayedFuture`: results that are there complete at once, later ones by a check, missing ones expire."""
    purgatory: Purgatory[str, Futures] = Purgatory()
    done = Futures(100_000, 10, 11)
    assert purgatory.try_complete_else_watch(done, ["a"], 0)
    assert done.total == 21

    later = Futures(100_000, None, None)
    purgatory.try_complete_else_watch(later, ["b"], 0)
    later.results[0] = 20
    assert (purgatory.check_and_complete("b"), later.total) == (0, -1)
    later.results[1] = 21
    assert (purgatory.check_and_complete("b"), later.total) == (1, 41)

    partly = Futures(100_000, None, 31)
    purgatory.try_complete_else_watch(partly, ["c"], 0)
    partly.results[0] = 30
    assert (purgatory.check_and_complete("c"), partly.total) == (1, 61)

    never = Futures(2_000, 40, None)
    purgatory.try_complete_else_watch(never, ["d"], 0)
    assert (purgatory.advance(1_999), purgatory.advance(2_000)) == ([], [never])
    assert never.total == 40


def test_request_purge(purgatory: MockPurgatory) -> None:
    """`testRequestPurge`: what completes is no longer delayed at once, and leaves each list by its check."""
    first, second, third = (MockOperation() for _ in range(3))
    purgatory.try_complete_else_watch(first, ["test1"], 0)
    purgatory.try_complete_else_watch(second, ["test1", "test2"], 0)
    purgatory.try_complete_else_watch(third, ["test1", "test2", "test3"], 0)
    assert (purgatory.delayed, purgatory.watched) == (3, 6)
    for operation, delayed in ((second, 2), (third, 1)):
        operation.completable = True
        operation.try_complete()
        assert purgatory.delayed == delayed
    assert purgatory.watched == 6
    for key, watched in (("test1", 4), ("test2", 2), ("test3", 1)):
        purgatory.check_and_complete(key)
        assert purgatory.watched == watched


def test_should_cancel_for_key_returning_cancelled_operations(purgatory: MockPurgatory) -> None:
    """`shouldCancelForKeyReturningCancelledOperations`: those of the key come back, the others go on waiting."""
    operations = [MockOperation() for _ in range(3)]
    for operation, key in zip(operations, ["key", "key", "key2"], strict=True):
        purgatory.try_complete_else_watch(operation, [key], 0)
    assert purgatory.cancel_for_key("key") == operations[:2]
    assert (purgatory.delayed, purgatory.watched) == (1, 1)
    assert [operation.calls for operation in operations] == [[], [], []]


def test_should_return_nil_operations_on_cancel_for_key_when_key_doesnt_exist(purgatory: MockPurgatory) -> None:
    """`shouldReturnNilOperationsOnCancelForKeyWhenKeyDoesntExist`: an unknown key has nothing to cancel."""
    assert purgatory.cancel_for_key("unknown") == []


def test_try_complete_with_multiple_threads(purgatory: MockPurgatory) -> None:
    """`testTryCompleteWithMultipleThreads`: 2000 checks in any order, and no completion is lost."""
    operations = [MockOperation(10_000_000) for _ in range(100)]
    for number, operation in enumerate(operations):
        purgatory.try_complete_else_watch(operation, [f"key{number}"], 0)
    attempts = [number for number in range(100) for _ in range(20)]
    random.Random(3).shuffle(attempts)
    left = dict.fromkeys(range(100), 20)
    for number in attempts:
        left[number] -= 1
        operations[number].completable = left[number] == 0
        assert purgatory.check_and_complete(f"key{number}") == (left[number] == 0)
    assert {operation.outcome for operation in operations} == {Outcome.COMPLETED}
    assert (purgatory.delayed, purgatory.watched) == (0, 0)
