"""A thread that can be started, stopped and waited for, and that reports the error that ended it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, Self

_log: Final = logging.getLogger(__name__)


class Worker:
    """A daemon thread that runs a function until it returns or is asked to stop; a context manager.

    Args:
        run: the function. It looks at `stopping`, or sleeps by `wait`, and returns soon after it was told to stop.
        close_s: how long `stop` waits for the end, seconds; `None` for as long as it takes.
        on_failure: called in the thread if the function raised.

    Attributes:
        failure: what the function raised; `None` if nothing.
    """

    def __init__(
        self,
        run: Callable[[], None],
        name: str,
        *,
        close_s: float | None = None,
        on_failure: Callable[[], None] | None = None,
    ) -> None:
        self._run, self._close_s, self._on_failure = run, close_s, on_failure
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=name, daemon=True)
        self.failure: BaseException | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop."""
        return self._stopping.is_set()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Sleep until the time is over, or until the worker is asked to stop.

        Returns:
            Whether it was asked to stop.
        """
        return self._stopping.wait(seconds)

    def end(self) -> None:
        """Ask the function to return, without waiting for it."""
        self._stopping.set()

    def join(self) -> None:
        """Wait until the thread has ended, at most `close_s`; return at once if it was not started."""
        if self._thread.ident is not None:
            self._thread.join(self._close_s)

    def stop(self) -> None:
        """Ask the function to return, and wait until it has."""
        self.end()
        self.join()

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as error:  # noqa: BLE001 - a thread that ends without a word is found by nobody
            self.failure = error
            _log.exception("the thread %s has ended", self._thread.name)
            if self._on_failure is not None:
                self._on_failure()
