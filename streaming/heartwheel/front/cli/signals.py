"""How long-running commands end: by Ctrl-C or SIGTERM, the first in order, the second at once, or by themselves."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from heartwheel.base.errors import HeartwheelError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK_S = 1.0


class Serving(Protocol):
    """A server in threads of its own."""

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        ...


def serve_until(stopping: threading.Event, serving: Serving, name: str) -> None:
    """Wait until a server is to stop.

    Args:
        stopping: is set when it is.
        name: of the server, for the error.

    Raises:
        HeartwheelError: it has ended by itself.
    """
    while not stopping.wait(_LOOK_S):
        if not serving.running:
            raise HeartwheelError(f"{name} has ended by itself", hint="the lines above may tell why")


@contextlib.contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Make the first signal during a `with` block stop in order, and a second one end the process at once.

    Args:
        stop: asks for the end; it must return at once and may be called from a signal handler.
    """
    if threading.current_thread() is not threading.main_thread():  # Python hands signals to the main thread alone
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def end(number: int, _: object) -> None:
        signal.signal(number, before[signal.Signals(number)])
        stop()

    for number in _SIGNALS:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
