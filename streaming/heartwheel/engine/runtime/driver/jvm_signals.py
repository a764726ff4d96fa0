"""Which signals reach Spark's JVM, and which this process while the JVM starts."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Final

_jvm_starts: Final = threading.Event()


@contextlib.contextmanager
def own_signals() -> Iterator[None]:
    """Keep SIGTERM from a JVM that is started in the block, for its whole life, and PySpark from Ctrl-C.

    A supervisor, or a shell's `kill` of a job, signals the whole process group; were the JVM to end at once, the
    running batch could not be finished. What is ignored when it starts, it ignores for ever; for SIGINT PySpark sees to
    that, but it also puts a handler of its own in this process, which would cancel the running batch.

    This process ignores nothing meanwhile: a start takes seconds, and a SIGTERM in it has to end the job
    (`test_sigterm_while_spark_starts_ends_the_job`).
    """
    on_interrupt = signal.getsignal(signal.SIGINT)
    _jvm_starts.set()
    try:
        yield
    finally:
        _jvm_starts.clear()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, on_interrupt)


def _ignore_sigterm_in_the_jvm() -> None:
    if _jvm_starts.is_set():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


# PySpark starts its JVM with a `preexec_fn` of its own, and leaves no room for another one: then these run, too.
os.register_at_fork(after_in_child=_ignore_sigterm_in_the_jvm)
