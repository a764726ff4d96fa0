"""What the purgatory promises beyond Kafka's tests: callbacks, errors, purge, and the order of ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from timing_wheel import NEVER, TIME_MS_MAX, DelayedOperation, Outcome, Purgatory, TimingWheel


class Told(DelayedOperation):
    """Complete once told, and do something at the end."""

    def __init__(self, timeout_ms: int = 1_000, then: Callable[[], object] = lambda: None) -> None:
        super().__init__(timeout_ms)
        self.told = False
        self.then = then
        self.ends = 0

    def is_satisfied(self) -> bool:
        """Tell whether it was told."""
        return self.told

    def on_complete(self) -> None:
        """Count, and act."""
        self.ends += 1
        self.then()


def test_expirations_come_by_deadline_and_then_in_the_order_of_arrival() -> None:
    """Of equal deadlines the one that came first expires first, although the handle of a former one was reused."""
    purgatory: Purgatory[str, Told] = Purgatory()
    former, second, third, late = Told(), Told(), Told(), Told(2_000)
    purgatory.try_complete_else_watch(former, ["k"], 0)
    purgatory.try_complete_else_watch(late, ["k"], 0)
    purgatory.try_complete_else_watch(second, ["k"], 500)
    former.force_complete()
    purgatory.try_complete_else_watch(third, ["k"], 500)
    assert purgatory.advance(5_000) == [second, third, late]
    assert [operation.ends for operation in (former, second, third, late)] == [1, 1, 1, 1]


def test_a_callback_may_complete_what_is_about_to_expire() -> None:
    """Two are due, the first one's end completes the second: it completes, does not expire, and ends once."""
    purgatory: Purgatory[str, Told] = Purgatory()
    second = Told()

    def complete_second() -> None:
        second.told = True
        assert purgatory.check_and_complete("second") == 1

    first = Told(then=complete_second)
    purgatory.try_complete_else_watch(first, ["first"], 0)
    purgatory.try_complete_else_watch(second, ["second"], 0)
    assert purgatory.advance(1_000) == [first]
    assert (second.outcome, second.ends) == (Outcome.COMPLETED, 1)
    purgatory.check()


def test_a_callback_may_bring_a_new_operation() -> None:
    """What an end brings in waits for its own deadline, while what is still about to expire does so."""
    purgatory: Purgatory[str, Told] = Purgatory()
    fresh = Told()
    first = Told(then=lambda: purgatory.try_complete_else_watch(fresh, ["k"], 1_000))
    second = Told()
    purgatory.try_complete_else_watch(first, ["k"], 0)
    purgatory.try_complete_else_watch(second, ["k"], 0)
    assert purgatory.advance(1_000) == [first, second]
    purgatory.check()
    assert (purgatory.delayed, fresh.outcome) == (1, Outcome.PENDING)
    assert purgatory.advance(2_000) == [fresh]


def test_a_check_within_a_check_completes_nothing_twice() -> None:
    """An end that checks its own key again finds the others, and the outer check does not count them again."""
    purgatory: Purgatory[str, Told] = Purgatory()
    inner: list[int] = []
    first = Told(then=lambda: inner.append(purgatory.check_and_complete("k")))
    others = [Told(), Told()]
    for operation in (first, *others):
        purgatory.try_complete_else_watch(operation, ["k"], 0)
        operation.told = True
    assert (purgatory.check_and_complete("k"), inner) == (1, [2])
    assert [operation.ends for operation in (first, *others)] == [1, 1, 1]


def test_a_callback_that_raises_delays_the_others_and_loses_none() -> None:
    """The error comes through; the operations after it expire with the next call, at the same clock."""
    purgatory: Purgatory[str, Told] = Purgatory()

    def fail() -> None:
        raise RuntimeError("broken callback")

    first, second = Told(then=fail), Told()
    purgatory.try_complete_else_watch(first, ["k"], 0)
    purgatory.try_complete_else_watch(second, ["k"], 0)
    with pytest.raises(RuntimeError, match="broken callback"):
        purgatory.advance(1_000)
    purgatory.check()
    assert (first.outcome, purgatory.delayed, purgatory.next_expiration_ms()) == (Outcome.EXPIRED, 1, 1_000)
    assert purgatory.advance(1_000) == [second]


