"""Readers that do not read, and connections that say nothing: they cost little, end soon, and keep nobody out."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http.client
import ipaddress
import json
import resource
import socket
import subprocess
import sys
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from heartwheel.readers.dashboard.channel import Channel
from heartwheel.readers.dashboard.downloads import DOWNLOADS_MAX, ROWS_A_PIECE
from heartwheel.readers.dashboard.hub import Hub
from heartwheel.readers.dashboard.ring import StreamFrame
from heartwheel.readers.dashboard.stream import PIECE_BYTES_MAX, REPLAY_BYTES_MAX, Listener
from heartwheel.readers.http_server.connection import PROGRESS_BYTES, Connection, Limits, Stage
from heartwheel.readers.http_server.connections import Connections, within
from heartwheel.readers.http_server.open_files import raise_limit
from heartwheel.readers.live.now import View
from heartwheel.readers.live.picture import Picture
from support.dashboard_server import FedDashboard
from support.dashboard_server import dashboard as any_dashboard
from support.job import wait_for
from support.login import write_users
from support.output_rows import T0, expired, topic_rows

NEVER_S = 1e6
ROWS = 20_000
IDS_BYTES = 200


def dashboard(**options: Any) -> AbstractContextManager[FedDashboard]:
    """Run a dashboard at the time of the rows."""
    return any_dashboard(now_ms=lambda: T0, **options)


@pytest.fixture(scope="module")
def rows() -> list[Any]:
    """Make many expirations with long ids: about 12 MB as JSON."""
    return topic_rows(*(expired(f"g{i % 50}", f"{'m' * IDS_BYTES}{i}", T0 + i) for i in range(ROWS)))


@contextlib.contextmanager
def asking(server: FedDashboard, path: str, count: int, *, last_id: str = "") -> Iterator[list[socket.socket]]:
    """Hold connections that ask for a path, nothing if it is empty, and never read."""
    with contextlib.ExitStack() as stack:
        held = []
        for _ in range(count):
            end = stack.enter_context(socket.socket())
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            end.settimeout(20)
            end.connect(("127.0.0.1", server.port))
            if path:
                resume = f"Last-Event-ID: {last_id}\r\n" if last_id else ""
                with contextlib.suppress(OSError):
                    end.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{resume}\r\n".encode())
            held.append(end)
        yield held


def ask(server: FedDashboard, path: str) -> tuple[http.client.HTTPResponse, bytes]:
    """Ask as an honest client does, on a connection of its own."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer, answer.read()


def answering(server: FedDashboard) -> int:
    """Count the connections that are being answered."""
    return sum(each.stage is Stage.ANSWERING for each in server.connections)


def is_cut(end: socket.socket) -> bool:
    """Read until the other end is gone; tells whether it broke the connection."""
    with contextlib.suppress(ConnectionError):
        while end.recv(65_536):
            pass
    return True


def test_unread_downloads_wait_few_at_a_time(rows: list[Any]) -> None:
    """Downloads that nobody reads hold a few pieces each, not the file; the next one learns when to come back."""
    with dashboard(metrics=lambda accept: (b"up 1\n", accept), server={"limits": Limits(send_s=NEVER_S)}) as server:
        server.tell(rows)
        assert len(ask(server, "/api/expirations.json")[1]) > 10e6
        with asking(server, "/api/expirations.json", DOWNLOADS_MAX) as held:

            def stalled() -> int:
                return sum(each.unsent_bytes() > 0 for each in server.connections)

            wait_for(lambda: stalled() == DOWNLOADS_MAX, "the downloads to stall")
            answer, body = ask(server, "/api/expirations.csv")
            assert (answer.status, int(answer.headers["retry-after"]) > 0) == (503, True)
            assert set(json.loads(body)) == {"error", "hint"}
            piece = ROWS_A_PIECE * (IDS_BYTES + 1_000)
            assert server.connections.unsent_bytes < DOWNLOADS_MAX * (piece + (64 << 10))
            assert [ask(server, path)[0].status for path in ("/healthz", "/metrics", "/api/now")] == [200] * 3
            for end in held:
                end.close()
        wait_for(lambda: ask(server, "/api/expirations.csv?text=x")[0].status == 200, "the places to be free again")


def test_a_download_is_whole(rows: list[Any]) -> None:
    """What is sent piece by piece is one file: every row once, the newest first, in both formats."""
    with dashboard() as server:
        server.tell(rows[: ROWS_A_PIECE * 2 + 1])
        found = [row["member_id"] for row in json.loads(ask(server, "/api/expirations.json")[1])]
        lines = ask(server, "/api/expirations.csv")[1].decode("utf-8-sig").splitlines()
        assert found == [row.row.member_id for row in reversed(rows[: ROWS_A_PIECE * 2 + 1])]
        at = lines[0].split(",").index("member_id")
        assert [line.split(",")[at] for line in lines[1:]] == found
        assert json.loads(ask(server, "/api/expirations.json?text=nobody")[1]) == []


