"""Measure how long `heartwheel --help` and `heartwheel explain` of a small log take where only the base is installed.

    PYTHONPATH=tests .venv/bin/python tests/benchmarks/cli_bench.py --runs 10

The wheel is built and put into an environment with the four libraries of the base. The targets are 0.25 s and 0.5 s
for the median on a quiet machine. CPU seconds say more than the clock where others use the machine too. To see what
takes the time: `python -X importtime -m heartwheel --help`. Exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.distributions import ROOT, build, environment

LOG = ROOT / "tests" / "explain" / "logs" / "3.9.1" / "server.log"
TARGETS_S = {"--help": 0.25, "explain": 0.5}


def measure(words: list[str]) -> tuple[float, float]:
    """Run a command; return its seconds, and its seconds of a core."""
    begin = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{words} ended with {process.returncode}")
    return time.perf_counter() - begin, used.ru_utime + used.ru_stime


def main() -> int:
    """Measure, and print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    report = {}
    with tempfile.TemporaryDirectory() as folder:
        wheel, _ = build(ROOT, Path(folder, "dist"))
        program = str(environment(Path(folder, "base"), wheel, "").with_name("heartwheel"))
        for name, words in (("--help", [program, "--help"]), ("explain", [program, "explain", str(LOG)])):
            measure(words)  # compiles the modules
            seconds, core_s = zip(*(measure(words) for _ in range(options.runs)), strict=True)
            report[name] = {"s": statistics.median(seconds), "s of a core": statistics.median(core_s)}
            target = f"target {TARGETS_S[name]} s"
            sys.stdout.write(
                f"{name:<10}{report[name]['s']:>7.3f} s{report[name]['s of a core']:>7.3f} s of a core, {target}\n"
            )
    sys.stdout.write(json.dumps(report) + "\n")
    return int(any(figures["s"] > TARGETS_S[name] for name, figures in report.items()))


if __name__ == "__main__":
    sys.exit(main())
