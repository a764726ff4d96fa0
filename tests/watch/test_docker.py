"""Logs of Docker's containers over the engine's socket: each line once, whatever becomes of connections."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from heartwheel.front.cli.app import run
from heartwheel.sources.watch.containers.docker import DockerContainers
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.sources.watch.watched_logs import WatchedLogs
from support.container_logs import KeptLog
from support.docker_api import ENTRY_BYTES_MAX, DockerApi
from support.grown_logs import real_messages
from support.read_containers import Reading, check


@contextmanager
def reading(folder: Path, target: str) -> Iterator[Reading]:
    """Read the logs of containers; at the end nothing more is saved, as if the process was killed."""
    with (
        HistoryFile(folder / "h.db", writes=True) as history,
        DockerContainers(target, str(folder / "s"), look_every_s=0.05) as containers,
        WatchedLogs([], history, containers=[containers]) as logs,
    ):
        yield Reading(logs, history)


def lines(*logs: KeptLog) -> int:
    """Count the lines of logs."""
    return sum(log.text.count(b"\n") for log in logs)


@pytest.mark.parametrize("seed", range(5))
def test_each_line_is_kept_once_wherever_connections_and_the_watcher_break(tmp_path: Path, seed: int) -> None:
    """Answers are cut anywhere, in frames too; entries share their times, lines are cut, containers stop and start."""
    rng = random.Random(seed)
    left = {f"kafka-{broker}": real_messages(rng, broker=broker)[:700] for broker in (1, 2)}
    logs = {name: KeptLog(f"{name}-id") for name in left}
    for messages in left.values():
        messages.insert(300, b"x" * (3 * ENTRY_BYTES_MAX) + b"\n")
    with DockerApi(tmp_path / "s", rng) as engine:
        for name, log in logs.items():
            engine.put(name, log, tty=seed > 2)
        engine.put("other", KeptLog("other"))
        while any(left.values()):
            with reading(tmp_path, "kafka-1,kafka-2") as watched:
                for _ in range(rng.randrange(1, 10)):
                    for name, messages in left.items():
                        size = rng.choice([0, 1, 60, 200])
                        logs[name].write(b"".join(messages[:size]), rng)
                        del messages[:size]
                    watched.turn()
                    time.sleep(rng.choice([0, 0.01, 0.1]))
                    watched.turn()
                    logs["kafka-1"].is_running = rng.random() < 0.8
        with reading(tmp_path, "kafka-1,kafka-2") as watched:
            watched.until_lines(lines(*logs.values()))
            watched.turn()
            watched.logs.save()
            assert not watched.logs.lost
    check(tmp_path, {name: [log] for name, log in logs.items()}, prefix="docker:")


def test_containers_are_found_by_label_and_replaced(tmp_path: Path) -> None:
    """One that is made again under its name begins another file; what was written while nobody read it is lost."""
    logs, messages = [KeptLog(str(number)) for number in range(3)], real_messages(random.Random(5))
    with DockerApi(tmp_path / "s") as engine:
        engine.put("kafka-1", logs[0], service="kafka")
        engine.put("zookeeper", KeptLog("z"), service="zookeeper")
        logs[0].write(b"".join(messages[:40]))
        with reading(tmp_path, "service=kafka") as watched:
            watched.until_lines(lines(logs[0]))
            logs[1].write(b"".join(messages[40:80]))
            logs[0].end()
            engine.put("kafka-1", logs[1], service="kafka")
            watched.until_lines(lines(*logs[:2]))
            assert not watched.logs.lost
            watched.turn()
            watched.logs.save()
        logs[2].write(b"".join(messages[80:120]))
        engine.put("kafka-1", logs[2], service="kafka")
        with reading(tmp_path, "service=kafka") as watched:
            watched.until_lines(lines(*logs))
            assert watched.logs.lost == 1
            watched.turn()
            watched.logs.save()
    check(tmp_path, {"kafka-1": logs}, prefix="docker:")


def test_an_engine_that_cannot_be_asked_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what to do, and without a traceback."""
    words = ["--docker", "kafka", "--set", f"watch.docker_socket={tmp_path / 'no.sock'}", "--port", "0"]
    assert run(["watch", *words, "--history", str(tmp_path / "h.db")]) == 1
    said = capsys.readouterr().err
    assert "watch.docker_socket" in said
    assert f"error: docker:kafka cannot be listed by {tmp_path / 'no.sock'}: " in said
    assert "Traceback" not in said
