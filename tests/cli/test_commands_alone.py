"""Each command where something is missing: without Java, without Kafka, in a folder that nobody can write to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from kafka.errors import KafkaTimeoutError

from heartwheel.engine.runtime.driver.checkpoint import FORMAT, MANIFEST, Manifest
from heartwheel.front.cli import app
from heartwheel.front.cli.app import run
from heartwheel.front.cli.commands import COMMANDS
from heartwheel.kafka import client
from support.lone_commands import ARGUMENTS, NOBODY, SERVING, Ended, run_alone

ASKING = ("audit", "doctor", "feed", "skip", "tick", "topics")
"""Commands that ask Kafka before anything else, while a person waits."""

NEEDS_NOTHING = {"beat", "config"}
"""Commands that do their work all the same; `beat` because its worker comes first."""


@pytest.fixture(scope="module")
def ended() -> Iterator[dict[str, Ended]]:
    """Run all commands at once, as most of them wait ten seconds for a Kafka."""
    with ThreadPoolExecutor(len(ARGUMENTS)) as pool:
        yield dict(zip(ARGUMENTS, pool.map(run_alone, ARGUMENTS), strict=True))


def test_every_command_is_tried() -> None:
    """A new command gets its line above."""
    assert COMMANDS.keys() == ARGUMENTS.keys()


@pytest.mark.parametrize("command", sorted(ARGUMENTS))
def test_nothing_there_is_one_line_and_no_traceback(command: str, ended: dict[str, Ended]) -> None:
    """Without Java, Kafka and a place to write to, a command says in an error line what it lacks."""
    code, err, _ = ended[command]
    assert "Traceback" not in err, err
    if command in NEEDS_NOTHING:
        assert code == 0, err
    elif command in SERVING:
        assert SERVING[command].decode() in err
    elif command != "doctor":  # which prints a table of all that is missing
        errors = [line for line in err.splitlines() if line.startswith("error: ")]
        assert (code, len(errors)) == (1, 1), err


def test_unreachable_broker_is_one_error_and_one_hint(ended: dict[str, Ended]) -> None:
    """A broker that does not answer is an error with the address and a hint on stderr, and nothing on stdout."""
    code, err, out = ended["topics"]
    assert (code, out) == (1, "")
    first, second = err.strip().splitlines()
    assert first.startswith("error: ")
    assert NOBODY in first
    assert second.startswith("hint: ")


def test_a_checkpoint_without_java_is_one_error(tmp_path: Path) -> None:
    """Where Spark has to read a state and there is no Java, that is said, and not PySpark's many lines."""
    manifest = Manifest(format=FORMAT, shards=2, shuffle_partitions=2, topic="beats")
    (tmp_path / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text("v1\n{}")
    words = [
        sys.executable,
        "-c",
        "from heartwheel.front.cli import main; main()",
        "inspect",
        "--checkpoint",
        str(tmp_path),
    ]
    # A process of its own: PySpark leaves files open when its JVM does not start.
    env = os.environ | {"JAVA_HOME": str(tmp_path)}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"error: {tmp_path}/bin/java does not run" in done.stderr
    assert "hint: check JAVA_HOME" in done.stderr


def test_a_full_or_read_only_disk_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the system refuses is told with the path; any other error of the system keeps its traceback."""

    def fail(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/there/artifacts")

    monkeypatch.setattr(app, "app", fail)
    assert run([]) == 1
    assert capsys.readouterr().err.startswith(
        "error: /there/artifacts cannot be read or written: Permission denied\nhint: "
    )

    def bug(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file", "/there")

    monkeypatch.setattr(app, "app", bug)
    with pytest.raises(FileNotFoundError):
        run([])


@pytest.mark.parametrize("command", ASKING)
def test_who_waits_is_told_soon_that_kafka_is_away(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No such command looks for a broker for longer than those that follow the topics do."""
    looked = []

    def connect(*_: object, timeout_ms: int, **__: object) -> None:
        looked.append(timeout_ms)
        raise KafkaTimeoutError

    monkeypatch.setattr(client, "connect", connect)
    assert run([command, *ARGUMENTS[command], "--bootstrap-servers", NOBODY]) == 1
    assert looked == [client.WATCHED_TIMEOUT_MS]
    assert f"no Kafka answers at {NOBODY}" in "".join(capsys.readouterr())
