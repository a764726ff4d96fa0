"""Measure how long `heartwheel --help` and `heartwheel explain` of a small log take where only the base is installed.

    PYTHONPATH=tests .venv/bin/python tests/benchmarks/cli_bench.py --runs 10 --installs 3

The wheel is built and put into an environment with the four libraries of the base. The targets are 0.25 s and 0.5 s
for the median on a quiet machine. CPU seconds say more than the clock where others use the machine too. To see what
takes the time: `python -X importtime -m heartwheel --help`.

Then pip installs the wheel into an empty environment, from an index but with all packages in its cache, and the log is
explained without Java: ten seconds together. `--installs 0` leaves that out. Exit code 1 if a target is missed.
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

from support.distributions import ROOT, build, empty_environment, environment

LOG = ROOT / "tests" / "explain" / "logs" / "3.9.1" / "server.log"
TARGETS_S = {"--help": 0.25, "explain": 0.5, "install, explain": 10.0}
WITHOUT_JAVA = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYTHONPATH")} | {
    "PATH": ""
}


def measure(words: list[str]) -> tuple[float, float]:
    """Run a command without Java on its path; return its seconds, and its seconds of a core."""
    begin = time.perf_counter()
    process = subprocess.Popen(words, env=WITHOUT_JAVA, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{words} ended with {process.returncode}")
    return time.perf_counter() - begin, used.ru_utime + used.ru_stime


def install_and_explain(folder: Path, wheel: Path) -> tuple[float, float]:
    """Install the wheel into an empty environment and explain the log; return the seconds of both together."""
    python = str(empty_environment(folder))
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install", str(wheel)]
    steps = (pip, [str(folder / "bin" / "heartwheel"), "explain", str(LOG)])
    seconds, core_s = zip(*map(measure, steps), strict=True)
    return sum(seconds), sum(core_s)


def main() -> int:
    """Measure, and print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--installs", type=int, default=3)
    options = parser.parse_args()
    taken: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        wheel, _ = build(ROOT, Path(folder, "dist"))
        program = str(environment(Path(folder, "base"), wheel, "").with_name("heartwheel"))
        for name, words in (("--help", [program, "--help"]), ("explain", [program, "explain", str(LOG)])):
            measure(words)  # compiles the modules
            taken[name] = [measure(words) for _ in range(options.runs)]
        if options.installs:
            install_and_explain(Path(folder, "first"), wheel)  # fills pip's cache
            again = (Path(folder, str(number)) for number in range(options.installs))
            taken["install, explain"] = [install_and_explain(each, wheel) for each in again]
    report = {}
    for name, pairs in taken.items():
        seconds, core_s = (statistics.median(each) for each in zip(*pairs, strict=True))
        report[name] = {"s": seconds, "s of a core": core_s}
        sys.stdout.write(f"{name:<18}{seconds:>7.3f} s{core_s:>7.3f} s of a core, target {TARGETS_S[name]} s\n")
    sys.stdout.write(json.dumps(report) + "\n")
    return int(any(figures["s"] > TARGETS_S[name] for name, figures in report.items()))


if __name__ == "__main__":
    sys.exit(main())