def test_a_reader_that_does_not_read_is_cut_off(rows: list[Any]) -> None:
    """After the deadline for sends the connection is broken, and its place is free."""
    with dashboard(server={"limits": Limits(send_s=0.5)}) as server:
        server.tell(rows)
        with asking(server, "/api/expirations.json", 2) as held:
            wait_for(lambda: len(server.connections) == 0, "both to be cut off")
            assert all(is_cut(end) for end in held)


def test_silent_connections_keep_nobody_out() -> None:
    """Three times as many silent connections as there may be, from one address: every honest request is answered."""
    limits = Limits(connections=30, per_address=20, reserve=4, request_s=NEVER_S)
    metrics = {"metrics": lambda accept: (b"up 1\n", accept)}
    with dashboard(server={"limits": limits}, **metrics) as server, asking(server, "", 90):
        for _ in range(5):
            statuses = [ask(server, path)[0].status for path in ("/healthz", "/metrics", "/api/now", "/")]
            assert statuses == [200, 200, 200, 200]
        assert len(server.connections) <= limits.connections


def test_logins_that_trickle_keep_nobody_out(tmp_path: Path) -> None:
    """Forms of the login that never end, which need no login: honest requests of the same address are answered."""
    limits = Limits(connections=30, per_address=20, reserve=4, request_s=NEVER_S)
    users = {"users_file": str(write_users(tmp_path / "users"))}
    form = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nuser="
    with dashboard(settings=users, server={"limits": limits}) as server, asking(server, "", 60) as held:
        for end in held:
            with contextlib.suppress(ConnectionError):
                end.sendall(form)
        assert [ask(server, path)[0].status for path in ("/login", "/healthz", "/api/now") * 5] == [200, 200, 401] * 5
        assert len(server.connections) <= limits.per_address


def test_silence_ends_after_the_deadline() -> None:
    """Silence and a request that never ends are broken after the deadline, on connections used before, too."""
    with dashboard(server={"limits": Limits(request_s=0.5)}) as server, asking(server, "", 1) as (silent,):
        with asking(server, "/healthz", 1) as (used,), asking(server, "", 1) as (slow,):
            slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            assert b"200 OK" in used.recv(4_096)
            used.sendall(b"GET /healthz HTTP/1.1\r\n")
            assert [is_cut(end) for end in (silent, slow, used)] == [True] * 3
        wait_for(lambda: len(server.connections) == 0, "all places to be free")


def test_no_http_is_refused_with_the_headers(caplog: pytest.LogCaptureFixture) -> None:
    """Bytes that are no HTTP get a 400 with the security headers, and no line in the log."""
    with dashboard() as server, socket.create_connection(("127.0.0.1", server.port), timeout=20) as end:
        end.sendall(b"\x16\x03\x01 what is this\r\n\r\n")
        answer = b"".join(iter(lambda: end.recv(4_096), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"content-security-policy: default-src 'self'" in answer
    assert caplog.records == []


def test_probes_have_a_reserve_when_all_is_in_use() -> None:
    """With all places taken by open streams only health and metrics are answered; others hear 503, and when to ask."""
    limits = Limits(connections=8, per_address=6, reserve=4)
    with (
        dashboard(server={"limits": limits}, metrics=lambda accept: (b"up 1\n", accept)) as server,
        asking(server, "/api/stream", 6),
    ):
        wait_for(lambda: answering(server) == 6, "the streams to be open")
        with asking(server, "", 4):
            assert [ask(server, path)[0].status for path in ("/healthz", "/metrics")] == [200, 200]
        answer, body = ask(server, "/api/now")
        assert (answer.status, "connections" in json.loads(body)["error"]) == (503, True)
        assert answer.headers["retry-after"]
        assert answer.headers["content-security-policy"]


def test_what_waits_to_be_sent_is_bounded_in_all(rows: list[Any]) -> None:
    """Pages of the API that nobody reads add up to the bound and no further; then only probes are answered."""
    limits = Limits(buffered_bytes=2 << 20, send_s=NEVER_S)
    with dashboard(server={"limits": limits}) as server:
        server.tell(rows)
        size = len(ask(server, "/api/expirations?limit=1000")[1])
        with asking(server, "/api/expirations?limit=1000", 20):
            wait_for(lambda: server.connections.unsent_bytes > limits.buffered_bytes, "much to wait")
            assert (ask(server, "/api/now")[0].status, ask(server, "/healthz")[0].status) == (503, 200)
            assert server.connections.unsent_bytes < limits.buffered_bytes + 20 * size


def _hub() -> tuple[Hub, Channel]:
    hub = Hub(Picture(), epoch="e1", view=lambda canary: View(show_canary=canary), now_ms=lambda: T0)
    return hub, hub.channel(canary=False)


def test_a_resume_that_is_too_large_is_a_gap() -> None:
    """Who has missed up to a megabyte gets it, piece by piece; who has missed more has to load anew."""

    async def play() -> None:
        hub, channel = _hub()
        count = REPLAY_BYTES_MAX // 10_000
        for number in range(1, count + 2):
            channel.ring.add(StreamFrame(number, number, b"x" * 9_998 + b"\n\n"))
        resumed = {
            last: Listener(hub, Picture(), canary=False, shard=None, last_id=f"e1-{last}", now_ms=T0) for last in (0, 1)
        }
        first = resumed[0]._first()
        assert (b"event: gap" in first, len(first) < PIECE_BYTES_MAX) == (True, True)
        stream = resumed[1].events()
        pieces = [await anext(stream)]
        while resumed[1]._is_behind():
            pieces.append(await anext(stream))
        await stream.aclose()
        assert b"event: gap" not in pieces[0]
        assert max(map(len, pieces)) < PIECE_BYTES_MAX + 20_000
        assert b"".join(pieces).count(b"x" * 9_998) == count

    asyncio.run(play())


def test_old_streams_that_nobody_reads_cost_little(rows: list[Any]) -> None:
    """A hundred listeners that come back with an old id and never read hold no copy of what they have missed."""
    limits = Limits(send_s=NEVER_S)
    with dashboard(server={"limits": limits}) as server:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)) as listening:
            listening.request("GET", "/api/stream")
            answer = listening.getresponse()
            lines = iter(lambda: answer.readline().decode(), "")
            last_id = next(line for line in lines if line.startswith("id: "))[4:].strip()
            for at in range(0, 2_400, 200):
                server.tell(rows[at : at + 200])
                next(line for line in lines if line.startswith("event: expirations"))
        with asking(server, "/api/stream", 100, last_id=last_id):
            wait_for(lambda: answering(server) == 100, "all to listen")
            assert server.connections.unsent_bytes < 100 * (2 * PIECE_BYTES_MAX)
            assert ask(server, "/api/now")[0].status == 200


