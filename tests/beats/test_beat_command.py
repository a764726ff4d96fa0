"""`heartwheel-beat` and `heartwheel beat`: a worker is started, watched and reaped as it would be without them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from heartwheel.front.cli.app import run
from support.gateway_double import GatewayDouble, wait_until

COMMANDS = {
    "heartwheel-beat": [sys.executable, "-c", "from heartwheel_beats.command import main; main()"],
    "heartwheel beat": [sys.executable, "-m", "heartwheel", "beat"],
}
BEAT = COMMANDS["heartwheel-beat"]


def beat(
    gateway: GatewayDouble, *arguments: str, command: list[str] = BEAT, session: str = "400ms"
) -> subprocess.Popen[str]:
    """Start a worker under the command, as member `a`."""
    words = [*command, "--group", "orders", "--member", "a", "--session", session, *arguments]
    environment = {**os.environ, "HEARTWHEEL_BEATS_TO": gateway.url}
    return subprocess.Popen(words, text=True, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_exit_code_goes_through(name: str, gateway: GatewayDouble) -> None:
    """The worker's output and exit code are those of the command, and how it failed."""
    worker = beat(gateway, "--", "sh", "-c", "echo $0 $1; exit 7", "--group", "x", command=COMMANDS[name])
    assert worker.communicate(timeout=60)[0] == "--group x\n"
    assert worker.returncode == 7
    assert gateway.failures("a") == ["exit code 7"]
    assert gateway.leaves("a") == []


@pytest.mark.parametrize(
    ("code", "options", "failed"),
    [(0, (), False), (1, (), True), (143, (), True), (3, ("--ok-exit", "0,3"), False), (0, ("--ok-exit", "3"), False)],
)
@pytest.mark.parametrize("name", COMMANDS)
def test_which_exit_codes_are_failures(
    name: str,
    code: int,
    options: tuple[str, ...],
    failed: bool,  # noqa: FBT001 - a parameter
    gateway: GatewayDouble,
) -> None:
    """Every code but 0 and those that are said to be fine, also one that looks like a signal that nobody sent."""
    worker = beat(gateway, *options, "--", "sh", "-c", f"exit {code}", command=COMMANDS[name])
    worker.communicate(timeout=60)
    assert worker.returncode == code
    said = [f"exit code {code}"]
    assert (gateway.failures("a"), gateway.leaves("a")) == ((said, []) if failed else ([], said))


def test_signals_go_through(gateway: GatewayDouble) -> None:
    """SIGTERM reaches the worker, which decides itself how it ends."""
    worker = beat(gateway, "--", "sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done")
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    wait_until(lambda: gateway.heartbeats("a") >= 2, "it beats")
    worker.terminate()
    worker.communicate(timeout=30)
    assert worker.returncode == 5
    assert gateway.failures("a") == ["exit code 5"]


@pytest.mark.parametrize(
    ("script", "words"), [("sleep 60", "ended by SIGTERM, exit code 143"), ("trap 'exit 143' TERM", "exit code 143")]
)
def test_a_worker_that_ends_as_it_was_asked_to_has_left(script: str, words: str, gateway: GatewayDouble) -> None:
    """SIGTERM to the command ends the worker by it, or with the code that stands for it: no failure."""
    script = f"{script}; echo ready; while :; do sleep 0.05; done" if "trap" in script else f"exec {script}"
    worker = beat(gateway, "--", "sh", "-c", script)
    wait_until(lambda: gateway.heartbeats("a") >= 2, "it beats")
    worker.terminate()
    worker.communicate(timeout=30)
    assert worker.returncode == 143
    assert (gateway.leaves("a"), gateway.failures("a")) == ([words], [])


