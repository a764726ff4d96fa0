"""The dashboard as a process has it: a real server in a thread, real connections, and the command around it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from heartwheel.front.cli.app import run
from heartwheel.readers.dashboard.app import create_app
from heartwheel.readers.http_server.server import HttpServer, HttpServerError, is_free
from heartwheel.readers.live.picture import Picture
from heartwheel.settings import Settings
from support.job import wait_for
from support.output_rows import T0, expired, topic_rows


@contextmanager
def served(picture: Picture) -> Iterator[tuple[HttpServer, Any]]:
    """Serve a picture for the length of a block; gives the server and its hub."""
    app = create_app(picture, Settings(), now_ms=lambda: T0)
    server = HttpServer(app, host="127.0.0.1", port=0)
    server.closing = app.state.hub.close
    with server:
        yield server, app.state.hub


def events(server: HttpServer, last_id: str | None = None) -> Generator[tuple[str, str, Any]]:
    """Listen to the stream: the event, its id, its data; closing the iterator drops the connection."""
    host = server.url.removeprefix("http://").rstrip("/")
    with closing(http.client.HTTPConnection(host, timeout=30)) as connection:
        connection.request("GET", "/api/stream", headers={"Last-Event-ID": last_id} if last_id else {})
        answer = connection.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        while line := answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                fields[name] = value
            elif "event" in fields:
                yield fields["event"], fields.get("id", ""), json.loads(fields["data"])
                fields = {}
            else:
                fields = {}


def expire(picture: Picture, first: int, count: int) -> None:
    """Let some members expire."""
    picture.apply(topic_rows(*(expired("g", f"m{i}", T0 + i) for i in range(first, first + count))), now_ms=T0)


def test_a_dropped_connection_resumes_without_a_gap_and_without_a_double() -> None:
    """Over real sockets, cut off again and again: by the last id a listener sees every expiration once, in order."""
    picture, seen, last_id = Picture(), list[str](), ""
    with served(picture) as (server, hub):
        for cut in range(4):
            stream = events(server, last_id or None)
            event, id_, data = next(stream)
            assert (event, data["resumed"]) == ("hello", cut > 0)
            last_id = last_id or id_
            wanted = len(seen) + 5
            if not cut:
                expire(picture, 0, 5)
            for event, id_, data in stream:
                last_id = id_ or last_id
                seen += [row["member_id"] for row in reversed(data["rows"])] if event == "expirations" else []
                if len(seen) >= wanted:
                    break
            stream.close()
            # While nobody listens the world goes on.
            expire(picture, (cut + 1) * 5, 5)
        assert seen == [f"m{i}" for i in range(20)]
        wait_for(lambda: hub.listeners == 0, "the server to forget who went away")


def test_an_open_stream_does_not_hold_up_the_end() -> None:
    """Stopping sends listeners away at once, and the port is free again."""
    with served(Picture()) as (server, hub):
        stream = events(server)
        next(stream)
        assert hub.listeners == 1
        server.stop()
        assert not server.running
        assert [event for event, _, _ in stream if event == "expirations"] == []
    port = int(server.url.rstrip("/").rpartition(":")[2])
    assert is_free("127.0.0.1", port)


def test_a_taken_port_is_told_with_another_one() -> None:
    """Two on one port: the second says so, and which one to try."""
    with served(Picture()) as (server, _):
        port = int(server.url.rstrip("/").rpartition(":")[2])
        assert not is_free("127.0.0.1", port)
        second = HttpServer(create_app(Picture(), Settings()), host="127.0.0.1", port=port)
        with pytest.raises(HttpServerError, match=str(port)) as told_error:
            second.start()
    assert f"HEARTWHEEL_DASHBOARD__PORT={port + 1}" in str(told_error.value.hint)


def test_an_address_that_is_not_ours_is_told() -> None:
    """A host that this machine does not have ends with a hint, not a traceback."""
    server = HttpServer(create_app(Picture(), Settings()), host="192.0.2.1", port=0)
    with pytest.raises(HttpServerError) as told_error:
        server.start()
    assert "--host" in str(told_error.value.hint)


def test_the_address_can_be_opened() -> None:
    """What is printed is an address that a browser takes, also for a server that listens everywhere or on IPv6."""
    app = create_app(Picture(), Settings())
    addresses = [HttpServer(app, host=host, port=8484).url for host in ("::1", "::", "0.0.0.0", "box")]  # noqa: S104
    assert addresses == [
        "http://[::1]:8484/",
        "http://[::1]:8484/",
        "http://127.0.0.1:8484/",
        "http://box:8484/",
    ]


def test_the_command_fails_on_a_taken_port(capsys: pytest.CaptureFixture[str]) -> None:
    """`heartwheel dashboard` on a taken port is exit code 1 with one error and one hint."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["dashboard", "--port", str(port), "--bootstrap-servers", "127.0.0.1:1"]) == 1
    first, second = capsys.readouterr().err.strip().splitlines()
    assert (first.startswith("error: "), second.startswith("hint: ")) == (True, True)
    assert str(port) in first


def test_the_command_says_where_it_is_and_ends_in_order(tmp_path: Path) -> None:
    """The first line of stdout is the address, once it listens, also without Kafka; a signal ends it with code 0."""
    out, err = tmp_path / "out", tmp_path / "err"
    command = [sys.executable, "-m", "heartwheel", "dashboard", "--port", "0", "--bootstrap-servers", "127.0.0.1:1"]
    with out.open("wb") as to, err.open("wb") as errors, subprocess.Popen(command, stdout=to, stderr=errors) as process:
        try:
            url = wait_for(lambda: out.read_text().strip(), "the address")
            host = url.removeprefix("http://").rstrip("/")
            with closing(http.client.HTTPConnection(host, timeout=30)) as connection:
                connection.request("GET", "/healthz")
                assert connection.getresponse().status == 200
            wait_for(lambda: "Ctrl-C" in err.read_text(), "the command to wait")
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(60) == 0, err.read_text()
        finally:
            process.kill()
    assert "Traceback" not in err.read_text()
