"""Post one message over HTTP, and return the result."""

from __future__ import annotations

import asyncio
import datetime as dt
import email.utils
import enum
import urllib.parse
from collections.abc import Callable, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Final, NamedTuple, Self

import httpx

from heartwheel.base.errors import HeartwheelError
from heartwheel.readers.notify.message import Message, release
from heartwheel.readers.notify.pagers import PagerRequest
from heartwheel.readers.notify.signature import signed_headers

_RETRIED_STATUS: Final = frozenset({408, 425, 429})

_DATE_LENGTH_MAX: Final = 64
"""Longest date that is parsed; those of RFC 9110 have at most 33 characters."""


class AddressError(HeartwheelError):
    """An address cannot be posted to; the message does not show it."""


def parse_address(text: str) -> httpx.URL:
    """Parse the address to post to.

    Raises:
        AddressError: it cannot be one.
    """
    try:
        urllib.parse.urlsplit(text)  # checks brackets, which httpx lets pass
        url = httpx.URL(text)
        url.host.encode("idna")  # what a resolver does first: it refuses a label of more than 63 characters
    except (httpx.InvalidURL, ValueError):
        raise AddressError("is no address: look at its host and port") from None
    if url.port is not None and not 0 < url.port < 65_536:
        raise AddressError("is no address: its port is none")
    if url.scheme not in ("http", "https") or not url.host:
        raise AddressError("is no address of a host: it must begin with https:// or http://, and name one")
    return url


class DeliveryStatus(enum.Enum):
    """The status of a message after an attempt."""

    DELIVERED = "delivered"
    FAILED = "failed"
    REFUSED = "refused"


class DeliveryResult(NamedTuple):
    """The result of an attempt to deliver a message.

    Args:
        status: whether it is finished, or has to be tried again.
        fault: what went wrong, without the address: it may be a secret.
        asked_ms: how long the receiver asked to wait, ms.
    """

    status: DeliveryStatus
    fault: str = ""
    asked_ms: int = 0


class Delivery:
    """A client that posts messages to one address; a context manager, because it keeps a connection.

    Redirects are not followed: a signed message goes to its configured address, or nowhere. Cookies are not kept.

    Args:
        url: the address, http or https.
        keys: of the signatures; without any, nothing is signed.
        timeout_ms: how long an attempt may take, from its start to the last header of the answer, ms. A receiver that
            sends a byte now and then does not get longer.
        pager: makes the request of a service that has its own form, from the address, its key and a message.

    Raises:
        AddressError: the address is none.
    """

    def __init__(
        self,
        url: str,
        keys: Sequence[bytes],
        *,
        timeout_ms: int,
        pager: Callable[[str, str, Message], PagerRequest] | None = None,
    ) -> None:
        self._url, self._pager = parse_address(url), pager
        self._keys = keys
        self._timeout_s = timeout_ms / 1000
        agent = {"content-type": "application/json; charset=utf-8", "user-agent": f"heartwheel/{release()}"}
        # A loop of its own: only asyncio can end an attempt as a whole, whichever step of it hangs.
        self._loop = asyncio.Runner()
        self._client = httpx.AsyncClient(
            headers=agent,
            timeout=self._timeout_s,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._loop:
            self._loop.run(self._client.aclose())

    def post(self, message: Message, *, now_ms: int) -> DeliveryResult:
        """Post a message once; any behaviour of the receiver is a result, not an error.

        Args:
            now_ms: epoch ms; it is signed.
        """
        try:
            status, retry_after = self._loop.run(self._exchange(self._request(message, now_ms)))
        except (httpx.TimeoutException, TimeoutError) as error:
            return DeliveryResult(DeliveryStatus.FAILED, f"no answer in time ({type(error).__name__})")
        except httpx.HTTPError as error:
            return DeliveryResult(DeliveryStatus.FAILED, f"no connection ({type(error).__name__})")
        return result_of(status, retry_after, now_ms=now_ms)

    def _request(self, message: Message, now_ms: int) -> PagerRequest:
        if self._pager is not None:
            return self._pager(str(self._url), self._keys[0].decode(), message)
        body = message.body.encode()
        return PagerRequest(str(self._url), signed_headers(message.id, body, self._keys, now_ms=now_ms), body)

    async def _exchange(self, request: PagerRequest) -> tuple[int, str | None]:
        # The answer's body is not needed, and may be endless: it is not read.
        async with (
            asyncio.timeout(self._timeout_s),
            self._client.stream("POST", request.url, content=request.body, headers=request.headers) as response,
        ):
            return response.status_code, response.headers.get("retry-after")


def result_of(status: int, retry_after: str | None, *, now_ms: int) -> DeliveryResult:
    """Return the result that an HTTP status means for a message; never raises, whatever a receiver sends.

    Args:
        retry_after: its header of that name, if there is one.
    """
    if 200 <= status < 300:
        return DeliveryResult(DeliveryStatus.DELIVERED)
    fault = f"the receiver answered {status}"
    if status >= 500 or status in _RETRIED_STATUS:
        return DeliveryResult(DeliveryStatus.FAILED, fault, _asked_ms(retry_after, now_ms))
    if 300 <= status < 400:
        fault = f"{fault}, a redirect, which is not followed: set notify.url to the place itself"
        return DeliveryResult(DeliveryStatus.REFUSED, fault)
    return DeliveryResult(DeliveryStatus.REFUSED, fault)


def _asked_ms(retry_after: str | None, now_ms: int) -> int:
    """Parse `Retry-After`, seconds or a date as in RFC 9110 10.2.3; return 0 for an unreadable one."""
    text = (retry_after or "").strip()
    if text.isdecimal() and len(text) < 10:
        return int(text) * 1000
    if len(text) > _DATE_LENGTH_MAX:
        return 0
    try:
        then = email.utils.parsedate_to_datetime(text)
        then = then if then.tzinfo else then.replace(tzinfo=dt.UTC)
        return max(0, int(then.timestamp() * 1000) - now_ms)
    except (ValueError, TypeError, LookupError, ArithmeticError):
        # The documentation of email.utils names only ValueError, but a year or a zone of many digits overflows in it.
        return 0