@pytest.mark.parametrize(
    ("script", "failures"), [("exit 0", []), ("exit 4", ["exit code 4"]), ("kill -TERM $PPID; sleep 60", None)]
)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_job_succeeds_or_fails(name: str, script: str, failures: list[str] | None, gateway: GatewayDouble) -> None:
    """A code that is fine is a success, which names the next; all else is a failure, a run that was stopped too."""
    words = [*COMMANDS[name], "--group", "backup", "--every", "1d", "--grace", "1h", "--", "sh", "-c", script]
    subprocess.run(words, env={**os.environ, "HEARTWHEEL_BEATS_TO": gateway.url}, check=False, timeout=60)
    stopped = ["ended by SIGTERM, exit code 143"]
    assert gateway.failures("job") == (stopped if failures is None else failures)
    sessions = [row["session_timeout_ms"] for row in gateway.rows if row["client_id"] == "job"]
    assert sessions == ([25 * 3_600_000] if failures == [] else [])
    assert gateway.leaves() == []


def test_no_worker_outlives_the_command(gateway: GatewayDouble) -> None:
    """A command that is killed takes its worker along: it would work on while it counts as dead."""
    worker = beat(gateway, "--", "sh", "-c", "trap '' TERM HUP; echo $$; while :; do sleep 0.05; done")
    assert worker.stdout is not None
    pid = int(worker.stdout.readline())
    wait_until(lambda: gateway.heartbeats("a"), "it beats")
    worker.kill()
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or is_zombie(pid), "the worker is gone")
    worker.communicate(timeout=30)
    assert (gateway.leaves("a"), gateway.failures("a")) == ([], [])


def test_a_killed_worker_is_told_by_its_signal(gateway: GatewayDouble) -> None:
    """A worker that was killed gives 128 and the signal's number, as in shells, and the reason names the signal."""
    worker = beat(gateway, "--", "sh", "-c", "kill -9 $$")
    worker.communicate(timeout=30)
    assert worker.returncode == 137
    assert gateway.failures("a") == ["ended by SIGKILL, exit code 137"]
    assert gateway.leaves("a") == []


