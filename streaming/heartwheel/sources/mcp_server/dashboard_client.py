"""A client of a dashboard's API: bounded in time and size, and without redirects."""

from __future__ import annotations

import time
import urllib.parse
from typing import Final, TypeVar

import httpx
import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.plain import plain

_BODY_BYTES_MAX: Final = 16 << 20
_TIMEOUT_S: Final = 10.0
_SHOWN_CHARS: Final = 200
_LOGIN_HINT: Final = "give it the dashboard's token: HEARTWHEEL_MCP__DASHBOARD_TOKEN in the environment"

T = TypeVar("T")


class DashboardError(HeartwheelError):
    """A dashboard cannot be asked."""


class DashboardClient:
    """Asks the API of one dashboard.

    Args:
        url: its address, with its base path.
        token: for `Authorization: Bearer`; empty sends none.

    Raises:
        DashboardError: the address is none.
    """

    def __init__(self, url: str, token: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query:
            hint = "such as http://127.0.0.1:8484; a token goes into mcp.dashboard_token"
            raise DashboardError(f"{plain(url[:_SHOWN_CHARS])} is no address of a dashboard", hint=hint)
        self.url = url.rstrip("/")
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str, into: type[T], **query: str | int | None) -> T | None:
        """Return a document of the API.

        Args:
            path: below the address, quoted.
            into: its type.
            query: its parameters; `None` is left out.

        Returns:
            The document; `None` if the dashboard answers that it does not know it (404).

        Raises:
            DashboardError: the dashboard does not answer, or not as it should.
        """
        body = self._body(path, {name: value for name, value in query.items() if value is not None})
        if body is None:
            return None
        try:
            return msgspec.json.decode(body, type=into)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            hint = "it may be another program, or of another release"
            raise DashboardError(f"{self.url}{path} does not answer as a dashboard does", hint=hint) from None

    def _body(self, path: str, query: dict[str, str | int]) -> bytes | None:
        until_s = time.monotonic() + _TIMEOUT_S
        try:
            with (
                httpx.Client(headers=self._headers, timeout=_TIMEOUT_S, trust_env=False) as client,
                client.stream("GET", self.url + path, params=query) as answer,
            ):
                if answer.status_code == httpx.codes.NOT_FOUND:
                    return None
                if answer.status_code != httpx.codes.OK:
                    raise self._refused(answer.status_code)
                body = bytearray()
                for part in answer.iter_bytes():
                    body += part
                    if len(body) > _BODY_BYTES_MAX or time.monotonic() > until_s:
                        hint = "ask for less: a shorter time, or one group"
                        raise DashboardError(f"the answer of {self.url}{path} is too long or too slow", hint=hint)
                return bytes(body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            hint = "does heartwheel dashboard or heartwheel watch run there?"
            raise DashboardError(f"{self.url} does not answer: {plain(str(error))[:_SHOWN_CHARS]}", hint=hint) from None

    def _refused(self, status: int) -> DashboardError:
        hint = _LOGIN_HINT if status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN} else "its log may tell why"
        return DashboardError(f"{self.url} answered {status}", hint=hint)
