"""The job's metrics over HTTP, and how much memory it holds."""

from __future__ import annotations

import contextlib
import os
import socket
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry

from heartwheel.base.errors import HeartwheelError
from heartwheel.readers.metrics import Metrics, MetricsServer
from heartwheel.readers.metrics.job_metrics import job_metrics
from heartwheel.readers.metrics.memory import MemoryCollector
from heartwheel.readers.metrics.server import LIMITS
from heartwheel.settings import Settings

PARTS = ("driver", "jvm", "workers")
MOST = LIMITS.connections + LIMITS.reserve


def _ask(
    server: MetricsServer, *, method: str = "GET", path: str = "/metrics", accept: str = "", authorization: str = ""
) -> tuple[Any, bytes]:
    """Ask a server, and return its answer and the body."""
    parts = urlsplit(server.address)
    with closing(HTTPConnection(parts.hostname or "", parts.port, timeout=20)) as connection:
        headers = {"Accept": accept, "Authorization": authorization}
        connection.request(method, path, headers={name: value for name, value in headers.items() if value})
        answer = connection.getresponse()
        return answer, answer.read()


def test_metrics_are_served_as_prometheus_wants_them() -> None:
    """Plain text by default, OpenMetrics on request; HEAD works; any other path is a 404 that names the right one."""
    with MetricsServer(Metrics(Settings()), "127.0.0.1", 0) as server:
        answer, body = _ask(server)
        assert (answer.status, answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")) == (200, True)
        assert b"# TYPE heartwheel_expirations_total counter" in body
        assert _ask(server, accept="application/openmetrics-text")[1].endswith(b"# EOF\n")
        answer, body = _ask(server, method="HEAD")
        assert (answer.status, body) == (200, b"")
        answer, body = _ask(server, path="/")
        assert (answer.status, b"/metrics" in body) == (404, True)
        assert _ask(server, method="POST")[0].status == 405


def test_a_token_is_asked_for_where_one_is_set() -> None:
    """With `metrics.token` only who sends it reads the metrics; the error does not repeat what was sent."""
    token = "a-token-of-some-length"  # noqa: S105 - of this test alone
    with MetricsServer(Metrics(Settings()), "127.0.0.1", 0, token) as server:
        for sent in ("", f"Bearer {token}x", f"Basic {token}", "Bearer ", f"bearer {token[:-1]}"):
            answer, body = _ask(server, authorization=sent)
            assert (answer.status, answer.headers["WWW-Authenticate"], token[:5] in body.decode()) == (
                401,
                "Bearer",
                False,
            )
        assert _ask(server, authorization=f"Bearer {token}")[0].status == 200


def test_silent_and_slow_clients_keep_nobody_out() -> None:
    """Connections that send nothing, or never end their request, are bounded and give way to Prometheus."""
    with MetricsServer(Metrics(Settings()), "127.0.0.1", 0) as server, contextlib.ExitStack() as stack:
        port = urlsplit(server.address).port
        held = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(2 * MOST)]
        for each in held[::3]:
            each.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
        for _ in range(3):
            assert _ask(server)[0].status == 200
        assert len(server.connections) <= MOST


def test_a_port_that_is_taken_is_an_error_with_a_hint() -> None:
    """Before Spark is started the job says which address it cannot have, and which settings name it."""
    with MetricsServer(Metrics(Settings()), "127.0.0.1", 0) as server:
        port = int(server.address.rpartition(":")[2].partition("/")[0])
        taken = Settings.model_validate({"metrics": {"port": port}})
        with pytest.raises(HeartwheelError, match=f"127.0.0.1:{port}") as error, job_metrics(taken):
            pass
    assert "metrics.port" in str(error.value.hint)


def test_port_zero_is_off() -> None:
    """By default the job listens nowhere and follows nothing, and what it is given is harmless."""
    with job_metrics(Settings()) as metrics:
        assert metrics.text()[0]


def _process(proc: Path, pid: int, parent: int, name: str, pages: int) -> None:
    (proc / str(pid)).mkdir()
    fields = ["S", str(parent), *["0"] * 19, str(pages), "0"]
    (proc / str(pid) / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")


def test_memory_is_that_of_the_driver_its_jvm_and_their_workers(tmp_path: Path) -> None:
    """Children are found by their parents, whatever brackets are in their names; other processes do not count."""
    _process(tmp_path, 10, 1, "python (3) x", 100)
    _process(tmp_path, 20, 10, "java", 1_000)
    _process(tmp_path, 30, 20, "python", 7)
    _process(tmp_path, 31, 30, "python", 8)
    _process(tmp_path, 40, 1, "java", 9_999)
    registry = CollectorRegistry()
    registry.register(MemoryCollector(10, proc=tmp_path))
    page = os.sysconf("SC_PAGE_SIZE")
    held = {part: registry.get_sample_value("heartwheel_resident_memory_bytes", {"part": part}) for part in PARTS}
    assert held == {"driver": 100 * page, "jvm": 1_000 * page, "workers": 15 * page}


def test_memory_of_this_very_process() -> None:
    """On a real kernel the figure is in the range of a Python process: megabytes, not pages and not gigabytes."""
    registry = CollectorRegistry()
    registry.register(MemoryCollector())
    held = registry.get_sample_value("heartwheel_resident_memory_bytes", {"part": "driver"})
    assert held is not None
    assert 10e6 < held < 4e9
