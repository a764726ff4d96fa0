"""Bodies of requests: one budget for all, and a body that does not come keeps nobody out."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.types import Receive, Scope, Send

from heartwheel.readers.http_server import connections as counted
from heartwheel.readers.http_server import server as served
from heartwheel.readers.http_server.bodies import read_body
from heartwheel.readers.http_server.connection import FREE_BYTES, STALLED_S, Connection, Limits, Stage
from heartwheel.readers.http_server.connections import Connections
from heartwheel.readers.http_server.problems import RequestError
from heartwheel.readers.http_server.server import HttpServer
from support.job import wait_for

NEVER_S = 1e6


class Reader:
    """An application that reads bodies, and answers 202 with their length; `/hang` is answered never."""

    def __init__(self) -> None:
        self.held, self.statuses = 0, list[int]()
        self.hanging = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            for part in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{part}.complete"})
            return
        if scope["path"] == "/hang":
            self.hanging.set()
            await asyncio.Event().wait()
        status, words = 202, b""
        try:
            body = await read_body(scope, receive, what="body", bytes_max=1 << 20, timeout_s=NEVER_S, hint="send less")
            words = b"%d" % len(body)
        except RequestError as error:
            status = error.status
        self.statuses.append(status)
        await send(
            {"type": "http.response.start", "status": status, "headers": [(b"content-length", b"%d" % len(words))]}
        )
        await send({"type": "http.response.body", "body": words})


@contextlib.contextmanager
def serving(app: Reader, limits: Limits) -> Iterator[HttpServer]:
    """Run a server of an application on a free port."""
    with HttpServer(app, host="127.0.0.1", port=0, limits=limits) as server:
        yield server


def port_of(server: HttpServer) -> int:
    """Return where it listens."""
    return urlsplit(server.url).port or 0


def post(server: HttpServer, size: int) -> int:
    """Post a body of a size on a connection of its own, and return the status."""
    with closing(http.client.HTTPConnection("127.0.0.1", port_of(server), timeout=20)) as connection:
        connection.request("POST", "/", b"x" * size)
        return connection.getresponse().status


@contextlib.contextmanager
def posting(server: HttpServer, count: int, sent: int) -> Iterator[list[socket.socket]]:
    """Hold connections that have sent a part of a body, each after the server has what the last one sent."""
    with contextlib.ExitStack() as stack:
        held = []
        for _ in range(count):
            end = stack.enter_context(socket.create_connection(("127.0.0.1", port_of(server)), timeout=20))
            head = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {sent + 1}\r\n\r\n".encode()
            with contextlib.suppress(ConnectionError):
                end.sendall(head + b"x" * sent)
            held.append(end)
        yield held


def test_all_bodies_have_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many connections send how much, no more is held than the budget; others hear 503, single beats pass."""
    monkeypatch.setattr(counted, "STALLED_S", NEVER_S)
    app, limits = Reader(), Limits(body_bytes=100_000, request_s=NEVER_S)
    with serving(app, limits) as server:
        with posting(server, 6, 40_000):
            wait_for(lambda: app.statuses == [503] * 4, "four of six to be refused")
            assert 2 * 40_000 - 2 * FREE_BYTES < server.connections.body_bytes <= limits.body_bytes
            assert post(server, 50_000) == 503
            assert post(server, FREE_BYTES // 2) == 202
        wait_for(lambda: server.connections.body_bytes == 0, "what was held to be given back")
        for _ in range(3):
            assert post(server, 90_000) == 202
            wait_for(lambda: server.connections.body_bytes == 0, "what was answered to be given back")


def test_a_body_that_stalls_gives_its_room_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the budget is spent, the body with the oldest progress is broken off, and the one that comes is taken."""
    monkeypatch.setattr(counted, "STALLED_S", 0.0)
    app = Reader()
    with serving(app, Limits(body_bytes=100_000, request_s=NEVER_S)) as server, posting(server, 2, 40_000):
        wait_for(lambda: server.connections.body_bytes > 70_000, "the budget to be spent")
        assert [post(server, 60_000) for _ in range(3)] == [202] * 3


def test_bodies_that_trickle_keep_nobody_out() -> None:
    """Three times as many unfinished bodies as an address may have connections: every honest request is answered."""
    app, limits = Reader(), Limits(connections=30, per_address=20, reserve=4, request_s=NEVER_S)
    with serving(app, limits) as server, posting(server, 60, 10):
        assert [post(server, 100) for _ in range(10)] == [202] * 10
        assert len(server.connections) <= limits.per_address


def test_a_body_has_an_end() -> None:
    """A body that is not whole after the deadline of a request loses its connection."""
    with serving(Reader(), Limits(request_s=0.5)) as server, posting(server, 1, 10) as (end,):
        assert end.recv(1) == b""


def test_the_end_of_a_server_logs_no_traceback(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests whose bodies are not whole, and those whose answers take longer than the grace, leave no traceback."""
    monkeypatch.setattr(served, "_GRACE_S", 0)
    app = Reader()
    with (
        caplog.at_level(logging.DEBUG),
        serving(app, Limits()) as server,
        posting(server, 3, 10),
        socket.create_connection(("127.0.0.1", port_of(server)), timeout=20) as end,
    ):
        end.sendall(b"GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert app.hanging.wait(20)
        wait_for(lambda: sum(each.stage is Stage.READING for each in server.connections) == 3, "all to be read")
        server.stop()
    assert [record for record in caplog.records if record.exc_info] == []


def test_two_lengths_are_refused() -> None:
    """Content-Length and Transfer-Encoding together are 400, and nothing more is read from that connection."""
    request = (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx"
    )
    app = Reader()
    with serving(app, Limits()) as server, socket.create_connection(("127.0.0.1", port_of(server)), timeout=20) as end:
        end.sendall(request)
        answer = b"".join(iter(lambda: end.recv(4_096), b""))
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert app.statuses == []


@pytest.mark.parametrize(("told", "status"), [("1048577", 413), ("9" * 19, 413), ("1048576", 400)])
def test_a_length_that_is_too_long_is_refused_before_anything_is_read(told: str, status: int) -> None:
    """What says that it is too long is 413 at once; what is within the limit and ends early is 400."""

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    scope = {"headers": [(b"content-length", told.encode())]}
    with pytest.raises(RequestError) as caught:
        asyncio.run(read_body(scope, receive, what="body", bytes_max=1 << 20, timeout_s=20, hint=""))
    assert caught.value.status == status


def admitted(connections: Connections, address: str, stage: Stage, now: float) -> tuple[Connection, list[str]]:
    """Admit a connection, and return it with a list that says when it was broken."""
    ended = list[str]()
    connection = connections.admit(address, lambda: ended.append("ended"), now)
    assert connection is not None
    connection.enter(stage, now)
    return connection, ended


def test_the_body_with_the_oldest_progress_gives_way() -> None:
    """Progress of 16 KiB moves a body behind the others; small parts do not, and answers never give way."""
    connections = Connections(Limits(per_address=3))
    slow, slow_ended = admitted(connections, "a", Stage.READING, 0.0)
    fast, fast_ended = admitted(connections, "a", Stage.READING, 0.0)
    _, answered_ended = admitted(connections, "a", Stage.ANSWERING, 0.0)
    slow.read(100, 1.0)
    fast.read(16 << 10, 1.0)
    connections.admit("a", lambda: None, 2.0)
    assert (slow_ended, fast_ended, answered_ended) == (["ended"], [], [])


def test_what_is_held_is_counted_over_all_connections() -> None:
    """What fits is held until it is released; what does not is refused, and nothing is held of its connection."""
    connections = Connections(Limits(body_bytes=10_000))
    first, second = (admitted(connections, "a", Stage.READING, 0.0)[0] for _ in range(2))
    assert connections.hold(first, FREE_BYTES + 8_000, 0.0)
    assert connections.hold(second, FREE_BYTES, 0.0)
    assert not connections.hold(second, 8_000, 0.0)
    assert (connections.body_bytes, second.received_bytes) == (8_000, 0)
    connections.release(first)
    assert connections.hold(second, FREE_BYTES + 8_000, 0.0)
    connections.forget(second)
    assert connections.body_bytes == 0


def test_few_bodies_of_an_address_may_stall() -> None:
    """Beyond its few, bodies of one address that stall for a second are broken off; other addresses keep theirs."""
    connections = Connections(Limits(reading_per_address=2, request_s=NEVER_S))
    mine = [admitted(connections, "a", Stage.READING, 0.0)[1] for _ in range(5)]
    other = admitted(connections, "b", Stage.READING, 0.0)[1]
    connections.end_overdue(STALLED_S / 2)
    assert [len(ended) for ended in mine] == [0] * 5
    connections.end_overdue(STALLED_S)
    assert ([len(ended) for ended in mine], other) == ([1, 1, 1, 0, 0], [])


def test_an_address_of_ipv6_is_its_network() -> None:
    """Addresses of one /64 share the cap of one address; IPv4 addresses within IPv6 do not."""
    connections = Connections(Limits(per_address=2, reserve=0))
    same = [f"2001:db8::{number}" for number in range(3)]
    first = admitted(connections, same[0], Stage.ANSWERING, 0.0)
    admitted(connections, same[1], Stage.ANSWERING, 0.0)
    assert connections.admit(same[2], lambda: None, 0.0) is None
    assert connections.admit("2001:db8:0:1::1", lambda: None, 0.0) is not None
    assert all(connections.admit(f"::ffff:192.0.2.{number}", lambda: None, 0.0) for number in range(5))
    connections.forget(first[0])
    assert connections.admit(same[2], lambda: None, 0.0) is not None


def test_a_request_costs_the_same_beside_idle_connections() -> None:
    """What waits to be sent is asked of those that are answered, or were and have not taken all; not of idle ones."""
    connections = Connections(Limits(connections=1_000, per_address=1_000))
    asked = list[int]()
    waiting = [3]

    def unsent(number: int) -> Callable[[], int]:
        def ask() -> int:
            asked.append(number)
            return waiting[0] if number == 7 else 0

        return ask

    for number in range(500):
        connection = admitted(connections, "a", Stage.ANSWERING, 0.0)[0]
        connection.unsent_bytes = unsent(number)
        connection.enter(Stage.WAITING, 1.0)
    assert connections.unsent_bytes == 3
    asked.clear()
    assert connections.unsent_bytes == 3
    assert asked == [7]
    waiting[0] = 0
    assert connections.unsent_bytes == 0
    asked.clear()
    assert (connections.unsent_bytes, asked) == (0, [])