def test_one_that_ended_can_not_end_again() -> None:
    """Exactly once: after any end, every way to end it says no and runs nothing."""
    purgatory: Purgatory[str, Told] = Purgatory()
    operations = [Told(), Told(), Told()]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["k"], 0)
    operations[0].force_complete()
    operations[1].cancel()
    purgatory.advance(1_000)
    outcomes = [operation.outcome for operation in operations]
    assert outcomes == [Outcome.COMPLETED, Outcome.CANCELLED, Outcome.EXPIRED]
    for operation in operations:
        operation.told = True
        ways = (operation.force_complete, operation.try_complete, operation.cancel, operation.expire)
        assert not any(way() for way in ways)
    assert purgatory.check_and_complete("k") == 0
    assert [operation.outcome for operation in operations] == outcomes
    assert [operation.ends for operation in operations] == [1, 0, 1]


def test_one_that_was_cancelled_under_one_key_is_gone_under_all() -> None:
    """Cancelling is an end: another key of the operation can no longer complete it."""
    purgatory: Purgatory[str, Told] = Purgatory()
    operation = Told()
    purgatory.try_complete_else_watch(operation, ["a", "b"], 0)
    assert purgatory.cancel_for_key("a") == [operation]
    operation.told = True
    assert (purgatory.check_and_complete("b"), operation.outcome) == (0, Outcome.CANCELLED)
    assert purgatory.watched == 0


def test_the_lists_stay_within_what_waits() -> None:
    """A thousand operations end without their other key ever being checked, and are purged all the same."""
    purgatory: Purgatory[str, Told] = Purgatory(purge_interval=10)
    for number in range(1_000):
        operation = Told()
        purgatory.try_complete_else_watch(operation, ["busy", f"idle{number}"], 0)
        operation.told = True
        assert purgatory.check_and_complete("busy") == 1
        assert purgatory.watched <= 11
    left = purgatory.watched
    assert (purgatory.purge(), purgatory.watched) == (left, 0)


def test_expired_ones_leave_the_lists_by_purge() -> None:
    """Those that expire are dropped once they outnumber both the purge interval and what waits."""
    purgatory: Purgatory[int, Told] = Purgatory(purge_interval=10)
    for number in range(50):
        purgatory.try_complete_else_watch(Told(number), [number], 0)
    purgatory.advance(20)
    assert (purgatory.delayed, purgatory.watched) == (29, 50)
    purgatory.advance(40)
    assert (purgatory.delayed, purgatory.watched) == (9, 9)


def test_a_timeout_of_zero_expires_with_the_next_advance() -> None:
    """An operation without time is looked at once, and expires even when the clock does not move."""
    purgatory: Purgatory[str, Told] = Purgatory(wheel=TimingWheel(tick_ms=1, start_ms=77))
    operation = Told(0)
    assert not purgatory.try_complete_else_watch(operation, ["k"], 77)
    assert purgatory.next_expiration_ms() == 77
    assert purgatory.advance(77) == [operation]


def test_a_clock_that_goes_back_expires_nothing() -> None:
    """The clock stays where it was."""
    purgatory: Purgatory[str, Told] = Purgatory()
    purgatory.advance(5_000)
    purgatory.try_complete_else_watch(Told(), ["k"], 3_000)
    assert (purgatory.advance(4_999), purgatory.clock_ms, purgatory.delayed) == ([], 5_000, 1)


def test_keys_that_come_twice_are_watched_once() -> None:
    """An operation is in the list of a key once, and so is asked once a check."""
    purgatory: Purgatory[str, Told] = Purgatory()
    purgatory.try_complete_else_watch(Told(), ["k", "k"], 0)
    assert purgatory.watched == 1


def test_what_can_not_wait_is_refused() -> None:
    """No key, a negative timeout, an operation that came before, a deadline beyond time, a wheel in use: by name."""
    purgatory: Purgatory[str, Told] = Purgatory()
    waiting, ended = Told(), Told()
    purgatory.try_complete_else_watch(waiting, ["k"], 0)
    ended.force_complete()
    with pytest.raises(ValueError, match="at least one key"):
        purgatory.try_complete_else_watch(Told(), [], 0)
    with pytest.raises(ValueError, match="timeout_ms is -1"):
        Told(-1)
    with pytest.raises(ValueError, match="is pending; an operation waits only once"):
        purgatory.try_complete_else_watch(waiting, ["k"], 0)
    with pytest.raises(ValueError, match="is completed; an operation waits only once"):
        purgatory.try_complete_else_watch(ended, ["k"], 0)
    with pytest.raises(ValueError, match="out of range"):
        purgatory.try_complete_else_watch(Told(1), ["k"], TIME_MS_MAX)
    wheel = TimingWheel()
    wheel.file([0], [5])
    with pytest.raises(ValueError, match="its own wheel"):
        Purgatory(wheel=wheel)
    purgatory.check()
    assert (purgatory.delayed, purgatory.watched, Told().deadline_ms) == (1, 1, NEVER)
