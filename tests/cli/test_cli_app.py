"""The app: quick to start, self-explaining, with exit codes a script can rely on and errors without tracebacks."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from heartwheel.base.errors import HeartwheelError
from heartwheel.front.cli import app
from heartwheel.front.cli.app import EXIT_INTERRUPTED, run
from heartwheel.front.cli.commands import COMMANDS
from heartwheel.wire.events import RejectCause, RejectedError

HEAVY = {"pyspark", "pandas", "pyarrow", "numpy", "kafka", "msgspec", "docker"}


def test_start_up_imports_nothing_heavy() -> None:
    """`heartwheel --help` is quick because importing the command line loads neither Spark nor Kafka nor arrays."""
    code = "import sys, heartwheel.front.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & HEAVY == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The help of each command teaches by example."""
    assert run([command, "--help"]) == 0
    help_text = capsys.readouterr().out
    assert f"    heartwheel {command}" in help_text


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_are_valid(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every option that an example uses is one that the command has."""
    run([command, "--help"])
    help_text = capsys.readouterr().out
    examples, options = help_text.split("Options:")
    used = {word for word in examples.split() if word.startswith("--")}
    assert {option for option in used if option not in options} == set()


def test_version_shows_what_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program and what it runs on, each with its version; Java says it by a file, for it is not started."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.9"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("HEARTWHEEL_CACHE", str(tmp_path / "cache"))
    assert run(["--version"]) == 0
    out = capsys.readouterr().out
    for name in ("heartwheel", "pyspark", "kafka-python", "confluent-kafka"):
        assert f"{name} {metadata.version(name)}" in out.replace("PySpark", "pyspark")
    assert f"Python {platform.python_version()} at " in out
    assert f"Java 21.0.9 at {tmp_path}/bin/java" in out
    assert re.search(rf"^Kafka broker: \d+\.\d+\.\d+ not yet in {tmp_path}", out, re.MULTILINE)


def test_version_names_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing that is not there is an error, and nothing heavy is imported to find out."""

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    assert run(["--version"]) == 0
    out = capsys.readouterr().out
    assert "PySpark not installed, Java not installed\n" in out
    code = "import sys; from heartwheel.front.cli.app import run; run(['--version']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} & {"pyspark", "kafka", "pydantic"} == set()


@pytest.mark.parametrize("arguments", [["confg"], ["config", "--sett", "a=b"], ["config", "--set"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A typo in a command or option ends with code 2, says so on stderr and writes no data."""
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert not out
    assert "Error" in err


def test_bugs_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only errors that are written for people are shortened; anything else is a bug and is shown whole."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(app, "app", fail)
    with pytest.raises(ZeroDivisionError):
        run([])


def test_an_error_of_ours_that_is_not_for_people_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes an error one for people is that it derives from HeartwheelError, not which module it comes from."""

    def fail(*_: object, **__: object) -> None:
        raise RejectedError(RejectCause.NOT_JSON, "left uncaught")

    monkeypatch.setattr(app, "app", fail)
    with pytest.raises(RejectedError):
        run([])


def test_an_error_and_its_hint_are_a_line_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hint is a part of the error of its own, and is printed apart from the message."""

    def fail(*_: object, **__: object) -> None:
        raise HeartwheelError("it broke", hint="mend it")

    monkeypatch.setattr(app, "app", fail)
    assert run([]) == 1
    assert capsys.readouterr().err == "error: it broke\nhint: mend it\n"


def test_interrupt_is_exit_code_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends with the code that shells expect."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "app", interrupt)
    assert run([]) == 130


def test_config_names_the_layer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`config` shows each value beside the layer and the variable or flag that set it."""
    monkeypatch.setenv("HEARTWHEEL_WHEEL__SIZE", "64")
    assert run(["config", "--set", "engine.shards=3"]) == 0
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert rows["engine.shards"] == ["3", "flag", "--set", "engine.shards"]
    assert rows["wheel.size"] == ["64", "environment", "HEARTWHEEL_WHEEL__SIZE"]
    assert rows["wheel.tick"] == ['"25ms"', "default"]


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_config_masks_secrets(
    flags: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No output of `config` gives away a password; that one is set can be seen."""
    monkeypatch.setenv("HEARTWHEEL_KAFKA__CLIENT__SASL_PASSWORD", "hunter2")
    monkeypatch.setenv("HEARTWHEEL_SPARK__CONF__SPARK_HADOOP_FS_S3A_SECRET_KEY", "hunter2")
    assert run(["config", *flags]) == 0
    out = capsys.readouterr().out
    assert "hunter2" not in out
    assert out.count("********") == 2


def test_config_json_is_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    """`config --json` is one JSON object of value, layer and source by path."""
    assert run(["config", "--json", "--set", "engine.trigger_interval=1500ms"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["engine.trigger_interval"] == {
        "value": "1500ms",
        "layer": "flag",
        "source": "--set engine.trigger_interval",
    }


def test_wrong_configuration_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong configuration lists all its problems on stderr and ends with code 2 before anything is started."""
    assert run(["doctor", "--set", "engine.shards=0", "--set", "wheel.sice=1"]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("error: the configuration has 2 problems")
    assert "did you mean `size`?" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("slow_s", [0, 0.5])
def test_an_interrupt_within_a_callback_is_not_lost(slow_s: float) -> None:
    """Python ignores a Ctrl-C that comes while an object is thrown away; the command ends by it all the same.

    A busy machine may run another thread for long while the main thread starts it.
    """
    program = f"""
import signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts tests in the background ignores it
start = threading.Thread.start

def start_slowly(thread):
    start(thread)
    until_s = time.monotonic() + {slow_s}
    while time.monotonic() < until_s:
        pass

threading.Thread.start = start_slowly
"""
    program += """
import os, signal, time
from heartwheel.front.cli import app

class Thrown:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass

def command(*_, **__):
    Thrown()
    time.sleep(600)

app.app = command
app.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (EXIT_INTERRUPTED, "")