def test_the_memory_of_a_process_stays_bounded() -> None:
    """A real process under 120 unread downloads and 120 unread resumes grows by less than 100 MB."""
    code = (Path(__file__).parent / "attacked.py").read_text(encoding="utf-8")
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["grown_bytes"] < 100e6


def test_the_soft_limit_of_open_files_is_raised() -> None:
    """A low soft limit is raised up to the hard one; a high one stays."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
        assert raise_limit(600) == 600
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 600
        assert raise_limit(550) == 600
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Ended:
    """Count how often a connection was broken."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        """Count."""
        self.times += 1


def test_the_oldest_that_waits_gives_way() -> None:
    """Beyond a cap a newcomer takes the place of the oldest silent connection of that address, never of one in use."""
    connections = Connections(Limits(connections=4, per_address=2, reserve=1))
    ends = [Ended() for _ in range(9)]

    def admit(at: int, address: str) -> Connection:
        found = connections.admit(address, ends[at], float(at))
        assert found is not None
        return found

    one, two = admit(0, "a"), admit(1, "a")
    one.enter(Stage.ANSWERING, 1.0)
    three = admit(2, "a")
    assert ([end.times for end in ends[:3]], three.reserved) == ([0, 1, 0], False)
    assert two not in list(connections)
    three.enter(Stage.ANSWERING, 2.0)
    spare = admit(3, "a")
    assert spare.reserved
    assert [admit(at, str(at)).reserved for at in (4, 5, 6)] == [False] * 3
    assert [end.times for end in ends[:7]] == [0, 1, 0, 0, 1, 0, 0]
    spare.enter(Stage.ANSWERING, 7.0)
    for each in connections:
        each.enter(Stage.ANSWERING, 7.0)
    assert connections.admit("z", ends[8], 8.0) is None


def test_slow_is_not_stuck() -> None:
    """Who takes a part of what waits within the deadline stays; who takes a trickle is overdue."""
    limits, waiting = Limits(send_s=10, request_s=NEVER_S), [10 * PROGRESS_BYTES]
    for step, overdue in ((PROGRESS_BYTES // 4, False), (PROGRESS_BYTES // 40, True)):
        connection = Connection("a", reserved=False, end=lambda: None, now=0.0)
        waiting[0] = 10 * PROGRESS_BYTES
        connection.unsent_bytes = lambda: waiting[0]
        seen = []
        for second in range(15):
            seen.append(connection.is_overdue(limits, float(second)))
            waiting[0] -= step
        assert any(seen) is overdue


def test_networks_hold_mapped_addresses_too() -> None:
    """An IPv4 proxy is recognised where it comes over a socket for IPv6; names and nonsense are in no network."""
    nets = [ipaddress.ip_network("10.0.0.0/8")]
    answers = [within(address, nets) for address in ("10.1.2.3", "::ffff:10.1.2.3", "11.0.0.1", "::1", "x", "")]
    assert answers == [True, True, False, False, False, False]


def test_out_of_files_is_logged_once_and_over_when_there_are_some(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nothing can be accepted one line is logged, not one a try; afterwards everybody is served."""
    fails, original = [12], BaseSelectorEventLoop.sock_accept

    async def accept(self: Any, sock: socket.socket) -> Any:
        if fails[0]:
            fails[0] -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return await original(self, sock)

    monkeypatch.setattr(BaseSelectorEventLoop, "sock_accept", accept)
    with dashboard() as server:
        assert ask(server, "/healthz")[0].status == 200
    assert not fails[0]
    assert [record.levelname for record in caplog.records if "accepted" in record.message] == ["WARNING"]
