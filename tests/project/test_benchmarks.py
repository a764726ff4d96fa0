"""How a benchmark ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("raised", "code", "last"),
    [("KeyboardInterrupt", -signal.SIGINT, []), ("ValueError('no room')", 1, ["ValueError: no room"])],
)
def test_a_ctrl_c_ends_it_without_a_traceback(raised: str, code: int, last: list[str]) -> None:
    """A shell sees exit code 130, and nothing is printed; a mistake still shows where it is."""
    command = [sys.executable, "-c", f"import benchmarks; raise {raised}"]
    ended = subprocess.run(command, env={"PYTHONPATH": str(TESTS)}, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.splitlines()[-1:]) == (code, last)
