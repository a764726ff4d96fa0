"""Ask an ASGI application without a network: one request, one answer."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx


def ask(app: Any, path: str, *, method: str = "GET", host: str = "127.0.0.1", **headers: str) -> httpx.Response:
    """Send one request, and read the whole answer; the application's lifespan is not run.

    Args:
        app: the application.
        path: path and query, percent-encoded as they are to be sent.
        method: of HTTP.
        host: the name to ask under.
        headers: further headers, with `_` for `-`.
    """

    async def send() -> httpx.Response:
        # An error is to be answered by the application, not thrown at the test.
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return await client.request(method, path, headers=named)

    return asyncio.run(send())
