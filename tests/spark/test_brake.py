"""The brake: reading stops where too many records wait for a partition that stands still, and goes on with it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from heartwheel.engine.runtime.driver.brake import STUCK_BATCHES, Brake, Ends
from heartwheel.kafka.client import KafkaUnreachableError

LIMIT = 1_000


def _brake(answers: Iterator[Ends | None], slept: list[float]) -> Brake:
    def ends() -> Ends:
        found = next(answers)
        if found is None:
            raise KafkaUnreachableError("nobody answers")
        return found

    return Brake(LIMIT, ends=ends, sleep=slept.append)


def test_few_records_may_wait_for_whom_they_like() -> None:
    """Up to the limit nobody is even asked."""
    brake = _brake(iter(()), [])
    brake.look([LIMIT] * 100)
    assert not brake.holds


def test_a_partition_that_does_not_move_is_found() -> None:
    """Beyond the limit the partitions are named whose end is the same a while later; those that go on are not."""
    brake = _brake(iter([{0: 5, 1: 7}, {0: 9, 1: 7}]), [])
    brake.look([LIMIT + 1])
    assert brake.holds
    assert "partition 1, which" in brake.fault().message
    moving = _brake(iter([{0: 5, 1: 7}, {0: 9, 1: 8}]), [])
    moving.look([LIMIT + 1])
    assert not moving.holds


def test_where_nobody_answers_nothing_is_known_to_stand_still() -> None:
    """Kafka is away: that is told elsewhere, and reading is not stopped by it."""
    brake = _brake(iter([None, None]), [])
    brake.look([LIMIT + 1])
    assert not brake.holds


def test_reading_goes_on_once_all_of_them_move() -> None:
    """Each of the partitions must have got something, however often Kafka does not answer."""
    slept: list[float] = []
    answers = [{1: 7, 2: 3}] * 2 + [{1: 7, 2: 3}, {1: 8, 2: 3}, None, {1: 9, 2: 4}]
    brake = _brake(iter(answers), slept)
    brake.look([LIMIT + 1])
    slept.clear()
    brake.wait(lambda: False)
    assert len(slept) == 3
    assert not brake.holds
    stopped = _brake(iter([{1: 7}] * 2), slept)
    stopped.look([LIMIT + 1])
    stopped.wait(lambda: True)


def _moving() -> Iterator[Ends]:
    return ({0: end} for end in count())


def test_p6_ever_more_records_that_wait_stop_reading_though_every_partition_goes_on() -> None:
    """P6: what waits must not grow for ever; each pause is twice as long as the last until fewer records wait."""
    slept: list[float] = []
    brake = _brake(_moving(), slept)
    pauses = []
    for _ in range(3):
        for waiting in range(LIMIT + 1, LIMIT + 1 + STUCK_BATCHES):
            assert not brake.holds
            brake.look([waiting])
        assert brake.holds
        assert f"{LIMIT + STUCK_BATCHES:,} records wait" in brake.fault().message
        brake.wait(lambda: False)
        pauses.append(slept[-1])
    assert pauses == [15, 30, 60]
    brake.look([LIMIT])
    for _ in range(STUCK_BATCHES):
        brake.look([LIMIT + 1])
    brake.wait(lambda: False)
    assert slept[-1] == 15


def test_records_that_wait_and_become_fewer_do_not_stop_reading() -> None:
    """A partition that was behind is read up to the others: that takes many batches, and each leaves fewer records."""
    brake = _brake(_moving(), [])
    for waiting in range(LIMIT + 10 * STUCK_BATCHES, LIMIT, -1):
        brake.look([waiting])
        assert not brake.holds


def test_the_fault_says_what_to_do() -> None:
    """How many records wait, for which partitions, and what lets them go on."""
    brake = _brake(iter([{3: 1, 1: 2}] * 2), [])
    brake.look([1_234_567])
    fault = brake.fault()
    assert "1,234,567 records wait" in fault.message
    assert "partition 1, 3" in fault.message
    assert "engine.waiting_records_max" in (fault.hint or "")
    assert fault.tries_max is None
