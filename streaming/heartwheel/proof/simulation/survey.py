"""Many histories on all cores, and their results."""

from __future__ import annotations

import gc
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import reduce
from typing import Final, NamedTuple

import pyarrow as pa

from heartwheel.proof.simulation.checkers.problem import BrokenPromise
from heartwheel.proof.simulation.run import simulate

_AT_ONCE: Final = 10


class Failure(NamedTuple):
    """A seed whose history broke a promise.

    Args:
        problems: the broken promises; an error of the job counts as one.
    """

    seed: int
    problems: list[BrokenPromise]

    def __str__(self) -> str:
        """Return what is wrong, and the command that shows it again."""
        first = self.problems[0]
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        return f"seed {self.seed} breaks {first.promise}{more}: {first.words}\n  again: make simulate SEED={self.seed}"


class Survey(NamedTuple):
    """The outcome of many seeds.

    Args:
        failures: the seeds that broke a promise.
        seen: the number of occurrences in all of them, by name.
        rows: the digests of their rows, added up modulo 2**128.
    """

    seeds: int
    failures: list[Failure]
    seen: Counter[str]
    rows: int = 0


def survey(seeds: Sequence[int], *, workers: int, report: Callable[[Survey], None] | None = None) -> Survey:
    """Simulate many histories.

    Args:
        workers: the number of processes; 0 uses only this one.
        report: called with the result so far after every few histories.
    """
    chunks = [seeds[at : at + _AT_ONCE] for at in range(0, len(seeds), _AT_ONCE)]
    done = Survey(0, [], Counter())
    with _mapper(workers) as each:
        for part in each(_simulate_all, chunks):
            done = _add(done, part)
            if report is not None:
                report(done)
    return done


@contextmanager
def _mapper(workers: int) -> Iterator[Callable[..., Iterable[Survey]]]:
    """Return a `map` that uses so many processes."""
    if workers == 0:
        yield map
        return
    # Arrow's threads do not survive a fork.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn, initializer=_prepare) as pool:
        yield pool.map


def _add(one: Survey, other: Survey) -> Survey:
    rows = (one.rows + other.rows) % (1 << 128)
    return Survey(one.seeds + other.seeds, one.failures + other.failures, one.seen + other.seen, rows)


def try_seed(seed: int) -> Survey:
    """Simulate one history; an error of the job counts as a broken promise."""
    try:
        history = simulate(seed)
    except Exception as error:  # noqa: BLE001 - whatever it is, the seed that shows it must be named
        return Survey(1, [Failure(seed, [BrokenPromise("all", f"{type(error).__name__}: {error}")])], Counter())
    return Survey(1, [Failure(seed, history.problems)] if history.problems else [], history.seen, history.rows)


def _simulate_all(seeds: Sequence[int]) -> Survey:
    return reduce(_add, map(try_seed, seeds), Survey(0, [], Counter()))


def _prepare() -> None:
    """Limit Arrow to one thread: the blobs are tiny, and the other cores simulate other histories."""
    pa.set_cpu_count(1)
    # Nearly every object of a history lives until its end, so frequent collections would find nothing.
    gc.freeze()
    gc.set_threshold(50_000)
