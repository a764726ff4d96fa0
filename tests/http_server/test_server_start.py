"""A server either answers or says that it does not: no caller waits for one that has failed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette

from heartwheel.readers.http_server.server import HttpServer, HttpServerError


def test_an_application_that_cannot_start_ends_the_start() -> None:
    """`start` raises when the application fails to start, and the server's thread has ended."""

    @contextlib.asynccontextmanager
    async def fails(_: Starlette) -> AsyncIterator[None]:
        raise ValueError("no place to keep its sessions")
        yield

    server = HttpServer(Starlette(lifespan=fails), host="127.0.0.1", port=0)
    with pytest.raises(HttpServerError, match="the dashboard ended as it started"):
        server.start()
    server.stop()
    assert not server.running
