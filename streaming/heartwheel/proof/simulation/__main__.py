"""`python -m heartwheel.proof.simulation`: simulate histories from seeds, or print one of them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from heartwheel.proof.simulation.run import simulate
from heartwheel.proof.simulation.survey import Survey, survey


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: the command line; by default that of the process.

    Returns:
        The exit code: 0 if every promise held, 1 if not.
    """
    parser = argparse.ArgumentParser(
        prog="python -m heartwheel.proof.simulation", description="Simulate histories from seeds, or print one of them."
    )
    parser.add_argument("--seeds", type=_range, default=range(1_000), help="number of seeds from 0 on, or FIRST..END")
    parser.add_argument("--seed", type=int, help="print the history of this seed")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="number of processes; 0 uses only this one"
    )
    chosen = parser.parse_args(arguments)
    return _print_history(chosen.seed) if chosen.seed is not None else _survey(chosen.seeds, chosen.workers)


def _range(text: str) -> range:
    first, dots, end = text.partition("..")
    return range(int(first), int(end)) if dots else range(int(first))


def _print_history(seed: int) -> int:
    """Print one history. If the job fails with an error, that error ends the command."""
    history = simulate(seed, keep_lines=True)
    _print(*history.lines, "")
    if not history.problems:
        _print(f"seed {seed}: every promise held")
        return 0
    _print(*(f"{problem.promise} is broken: {problem.words}" for problem in history.problems))
    return 1


def _survey(seeds: Sequence[int], workers: int) -> int:
    progress = _Progress(len(seeds))
    done = survey(seeds, workers=workers, report=progress.show)
    _print("", *(f"{count:>11,}  {name}" for name, count in sorted(done.seen.items())), "")
    _print(f"{done.seeds:,} histories, {len(done.failures)} broke a promise, digest of all rows {done.rows:032x}")
    return 1 if done.failures else 0


class _Progress:
    """Prints failures as they are found, and the progress after each tenth of the seeds or each thousand."""

    def __init__(self, seeds: int) -> None:
        self._seeds = seeds
        self._failures = 0
        self._step = min(max(1, seeds // 10), 1_000)
        self._steps = 0

    def show(self, done: Survey) -> None:
        _print(*map(str, done.failures[self._failures :]))
        self._failures = len(done.failures)
        steps = done.seeds // self._step
        if steps > self._steps:
            self._steps = steps
            _print(f"{done.seeds:,} of {self._seeds:,} histories, {self._failures} broke a promise")


def _print(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
