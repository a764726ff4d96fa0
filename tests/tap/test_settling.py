"""Settling: a mark stays as far behind as a busy broker is late."""

from __future__ import annotations

from heartwheel.sources.tap.settling import SETTLE_MS, SETTLE_MS_MAX, Settling
from support.request_lines import T0


def test_broker_that_answers_at_once_needs_little() -> None:
    """Lines of a broker that is not busy are there after the least time."""
    settling = Settling()
    settling.note(T0, 3)
    assert settling.settle_ms == SETTLE_MS


def test_busy_broker_is_given_twice_its_slowest_answer() -> None:
    """The slowest answer of the last ten seconds counts, and no longer; there is a bound to it."""
    settling = Settling()
    for second, took_ms in enumerate([1, 700, 300, 1]):
        settling.note(T0 + second * 1_000, took_ms)
    assert settling.settle_ms == 1_400
    settling.note(T0 + 11_500, 1)
    assert settling.settle_ms == 600
    settling.note(T0 + 11_600, 60_000)
    assert settling.settle_ms == SETTLE_MS_MAX
    settling.note(T0 + 30_000, 1)
    assert settling.settle_ms == SETTLE_MS
