"""Connections over HTTP whose requests have one deadline, from the first connect to the last byte of the answer."""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from typing import Any


class Deadline:
    """The end of an attempt."""

    def __init__(self, timeout_s: float) -> None:
        self._until_s = time.monotonic() + timeout_s

    def left_s(self) -> float:
        """Return how long is left, seconds.

        Raises:
            TimeoutError: nothing is left.
        """
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the attempt took too long")
        return left_s


class TimedConnection(http.client.HTTPConnection):
    """A connection whose steps all end at `deadline`; a time-out of the socket alone starts again with each byte."""

    deadline = Deadline(0)

    def set_timeout(self) -> None:
        """Limit the next step of an open connection to the time left before the deadline."""
        if self.sock is not None:
            self.sock.settimeout(self.deadline.left_s())

    def connect(self) -> None:
        """Connect to one of the host's addresses; each gets its share of the time that is left."""
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        for number, (family, kind, protocol, _, address) in enumerate(found):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(self.deadline.left_s() / (len(found) - number))
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.settimeout(self.deadline.left_s())
            except OSError:
                sock.close()
                if number == len(found) - 1:
                    raise
            else:
                self.sock = sock
                return

    def response_class(self, sock: socket.socket, *args: Any, **named: Any) -> http.client.HTTPResponse:  # type: ignore[override]
        """Make the reader of an answer, which ends at the deadline."""
        return http.client.HTTPResponse(_Timed(sock, self), *args, **named)  # type: ignore[arg-type]  # all it asks for


class TimedTlsConnection(TimedConnection):
    """The same over TLS.

    Args:
        port: `None` is 443.
        context: says whom to trust.
    """

    default_port = http.client.HTTPS_PORT

    def __init__(self, host: str, port: int | None = None, *, context: ssl.SSLContext) -> None:
        super().__init__(host, port)
        self._context = context

    def connect(self) -> None:
        """Connect, and shake hands."""
        super().connect()
        # A time-out of OpenSSL's steps is for the whole handshake already.
        self.sock = self._context.wrap_socket(self.sock, server_hostname=self.host)


class _Timed:
    """What `HTTPResponse` needs of a socket: a file to read from, each read of which ends at the deadline."""

    def __init__(self, sock: socket.socket, connection: TimedConnection) -> None:
        self._sock, self._connection = sock, connection

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._sock, self._connection.deadline))


class _TimedReader(io.RawIOBase):
    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._deadline.left_s())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
