"""Post one message over HTTP, and tell what became of it."""

from __future__ import annotations

import datetime as dt
import email.utils
import enum
from collections.abc import Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

import httpx

from heartwheel.notify.message import Message, release
from heartwheel.notify.signature import signed_headers

_RETRIED_STATUS: Final = frozenset({408, 425, 429})


class Fate(enum.Enum):
    """Name what became of a message."""

    DELIVERED = "delivered"
    FAILED = "failed"
    REFUSED = "refused"


class Answer(NamedTuple):
    """Hold what became of a message.

    Args:
        fate: whether it is done with, or is to be tried again.
        fault: what went wrong, without the address: it may be a secret.
        asked_ms: how long the receiver asked to be left alone, ms.
    """

    fate: Fate
    fault: str = ""
    asked_ms: int = 0


class Delivery:
    """Post messages to one address; a context manager, as it keeps a connection.

    Redirects are not followed: a signed message goes where it was meant to go, or nowhere.

    Args:
        url: where to.
        keys: to sign with.
        timeout_ms: how long to wait to connect, and for each part of the answer, ms.
    """

    def __init__(self, url: str, keys: Sequence[bytes], *, timeout_ms: int) -> None:
        self._url = url
        self._keys = keys
        agent = f"heartwheel/{release()}"
        headers = {"content-type": "application/json; charset=utf-8", "user-agent": agent}
        self._client = httpx.Client(headers=headers, timeout=timeout_ms / 1000, follow_redirects=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def post(self, message: Message, *, now_ms: int) -> Answer:
        """Post a message once.

        Args:
            message: which.
            now_ms: the time, epoch ms: it is signed.
        """
        body = message.body.encode()
        headers = signed_headers(message.id, body, self._keys, now_ms=now_ms)
        try:
            # The answer's body says nothing that is needed, and may be endless: it is not read.
            with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                return judge(response.status_code, response.headers.get("retry-after"), now_ms=now_ms)
        except httpx.TimeoutException as error:
            return Answer(Fate.FAILED, f"no answer in time ({type(error).__name__})")
        except httpx.TransportError as error:
            return Answer(Fate.FAILED, f"no connection ({type(error).__name__})")


def judge(status: int, retry_after: str | None, *, now_ms: int) -> Answer:
    """Tell from a status what became of a message.

    Args:
        status: of the answer.
        retry_after: its header of that name, if there is one.
        now_ms: the time, epoch ms.
    """
    if 200 <= status < 300:
        return Answer(Fate.DELIVERED)
    fault = f"the receiver answered {status}"
    if status >= 500 or status in _RETRIED_STATUS:
        return Answer(Fate.FAILED, fault, _asked_ms(retry_after, now_ms))
    if 300 <= status < 400:
        return Answer(Fate.REFUSED, f"{fault}, a redirect, which is not followed: set notify.url to the place itself")
    return Answer(Fate.REFUSED, fault)


def _asked_ms(retry_after: str | None, now_ms: int) -> int:
    """Read `Retry-After`, seconds or a date as RFC 9110 10.2.3 has them; what can not be read asks for nothing."""
    text = (retry_after or "").strip()
    if text.isdecimal() and len(text) < 10:
        return int(text) * 1000
    try:
        then = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return 0
    then = then if then.tzinfo else then.replace(tzinfo=dt.UTC)
    return max(0, int(then.timestamp() * 1000) - now_ms)
