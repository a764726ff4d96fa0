"""Measure `heartwheel explain` on logs of many megabytes: lines of no group, and lines of nothing else.

    .venv/bin/python tests/benchmarks/explain_bench.py --megabytes 2000

The target is 50 MB/s on one core for lines that are not about groups, in memory that does not grow with the log. Lines
of groups cost more, for each is read; a rebalance writes about five. `--megabytes 10000` shows the same of 10 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LOG = Path(__file__).parents[1] / "explain" / "logs" / "3.9.1" / "server.log"
DAY_HOURS = 24
_PREFIX = b"[GroupCoordinator "


def quiet(file: Path, megabytes: int) -> int:
    """Write what a broker logs besides, again and again; one of its own group lines after each time."""
    lines = LOG.read_bytes().splitlines(keepends=True)
    other = b"".join(line for line in lines if _PREFIX not in line)
    block = other * (4_000_000 // len(other)) + next(line for line in lines if b"has failed" in line)
    with file.open("wb") as out:
        for _ in range(megabytes * 1_000_000 // len(block)):
            out.write(block)
    return file.stat().st_size


def busy(file: Path, megabytes: int) -> int:
    """Write lines of groups alone: the same minute at every hour of every day."""
    lines = [line for line in LOG.read_bytes().splitlines(keepends=True) if _PREFIX in line]
    block = b"".join(lines)
    with file.open("wb") as out:
        for hour in range(megabytes * 1_000_000 // len(block)):
            day, year = hour // DAY_HOURS % 28 + 1, 2000 + hour // (DAY_HOURS * 28) % 1000
            out.write(block.replace(b"2026-11-22 02:", f"{year}-11-{day:02d} {hour % DAY_HOURS:02d}:".encode()))
    return file.stat().st_size


def measure(file: Path) -> tuple[float, float, float]:
    """Explain a file in a process of its own; give seconds, seconds of one core, and its largest memory, MiB."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "heartwheel", "explain", str(file), "--summary"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"explain ended with {process.returncode}")
    return time.perf_counter() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Measure, and print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1_000)
    parser.add_argument("--busy-megabytes", type=int, default=50)
    options = parser.parse_args()
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, write, megabytes in (
            ("lines of no group", quiet, options.megabytes),
            ("lines of groups alone", busy, options.busy_megabytes),
        ):
            file = Path(folder, "server.log")
            size = write(file, megabytes)
            seconds, core_s, mib = measure(file)
            rows[name] = {
                "MB": size / 1e6,
                "MB/s": size / 1e6 / seconds,
                "MB/s of a core": size / 1e6 / core_s,
                "MiB": mib,
            }
            rates = f"{size / 1e6 / seconds:>9.0f} MB/s{size / 1e6 / core_s:>9.0f} MB/s of a core"
            sys.stdout.write(f"{name:<24}{size / 1e6:>8.0f} MB{rates}{mib:>7.0f} MiB\n")
    sys.stdout.write(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