def test_the_worker_does_not_get_the_token(
    gateway: GatewayDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token is sent with the beats, and neither the worker nor a check has it in its environment."""
    monkeypatch.setenv("HEARTWHEEL_BEATS_TOKEN", "a-token-of-some-length")
    seen = tmp_path / "seen"
    check = f"sh -c 'env > {seen}'"
    worker = beat(gateway, "--check", check, "--", "sh", "-c", f"env; while [ ! -s {seen} ]; do sleep 0.05; done")
    out, _ = worker.communicate(timeout=30)
    assert "HEARTWHEEL_BEATS_TO=" in out
    assert "a-token" not in out + seen.read_text()
    assert gateway.tokens == {"Bearer a-token-of-some-length"}


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
    """It ends as a shell would, in one line, never beats, and is reported as failed."""
    tried = beat(gateway, "--", worker)
    assert tried.communicate(timeout=30)[1].startswith(f"error: cannot start {worker}: ")
    assert tried.returncode == code
    assert [words.startswith(f"cannot start {worker}: ") for words in gateway.failures("a")] == [True]
    assert (gateway.heartbeats(), gateway.rows[0]["session_timeout_ms"]) == (0, 400)


def test_a_script_without_an_interpreter_is_not_executable(gateway: GatewayDouble, tmp_path: Path) -> None:
    """Its exit code is that of shells that cannot execute a file, and not that of one that is not there."""
    script = tmp_path / "worker"
    script.write_text("exit 0\n")
    script.chmod(0o755)
    tried = beat(gateway, "--", str(script))
    tried.communicate(timeout=30)
    assert tried.returncode == 126


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_in_the_last_words_loses_no_exit_code(number: signal.Signals, gateway: GatewayDouble) -> None:
    """A signal for a worker that has ended already ends nobody."""
    gateway.status = 503
    worker = beat(gateway, "--every", "24h", "--", "sh", "-c", "exit 3")
    wait_until(lambda: gateway.asked_to_leave, "it says how it ended")
    worker.send_signal(number)
    gateway.status = 202
    worker.communicate(timeout=30)
    assert worker.returncode == 3
    assert gateway.failures() == ["exit code 3"]


def test_no_check_outlives_the_worker(gateway: GatewayDouble, tmp_path: Path) -> None:
    """A check that hangs when the worker ends is killed, and keeps no output open."""
    begun = tmp_path / "begun"
    check, script = f"sh -c 'echo > {begun}; exec sleep 600'", f"until [ -e {begun} ]; do sleep 0.02; done"
    with beat(gateway, "--check", check, "--", "sh", "-c", script, session="60s") as worker:
        worker.communicate(timeout=30)  # ends only when nobody holds its stderr
    assert worker.returncode == 0


def test_a_worker_lives_without_a_gateway(gateway: GatewayDouble) -> None:
    """Whoever does not take the beats, the worker runs on and its exit code is its own."""
    gateway.status = 503
    worker = beat(gateway, "--", "sh", "-c", "sleep 0.3; exit 3")
    words = worker.communicate(timeout=30)[1]
    assert worker.returncode == 3
    assert words.count("was lost") == 1
    assert f"was lost: {gateway.url} answered 503" in words
    assert words.count("the failure (exit code 3) of member a of orders was not acknowledged: ") == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--session", "10"),
        ("--limit", "5"),
        ("--every", "daily"),
        ("--tcp", "99999"),
        ("--ok-exit", "a"),
        ("--check", "'"),
    ],
)
def test_a_wrong_value_is_named_with_its_option(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Several options take a duration: `'10' must be a duration` did not say which of them is wrong."""
    assert run(["beat", "--group", "o", "--to", "http://127.0.0.1:9", option, value, "--", "true"]) == 2
    assert f"Invalid value: {option} " in capsys.readouterr().err


def test_a_hung_worker_leaves_by_its_alive_file(gateway: GatewayDouble, tmp_path: Path) -> None:
    """A file that is touched no more stops the beats, the reason names it, and a worker that recovers beats again."""
    alive = tmp_path / "alive"

    def works() -> int:
        alive.touch()
        return gateway.heartbeats("a")

    worker = beat(gateway, "--alive-file", str(alive), "--", "sleep", "60", session="1s")
    wait_until(works, "it beats")
    wait_until(lambda: gateway.failures("a"), "it fails")
    assert gateway.failures("a")[0].startswith(f"alive file {alive}: not touched for ")
    before = gateway.heartbeats("a")
    wait_until(lambda: works() > before, "it beats again")
    worker.terminate()
    worker.communicate(timeout=30)
    assert worker.returncode == 128 + signal.SIGTERM


def test_a_closed_port_stops_the_beats(gateway: GatewayDouble) -> None:
    """It first beats when the port is open, the failure names the port that closed, and a later exit is no second."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = "trap 'exit 9' TERM; while :; do sleep 0.05; done"
        worker = beat(gateway, "--tcp", str(port), "--", "sh", "-c", script)
        wait_until(lambda: gateway.heartbeats("a"), "it beats")
    wait_until(lambda: gateway.failures("a"), "it fails")
    worker.terminate()
    worker.communicate(timeout=30)
    assert worker.returncode == 9
    assert gateway.failures("a") == [f"tcp 127.0.0.1:{port}: Connection refused"]
    assert gateway.leaves("a") == [f"exit code 9; tcp 127.0.0.1:{port}: Connection refused"]


def test_a_port_that_never_opens_is_reported(gateway: GatewayDouble) -> None:
    """A worker that is not ready within the start limit has failed, once, and beats if it becomes ready after all."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    worker = beat(gateway, "--tcp", str(port), "--start-timeout", "300ms", "--", "sleep", "60")
    wait_until(lambda: gateway.failures("a"), "it fails")
    tried = f"tcp 127.0.0.1:{port}"
    assert gateway.failures("a") == [f"never ready: {tried}: Connection refused"]
    with socket.create_server(("127.0.0.1", port)):
        wait_until(lambda: gateway.heartbeats("a"), "it beats")
    worker.terminate()
    told = worker.communicate(timeout=30)[1]
    assert gateway.failures("a")[0] == f"never ready: {tried}: Connection refused"
    assert f"does not beat: not ready yet, waiting up to 0.3 s for {tried}\n" in told
    assert re.search(rf"has not beaten for \d+\.\d s and is reported as failed: never ready: {tried}: Connec", told)


def test_a_slow_start_is_no_failure(gateway: GatewayDouble) -> None:
    """Within the start limit a check that is not well yet is waited for, however short the session is."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with beat(gateway, "--tcp", str(port), "--", "sleep", "60", session="40ms") as worker:
        other = beat(gateway, "--member", "witness", "--", "sleep", "60")
        wait_until(lambda: gateway.heartbeats("witness") >= 5, "many sessions are over")
        assert gateway.members() == {"witness"}
        for each in (worker, other):
            each.terminate()
            each.communicate(timeout=30)


def test_a_failed_check_stops_the_beats(gateway: GatewayDouble, tmp_path: Path) -> None:
    """A command that ends with another code, or does not end, stops the beats, and the reason names it."""
    good = tmp_path / "good"
    good.touch()
    check = f"test -e {good}"
    worker = beat(gateway, "--check", check, "--", "sleep", "60")
    wait_until(lambda: gateway.heartbeats("a"), "it beats")
    good.unlink()
    wait_until(lambda: gateway.failures("a"), "it fails")
    assert gateway.failures("a") == [f"check {check}: exit code 1"]
    worker.terminate()
    worker.communicate(timeout=30)


def test_a_check_that_hangs_is_killed(gateway: GatewayDouble) -> None:
    """It is given an interval's time and does not pile up; a member that never was well never appears."""
    worker = beat(gateway, "--check", "sleep 60", "--", "sh", "-c", "sleep 1; exit 4")
    words = worker.communicate(timeout=30)[1]
    assert worker.returncode == 4
    (failure,) = gateway.failures("a")
    assert failure.startswith("exit code 4; never ready: check sleep 60: not over within")
    assert gateway.heartbeats("a") == 0
    assert "does not beat" in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--session", "soon", "--", "true"], "duration"),
        (["--session", "10", "--", "true"], "hint: write 10s"),
        (["--grace", "2h", "--", "true"], "needs --every"),
        (["--tcp", "70000", "--", "true"], "port"),
        (["--check", "'", "--", "true"], "quotation"),
        (["--ok-exit", "0,256", "--", "true"], "exit codes"),
        (["--start-timeout", "late", "--", "true"], "duration"),
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


def unnamed(gateway: GatewayDouble, **variables: str) -> subprocess.Popen[str]:
    """Start a worker that waits for its input to end, under the command, without a member's id."""
    words = [*BEAT, "--group", "orders", "--session", "400ms", "--", "cat"]
    environment = {**os.environ, "HEARTWHEEL_BEATS_TO": gateway.url, **variables}
    return subprocess.Popen(words, text=True, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_a_restart_is_the_same_member(gateway: GatewayDouble) -> None:
    """Whoever starts it again, it has the id it had; two at once have two, also if the first was killed before."""
    name = f"{socket.gethostname()}-cat"
    first = unnamed(gateway)
    wait_until(lambda: gateway.heartbeats(name), "the first beats")
    second = unnamed(gateway)
    wait_until(lambda: gateway.heartbeats(f"{name}-2"), "the second beats beside it")
    first.kill()
    first.communicate()
    before = gateway.heartbeats(name)
    again = unnamed(gateway)
    wait_until(lambda: gateway.heartbeats(name) > before, "the first is back as itself")
    named = unnamed(gateway, HEARTWHEEL_BEATS_MEMBER="mine")
    wait_until(lambda: gateway.heartbeats("mine"), "the variable names another")
    for each in (second, again, named):
        each.communicate()
        assert each.returncode == 0
    assert gateway.members() == {name, f"{name}-2", "mine"}


def is_zombie(pid: int) -> bool:
    """Return whether a process has ended, and waits to be reaped by whoever has it now."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return True


def children(pid: int) -> list[str]:
    """List the children of a process, zombies included."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
