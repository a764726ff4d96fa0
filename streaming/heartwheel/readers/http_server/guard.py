"""Checks that every request must pass (methods, host names, lengths), and headers that every answer carries."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heartwheel.readers.http_server.hosts import Hosts, host_of
from heartwheel.readers.http_server.paths import raw_path
from heartwheel.readers.http_server.problems import problem_response

PATH_BYTES_MAX: Final = 8_192
"""Longest accepted path, bytes: two ids of 1,024 bytes, each percent-encoded, and a little more."""

QUERY_BYTES_MAX: Final = 16_384
"""Longest accepted query, bytes."""

_CSP: Final = (
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; "
    "img-src 'self' data:"
)
SECURITY_HEADERS: Final = {
    "content-security-policy": _CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of every answer."""

_log = logging.getLogger(__name__)
# With a policy of "no-referrer" browsers would not even show that a form is our own.
_WITH_FORMS: Final = SECURITY_HEADERS | {
    "content-security-policy": _CSP.replace("form-action 'none'", "form-action 'self'"),
    "referrer-policy": "same-origin",
}
_ADDED: Final = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
_ADDED_WITH_FORMS: Final = [(name.encode(), value.encode()) for name, value in _WITH_FORMS.items()]


class Guard:
    """Middleware that refuses requests and adds the headers.

    Args:
        app: what answers the other requests.
        hosts: the host names that requests may use.
        forms: paths that forms may be sent to.
    """

    def __init__(self, app: ASGIApp, *, hosts: Hosts, forms: Collection[str] = ()) -> None:
        self._app, self._hosts, self._forms = app, hosts, forms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def note_and_send(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        app = secured(self._refusal(scope) or self._app, forms=bool(self._forms))
        try:
            await app(scope, receive, note_and_send)
        except Exception:
            # Starlette would answer outside of this middleware, without the headers.
            if begun:
                raise
            _log.exception("the dashboard could not answer %s", raw_path(scope)[:200])
            failed = problem_response(500, "the dashboard has a bug: it could not answer this", "its log tells more")
            await secured(failed)(scope, receive, send)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        may_send = scope["method"] == "POST" and scope["path"] in self._forms
        if scope["method"] not in {"GET", "HEAD"} and not may_send:
            hint = "it only shows; nothing can be changed here"
            return problem_response(405, f"method {scope['method'][:20]} is not allowed", hint, {"allow": "GET, HEAD"})
        if len(scope.get("raw_path") or scope["path"]) > PATH_BYTES_MAX:
            return problem_response(414, f"the path is longer than {PATH_BYTES_MAX} bytes", "ids have at most 1024")
        if len(scope["query_string"]) > QUERY_BYTES_MAX:
            return problem_response(414, f"the query is longer than {QUERY_BYTES_MAX} bytes", "ask for less at once")
        name = host_of(scope)
        if scope["path"] != "/healthz" and not self._hosts.allows(name):
            hint = f"start the dashboard with --allow-host {name}" if name else "send a Host header"
            return problem_response(421, "this dashboard does not answer to the host name of the request", hint)
        return None


def secured(app: ASGIApp, *, forms: bool = False) -> ASGIApp:
    """Return the application with the headers added to every answer.

    Args:
        app: the application.
        forms: whether its pages have forms that are sent back to it.
    """
    added = _ADDED_WITH_FORMS if forms else _ADDED

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        await app(scope, receive, send_with_headers)

    return answer
