"""How Ctrl-C and SIGTERM end long-running commands: the first signal in order, the second at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
