"""Measure `heartwheel watch`: speed and memory on long logs, memory with many groups, and how soon a removal is seen.

    .venv/bin/python tests/benchmarks/watch_bench.py --gigabytes 10

The targets: 50 MB of log a second on one core, where most lines are not about groups; memory that does not grow with
the log; at most 150 MB resident with ten thousand groups in the history; a removal on the page, in the metrics and in
a message within a second of its line. The log is the recording of tests/explain/logs: `mixed` as it is, a quarter of it
lines of groups, `tenth` with more of the other lines, `quiet` with a group line every 4 MB. It is rotated as it is
read, so it takes no space.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx

from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.sources.watch.watched_logs import WatchedLogs

LOG = Path(__file__).parents[1] / "explain" / "logs" / "3.9.1" / "server.log"
PART_BYTES = 32_000_000
HISTORY_BYTES_MAX = 64 << 20
_PREFIX = b"[GroupCoordinator "
_TEXT = " INFO [GroupCoordinator 1]: {} (kafka.coordinator.group.GroupCoordinator)\n"


def parts(kind: str) -> Iterator[bytes]:
    """Yield parts of a log without end, an hour later each."""
    lines = LOG.read_bytes().splitlines(keepends=True)
    other = b"".join(line for line in lines if _PREFIX not in line)
    if kind == "quiet":
        group = next(line for line in lines if b"has failed" in line)
        block = (other * (4_000_000 // len(other)) + group) * (PART_BYTES // 4_000_000)
    else:
        some = b"".join(lines) + other * (2 if kind == "tenth" else 0)
        block = some * (PART_BYTES // len(some))
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for hour in range(1_000_000):
        yield block.replace(b"2026-11-22 02:", f"{begin + timedelta(hours=hour):%Y-%m-%d %H:}".encode())


def resident_mb(pid: int | str = "self", which: str = "VmRSS") -> float:
    """Return the memory of a process that is resident, or with VmHWM was at most, MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(which)) * 1024 / 1e6


def reading(kind: str, megabytes: int) -> dict[str, float]:
    """Read a growing, rotated log into a history; only the reading is timed."""
    with tempfile.TemporaryDirectory() as folder:
        log, cpu_s, read, early_mb = Path(folder, "server.log"), 0.0, 0, 0.0
        log.touch()
        with (
            HistoryFile(Path(folder, "history.db"), writes=True) as history,
            WatchedLogs([str(log)], history) as watched,
        ):
            for number, part in enumerate(parts(kind)):
                if read >= megabytes * 1_000_000:
                    break
                if number:
                    log.rename(f"{log}.1")
                log.write_bytes(part)
                begin = time.process_time()
                while watched.behind():
                    read += watched.read().size
                cpu_s += time.process_time() - begin
                history.trim(before_ms=0, bytes_max=HISTORY_BYTES_MAX)
                if read <= megabytes * 200_000:
                    early_mb = resident_mb()
            facts = watched.scanned.coordinator_lines
        found = {
            "MB": read / 1e6,
            "MB/s of a core": read / 1e6 / cpu_s,
            "MB after a fifth": early_mb,
            "group lines": facts,
        }
        return found | {"MB at the end": resident_mb()}


def many_groups(groups: int, removals: int, file: Path) -> None:
    """Write rebalances and removals of many groups, spread over 30 days."""
    begin, step_s = datetime.now(UTC) - timedelta(days=30), 30 * 86_400 / (groups * removals)
    with file.open("w") as out:
        for number in range(groups * removals):
            at = begin + timedelta(seconds=number * step_s)
            group, member = f"team-{number % groups}.orders", f"consumer-{number}-7f0c6f8e-9f1b-4a7e-8d9a-5b1f0a6f2c11"
            generation = number // groups * 2
            why = f"(__consumer_offsets-1) (reason: removing member {member} on heartbeat expiration)"
            for text in (
                f"Member {member} in group {group} has failed, removing it from the group",
                f"Preparing to rebalance group {group} in state Stable with old generation {generation} {why}",
                f"Stabilized group {group} generation {generation + 1} (__consumer_offsets-1) with 3 members",
            ):
                out.write(f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}]{_TEXT.format(text)}")


@contextmanager
def watching(folder: Path, log: Path, **environment: str) -> Iterator[tuple[int, str]]:
    """Run the command until it has read the log; yield its process id and the address of its page."""
    command = [sys.executable, "-u", "-m", "heartwheel", "watch", str(log), "--port", "0", "--utc-offset", "+00:00"]
    command += ["--history", str(folder / "history.db")]
    env = os.environ | environment
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            until(lambda: httpx.get(f"{url}readyz").status_code == httpx.codes.OK)
            yield process.pid, url
        finally:
            process.kill()


def until(holds: Callable[[], bool], limit_s: float = 600) -> float:
    """Wait for a condition; return how long it took, seconds."""
    begin = time.perf_counter()
    while not holds():
        if time.perf_counter() - begin > limit_s:
            raise SystemExit("gave up waiting")
        time.sleep(0.01)
    return time.perf_counter() - begin


