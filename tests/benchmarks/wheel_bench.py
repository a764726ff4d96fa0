"""Measure the wheel alone on one core: a table on stderr, JSON on stdout.

Run it as `python tests/benchmarks/wheel_bench.py [--members 1000000] [--repeat 5]`. Each figure is the best of the
repetitions, since whatever else the machine does can only make it slower.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable

import numpy as np

from timing_wheel import DelayedOperation, Purgatory, TimingWheel

SESSION_MS = 45_000
BEAT_MS = 3_000


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=1_000_000, help="handles in the wheel (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions, of which the best counts")
    arguments = parser.parse_args()
    figures = measure(arguments.members, arguments.repeat)
    sys.stderr.writelines(f"{name:32} {value:>16,.2f}\n" for name, value in figures.items())
    sys.stdout.write(json.dumps({"members": arguments.members, **figures}) + "\n")


def measure(members: int, repeat: int) -> dict[str, float]:
    """Measure each operation on a wheel of so many members, and snapshots at 100,000."""
    random = np.random.default_rng(42)
    handles = np.arange(members)
    beats = random.integers(0, BEAT_MS, members)
    shuffled = random.permutation(members)

    def filled() -> TimingWheel:
        wheel = TimingWheel(capacity=members)
        wheel.file(handles, SESSION_MS + beats)
        return wheel

    def expire(wheel: TimingWheel) -> None:
        fired = sum(len(wheel.advance(clock_ms)) for clock_ms in range(0, SESSION_MS + 2 * BEAT_MS, 1_000))
        assert fired == members, "every member expires"

    def live(wheel: TimingWheel) -> None:
        for clock_ms in range(BEAT_MS, 4 * SESSION_MS, BEAT_MS):
            wheel.touch(shuffled, clock_ms + SESSION_MS + beats)
            assert not len(wheel.advance(clock_ms)), "nobody expires who beats"

    small = TimingWheel()
    small.file(np.arange(100_000), SESSION_MS + beats[np.arange(100_000) % members])
    snapshot = small.snapshot()
    rounds = len(range(BEAT_MS, 4 * SESSION_MS, BEAT_MS))
    return {
        "file_per_s": members / best(repeat, filled),
        "touch_per_s": members / best(repeat, lambda wheel: wheel.touch(shuffled, 2 * SESSION_MS + beats), filled),
        "touch_in_order_per_s": members / best(repeat, lambda wheel: wheel.touch(handles, 90_000 + beats), filled),
        "touch_and_advance_per_s": rounds * members / best(repeat, live, filled),
        "cancel_per_s": members / best(repeat, lambda wheel: wheel.cancel(shuffled), filled),
        "expire_per_s": members / best(repeat, expire, filled),
        "expire_in_one_jump_per_s": members / best(repeat, lambda wheel: wheel.advance(10 * SESSION_MS), filled),
        "snapshot_100k_ms": 1_000 * best(repeat, small.snapshot),
        "restore_100k_ms": 1_000 * best(repeat, lambda: TimingWheel.restore(snapshot)),
        "purgatory_watch_and_complete_per_s": 10_000 / best(repeat, _complete_by_key, Purgatory),
        "purgatory_watch_and_expire_per_s": 10_000 / best(repeat, _expire_all, Purgatory),
        "file_one_per_s": 10_000 / best(repeat, _one_by_one, filled),
        "file_column_of_one_per_s": 1_000 / best(repeat, _column_by_column, filled),
    }


class _Reply(DelayedOperation):
    replied = False

    def is_satisfied(self) -> bool:
        return self.replied


def _complete_by_key(purgatory: Purgatory[int, _Reply]) -> None:
    for number in range(10_000):
        reply = _Reply(200)
        purgatory.try_complete_else_watch(reply, (number % 100, 100 + number % 77, 200 + number % 31), number)
        reply.replied = True
        purgatory.check_and_complete(number % 100)


def _expire_all(purgatory: Purgatory[int, _Reply]) -> None:
    for number in range(10_000):
        purgatory.try_complete_else_watch(_Reply(200), (number % 100,), number)
        if number % 100 == 0:
            purgatory.advance(number)
    purgatory.advance(20_000)


def _one_by_one(wheel: TimingWheel) -> None:
    for handle in range(10_000):
        wheel.file_one(handle, 20_000 + handle)


def _column_by_column(wheel: TimingWheel) -> None:
    for handle in range(1_000):
        wheel.file([handle], [20_000 + handle])


def best(repeat: int, work: Callable[..., object], prepare: Callable[[], object] | None = None) -> float:
    """Time the fastest of some runs, in seconds; what `prepare` makes is not counted."""
    times = []
    for _ in range(repeat):
        arguments = [prepare()] if prepare else []
        start = time.perf_counter()
        work(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
