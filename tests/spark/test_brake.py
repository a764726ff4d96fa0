"""The brake: reading stops where too many records wait for a partition that stands still, and goes on with it."""

from __future__ import annotations

from collections.abc import Iterator

from heartwheel.kafka.client import KafkaUnreachableError
from heartwheel.spark.brake import Brake, Ends

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
    assert _brake(iter(()), []).standing(LIMIT) == {}


def test_a_partition_that_does_not_move_is_found() -> None:
    """Beyond the limit the partitions are named whose end is the same a while later; those that go on are not."""
    assert _brake(iter([{0: 5, 1: 7}, {0: 9, 1: 7}]), []).standing(LIMIT + 1) == {1: 7}
    assert _brake(iter([{0: 5, 1: 7}, {0: 9, 1: 8}]), []).standing(LIMIT + 1) == {}


def test_where_nobody_answers_nothing_is_known_to_stand_still() -> None:
    """Kafka is away: that is told elsewhere, and reading is not stopped by it."""
    assert _brake(iter([None, None]), []).standing(LIMIT + 1) == {}


def test_reading_goes_on_once_all_of_them_move() -> None:
    """Each of the partitions must have got something, however often Kafka does not answer."""
    slept: list[float] = []
    brake = _brake(iter([{1: 7, 2: 3}, {1: 8, 2: 3}, None, {1: 9, 2: 4}, {}]), slept)
    brake.wait({1: 7, 2: 3}, lambda: False)
    assert len(slept) == 3
    brake.wait({1: 7}, lambda: True)


def test_the_fault_says_what_to_do() -> None:
    """How many records wait, for which partitions, and what lets them go on."""
    fault = _brake(iter(()), []).fault(1_234_567, {3: 1, 1: 2})
    assert "1,234,567 records wait" in fault.message
    assert "partition 1, 3" in fault.message
    assert "engine.waiting_records_max" in (fault.hint or "")
    assert fault.tries_max is None
