"""Run one real Kafka node from locked jars: for the demo, for tests, for trying things out.

    with EmbeddedKafka() as kafka:
        print(kafka.bootstrap)

It is the broker that people run, in KRaft mode with both roles; only its settings are those of a small machine. It
needs Java 17 and nothing else, listens on the loopback interface alone, and dies with whoever started it.
"""

from __future__ import annotations

import contextlib
import ctypes
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from heartwheel.kafka.jars import fetch_jars
from heartwheel.kafka.java import find_java
from heartwheel.kafka.node_config import LOGGING, SMALL_NODE, properties_text
from heartwheel.kafka.probe import serves_requests

HOST: Final = "127.0.0.1"

_FORMAT_HEAP: Final = "128m"
_POLL_MS: Final = 20
_PORT_ATTEMPTS: Final = 3
_TAIL_BYTES: Final = 3000
# The first compiler alone starts a broker a third faster; it tops out at 3 million records/s, far above what we feed.
_JVM_FLAGS: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
_PR_SET_PDEATHSIG: Final = 1


class KafkaStartError(RuntimeError):
    """Tell that the broker did not start, with the end of what it logged."""


class _PortTakenError(KafkaStartError):
    pass


class EmbeddedKafka:
    """Own the life of one broker process; a context manager that starts and stops it.

    On Linux the kernel kills the broker with the *thread* that started it, so start it from one that lives long enough.

    Args:
        data_dir: where it keeps its data, configuration and logs; the next broker on the same folder finds its data
            there, on other ports too, and after a crash. If absent a temporary folder, removed at the end.
        port: where it listens for clients; if absent a free one, the same again after a restart.
        heap: the JVM's `-Xmx`.
        config: broker properties that go over the defaults of `SMALL_NODE`.
        jars: its class path; fetched by the lock if absent.
        ready_timeout_ms: how long a start may take, ms.
        stop_timeout_ms: how long an orderly stop may take before it is killed, ms.
    """

    def __init__(
        self,
        data_dir: str | Path | None = None,
        *,
        port: int | None = None,
        heap: str = "384m",
        config: Mapping[str, str] | None = None,
        jars: Sequence[Path] | None = None,
        ready_timeout_ms: int = 60_000,
        stop_timeout_ms: int = 20_000,
    ) -> None:
        self._temporary = data_dir is None
        self.dir = Path(data_dir).absolute() if data_dir else Path(tempfile.mkdtemp(prefix="heartwheel-kafka-"))
        self.port = port or 0
        self._heap = heap
        self._config = dict(config or {})
        self._jars = list(jars) if jars is not None else None
        self._ready_timeout_ms = ready_timeout_ms
        self._stop_timeout_ms = stop_timeout_ms
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """Give the address for `bootstrap.servers`."""
        return f"{HOST}:{self.port}"

    @property
    def running(self) -> bool:
        """Tell whether the broker's process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """Give the process id, if it was started."""
        return self._process.pid if self._process else None

    @property
    def log_file(self) -> Path:
        """Say where the broker logs to."""
        return self.dir / "server.log"

    def start(self) -> Self:
        """Start the broker and wait until it serves requests.

        Raises:
            KafkaStartError: if it is running already, exits, or is not ready in time.
            JavaError: if there is no usable Java.
            JarError: if its jars can not be had.
        """
        if self.running:
            raise KafkaStartError(f"the broker runs already, at {self.bootstrap}")
        command = _Command(find_java(), self._jars or fetch_jars("broker"), self.dir)
        self.dir.mkdir(parents=True, exist_ok=True)
        # A free port is free only until somebody takes it; one that was asked for, or is known, is not ours to change.
        for _ in range(0 if self.port else _PORT_ATTEMPTS - 1):
            with contextlib.suppress(_PortTakenError):
                return self._start_at(_free_port(), command)
        return self._start_at(self.port or _free_port(), command)

    def stop(self) -> int | None:
        """Stop the broker in order, so that its next start has nothing to recover.

        Returns:
            Its exit code (143 after an orderly stop), or `None` if it was never started.
        """
        if self._process is None:
            return None
        self._signal(signal.SIGCONT)  # a paused process would not see the other one
        self._signal(signal.SIGTERM)
        try:
            return self._process.wait(self._stop_timeout_ms / 1000)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int | None:
        """Kill the broker as a crash of its machine would: no goodbye, nothing flushed.

        Returns:
            Its exit code, or `None` if it was never started.
        """
        if self._process is None:
            return None
        self._signal(signal.SIGKILL)
        return self._process.wait()

    def pause(self) -> None:
        """Freeze the broker: its sockets stay open and nobody answers, the nastiest case for clients."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused broker go on."""
        self._signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self._remove_temporary()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            self._remove_temporary()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.running:
            self._process.send_signal(number)

    def _remove_temporary(self) -> None:
        if self._temporary:
            shutil.rmtree(self.dir, ignore_errors=True)

    def _start_at(self, port: int, command: _Command) -> Self:
        self._configure(port)
        self._format(command)
        self._spawn(port, command)
        self.port = port
        return self

    def _configure(self, port: int) -> None:
        controller_port = _free_port()
        settings = {
            **SMALL_NODE,
            "controller.quorum.voters": f"1@{HOST}:{controller_port}",
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "log.dirs": str(self.dir / "data"),
            **self._config,
        }
        (self.dir / "server.properties").write_text(properties_text(settings))
        (self.dir / "log4j2.properties").write_text(LOGGING)

    def _format(self, command: _Command) -> None:
        if (self.dir / "data" / "meta.properties").exists():
            return
        done = subprocess.run(command.format_storage(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise KafkaStartError(
                f"could not format {self.dir / 'data'}:\n{(done.stdout + done.stderr)[-_TAIL_BYTES:]}"
            )

    def _spawn(self, port: int, command: _Command) -> None:
        output = self.dir / "output.log"
        tails = [_Tail(output), _Tail(self.log_file)]
        with output.open("ab") as sink:
            self._process = subprocess.Popen(
                command.run_broker(self._heap),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches us, and we stop the broker after its clients
                preexec_fn=_die_with_parent(),  # noqa: PLW1509 - the hook takes no lock, it only makes one system call
            )
        try:
            trouble = self._wait_until_ready(port, self._process)
        except BaseException:
            self.kill()
            raise
        if trouble:
            self.kill()
            told = "\n".join(tail.read() for tail in tails).strip()
            kind = _PortTakenError if "Address already in use" in told else KafkaStartError
            raise kind(f"Kafka {trouble}; it logs to {self.log_file}\n{told}")

    def _wait_until_ready(self, port: int, process: subprocess.Popen[bytes]) -> str:
        """Wait for the first answer; return what went wrong, or nothing."""
        give_up = time.monotonic() + self._ready_timeout_ms / 1000
        while not serves_requests(HOST, port):
            if process.poll() is not None:
                return f"exited with code {process.returncode}"
            if time.monotonic() > give_up:
                return f"was not ready within {self._ready_timeout_ms} ms"
            time.sleep(_POLL_MS / 1000)
        return ""


class _Command:
    """Build the command lines of one node."""

    def __init__(self, java: Path, jars: Sequence[Path], folder: Path) -> None:
        self._java, self._folder = str(java), folder
        self._class_path = ":".join(map(str, jars))
        self._properties = str(folder / "server.properties")

    def format_storage(self) -> list[str]:
        # Hexadecimal ids are valid cluster ids, and none starts with "-", which would be read as an option.
        cluster_id = secrets.token_hex(11)
        arguments = ["format", "--cluster-id", cluster_id, "--config", self._properties]
        return self._java_line(_FORMAT_HEAP, "kafka.tools.StorageTool", arguments)

    def run_broker(self, heap: str) -> list[str]:
        return self._java_line(heap, "kafka.Kafka", [self._properties])

    def _java_line(self, heap: str, main: str, arguments: list[str]) -> list[str]:
        logging = [
            f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}",
            f"-Dheartwheel.log={self._folder / 'server.log'}",
        ]
        return [self._java, f"-Xmx{heap}", *_JVM_FLAGS, *logging, "-cp", self._class_path, main, *arguments]


class _Tail:
    """Read what a log file got since now, at most its end."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._from = file.stat().st_size if file.exists() else 0

    def read(self) -> str:
        if not self._file.exists():
            return ""
        return self._file.read_bytes()[self._from :][-_TAIL_BYTES:].decode(errors="replace")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> Callable[[], None] | None:
    """Give the hook that has the kernel kill the child with its parent thread; Linux only."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)  # loaded before the fork: loading in the child could deadlock

    def hook() -> None:
        with contextlib.suppress(Exception):
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    return hook
