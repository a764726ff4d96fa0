"""Tell who asks: by a token, by name and password, by a session, or because a named proxy says so."""

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

from heartwheel.addresses import parse_networks
from heartwheel.dashboard.login.attempts import Attempts
from heartwheel.dashboard.login.sessions import COOKIE, Session, Sessions
from heartwheel.dashboard.login.users import Users, is_name
from heartwheel.http_server.peers import client_of, header, is_trusted
from heartwheel.http_server.problems import RequestError
from heartwheel.settings.models import DashboardSettings

CHECKS_MAX: Final = 2
"""Most passwords that are checked at once: each takes a processor for a while."""

CHECKS_WAITING_MAX: Final = 16
"""Most that wait for it."""

PASSWORD_MAX: Final = 1_024
"""Longest password that is looked at, characters."""

_REMEMBER_S: Final = 60.0
_REMEMBERED_MAX: Final = 1_000


class Looker(NamedTuple):
    """Who asks.

    Args:
        name: of the user; of a token `token`.
        how: `token`, `password`, `session` or `proxy`.
        is_valid: tells whether that still holds, for answers that last.
    """

    name: str
    how: str
    is_valid: Callable[[], bool] = lambda: True


class Login:
    """Who may look, and how they prove it.

    Args:
        settings: the section `[dashboard]`.
        now_ms: the wall clock, epoch ms.

    Raises:
        UsersFileError: the file of users cannot be used.
    """

    def __init__(self, settings: DashboardSettings, now_ms: Callable[[], int]) -> None:
        self.users = Users(Path(settings.users_file)) if settings.users_file else None
        self.proxies = parse_networks(settings.trusted_proxies)
        self._token, self._user_header = settings.token.encode(), settings.user_header
        self.has_token = bool(settings.token)
        self.is_wanted = bool(self.users or settings.token or settings.user_header)
        self.sessions = Sessions(
            settings.session_secret.encode() or secrets.token_bytes(32),
            ttl_ms=settings.session_ttl_ms,
            stamp_of=lambda name: self.users.stamp(name) if self.users else None,
            now_ms=now_ms,
        )
        self._attempts = Attempts(time.monotonic)
        self._checks: CapacityLimiter | None = None  # made where the server runs
        self._checking = 0
        self._key = secrets.token_bytes(32)
        self._remembered: OrderedDict[bytes, tuple[float, str | None]] = OrderedDict()

    async def find(self, scope: Scope) -> Looker | None:
        """Return who asks; `None` if that is not known.

        Raises:
            RequestError: 429 or 503, if passwords or tokens were tried too often.
        """
        found = self._by_proxy(scope)
        if found is not None:
            return found
        scheme, _, value = header(scope, "authorization").partition(" ")
        # What is not known here may have been meant for a proxy, which hands it on.
        if scheme.lower() == "bearer" and self._token:
            return self._by_token(scope, value.strip())
        if scheme.lower() == "basic" and self.users is not None:
            return await self._by_password(self.users, scope, value.strip())
        return self._by_session(scope)

    def session_of(self, scope: Scope) -> Session | None:
        """Find the session whose cookie a request carries."""
        return self.sessions.find(Request(scope).cookies.get(COOKIE, "")) if self.users is not None else None

    async def check(self, scope: Scope, name: str, password: str) -> bool:
        """Return whether a password is that of a user; counts those that are not.

        Raises:
            RequestError: 429, if too many were wrong; 503, if too many are being checked.
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

    def _by_token(self, scope: Scope, given: str) -> Looker | None:
        address = client_of(scope, self.proxies)
        wait_s = self._attempts.begin(address, None)
        if wait_s:
            raise RequestError(429, "too many wrong tokens", f"try again in {wait_s} s", retry_s=wait_s)
        if not self._is_token(given):
            return None
        self._attempts.succeed(address, None)
        return Looker("token", "token")

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("latin-1", "replace"), self._token)

    async def _by_password(self, users: Users, scope: Scope, value: str) -> Looker | None:
        name, _, password = _decoded(value).partition(":")
        if not name:
            return None
        # Taken before the check: a password that is changed meanwhile is not the one that was right.
        stamp = users.stamp(name)
        if not (self._is_remembered(value, stamp) or await self.check(scope, name, password)):
            return None
        self._remember(value, stamp)
        return Looker(name, "password", lambda: stamp is not None and users.stamp(name) == stamp)

    def _is_remembered(self, value: str, stamp: str | None) -> bool:
        """Return whether this very password was right a moment ago: scripts send it with each request."""
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

    def _by_session(self, scope: Scope) -> Looker | None:
        session = self.session_of(scope)
        if session is None:
            return None
        return Looker(session.user, "session", lambda: self.sessions.is_open(session))

    def _by_proxy(self, scope: Scope) -> Looker | None:
        if not self._user_header or not is_trusted(scope, self.proxies):
            return None
        name = header(scope, self._user_header)
        return Looker(name, "proxy") if is_name(name) else None


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
