"""Run one real Kafka node from locked jars: for the demo, for tests, for trying things out.

    with EmbeddedKafka() as kafka:
        print(kafka.bootstrap)

It is the broker that people run, in KRaft mode with both roles; only its settings are those of a small machine. It
needs Java 17 and nothing else, listens on the loopback interface alone, and dies with whoever started it.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.private import private_folder
from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.kafka.broker.java import find_java
from heartwheel.kafka.broker.node_config import LOGGING, REQUEST_LOGGING, SMALL_NODE, properties_text
from heartwheel.kafka.broker.node_process import (
    HOST,
    LOG_TAIL_BYTES,
    NodeCommands,
    ProcessLog,
    die_with_parent,
    free_port,
    wait_until_stopped,
)
from heartwheel.kafka.broker.node_security import NodeSecurity, arguments_file
from heartwheel.kafka.broker.probe import serves_requests

_POLL_MS: Final = 20
_PORT_ATTEMPTS: Final = 3


class KafkaStartError(HeartwheelError):
    """The broker did not start, with the end of what it logged."""


class _PortTakenError(KafkaStartError):
    pass


class EmbeddedKafka:
    """One broker process; a context manager that starts and stops it.

    On Linux the kernel kills the broker with the *thread* that started it, so start it from one that lives long enough.

    Args:
        data_dir: where it keeps its data, configuration and logs; the next broker on the same folder finds its data
            there, on other ports too, and after a crash. If absent a temporary folder, removed at the end.
        port: where it listens for clients; if absent a free one, the same again after a restart.
        heap: the JVM's `-Xmx`.
        config: broker properties that go over the defaults of `SMALL_NODE`.
        security: the login and the certificates that clients must bring; if absent, anybody on this machine is let in.
        jars: its class path; fetched by the lock if absent.
        ready_timeout_ms: how long a start may take, ms.
        stop_timeout_ms: how long an orderly stop may take before it is killed, ms.
        request_log: whether it writes down every request, for a tap.
    """

    def __init__(  # noqa: PLR0913 - each is said by name
        self,
        data_dir: str | Path | None = None,
        *,
        port: int | None = None,
        heap: str = "384m",
        config: Mapping[str, str] | None = None,
        security: NodeSecurity | None = None,
        jars: Sequence[Path] | None = None,
        ready_timeout_ms: int = 60_000,
        stop_timeout_ms: int = 20_000,
        request_log: bool = False,
    ) -> None:
        self._logs_requests = request_log
        self._temporary = data_dir is None
        self.dir = Path(data_dir).absolute() if data_dir else Path(tempfile.mkdtemp(prefix="heartwheel-kafka-"))
        self.port = port or 0
        self._heap = heap
        self._config = dict(config or {})
        self._security = security
        self._probed_port = 0
        self._jars = list(jars) if jars is not None else None
        self._ready_timeout_ms = ready_timeout_ms
        self._stop_timeout_ms = stop_timeout_ms
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """Return the address for `bootstrap.servers`."""
        return f"{HOST}:{self.port}"

    @property
    def running(self) -> bool:
        """Return whether the broker's process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """Return the process id, if it was started."""
        return self._process.pid if self._process else None

    @property
    def log_file(self) -> Path:
        """Return where the broker logs to."""
        return self.dir / "server.log"

    @property
    def request_log(self) -> Path:
        """Return where it writes its requests, if it does."""
        return self.dir / "server.log.requests"

    def start(self) -> Self:
        """Start the broker and wait until it serves requests.

        Raises:
            KafkaStartError: if it is running already, exits, or is not ready in time.
            JavaError: if there is no usable Java.
            JarError: if its jars cannot be had.
        """
        if self.running:
            raise KafkaStartError(f"the broker runs already, at {self.bootstrap}")
        command = NodeCommands(find_java(), self._jars or fetch_jars("broker"), self.dir)
        private_folder(self.dir)
        # A free port is free only until somebody takes it; one that was asked for, or is known, is not ours to change.
        for _ in range(0 if self.port else _PORT_ATTEMPTS - 1):
            with contextlib.suppress(_PortTakenError):
                return self._start_at(free_port(), command)
        return self._start_at(self.port or free_port(), command)

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
        """Stop the broker by SIGSTOP: its sockets stay open and nothing answers, the worst case for clients."""
        if self._process is not None and self.running:
            self._signal(signal.SIGSTOP)
            wait_until_stopped(self._process.pid)

    def resume(self) -> None:
        """Resume a paused broker."""
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

    def _start_at(self, port: int, command: NodeCommands) -> Self:
        self._configure(port)
        self._format(command)
        self._spawn(command)
        self.port = port
        return self

    def _configure(self, port: int) -> None:
        controller_port = free_port()
        settings = {
            **SMALL_NODE,
            "controller.quorum.voters": f"1@{HOST}:{controller_port}",
            **self._listeners(port, f"CONTROLLER://{HOST}:{controller_port}"),
            "log.dirs": str(self.dir / "data"),
            **self._config,
        }
        (self.dir / "server.properties").write_text(properties_text(settings))
        (self.dir / "log4j2.properties").write_text(LOGGING + REQUEST_LOGGING * self._logs_requests)

    def _listeners(self, port: int, controller: str) -> dict[str, str]:
        self._probed_port = port
        if self._security is None:
            clients = f"PLAINTEXT://{HOST}:{port}"
            return {"listeners": f"{clients},{controller}", "advertised.listeners": clients}
        self._probed_port = free_port()
        return self._security.properties(HOST, port, self._probed_port, controller)

    def _format(self, command: NodeCommands) -> None:
        if (self.dir / "data" / "meta.properties").exists():
            return
        arguments = self._security.format_arguments() if self._security else []
        with arguments_file(arguments) as words:
            done = subprocess.run([*command.format_storage(), *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise KafkaStartError(
                f"could not format {self.dir / 'data'}:\n{(done.stdout + done.stderr)[-LOG_TAIL_BYTES:]}"
            )

    def _spawn(self, command: NodeCommands) -> None:
        output = self.dir / "output.log"
        tails = [ProcessLog(output), ProcessLog(self.log_file)]
        with output.open("ab") as sink:
            self._process = subprocess.Popen(
                command.run_broker(self._heap),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches us, and we stop the broker after its clients
                preexec_fn=die_with_parent(),  # noqa: PLW1509 - the hook takes no lock, it only makes one system call
            )
        try:
            trouble = self._wait_until_ready(self._probed_port, self._process)
        except BaseException:
            self.kill()
            raise
        if trouble:
            self.kill()
            logged = "\n".join(tail.read() for tail in tails).strip()
            kind = _PortTakenError if "Address already in use" in logged else KafkaStartError
            raise kind(f"Kafka {trouble}; it logs to {self.log_file}\n{logged}")

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
