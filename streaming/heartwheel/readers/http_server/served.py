"""A server and its parts: they start in order and stop in reverse, also when one of them cannot start."""

from __future__ import annotations

import contextlib
from typing import Self

from heartwheel.readers.http_server.server import HttpServer


class Served:
    """A server with the parts that it answers from, as one context manager.

    Args:
        server: of the application; subclasses make the parts.
    """

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._stack = contextlib.ExitStack()

    def _begin(self, stack: contextlib.ExitStack) -> None:
        """Start every part and enter it into the stack; if this raises, the parts that have started are stopped."""
        stack.enter_context(self._server)

    def __enter__(self) -> Self:
        """Start the parts and the server.

        Raises:
            HttpServerError: the address cannot be listened on.
        """
        with contextlib.ExitStack() as stack:
            self._begin(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        """The address to open on this machine, with a slash at the end."""
        return self._server.url

    @property
    def running(self) -> bool:
        """Whether the server is still running."""
        return self._server.running
