"""The real dashboard without Kafka: its server in a thread, and a picture that a test feeds with rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from heartwheel.base.wall_clock import wall_ms
from heartwheel.readers.dashboard.app import create_app
from heartwheel.readers.http_server.connections import Connections
from heartwheel.readers.http_server.server import HttpServer
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.settings import Settings


class FedDashboard:
    """One dashboard on a free port of this machine.

    Args:
        options: of `create_app`, such as `history` or `canary`.
        now_ms: its wall clock, epoch ms.
        expirations_max: most expirations that the picture keeps.
        settings: of the section `[dashboard]`, such as `users_file`.
        server: options of `HttpServer`, such as `limits`.
    """

    def __init__(
        self,
        *,
        now_ms: Callable[[], int] = wall_ms,
        expirations_max: int = 20_000,
        settings: Mapping[str, Any] | None = None,
        server: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.now_ms, self._options, self._server_options = now_ms, options, server or {}
        self._settings = Settings.model_validate({"dashboard": settings or {}})
        self.picture = Picture(expirations_max=expirations_max)
        self.picture.link(True, now_ms=now_ms())
        self._server: HttpServer | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}{self._settings.dashboard.base_path}"

    @property
    def url_of_server(self) -> str:
        """What the server says of itself."""
        assert self._server is not None
        return self._server.url

    @property
    def connections(self) -> Connections:
        """Who is connected."""
        assert self._server is not None
        return self._server.connections

    def tell(self, rows: Iterable[TopicRow]) -> None:
        """Let the picture take rows, as a follower would."""
        self.picture.apply(list(rows), now_ms=self.now_ms())

    def start(self) -> None:
        """Start it; the first time on a free port, later on the same one."""
        app = create_app(self.picture, self._settings, now_ms=self.now_ms, **self._options)
        self._server = HttpServer(
            app,
            host="127.0.0.1",
            port=self.port,
            base_path=self._settings.dashboard.base_path,
            **self._server_options,
        )
        self._server.closing = app.state.hub.close
        self._server.start()
        self.port = urlsplit(self._server.url).port or 0

    def stop(self) -> None:
        """Stop it, and with it every stream."""
        assert self._server is not None
        self._server.stop()


@contextmanager
def dashboard(**options: Any) -> Iterator[FedDashboard]:
    """Run a dashboard for the length of a block."""
    server = FedDashboard(**options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
