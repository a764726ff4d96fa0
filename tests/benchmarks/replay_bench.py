"""Measure `heartwheel replay` on logs of a million lines.

    .venv/bin/python tests/benchmarks/replay_bench.py --lines 1000000

The target is a million lines of steady heartbeats in less than 20 s on two cores. The other logs are there to show what
is dear: members that come and go (each line is a request of its own), lines whose time does not come first (so each is
decoded), and recorded answers (so every line goes through the rules).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

BEAT_MS = 3_000
GROUP_SIZE = 20


def steady(lines: int, members: int) -> Iterator[str]:
    """Write heartbeats of members that never miss one; one member in a thousand dies half way."""
    for number in range(lines):
        turn, member = divmod(number, members)
        if member % 1_000 == 0 and number > lines // 2:
            continue
        t_ms = turn * BEAT_MS + member * BEAT_MS // members
        yield (
            f'{{"t_ms":{t_ms},"type":"heartbeat","group_id":"g{member // GROUP_SIZE}","member_id":"m{member}",'
            '"generation_id":7,"session_timeout_ms":10000}'
        )


def time_last(lines: int, members: int) -> Iterator[str]:
    """Write the same with the time at the end of each line."""
    for line in steady(lines, members):
        t_ms, _, rest = line.removeprefix('{"t_ms":').partition(",")
        yield f'{{{rest[:-1]},"t_ms":{t_ms}}}'


def answered(lines: int, members: int) -> Iterator[str]:
    """Write the same with a broker's answer on each line."""
    for line in steady(lines, members):
        yield f'{line[:-1]},"error":"NONE"}}'


def coming_and_going(lines: int, members: int) -> Iterator[str]:
    """Write workers that beat nine times under each of their ids."""
    for number in range(lines):
        turn, member = divmod(number, members)
        t_ms = turn * BEAT_MS + member * BEAT_MS // members
        worker = f"m{member}-{turn // 9}"
        group = f"g{member // GROUP_SIZE}"
        yield f'{{"t_ms":{t_ms},"group_id":"{group}","member_id":"{worker}","session_timeout_ms":10000}}'


LOGS: dict[str, Callable[[int, int], Iterator[str]]] = {
    log.__name__: log for log in (steady, time_last, coming_and_going, answered)
}


def measure(log: Path) -> tuple[float, int, int]:
    """Replay a log in a process of its own; return the seconds it took, the verdicts, and its most memory, MiB."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "heartwheel", "replay", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as replay:
        assert replay.stdout is not None
        verdicts = sum(1 for _ in replay.stdout)
        # What of all processes before was the most is no figure of this one.
        _, code, used = os.wait4(replay.pid, 0)
        replay.returncode = os.waitstatus_to_exitcode(code)
    if replay.returncode:
        raise subprocess.CalledProcessError(replay.returncode, command)
    return time.perf_counter() - start, verdicts, used.ru_maxrss >> 10


def main() -> None:
    """Write each log to a temporary folder and replay it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--log", choices=LOGS, action="append", help="which logs; all by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.log or LOGS:
            path = Path(folder, "log.jsonl")
            path.write_text("\n".join(LOGS[name](arguments.lines, arguments.members)) + "\n")
            seconds, verdicts, mib = measure(path)
            rate = arguments.lines / seconds
            print(f"{name:18} {seconds:6.1f} s   {rate:10,.0f} lines/s   {verdicts:,} verdicts   {mib:,} MiB")  # noqa: T201 - a report


if __name__ == "__main__":
    main()
