"""Every command where something is missing: no Java, no Kafka, and a folder that nobody can write to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

NOBODY = "127.0.0.1:1"
"""An address at which no Kafka answers."""

READ_ONLY = Path("/sys")
"""A folder in which root cannot create anything either."""

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "advise": ("kafka-0.log",),
    "audit": (),
    "beat": ("--group", "g", "--bootstrap-servers", NOBODY, "--", sys.executable, "-c", ""),
    "config": (),
    "dashboard": ("--port", "0"),
    "demo": ("--duration", "1s"),
    "doctor": (),
    "explain": ("kafka-0.log",),
    "feed": ("--duration", "1s"),
    "gateway": ("--port", "0"),
    "inspect": (),
    "mcp": ("kafka-0.log",),
    "notify": ("--dry-run",),
    "operations": (),
    "replay": ("requests.jsonl",),
    "run": (),
    "skip": ("--partition", "0", "--offset", "1", "--reason", "a bomb"),
    "tap": ("kafka-request.log", "--set", "engine.feeds=tap"),
    "tick": ("--topic", "events"),
    "top": (),
    "topics": (),
    "watch": ("kafka-0.log",),
}
"""What each command is given; a command that is missing here fails the first test."""

SERVING = {
    "dashboard": b"following 127.0.0.1:1",
    "gateway": b"no Kafka answers",
    "notify": b"Kafka at 127.0.0.1:1 does not answer",
}
"""Commands that wait for Kafka until they are stopped, and what they say first."""


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    err: str
    out: str = ""


def run_alone(command: str, python: str | Path = sys.executable) -> Ended:
    """Run a command without Java and Kafka, in a folder that nobody can write to.

    Args:
        command: its name.
        python: the interpreter of the environment.
    """
    # PATH without Java; the interpreter is named by its whole path.
    env = {"PATH": "/nonexistent", "HOME": os.environ.get("HOME", "/"), "HEARTWHEEL_KAFKA__BOOTSTRAP_SERVERS": NOBODY}
    words = [str(python), "-c", "from heartwheel.front.cli import main; main()", command, *ARGUMENTS[command]]
    with subprocess.Popen(words, cwd=READ_ONLY, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        if command not in SERVING:
            out, err = process.communicate(timeout=200)
            return Ended(process.returncode, err.decode(), out.decode())
        os.set_blocking(process.stderr.fileno(), False)
        said = b""
        while SERVING[command] not in said and process.poll() is None:
            said += process.stderr.read() or b""
            time.sleep(0.05)
        code = process.poll() or 0
        process.send_signal(signal.SIGTERM)
        os.set_blocking(process.stderr.fileno(), True)
        return Ended(code, (said + process.communicate(timeout=200)[1]).decode())