def memory(groups: int, removals: int) -> dict[str, float]:
    """Run a watcher on 30 days of many groups; return its memory after a start, and at most when people look at it.

    The last one has read all lines while it ran, as one that was started 30 days ago.
    """
    with tempfile.TemporaryDirectory() as folder:
        log, new = Path(folder, "server.log"), Path(folder, "new", "server.log")
        many_groups(groups, removals, log)
        found = {"groups": float(groups), "lines": 3.0 * groups * removals}
        for start in ("first", "again"):  # of the log, and from the history
            with watching(Path(folder), log) as (pid, url):
                found[f"MB {start}"] = resident_mb(pid)
                _look(url)
                found[f"MB at most {start}"] = resident_mb(pid, "VmHWM")
        found["history MB"] = sum(each.stat().st_size for each in Path(folder).glob("history.db*")) / 1e6
        new.parent.mkdir()
        new.touch()
        with watching(new.parent, new) as (pid, url):
            new.write_bytes(log.read_bytes())
            until(lambda: httpx.get(f"{url}api/now", timeout=60).json()["triggers_total"] >= groups * removals * 2)
            found["MB of all lines"] = resident_mb(pid)
            _look(url)
            found["MB at most of all lines"] = resident_mb(pid, "VmHWM")
        return found


def _look(url: str) -> None:
    """Ask for what takes most memory: metrics, lists, and times that are not in memory."""
    now_ms, day_ms = int(time.time() * 1000), 86_400_000
    for path in (
        "metrics",
        "api/groups?limit=1000",
        f"api/lanes?since_ms={now_ms - 30 * day_ms}",
        f"api/lanes?since_ms={now_ms - 25 * day_ms}&until_ms={now_ms - 20 * day_ms}",
        f"api/expirations?until_ms={now_ms - 20 * day_ms}",
        "api/groups/team-7.orders",
        f"api/expirations?group=team-8.orders&until_ms={now_ms - day_ms}",
    ):
        httpx.get(url + path, timeout=600).raise_for_status()


class _Receiver(BaseHTTPRequestHandler):
    """Takes messages, and notes when they came."""

    bodies: list[bytes]

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the name is http.server's
        """Print nothing."""


def latency(rounds: int) -> dict[str, float]:
    """Append removals; return the longest time until each place has one, seconds."""
    bodies: list[bytes] = []
    handler = type("Handler", (_Receiver,), {"bodies": bodies})
    server = HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    worst = {"page s": 0.0, "metrics s": 0.0, "message s": 0.0}
    message = {
        "HEARTWHEEL_NOTIFY__URL": f"http://127.0.0.1:{server.server_port}/",
        "HEARTWHEEL_NOTIFY__GATHER": "0ms",
        "HEARTWHEEL_NOTIFY__PER_MINUTE": "6000",  # or a message waits for its turn, not for the watcher
        "HEARTWHEEL_NOTIFY__BURST": "1000",
    }
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "server.log")
        log.write_bytes(LOG.read_bytes())
        with watching(Path(folder), log, **message) as (_, url):
            for number in range(rounds):
                name = f"late-{number}"
                at = datetime.now(UTC)
                text = f"Member m-{number} in group {name} has failed, removing it from the group"
                begin = time.perf_counter()
                with log.open("a") as out:
                    out.write(f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}]{_TEXT.format(text)}")
                    out.write(f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}] INFO another line (kafka.log)\n")
                places: dict[str, Callable[[], bool]] = {
                    "page s": lambda name=name: httpx.get(f"{url}api/expirations?group={name}").json()["matched"] == 1,  # type: ignore[misc]
                    "metrics s": lambda name=name: f'group="{name}"' in httpx.get(f"{url}metrics").text,  # type: ignore[misc]
                    "message s": lambda name=name: any(name.encode() in body for body in bodies),  # type: ignore[misc]
                }
                while places:
                    time.sleep(0.02)  # the questions must not be the load
                    for place in [place for place, has in places.items() if has()]:
                        worst[place] = max(worst[place], time.perf_counter() - begin)
                        del places[place]
    server.shutdown()
    server.server_close()
    return worst


def main() -> None:
    """Measure, and print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--removals", type=int, default=6, help="of each group, in 30 days")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", choices=["quiet", "tenth", "mixed", "memory", "latency"])
    options = parser.parse_args()
    steps: dict[str, Callable[[], dict[str, float]]] = {
        "quiet": lambda: reading("quiet", int(options.gigabytes * 1_000)),
        "tenth": lambda: reading("tenth", int(options.gigabytes * 300)),
        "mixed": lambda: reading("mixed", int(options.gigabytes * 300)),
        "memory": lambda: memory(options.groups, options.removals),
        "latency": lambda: latency(options.rounds),
    }
    rows = {name: step() for name, step in steps.items() if options.only in {None, name}}
    for name, row in rows.items():
        sys.stdout.write(f"{name:<10}" + "  ".join(f"{what} {value:,.2f}" for what, value in row.items()) + "\n")
    sys.stdout.write(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
