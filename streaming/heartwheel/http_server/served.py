"""What runs around a server: its parts begin in order, and end in reverse, also when one of them cannot begin."""

from __future__ import annotations

import contextlib
from typing import Self

from heartwheel.http_server.server import HttpServer


class Served:
    """A server with the parts that it answers from, as one context manager.

    Args:
        server: of the application; subclasses make the parts.
    """

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._stack = contextlib.ExitStack()

    def _begin(self, stack: contextlib.ExitStack) -> None:
        """Begin every part, each entered into the stack; those that have begun are ended if this raises."""
        stack.enter_context(self._server)

    def __enter__(self) -> Self:
        """Start it.

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
        """Whether it still serves."""
        return self._server.running
