"""Measure how long a start takes, step by step, and what an idle job costs; a table on stderr, JSON on stdout.

Run it as `PYTHONPATH=tests python tests/benchmarks/start_bench.py [--starts 3] [--idle 60] [--set ...]`. It starts
`heartwheel run` as its users do, on an empty checkpoint and then again on the same one, beside an embedded broker that
is up already. Each step is the time from the start of the process, the median of the starts; the last one is the append
time of the first row of status, with which the first verdict could have come. The CPU seconds up to then tell more
than the clock where others use the machine too.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from heartwheel.engine.runtime.map import daemon
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.topic_specs import TopicNames, engine_topics
from heartwheel.kafka.topics import ensure_topics
from support.cores import cpu_s

PARTITIONS: Final = 8
_PATIENCE_S: Final = 300
_CLOCK: Final = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=3, help="how many checkpoints are started, each twice")
    parser.add_argument(
        "--idle", type=int, default=60, help="seconds for which an idle job is watched; 0 leaves it out"
    )
    parser.add_argument("--settle", type=int, default=60, help="seconds that it runs before that")
    parser.add_argument("--set", action="append", default=[], help="settings, as `engine.trigger_interval=500ms`")
    arguments = parser.parse_args()
    runs: dict[str, list[dict[str, float]]] = {"first start": [], "next start": []}
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="heartwheel-bench-") as folder, EmbeddedKafka(heap="512m") as broker:
        for number in range(arguments.starts):
            bench = Start(broker, Path(folder) / str(number), f"-{number}", arguments.set)
            for kind, found in runs.items():
                last = number + 1 == arguments.starts and kind == "next start"
                seconds = (arguments.settle, arguments.idle) if last and arguments.idle else None
                found.append(bench.run(report, seconds))
    for kind, found in runs.items():
        report[kind] = {step: round(statistics.median(each[step] for each in found), 2) for step in found[0]}
    for title, figures in report.items():
        sys.stderr.write(f"\n{title}\n")
        sys.stderr.writelines(f"  {name:44} {value:>8}\n" for name, value in figures.items())
    sys.stdout.write(json.dumps(report) + "\n")


class Start:
    """Own the topics and the checkpoint of one job.

    Args:
        folder: where its checkpoint and its log go.
        suffix: of the names of its topics.
        flags: settings, as on the command line.
    """

    def __init__(self, broker: EmbeddedKafka, folder: Path, suffix: str, flags: list[str]) -> None:
        folder.mkdir()
        self._broker = broker
        self._checkpoint = folder / "checkpoint"
        self._log = folder / "job.log"
        kinds = ("heartbeats", "expirations", "triggers", "status", "rejects", "job")
        names = {kind: f"{kind}{suffix}" for kind in kinds}
        self._status = names["status"]
        ensure_topics(
            broker.bootstrap,
            engine_topics(TopicNames(**names), heartbeat_partitions=PARTITIONS, output_partitions=PARTITIONS),
            create=True,
        )
        flags = ["spark.master=local[2]", *flags, *(f"kafka.topics.{kind}={name}" for kind, name in names.items())]
        self._command = [
            *(sys.executable, "-m", "heartwheel", "run"),
            *("--bootstrap-servers", broker.bootstrap, "--checkpoint", str(self._checkpoint)),
            *(word for flag in flags for word in ("--set", flag)),
        ]

    def run(self, report: dict[str, Any], seconds: tuple[int, int] | None) -> dict[str, float]:
        """Start the job, wait for its first row, and stop it.

        Args:
            report: gets what an idle job costs.
            seconds: for how long it is let run, and then watched; `None` leaves that out.

        Returns:
            Seconds by step.
        """
        rows = self._rows()
        known = set(self._files("commits"))
        began_s = time.time()
        with self._log.open("wb") as log:
            process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)
        try:
            jvm = _until(lambda: _child(process.pid, b"SparkSubmit"), process, self._log)
            parent = _until(lambda: _child(process.pid, f"-m\0{daemon.__name__}".encode()), process, self._log)
            _until(lambda: len(self._rows()) > len(rows), process, self._log)
            used = cpu_s(process.pid)
            first_ms = min(set(self._rows()) - set(rows))
            _until(lambda: set(self._files("commits")) - known, process, self._log)
            # The last batch of the run before may have been planned and not finished.
            planned_s = min((at for at in self._files("offsets").values() if at >= began_s), default=began_s)
            steps = {
                "Spark's JVM is started, s": _started_s(jvm) - began_s,
                "the session is up, s": self._logged_s("Spark is up") - began_s,
                "the first batch is planned, s": planned_s - began_s,
                "the parent of the workers is started, s": _started_s(parent) - began_s,
                "the first verdict could be in Kafka, s": first_ms / 1000 - began_s,
                **{f"CPU until then, {who}, s": spent for who, spent in used.items() if who != "whole machine"},
            }
            if seconds is not None:
                report["idle job, cores"] = _cores(process.pid, *seconds)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)
        return steps

    def _rows(self) -> list[int]:
        return [record.append_ms for record in read_topic(self._broker.bootstrap, self._status)]

    def _files(self, name: str) -> dict[str, float]:
        """Give the files of one of the checkpoint's folders, and when each was written, epoch seconds."""
        found = (self._checkpoint / name).glob("*")
        return {file.name: file.stat().st_mtime for file in found if file.name.isdigit()}

    def _logged_s(self, words: str) -> float:
        for line in self._log.read_text().splitlines():
            if words in line:
                moment = time.mktime(time.strptime(line[:19], "%Y-%m-%d %H:%M:%S"))
                return moment + int(line[20:23]) / 1000
        raise AssertionError(f"the job's log has no line with {words!r}")


def _until(condition: Any, process: subprocess.Popen[bytes], log: Path) -> Any:
    give_up_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < give_up_s:
        if process.poll() is not None:
            raise RuntimeError(f"the job has ended:\n{log.read_text()}")
        if found := condition():
            return found
        time.sleep(0.1)
    raise TimeoutError(f"nothing moves any more:\n{log.read_text()}")


def _child(parent: int, words: bytes) -> int | None:
    """Find the process of a job whose command line has these words; the job has its process group to itself."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if os.getpgid(int(folder.name)) == parent and words in (folder / "cmdline").read_bytes():
                return int(folder.name)
        except OSError:
            continue
    return None


def _started_s(pid: int) -> float:
    """Tell when a process was started, epoch seconds."""
    text = Path(f"/proc/{pid}/stat").read_text()
    boot = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime"))
    booted_s = float(boot.split()[1])
    return booted_s + int(text[text.rindex(")") + 2 :].split()[19]) / _CLOCK


def _cores(pid: int, settle_s: int, watch_s: int) -> dict[str, float]:
    time.sleep(settle_s)
    before, began_s = cpu_s(pid), time.monotonic()
    time.sleep(watch_s)
    after, wall_s = cpu_s(pid), time.monotonic() - began_s
    return {who: round((after[who] - before[who]) / wall_s, 2) for who in after}


if __name__ == "__main__":
    main()
