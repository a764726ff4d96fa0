"""A Spark standalone cluster of real processes, from the same PySpark that pip installed: a master and its workers."""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark

from heartwheel.kafka.broker.java import find_java
from heartwheel.kafka.broker.node_process import HOST, die_with_parent
from support.job import wait_for
from support.processes import children_of, command_of

_HOME: Final = Path(pyspark.__file__).parent
_PACKAGE: Final = "org.apache.spark.deploy"


class Daemon:
    """One JVM of the cluster.

    Args:
        folder: where it works and logs.
        words: its class and arguments.
    """

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self._words = words
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Give its process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """What it has printed so far, over all its lives."""
        file = self.folder / "log"
        return file.read_text() if file.exists() else ""

    def start(self) -> None:
        """Start it, with an environment that knows nothing of this project."""
        self.folder.mkdir(parents=True, exist_ok=True)
        java = find_java()
        environment = {
            "PATH": f"{Path(java).parent}:/usr/bin:/bin",
            "JAVA_HOME": str(Path(java).resolve().parents[1]),
            "SPARK_HOME": str(_HOME),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
        }
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [_HOME / "bin" / "spark-class", *self._words],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 - it takes no lock, it only makes one system call
            )

    def kill(self) -> None:
        """Kill it as a crash of its machine would, without what it started."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Worker(Daemon):
    """A worker, and the executor that it runs."""

    def executor(self) -> int | None:
        """Give the process id of its executor, if there is one."""
        executors = (pid for pid in children_of(self.pid) if "CoarseGrainedExecutorBackend" in command_of(pid))
        return next(executors, None)

    def kill(self) -> None:
        """Kill the machine: the worker and its executor at once."""
        executor = self.executor() if self._process is not None and self._process.poll() is None else None
        super().kill()
        if executor is not None:
            os.kill(executor, signal.SIGKILL)


class Cluster:
    """A master and two workers of one core each, which let in who knows their secret.

    Args:
        folder: where they work and log.
        worker_memory: what the executor of a worker may take.
    """

    def __init__(self, folder: Path, worker_memory: str = "640m") -> None:
        folder.mkdir(parents=True)
        self._worker_memory = worker_memory
        self.secret = folder / "secret"
        self.secret.write_text(secrets.token_hex(32))
        properties = {
            "spark.authenticate": "true",
            "spark.network.crypto.enabled": "true",
            "spark.network.crypto.saslFallback": "false",
            "spark.authenticate.secret": self.secret.read_text(),
        }
        self._properties = folder / "spark.properties"
        self._properties.write_text("".join(f"{name} {value}\n" for name, value in properties.items()))
        for file in (self.secret, self._properties):
            file.chmod(0o600)
        self.master = Daemon(folder / "master", f"{_PACKAGE}.master.Master", *self._words("--port", "0"))
        self._folder = folder
        self.workers: list[Worker] = []
        self.address = ""

    def start(self) -> None:
        """Start all of it, and wait until the workers have registered."""
        self.master.start()
        pattern = re.compile(rf"Starting Spark master at (spark://{re.escape(HOST)}:\d+)")
        self.address = wait_for(lambda: pattern.search(self.master.log), "the master")[1]
        for name in ("worker-a", "worker-b"):
            words = self._words("--cores", "1", "--memory", self._worker_memory, self.address)
            self.workers.append(Worker(self._folder / name, f"{_PACKAGE}.worker.Worker", *words))
        for worker in self.workers:
            worker.start()
        wait_for(lambda: self.master.log.count("Registering worker") == len(self.workers), "the workers")

    def _words(self, *more: str) -> tuple[str, ...]:
        return ("--host", HOST, "--webui-port", "0", "--properties-file", str(self._properties), *more)

    def stop(self) -> None:
        """Kill whatever lives."""
        with ExitStack() as stack:
            for daemon in (self.master, *self.workers):
                stack.callback(daemon.kill)


@contextmanager
def cluster(folder: Path, worker_memory: str = "640m") -> Iterator[Cluster]:
    """Run a cluster for the length of a block."""
    made = Cluster(folder, worker_memory)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def python_archive(folder: Path) -> Path:
    """Pack a Python that has every dependency and no heartwheel, as the machines of a cluster have one.

    It is a script that starts the interpreter below this virtual environment and names its packages; the line that
    makes this project importable here is read by the environment's own interpreter alone.
    """
    script = folder / "python"
    base = Path(sys._base_executable)  # type: ignore[attr-defined]  # below a virtual environment
    packages = sysconfig.get_path("purelib")
    script.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {base} "$@"\n')
    script.chmod(0o755)
    archive = folder / "environment.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(script, "bin/python")
    return archive
