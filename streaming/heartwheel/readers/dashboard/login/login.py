"""Identify clients: by a token, by name and password, by a session, or by a named proxy."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.types import Scope

from heartwheel.base.addresses import parse_networks
from heartwheel.readers.dashboard.login.attempts import Attempts
from heartwheel.readers.dashboard.login.sessions import COOKIE, LoginSessions, Session
from heartwheel.readers.dashboard.login.users import Users, is_name
from heartwheel.readers.http_server.peers import client_of, header, is_trusted
from heartwheel.readers.http_server.problems import RequestError
from heartwheel.settings.servers import DashboardSettings

CHECKS_MAX: Final = 2
"""Most passwords that are checked at the same time: each occupies a processor for a while."""

CHECKS_WAITING_MAX: Final = 16
"""Most password checks that wait."""

PASSWORD_MAX: Final = 1_024
"""Longest accepted password, characters."""

_REMEMBER_S: Final = 60.0
_REMEMBERED_MAX: Final = 1_000


class Client(NamedTuple):
    """The client of a request.

    Args:
        name: of the user; `token` for a token.
        how: `token`, `password`, `session` or `proxy`.
        is_valid: returns whether the access still holds, for long answers.
    """

    name: str
    how: str
    is_valid: Callable[[], bool] = lambda: True


class Login:
    """Access control of a dashboard.

    Args:
        settings: the section `[dashboard]`.
        now_ms: the wall clock, epoch ms.
    """

    def __init__(self, settings: DashboardSettings, now_ms: Callable[[], int]) -> None:
        self.users = Users(Path(settings.users_file)) if settings.users_file else None
        self.proxies = parse_networks(settings.trusted_proxies)
        self._token, self._user_header = settings.token.encode(), settings.user_header
        self.has_token = bool(settings.token)
        self.is_wanted = bool(self.users or settings.token or settings.user_header)
        self.sessions = LoginSessions(
            settings.session_secret.encode() or secrets.token_bytes(32),
            ttl_ms=settings.session_ttl_ms,
            stamp_of=lambda name: self.users.stamp(name) if self.users else None,
            now_ms=now_ms,
        )
        self._attempts = Attempts(time.monotonic)
        self._checks: CapacityLimiter | None = None  # created in the server's event loop
        self._checking = 0
        self._key = secrets.token_bytes(32)
        self._remembered: OrderedDict[bytes, tuple[float, str | None]] = OrderedDict()

    async def find(self, scope: Scope) -> Client | None:
        """Return the client of a request; `None` if it is not known.

        Raises:
            RequestError: 429 or 503, passwords or tokens were tried too often.
        """
        found = self._by_proxy(scope)
        if found is not None:
            return found
        scheme, _, value = header(scope, "authorization").partition(" ")
        # An unknown token may have been meant for a proxy, which passes it on.
        if scheme.lower() == "bearer" and self._token:
            return self._by_token(scope, value.strip())
        if scheme.lower() == "basic" and self.users is not None:
            return await self._by_password(self.users, scope, value.strip())
        return self._by_session(scope)

    def session_of(self, scope: Scope) -> Session | None:
        """Return the session whose cookie a request carries."""
        return self.sessions.find(Request(scope).cookies.get(COOKIE, "")) if self.users is not None else None

    async def check(self, scope: Scope, name: str, password: str) -> bool:
        """Return whether a password is a user's; count it if it is wrong.

        Raises:
            RequestError: 429, too many were wrong; 503, too many are being checked.
        """
        if self.users is None or not is_name(name) or len(password) > PASSWORD_MAX:
            return False
        if self._checks is None:
            self._checks = CapacityLimiter(CHECKS_MAX)
        if self._checking >= CHECKS_MAX + CHECKS_WAITING_MAX:
            raise RequestError(503, "too many log in at once", "try again in a moment", retry_s=5)
        address = client_of(scope, self.proxies)
        wait_s = self._attempts.begin(address, name)
        if wait_s:
            raise RequestError(429, "too many wrong passwords", f"try again in {wait_s} s", retry_s=wait_s)
        self._checking += 1
        try:
            right = await to_thread.run_sync(self.users.check, name, password, limiter=self._checks)
        finally:
            self._checking -= 1
        if right:
            self._attempts.succeed(address, name)
        return right

    def _by_token(self, scope: Scope, given: str) -> Client | None:
        address = client_of(scope, self.proxies)
        wait_s = self._attempts.begin(address, None)
        if wait_s:
            raise RequestError(429, "too many wrong tokens", f"try again in {wait_s} s", retry_s=wait_s)
        if not self._is_token(given):
            return None
        self._attempts.succeed(address, None)
        return Client("token", "token")

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("latin-1", "replace"), self._token)

    async def _by_password(self, users: Users, scope: Scope, value: str) -> Client | None:
        name, _, password = _decoded(value).partition(":")
        if not name:
            return None
        # Taken before the check: if the password is changed during it, this stamp must not match the new one.
        stamp = users.stamp(name)
        if not (self._is_remembered(value, stamp) or await self.check(scope, name, password)):
            return None
        self._remember(value, stamp)
        return Client(name, "password", lambda: stamp is not None and users.stamp(name) == stamp)

    def _is_remembered(self, value: str, stamp: str | None) -> bool:
        """Return whether this password was right a moment ago: scripts send it with each request."""
        seen = self._remembered.get(self._digest(value))
        return seen is not None and stamp is not None and seen[1] == stamp and time.monotonic() - seen[0] < _REMEMBER_S

    def _remember(self, value: str, stamp: str | None) -> None:
        key = self._digest(value)
        if key not in self._remembered or time.monotonic() - self._remembered[key][0] >= _REMEMBER_S:
            self._remembered[key] = (time.monotonic(), stamp)
            self._remembered.move_to_end(key)
        while len(self._remembered) > _REMEMBERED_MAX:
            self._remembered.popitem(last=False)

    def _digest(self, value: str) -> bytes:
        return hmac.digest(self._key, value.encode(), hashlib.sha256)

    def _by_session(self, scope: Scope) -> Client | None:
        session = self.session_of(scope)
        if session is None:
            return None
        return Client(session.user, "session", lambda: self.sessions.is_open(session))

    def _by_proxy(self, scope: Scope) -> Client | None:
        if not self._user_header or not is_trusted(scope, self.proxies):
            return None
        name = header(scope, self._user_header)
        return Client(name, "proxy") if is_name(name) else None


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
