"""The real dashboard without Kafka: its server in a thread, and a picture that a test feeds with rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from heartwheel.dashboard.app import create_app
from heartwheel.dashboard.deps import wall_clock_ms
from heartwheel.live.picture import Picture
from heartwheel.live.told import Told
from heartwheel.settings import Settings


class DashboardServer:
    """One dashboard on a free port of this machine.

    Args:
        options: of `create_app`, such as `history` or `canary`.
        now_ms: its wall clock, epoch ms.
        expirations_max: most expirations that the picture keeps.
    """

    def __init__(
        self, *, now_ms: Callable[[], int] = wall_clock_ms, expirations_max: int = 20_000, **options: Any
    ) -> None:
        self.now_ms, self._options = now_ms, options
        self.picture = Picture(expirations_max=expirations_max)
        self.picture.link(True, now_ms=now_ms())
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def tell(self, rows: Iterable[Told]) -> None:
        """Let the picture take rows, as a follower would."""
        self.picture.apply(list(rows), now_ms=self.now_ms())

    def start(self) -> None:
        """Start it; the first time on a free port, later on the same one."""
        app = create_app(self.picture, Settings(), now_ms=self.now_ms, **self._options)
        config = uvicorn.Config(
            app, host="127.0.0.1", port=self.port, log_level="error", timeout_graceful_shutdown=1, ws="none"
        )
        self._server = uvicorn.Server(config)
        listening = config.bind_socket()
        self.port = listening.getsockname()[1]
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listening]}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop it, and with it every stream."""
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()


@contextmanager
def dashboard(**options: Any) -> Iterator[DashboardServer]:
    """Run a dashboard for the length of a block."""
    server = DashboardServer(**options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
