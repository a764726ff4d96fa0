"""Requests to the API of a container runtime: JSON, and answers that last, which another thread can end."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.plain import plain
from heartwheel.sources.explain.whole_lines import WholeLines

_IDLE_S: Final = 60.0
"""How long an answer may be silent before it is asked for again, as its connection may be dead, seconds."""

_CONNECT_S: Final = 10.0
_WORDS_BYTES: Final = 4_096
_WORDS_CHARS: Final = 200


class ApiError(HeartwheelError):
    """A request failed, or the connection broke.

    Args:
        status: of the answer; 0 if there is none.
        is_idle: whether nothing is wrong: nothing came for a while.
    """

    def __init__(self, message: str, *, hint: str | None = None, status: int = 0, is_idle: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.status, self.is_idle = status, is_idle


class HttpApi:
    """A client; may be used by several threads.

    Args:
        url: of the server.
        token_file: has the token, and is read for each request: tokens are replaced before they expire.
        verify: checks the server's certificate.
        unix_socket: the path of the socket to connect to in place of the host.
        idle_s: how long an answer may be silent, seconds.
        hints: what to do, by the status of an answer; by 0 if there is none.
    """

    def __init__(
        self,
        url: str,
        *,
        token_file: Path | None = None,
        verify: ssl.SSLContext | bool = True,
        unix_socket: str | None = None,
        idle_s: float = _IDLE_S,
        hints: Mapping[int, str] | None = None,
    ) -> None:
        self._token_file, self._hints = token_file, dict(hints or {})
        self._server = "" if unix_socket else url.rstrip("/")
        timeout = httpx.Timeout(_CONNECT_S, read=idle_s)
        limits = httpx.Limits(max_connections=None)
        transport = httpx.HTTPTransport(verify=verify, uds=unix_socket, limits=limits, trust_env=False)
        self._client = httpx.Client(base_url=url, timeout=timeout, transport=transport, trust_env=False)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._is_closed = False

    def close(self) -> None:
        """End all answers that last, and refuse further requests."""
        with self._lock:
            self._is_closed = True
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def free(self) -> None:
        """Close the connections; no thread may use the client any more."""
        self._client.close()

    def json(self, path: str, **params: Any) -> Any:
        """Return an answer in JSON."""
        with self.stream(path, **params) as response:
            try:
                return msgspec.json.decode(response.read())
            except msgspec.DecodeError as error:
                raise ApiError(f"{path} answered no JSON: {error}") from None

    @contextlib.contextmanager
    def stream(self, path: str, **params: Any) -> Iterator[httpx.Response]:
        """Open an answer for the length of a `with` block.

        Raises:
            ApiError: the answer is an error, or the connection broke, also in the block.
        """
        try:
            with self._client.stream("GET", path, params=params, headers=self._headers()) as response:
                if not response.is_success:
                    raise self._error(response)
                with self._ending(response):
                    yield response
        except httpx.ReadTimeout:
            raise ApiError(f"{path} was silent", is_idle=True) from None
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            message = f"{self._server}{path}: {error or type(error).__name__}"
            raise ApiError(message, hint=self._hints.get(0)) from error

    def _headers(self) -> dict[str, str]:
        headers = {"Accept-Encoding": "identity"}
        if self._token_file is not None:
            headers["Authorization"] = f"Bearer {self._token_file.read_text().strip()}"
        return headers

    @contextlib.contextmanager
    def _ending(self, response: httpx.Response) -> Iterator[None]:
        """Make an answer one that `close` ends, for the length of a `with` block."""
        used = response.extensions["network_stream"].get_extra_info("socket")
        with self._lock:
            if self._is_closed:
                raise ApiError("closed", is_idle=True)
            self._open.add(used)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(used)

    def _error(self, response: httpx.Response) -> ApiError:
        words = b""
        for part in response.iter_raw():
            words += part
            if len(words) >= _WORDS_BYTES:
                break
        try:
            said = str(msgspec.json.decode(words)["message"])
        except (msgspec.DecodeError, TypeError, KeyError):
            said = words.decode("utf-8", "replace")
        status = response.status_code
        message = f"{response.url.path} answered {status}: {plain(said)[:_WORDS_CHARS]}"
        return ApiError(message, status=status, hint=self._hints.get(status))


def lines_of(response: httpx.Response) -> Iterator[list[bytes]]:
    """Return the whole lines of an answer as they come, each with its end; what has no end is left out."""
    lines = WholeLines()
    for part in response.iter_raw():
        whole = lines.add(part)
        if whole:
            yield whole.splitlines(keepends=True) if b"\r" not in whole else _lines(whole)


def _lines(whole: bytes) -> list[bytes]:
    return [line + b"\n" for line in whole.split(b"\n")[:-1]]
