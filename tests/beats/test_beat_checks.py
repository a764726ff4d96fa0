"""Checks of a worker: no clock that is set, and no connection with itself, is taken for an answer."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from heartwheel_beats import checks
from heartwheel_beats.checks import AliveFile, TcpPort


class Clocks:
    """The clocks of a machine, as a test sets them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_s, self.mono_s = 1_800_000_000.0, 50.0
        clocks = SimpleNamespace(time=lambda: self.wall_s, monotonic=lambda: self.mono_s)
        monkeypatch.setattr(checks, "time", clocks)

    def go_on(self, seconds: float) -> None:
        """Let time pass."""
        self.wall_s += seconds
        self.mono_s += seconds

    def touch(self, file: Path) -> None:
        """Touch a file as a worker does."""
        file.touch()
        os.utime(file, (self.wall_s, self.wall_s))


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    """Set the clocks of the checks."""
    return Clocks(monkeypatch)


@pytest.mark.parametrize("by_s", [3_600.0, -3_600.0])
def test_a_clock_that_is_set_ends_nobody_and_saves_nobody(clocks: Clocks, tmp_path: Path, by_s: float) -> None:
    """With the clock set by an hour a worker that touches its file goes on, and one that hangs is found in time."""
    file = tmp_path / "alive"
    check = AliveFile(str(file), 10.0)
    clocks.touch(file)
    assert check(1.0) == ""
    clocks.go_on(5)
    clocks.wall_s += by_s
    assert check(1.0) == ""
    clocks.touch(file)
    clocks.go_on(4)
    assert check(1.0) == ""
    clocks.go_on(5)
    assert check(1.0) == ""
    clocks.go_on(2)
    assert check(1.0).startswith(f"alive file {file}: not touched for 1")


def test_a_file_of_an_earlier_run_is_no_sign_of_life(clocks: Clocks, tmp_path: Path) -> None:
    """At the first look the age of the file counts, and a touch between two looks counts from when it was."""
    file = tmp_path / "alive"
    clocks.touch(file)
    clocks.go_on(3_600)
    check = AliveFile(str(file), 10.0)
    assert "not touched for 3600 s" in check(1.0)
    clocks.touch(file)
    clocks.go_on(8)
    assert check(1.0) == ""
    clocks.go_on(3)
    assert "not touched for 11 s" in check(1.0)


def test_a_port_that_connects_with_itself_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel connects a socket with itself, as it may for a port out of its own range, nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert TcpPort(port)(5.0) == ""
    real = socket.create_connection
    monkeypatch.setattr(socket, "create_connection", lambda to, timeout: real(to, timeout, source_address=to))
    assert TcpPort(port)(5.0) == f"tcp 127.0.0.1:{port}: nothing listens"
