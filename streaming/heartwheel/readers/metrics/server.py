"""An HTTP server of /metrics, for a process that has no other page."""

from __future__ import annotations

from typing import Final

from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from heartwheel.base.errors import HeartwheelError
from heartwheel.readers.http_server.connection import Limits
from heartwheel.readers.http_server.peers import has_bearer
from heartwheel.readers.http_server.problems import problem_response
from heartwheel.readers.http_server.server import HttpServer, HttpServerError
from heartwheel.readers.metrics.exposition import PLAIN, Metrics

LIMITS: Final = Limits(connections=16, per_address=16, reserve=4)
"""Enough for a few Prometheus servers and a person; silent connections give way to new ones."""


class MetricsServer(HttpServer):
    """A server of this process's metrics, in a thread of its own; read-only.

    Args:
        port: the port; `0` takes any that is free.
        token: the token required as `Authorization: Bearer`; empty requires none.
    """

    def __init__(self, metrics: Metrics, host: str, port: int, token: str = "") -> None:
        super().__init__(_app(metrics, token), host=host, port=port, limits=LIMITS, what="metrics")
        self._at = f"{host}:{port}"

    @property
    def address(self) -> str:
        """The address of the metrics."""
        return f"{self.url}metrics"

    def start(self) -> None:
        """Start the server, and return once it answers requests.

        Raises:
            HeartwheelError: the address cannot be listened at.
        """
        try:
            super().start()
        except HttpServerError as error:
            hint = "set metrics.host and metrics.port to an address of this machine that is free, or the port to 0"
            raise HeartwheelError(f"cannot serve metrics at {self._at}: {error}", hint=hint) from error


def _app(metrics: Metrics, token: str) -> Starlette:
    """Return the application: /metrics, and problems in words for everything else."""

    async def answer(request: Request) -> Response:
        if token and not has_bearer(request.scope, token):
            hint = "send the token of metrics.token as Authorization: Bearer"
            return problem_response(401, "no token, or another one", hint, {"www-authenticate": "Bearer"})
        body, media = await to_thread.run_sync(metrics.text, request.headers.get("accept", PLAIN))
        headers = {"cache-control": "no-store", "x-content-type-options": "nosniff", "content-type": media}
        return Response(body, headers=headers)

    async def not_found(_request: Request, _error: Exception) -> Response:
        return problem_response(404, "there is nothing here", "ask for /metrics")

    async def not_allowed(_request: Request, _error: Exception) -> Response:
        return problem_response(405, "metrics can only be read", "send a GET", {"allow": "GET, HEAD"})

    return Starlette(
        routes=[Route("/metrics", answer)],
        exception_handlers={404: not_found, 405: not_allowed},
    )
