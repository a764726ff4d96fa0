"""Sessions: a signed cookie contains the user and the end of the session; the server keeps only the closed ones."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec
from itsdangerous import BadData, URLSafeSerializer

COOKIE: Final = "heartwheel_session"
"""The name of the cookie."""

COOKIE_BYTES_MAX: Final = 4_096
"""Longest accepted cookie."""

CLOSED_MAX: Final = 10_000
"""Most closed sessions that are remembered, until they would have expired anyway."""


class Session(msgspec.Struct, frozen=True):
    """The content of a cookie.

    Args:
        id: names the session.
        user: the user that logged in.
        stamp: of the password at that time: if it changes, or the user is removed, the session ends.
        until_ms: when it ends, epoch ms.
    """

    id: str
    user: str
    stamp: str
    until_ms: int


class LoginSessions:
    """Opens, recognises and closes sessions.

    Args:
        secret: the key of the signatures; another one ends all sessions.
        ttl_ms: how long a session lasts.
        stamp_of: returns the stamp of a user's present password, `None` without one.
        now_ms: the wall clock, epoch ms.
    """

    def __init__(
        self, secret: bytes, *, ttl_ms: int, stamp_of: Callable[[str], str | None], now_ms: Callable[[], int]
    ) -> None:
        self._serializer = URLSafeSerializer(
            secret, salt="heartwheel.session", signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256}
        )
        self.ttl_ms, self._stamp_of, self._now_ms = ttl_ms, stamp_of, now_ms
        self._closed: OrderedDict[str, int] = OrderedDict()

    def open(self, user: str) -> str:
        """Open a session for a user whose password was right; return the cookie's value."""
        session = Session(secrets.token_hex(16), user, self._stamp_of(user) or "", self._now_ms() + self.ttl_ms)
        return str(self._serializer.dumps(msgspec.to_builtins(session)))

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie that was signed here; `None` if it was not, or the session has ended."""
        if len(cookie) > COOKIE_BYTES_MAX:
            return None
        try:
            session = msgspec.convert(self._serializer.loads(cookie), Session)
        except (BadData, msgspec.ValidationError):
            return None
        return session if self.is_open(session) else None

    def is_open(self, session: Session) -> bool:
        """Return whether a session has not ended."""
        return (
            self._now_ms() < session.until_ms
            and session.id not in self._closed
            and session.stamp == self._stamp_of(session.user)
        )

    def close(self, session: Session) -> None:
        """End a session, for every holder of its cookie."""
        now_ms = self._now_ms()
        self._closed[session.id] = session.until_ms
        for id_ in [id_ for id_, until_ms in self._closed.items() if until_ms <= now_ms]:
            del self._closed[id_]
        while len(self._closed) > CLOSED_MAX:
            self._closed.popitem(last=False)
