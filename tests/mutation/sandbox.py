"""Where mutants are made: a copy of the project, in which one mistake at a time is put in and its test is run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

from mutation.mutants import Mutant

ROOT = Path(__file__).parents[2]

_COPIED = ("conftest.py", "pyproject.toml", "conf", "streaming", "tests", "wheel")
_FAILED = 1
"""What pytest exits with when it ran and a test failed; any other code means that nothing was proved."""


class Verdict(NamedTuple):
    """Hold what became of a mutant.

    Args:
        killed: whether its test failed.
        seconds: how long that took.
        words: the end of pytest's output.
    """

    mutant: Mutant
    killed: bool
    seconds: float
    words: str


class Sandbox:
    """Work on a copy of the project; the checkout itself is never touched.

    Args:
        folder: where to put the copy, a folder that is empty or not there yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._times = count(1_000_000_000)
        folder.mkdir(exist_ok=True)
        for name in _COPIED:
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, folder / name)
        streaming = folder / "streaming"
        environment = {
            **os.environ,
            "PYTHONPATH": f"{folder / 'wheel'}:{streaming}:{streaming / 'beats'}",
            "HEARTWHEEL_EXAMPLES": "100",
        }
        command = [sys.executable, "-P", str(Path(__file__).with_name("starter.py"))]
        self._starter = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self) -> None:
        """End the process that runs the tests."""
        self._starter.communicate()

    def try_mutant(self, mutant: Mutant) -> Verdict:
        """Put a mistake in, run its test, and take the mistake out again."""
        with self._mutated(mutant):
            return self._run(mutant)

    def run_tests(self, tests: Sequence[str]) -> tuple[int, str]:
        """Run tests on the copy as it is.

        Returns:
            The exit code of pytest, and the end of its output.
        """
        # Random tests try the same in each run: a mutant that dies here dies everywhere. And that pytest comes too late
        # to rewrite assertions of libraries is no mistake: they are loaded already.
        options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", "--hypothesis-profile=mutants"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        asked, answers = self._starter.stdin, self._starter.stdout
        assert asked is not None
        assert answers is not None
        asked.write(json.dumps([*options, *tests]) + "\n")
        asked.flush()
        code, output = json.loads(answers.readline())
        return code, output[-2_000:]

    def _run(self, mutant: Mutant) -> Verdict:
        started = time.perf_counter()
        code, words = self.run_tests([mutant.killer])
        return Verdict(mutant, code == _FAILED, time.perf_counter() - started, words)

    @contextmanager
    def _mutated(self, mutant: Mutant) -> Iterator[None]:
        file = self._folder / mutant.file
        right, status = file.read_text(encoding="utf-8"), file.stat()
        file.write_text(mutated(right, mutant), encoding="utf-8")
        # Python trusts a compiled file by the source's size and second, so each mistake gets a second of its own.
        second = next(self._times)
        os.utime(file, (second, second))
        try:
            yield
        finally:
            file.write_text(right, encoding="utf-8")
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def mutated(text: str, mutant: Mutant) -> str:
    """Put a mistake into a source text.

    Raises:
        ValueError: the code that is to be replaced is not there exactly once.
    """
    found = text.count(mutant.old)
    if found != 1:
        raise ValueError(f"`{mutant.name}`: {mutant.file} has the code to be replaced {found} times, not once")
    return text.replace(mutant.old, mutant.new)
