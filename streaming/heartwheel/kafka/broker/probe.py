"""Ask whether a broker serves requests, with one round trip and no client library."""

from __future__ import annotations

import socket
import struct
from typing import Final

_API_VERSIONS: Final = 18
_CORRELATION_ID: Final = 1
_REQUEST: Final = struct.pack(">ihhih", 10, _API_VERSIONS, 0, _CORRELATION_ID, -1)
_ANSWER: Final = struct.Struct(">iih")  # length, correlation id, error code


def serves_requests(host: str, port: int, *, timeout_ms: int = 1000) -> bool:
    """Ask a broker for its API versions.

    A TCP connect says too little: a broker binds its port about a second before it serves, and a container's proxy
    accepts before there is a broker at all.

    Args:
        host: where the broker listens, a plaintext listener.
        port: likewise.
        timeout_ms: how long to wait for the connection and for each part of the answer, ms.

    Returns:
        Whether an answer without an error came.
    """
    try:
        with socket.create_connection((host, port), timeout_ms / 1000) as connection:
            connection.sendall(_REQUEST)
            answer = connection.makefile("rb").read(_ANSWER.size)
    except OSError:
        return False
    return len(answer) == _ANSWER.size and _ANSWER.unpack(answer)[1:] == (_CORRELATION_ID, 0)
