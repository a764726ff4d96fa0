"""`heartwheel-beat` and `heartwheel beat`: a worker is started, watched and reaped as it would be without them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.gateway_double import GatewayDouble, gateway_double

COMMANDS = {
    "heartwheel-beat": [sys.executable, "-c", "from heartwheel_beats.command import main; main()"],
    "heartwheel beat": [sys.executable, "-m", "heartwheel", "beat"],
}
BEAT = COMMANDS["heartwheel-beat"]


@pytest.fixture
def gateway() -> Iterator[GatewayDouble]:
    """Run a gateway that keeps what it is sent."""
    with gateway_double() as double:
        yield double


def wait_until(true: Callable[[], object], what: str, seconds: float = 30) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.01)


def beat(
    gateway: GatewayDouble, *arguments: str, command: list[str] = BEAT, session: str = "400ms"
) -> subprocess.Popen[str]:
    """Start a worker under the command, as member `a`."""
    words = [*command, "--group", "orders", "--member", "a", "--session", session, *arguments]
    environment = {**os.environ, "HEARTWHEEL_BEATS_TO": gateway.url}
    return subprocess.Popen(words, text=True, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_exit_code_goes_through(name: str, gateway: GatewayDouble) -> None:
    """The worker's output and exit code are those of the command, and the reason it leaves with."""
    worker = beat(gateway, "--", "sh", "-c", "echo $0 $1; exit 7", "--group", "x", command=COMMANDS[name])
    assert worker.communicate(timeout=60)[0] == "--group x\n"
    assert worker.returncode == 7
    assert gateway.leaves("a") == ["exit code 7"]


def test_signals_go_through(gateway: GatewayDouble) -> None:
    """SIGTERM reaches the worker, which decides itself how it ends."""
    worker = beat(gateway, "--", "sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done")
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    wait_until(lambda: gateway.heartbeats("a") >= 2, "it beats")
    worker.terminate()
    worker.communicate(timeout=30)
    assert worker.returncode == 5
    assert gateway.leaves("a") == ["exit code 5"]


def test_a_killed_worker_is_told_by_its_signal(gateway: GatewayDouble) -> None:
    """A worker that was killed gives 128 and the signal's number, as in shells, and the reason names the signal."""
    worker = beat(gateway, "--", "sh", "-c", "kill -9 $$")
    worker.communicate(timeout=30)
    assert worker.returncode == 137
    assert gateway.leaves("a") == ["ended by SIGKILL"]


def test_orphans_are_reaped(gateway: GatewayDouble) -> None:
    """Processes that the worker's children leave behind do not stay as zombies, as PID 1 has to see to."""
    script = "for i in 1 2 3; do (sleep 0.01 & exit) & done; wait; echo done; read line"
    words = [*BEAT, "--group", "orders", "--to", gateway.url, "--", "sh", "-c", script]
    with subprocess.Popen(words, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "done\n"
        wait_until(lambda: len(children(worker.pid)) == 1, "only the worker is left")
        worker.communicate("\n", timeout=30)
    assert worker.returncode == 0


@pytest.mark.parametrize(("worker", "code"), [("/nonexistent/worker", 127), ("/etc/passwd", 126)])
def test_a_worker_that_cannot_be_started(worker: str, code: int, gateway: GatewayDouble) -> None:
    """It ends as a shell would, in one line, and never beats."""
    tried = beat(gateway, "--", worker)
    assert tried.communicate(timeout=30)[1].startswith(f"error: cannot start {worker}: ")
    assert tried.returncode == code
    assert gateway.rows == []


def test_a_worker_lives_without_a_gateway(gateway: GatewayDouble) -> None:
    """Whoever does not take the beats, the worker runs on and its exit code is its own."""
    gateway.status = 503
    worker = beat(gateway, "--", "sh", "-c", "sleep 0.3; exit 3")
    words = worker.communicate(timeout=30)[1]
    assert worker.returncode == 3
    assert words.count("was lost") == 1


def test_a_hung_worker_leaves_by_its_alive_file(gateway: GatewayDouble, tmp_path: Path) -> None:
    """A file that is touched no more stops the beats, the reason names it, and a worker that recovers beats again."""
    alive = tmp_path / "alive"
    alive.touch()
    worker = beat(gateway, "--alive-file", str(alive), "--", "sleep", "60", session="1s")
    wait_until(lambda: gateway.heartbeats("a"), "it beats")
    wait_until(lambda: gateway.leaves("a"), "it leaves")
    assert gateway.leaves("a")[0].startswith(f"alive file {alive}: not touched for ")
    before = gateway.heartbeats("a")
    alive.touch()
    wait_until(lambda: gateway.heartbeats("a") > before, "it beats again")
    worker.terminate()
    worker.communicate(timeout=30)
    assert worker.returncode == 128 + signal.SIGTERM


def test_a_closed_port_stops_the_beats(gateway: GatewayDouble) -> None:
    """It first beats when the port is open, and the reason names the port that closed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        worker = beat(gateway, "--tcp", str(port), "--", "sleep", "60")
        wait_until(lambda: gateway.heartbeats("a"), "it beats")
    wait_until(lambda: gateway.leaves("a"), "it leaves")
    assert gateway.leaves("a") == [f"tcp {port}: Connection refused"]
    worker.terminate()
    worker.communicate(timeout=30)
    assert gateway.leaves("a")[-1] == f"ended by SIGTERM, after tcp {port}: Connection refused"


def test_a_failed_check_stops_the_beats(gateway: GatewayDouble, tmp_path: Path) -> None:
    """A command that ends with another code, or does not end, stops the beats, and the reason names it."""
    good = tmp_path / "good"
    good.touch()
    check = f"test -e {good}"
    worker = beat(gateway, "--check", check, "--", "sleep", "60")
    wait_until(lambda: gateway.heartbeats("a"), "it beats")
    good.unlink()
    wait_until(lambda: gateway.leaves("a"), "it leaves")
    assert gateway.leaves("a") == [f"check {check}: exit code 1"]
    worker.terminate()
    worker.communicate(timeout=30)


def test_a_check_that_hangs_is_killed(gateway: GatewayDouble) -> None:
    """It is given an interval's time and does not pile up; a member that never was well never appears."""
    worker = beat(gateway, "--check", "sleep 60", "--", "sh", "-c", "sleep 1; exit 4")
    words = worker.communicate(timeout=30)[1]
    assert worker.returncode == 4
    assert "check sleep 60: not over within" in gateway.leaves("a")[-1]
    assert gateway.heartbeats("a") == 0
    assert "does not beat" in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--session", "soon", "--", "true"], "duration"),
        (["--tcp", "70000", "--", "true"], "port"),
        (["--check", "'", "--", "true"], "quotation"),
        (["--to", "nowhere", "--", "true"], "address"),
    ],
)
@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_options(name: str, arguments: list[str], words: str, gateway: GatewayDouble) -> None:
    """What cannot work is said in a line, with exit code 2, before the worker is started."""
    tried = beat(gateway, *arguments, command=COMMANDS[name])
    said = tried.communicate(timeout=60)[1]
    assert tried.returncode == 2
    assert words in said.lower()
    assert "Traceback" not in said
    assert gateway.rows == []


def children(pid: int) -> list[str]:
    """List the children of a process, zombies included."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
