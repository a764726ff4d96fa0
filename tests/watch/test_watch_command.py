"""`heartwheel watch` as a process: it starts without Java and Kafka, serves its page, and may be killed at any time."""

from __future__ import annotations

import io
import random
import signal
import time
from pathlib import Path

import httpx
import msgspec
import pytest

from heartwheel.front.cli.app import run
from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scanned import Scanned
from heartwheel.sources.watch.explained_history import explain_history
from support.broker_logs import REAL
from support.grown_logs import GrowingLog, real_messages
from support.job import wait_for
from support.watching import running_watch


def is_ready(url: str) -> bool:
    """Return whether the history has what the logs had."""
    return httpx.get(f"{url}readyz").status_code == 200


def test_a_removal_is_on_its_page_within_seconds(tmp_path: Path) -> None:
    """What the log had, and what is appended; SIGTERM ends it with exit code 0."""
    lines = (REAL / "server.log").read_text().splitlines(keepends=True)
    log = tmp_path / "server.log"
    log.write_text("".join(lines[:900]))
    with running_watch(tmp_path, str(log)) as (process, url):
        wait_for(lambda: is_ready(url), "a watcher that has read its log")
        assert httpx.get(f"{url}healthz").status_code == 200
        with log.open("a") as more:
            more.write("".join(lines[900:]))
        wait_for(lambda: httpx.get(f"{url}api/expirations").json()["total"] == 4, "the removals that were appended")
        row = httpx.get(f"{url}api/expirations").json()["rows"][0]
        assert row["evidence"].startswith(str(log))
        assert row["explanation"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(4))
def test_kill_9_at_any_moment_loses_and_repeats_nothing(tmp_path: Path, seed: int) -> None:
    """Logs grow and are rotated while the process is killed and started: the history says what the logs say."""
    rng = random.Random(seed)
    logs = [GrowingLog(tmp_path / f"b{broker}.log", real_messages(rng, broker=broker), rng) for broker in (1, 2)]
    names = [str(log.path) for log in logs]
    while not all(log.is_done for log in logs):
        with running_watch(tmp_path, *names):
            for _ in range(rng.randrange(1, 12)):
                for log in logs:
                    log.write()
                time.sleep(rng.choice([0.01, 0.1, 0.5]))
                if rng.random() < 0.2:
                    rng.choice(logs).rotate()
        rng.choice(logs).rotate()
    with running_watch(tmp_path, *names) as (process, url):
        wait_for(lambda: is_ready(url), "a watcher that has caught up")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    wanted = explain_logs([each for log in logs for each in log.files], Scanned(), stdin=io.BytesIO())
    found = explain_history(tmp_path / "h.db", Scanned())
    assert list(map(msgspec.json.encode, found)) == list(map(msgspec.json.encode, wanted))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "watch.files"),
        (["server.log", "--utc-offset", "mars"], "watch.utc_offset"),
        (["server.log", "--keep", "soon"], "watch.keep"),
        (["server.log", "--host", "192.0.2.1"], "dashboard.host"),
    ],
)
def test_a_wrong_configuration_is_named(words: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and which setting it is."""
    assert run(["watch", *words]) == 2
    assert named in capsys.readouterr().err


@pytest.mark.parametrize("word", ["-", "no.log", "server.log.gz"])
def test_what_cannot_be_watched_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str) -> None:
    """A pipe cannot be read on after a restart, and a file that is not there or compressed does not grow.

    No hint offers a pipe.
    """
    (tmp_path / "server.log.gz").write_bytes(b"\x1f\x8b\x08\x00")
    name = word if word == "-" else str(tmp_path / word)
    assert run(["watch", name, "--port", "0", "--history", str(tmp_path / "h.db")]) == 1
    said = capsys.readouterr().err
    assert "hint:" in said
    assert "- for stdin" not in said
