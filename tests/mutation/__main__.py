"""Make every mutant, and show which of them its test kills: `make mutants`; ARGS="-k words" picks some."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from queue import Queue

from heartwheel.base.phrases import count
from mutation.mutants import MUTANTS, Mutant
from mutation.sandbox import Sandbox, Verdict


def main() -> int:
    """Run the command.

    Returns:
        0 if every test passes without its mutants and fails with each of them; else 1.

    Raises:
        SystemExit: with 2 if no mutant has the words.
    """
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("-k", dest="words", default="", help="only mutants whose name has these words")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many at once")
    chosen = parser.parse_args()
    mutants = [mutant for mutant in MUTANTS if chosen.words in mutant.name]
    if not mutants:
        parser.error(f"no mutant's name has {chosen.words!r} in it\nhint: tests/mutation/mutants.py has all names")
    started = time.perf_counter()
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="mutants-")))
        copies = [opened.enter_context(closing(Sandbox(folder / str(number)))) for number in range(chosen.workers)]
        for words in _failures(copies, mutants):
            _print("the tests fail without any mutant:", words)
            return 1
        survivors = [verdict for verdict in _verdicts(copies, mutants) if not verdict.killed]
    for verdict in survivors:
        _print("", f"SURVIVED: {verdict.mutant.name}", verdict.words)
    took_s = time.perf_counter() - started
    _print(f"{count(len(mutants), 'mutant')}, {len(mutants) - len(survivors)} killed, {took_s:.0f} s")
    return 1 if survivors else 0


def _failures(copies: Sequence[Sandbox], mutants: Sequence[Mutant]) -> list[str]:
    """Run the tests of all mutants on copies without a mistake, each its share; return what pytest said of failures."""
    killers = sorted({mutant.killer for mutant in mutants})
    shares = [killers[number :: len(copies)] for number in range(len(copies))]
    with ThreadPoolExecutor(len(copies)) as pool:
        done = pool.map(lambda copy, share: copy.run_tests(share) if share else (0, ""), copies, shares)
        return [words for code, words in done if code]


def _verdicts(copies: Sequence[Sandbox], mutants: Sequence[Mutant]) -> Iterator[Verdict]:
    """Try all mutants, as many at once as there are copies, and print a line of each."""
    free: Queue[Sandbox] = Queue()
    for copy in copies:
        free.put(copy)

    def judge(mutant: Mutant) -> Verdict:
        sandbox = free.get()
        try:
            return sandbox.try_mutant(mutant)
        finally:
            free.put(sandbox)

    with ThreadPoolExecutor(len(copies)) as pool:
        for verdict in pool.map(judge, mutants):
            word = "killed" if verdict.killed else "SURVIVED"
            killer = verdict.mutant.killer.rpartition("/")[2]
            _print(f"{verdict.mutant.promise}  {word:<8} {verdict.seconds:5.1f} s  {verdict.mutant.name:<75} {killer}")
            yield verdict


def _print(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
