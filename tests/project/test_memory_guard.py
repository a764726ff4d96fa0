"""The guard of the memory of test processes: it measures this one, and names the file that goes beyond the bound."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.memory import excess, peak_mib

_TESTS = Path(__file__).parents[1]


def test_the_peak_is_that_of_this_process() -> None:
    """Memory that is taken raises the peak, and giving it back does not lower it."""
    script = "from support.memory import peak_mib; a = peak_mib(); b'x' * (200 << 20); print(a, peak_mib())"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=_TESTS, capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert 190 <= after - before < 300
    assert peak_mib() > 0


@pytest.mark.parametrize(("before", "after", "named"), [(90, 100, False), (100, 101, True), (101, 150, False)])
def test_only_the_file_that_crosses_the_bound_is_named(before: int, after: int, *, named: bool) -> None:
    """A peak never falls, so files after the one that crossed the bound are not at fault."""
    assert (f"from {before} to {after} MiB" in excess(before, after, 100)) == named
    assert bool(excess(before, after, 100)) == named
