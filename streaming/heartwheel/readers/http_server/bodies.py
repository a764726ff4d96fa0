"""Read the body of a request, within limits of length and time."""

from __future__ import annotations

import asyncio

from starlette.types import Receive, Scope

from heartwheel.readers.http_server.peers import header
from heartwheel.readers.http_server.problems import RequestError


async def read_body(scope: Scope, receive: Receive, *, what: str, bytes_max: int, timeout_s: float, hint: str) -> bytes:
    """Return the whole body of a request.

    Args:
        scope: of ASGI.
        receive: of ASGI.
        what: what errors call the body, such as `form`.
        bytes_max: longest body.
        timeout_s: how long it may take, seconds.
        hint: what to do about a body that is too long.

    Raises:
        RequestError: 413, if it is too long (checked by its header before any of it is read); 408, if it took too long;
            400, if it was not sent to its end; 503, if the server has no room for it.
    """
    too_long = RequestError(413, f"the {what} is longer than {bytes_max} bytes", hint)
    declared = header(scope, "content-length")
    if declared.isdecimal() and len(declared.lstrip("0")) < 20 and int(declared) > bytes_max:
        raise too_long
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(timeout_s):
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise RequestError(400, f"the {what} was not sent to its end", "send it again")
                body += message.get("body", b"")
                if len(body) > bytes_max:
                    raise too_long
                more = message.get("more_body", False)
    except TimeoutError:
        raise RequestError(408, f"the {what} took longer than {timeout_s:.0f} s", "send it again") from None
    return bytes(body)
