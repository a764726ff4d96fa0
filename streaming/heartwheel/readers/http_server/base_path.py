"""A base path before all paths, for a proxy that serves other applications under other paths."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send


class BasePath:
    """Middleware that takes the base path off a request; proxies may have done so already.

    Args:
        app: the application, which gets paths without the base path.
        base_path: begins with a slash and does not end with one, or is empty.
    """

    def __init__(self, app: ASGIApp, *, base_path: str) -> None:
        self._app, self._base = app, base_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._base and scope["type"] == "http":
            scope = {**scope, "path": self._without(scope["path"])}
            if scope.get("raw_path") is not None:
                scope["raw_path"] = self._without(scope["raw_path"].decode("latin-1")).encode("latin-1")
        await self._app(scope, receive, send)

    def _without(self, path: str) -> str:
        if path == self._base:
            return "/"
        return path.removeprefix(self._base) if path.startswith(f"{self._base}/") else path
