"""The server over streamable HTTP, behind the same limits and checks as the dashboard."""

from __future__ import annotations

from typing import Final

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from heartwheel.readers.http_server.guard import secured
from heartwheel.readers.http_server.hosts import Hosts, host_of, hosts_for
from heartwheel.readers.http_server.peers import has_bearer, is_same_origin
from heartwheel.readers.http_server.problems import problem_response
from heartwheel.readers.http_server.served import Served
from heartwheel.readers.http_server.server import HttpServer
from heartwheel.settings.servers import McpSettings

PATH: Final = "/mcp"
"""The path of the endpoint."""

_BODY_BYTES_MAX: Final = 64 << 10


class McpOverHttp(Served):
    """The server in a thread of its own; a context manager.

    Each request stands alone: no session is kept, so a client that goes away leaves nothing behind.

    Args:
        server: with the tools.
        settings: the section `[mcp]`.
    """

    def __init__(self, server: MCPServer, settings: McpSettings) -> None:
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            max_request_body_size=_BODY_BYTES_MAX,
            # `_Checks` does it, by the rules of the dashboard.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        checked = _Checks(app, hosts_for(settings.host, settings.allow_hosts), settings.token)
        super().__init__(HttpServer(checked, host=settings.host, port=settings.port, what="mcp"))

    @property
    def url(self) -> str:
        """The address for clients."""
        return super().url.rstrip("/") + PATH


class _Checks:
    """Middleware that refuses requests of foreign pages, and those without the token if there is one."""

    def __init__(self, app: ASGIApp, hosts: Hosts, token: str) -> None:
        self._app, self._hosts, self._token = secured(app), hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app if scope["type"] != "http" else self._refusal(scope) or self._app
        await app(scope, receive, send)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        if not self._hosts.allows(host_of(scope)):
            hint = "name it with --allow-host"
            return secured(problem_response(421, "this server does not answer to the host name of the request", hint))
        if not is_same_origin(scope):
            return secured(
                problem_response(403, "the request comes from the page of another site", "use a client of MCP")
            )
        if self._token and not has_bearer(scope, self._token):
            headers = {"www-authenticate": 'Bearer realm="heartwheel"'}
            hint = "send Authorization: Bearer TOKEN"
            return secured(problem_response(401, "it is not known who asks", hint, headers))
        if scope["method"] != "POST":
            words = f"method {scope['method'][:20]} is not allowed"
            hint = "requests are posted, and nothing is streamed"
            return secured(problem_response(405, words, hint, {"allow": "POST"}))
        return None
