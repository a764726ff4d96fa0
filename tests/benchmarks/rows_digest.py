"""Print digests of all rows: two versions of the code with equal digests decide, write and explain the same.

Run it before and after a change that is meant to change nothing, and compare the lines:
`PYTHONPATH=tests python -m benchmarks.rows_digest [--seeds 5000]`. It goes by commands alone, so it also compares
versions whose modules have other names.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
EVENTS = ("recordings/*/events.jsonl", "recordings_consumer/*/events.jsonl", "answered_logs/*.jsonl")
LOGS = "explain/logs/*/server.log"


def _commands() -> Iterator[tuple[str, list[str]]]:
    """Yield what is compared, and the command that prints its rows."""
    for pattern in EVENTS:
        for path in sorted(TESTS.glob(pattern)):
            yield str(path.relative_to(TESTS)), ["replay", str(path)]
    for path in sorted(TESTS.glob(LOGS)):
        yield str(path.relative_to(TESTS)), ["explain", "--json", "--all", str(path)]
        yield f"{path.relative_to(TESTS)}, text", ["explain", "--all", str(path)]


def _digest(arguments: list[str]) -> tuple[int, str]:
    """Return how many lines a command prints, and the digest of them and of its exit code."""
    done = subprocess.run([sys.executable, "-m", "heartwheel", *arguments], capture_output=True, check=False)
    if not done.stdout:
        raise SystemExit(f"error: `heartwheel {' '.join(arguments)}` printed nothing: {done.stderr.decode()[-500:]}")
    return done.stdout.count(b"\n"), hashlib.sha256(done.stdout + bytes([done.returncode])).hexdigest()[:32]


def main() -> int:
    """Print the digests; exit with 1 if a history broke a promise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="5000", help="how many histories, or FIRST..END")
    chosen = parser.parse_args()
    for name, arguments in _commands():
        lines, digest = _digest(arguments)
        _print(f"{digest}  {lines:>6,} lines  {name}")
    command = [sys.executable, "-m", "heartwheel.proof.simulation", "--seeds", chosen.seeds]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    _print(done.stdout.strip().splitlines()[-1])
    return done.returncode


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
