"""The gate: without a login only health, the page's own files and the login itself are reachable."""

from __future__ import annotations

import logging
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heartwheel.readers.dashboard.login.login import Client, Login
from heartwheel.readers.dashboard.login.page import login_page
from heartwheel.readers.dashboard.login.sessions import COOKIE
from heartwheel.readers.http_server.bodies import read_body
from heartwheel.readers.http_server.paths import raw_path
from heartwheel.readers.http_server.peers import client_of, header, is_same_origin, is_secure
from heartwheel.readers.http_server.problems import RequestError, problem_response

OPEN: Final = frozenset({"/healthz"})
"""Paths that need no login."""

ASSETS: Final = "/page/"
"""The prefix of the page's own files, which are the same in every installation and need no login."""

LOGIN, LOGOUT = "/login", "/logout"

CLIENT: Final = "heartwheel.client"
"""The key of a request's `Client` in its scope."""

_FORM_BYTES_MAX: Final = 8_192
_FORM_S: Final = 10.0
_NEXT_MAX: Final = 2_048
_NO_STORE: Final = {"cache-control": "no-store"}

access_log: Final = logging.getLogger("heartwheel.readers.dashboard.access")
"""Logs who requested what, one line per request at level INFO, and refused logins at WARNING."""


class Gate:
    """Middleware that lets clients with access pass, and records who they are.

    Args:
        app: the application for them.
        login: decides who has access.
        base_path: the base path for browsers.
    """

    def __init__(self, app: ASGIApp, *, login: Login, base_path: str) -> None:
        self._app, self._login, self._base = app, login, base_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or not self._login.is_wanted or _is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            if self._login.users is not None and scope["path"] in {LOGIN, LOGOUT}:
                await (await self._form(scope, receive))(scope, receive, send)
                return
            client = await self._login.find(scope)
        except RequestError as error:
            await error.response()(scope, receive, send)
            return
        if client is None:
            if self._login.has_token and header(scope, "authorization").lower().startswith("bearer "):
                access_log.warning("%s: token refused", client_of(scope, self._login.proxies))
            await self._refusal(scope)(scope, receive, send)
            return
        await self._app({**scope, CLIENT: client}, receive, self._noting(scope, client, send))

    async def _form(self, scope: Scope, receive: Receive) -> Response:
        if scope["method"] != "POST":
            if scope["path"] == LOGOUT:
                return self._to("/")
            wanted = parse_qs(scope["query_string"].decode("latin-1")).get("next", ["/"])[0]
            if self._login.session_of(scope) is not None:
                return self._to(_inside(wanted))
            return HTMLResponse(login_page(self._base, _inside(wanted)), headers=_NO_STORE)
        if not is_same_origin(scope):
            return problem_response(403, "this form was sent by another site", "open the dashboard itself and log in")
        body = await read_body(
            scope, receive, what="form", bytes_max=_FORM_BYTES_MAX, timeout_s=_FORM_S, hint="shorten it"
        )
        fields = _fields_of(body)
        return self._log_out(scope) if scope["path"] == LOGOUT else await self._log_in(scope, fields)

    async def _log_in(self, scope: Scope, fields: dict[str, str]) -> Response:
        name, wanted = fields.get("user", ""), _inside(fields.get("next", "/"))
        client = client_of(scope, self._login.proxies)
        try:
            right = await self._login.check(scope, name, fields.get("password", ""))
        except RequestError as error:
            access_log.warning("%s %s: login refused: %s", client, ascii(name[:100]), error.error)
            words = f"{error.error}: {error.hint}".capitalize()
            page = login_page(self._base, wanted, name=name, error=f"{words}.")
            return HTMLResponse(page, error.status, _NO_STORE | {"retry-after": str(error.retry_s or 1)})
        if not right:
            access_log.warning("%s %s: login refused: wrong name or password", client, ascii(name[:100]))
            page = login_page(self._base, wanted, name=name, error="Wrong name or password.")
            return HTMLResponse(page, 401, _NO_STORE)
        access_log.info("%s %s logged in", client, ascii(name))
        answer = self._to(wanted)
        sessions = self._login.sessions
        self._set_cookie(scope, answer, sessions.open(name), sessions.ttl_ms // 1_000)
        return answer

    def _log_out(self, scope: Scope) -> Response:
        session = self._login.session_of(scope)
        if session is not None:
            self._login.sessions.close(session)
            access_log.info("%s %s logged out", client_of(scope, self._login.proxies), ascii(session.user))
        answer = self._to(LOGIN)
        self._set_cookie(scope, answer, "", 0)
        return answer

    def _set_cookie(self, scope: Scope, answer: Response, value: str, age_s: int) -> None:
        secure = is_secure(scope, self._login.proxies)
        path = self._base or "/"
        answer.set_cookie(COOKIE, value, max_age=age_s, path=path, secure=secure, httponly=True, samesite="lax")

    def _to(self, path: str) -> Response:
        return RedirectResponse(self._base + path, 303, _NO_STORE)

    def _refusal(self, scope: Scope) -> Response:
        asked = scope["path"] + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
        is_page = "text/html" in header(scope, "accept") and not scope["path"].startswith("/api/")
        if self._login.users is not None and is_page:
            return RedirectResponse(f"{self._base}{LOGIN}?next={quote(asked[:_NEXT_MAX], safe='')}", 303, _NO_STORE)
        ways = {"Bearer": self._login.has_token, "Basic": self._login.users is not None}
        # Browsers would open a login window of their own, again and again; the page redirects to the login instead.
        challenges = [f'{way} realm="heartwheel"' for way, there in ways.items() if there]
        browser = bool(header(scope, "sec-fetch-mode") or header(scope, "sec-fetch-site"))
        headers = {} if browser or not challenges else {"www-authenticate": ", ".join(challenges)}
        return problem_response(401, "it is not known who asks", self._hint(), headers)

    def _hint(self) -> str:
        ways = [
            f"log in at {self._base}{LOGIN}" if self._login.users is not None else "",
            "send Authorization: Bearer TOKEN" if self._login.has_token else "",
        ]
        return ", or ".join(way for way in ways if way) or "go through the proxy that asks for a login"

    def _noting(self, scope: Scope, client: Client, send: Send) -> Send:
        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                address = client_of(scope, self._login.proxies)
                words = (address, ascii(client.name), client.how, scope["method"], raw_path(scope), message["status"])
                access_log.info("%s %s (%s) %s %s %d", *words)
            await send(message)

        return note


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith(ASSETS)


def _inside(wanted: str) -> str:
    """Return an address if it is within this dashboard, otherwise its first page."""
    inside = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and len(wanted) <= _NEXT_MAX
    parts = urlsplit(wanted) if inside and wanted.isprintable() and "\\" not in wanted else None
    if parts is None or parts.scheme or parts.netloc or parts.path in {LOGIN, LOGOUT}:
        return "/"
    return quote(wanted, safe="/?&=%:@!$'()*+,;~-._")


def _fields_of(body: bytes) -> dict[str, str]:
    """Parse a form; of a field that comes twice the first counts.

    Raises:
        RequestError: 400, it cannot be read.
    """
    try:
        found = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=10)
    except ValueError:
        raise RequestError(400, "the form cannot be read", "send it as application/x-www-form-urlencoded") from None
    return {name: values[0] for name, values in found.items()}
