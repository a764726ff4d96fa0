"""Run a worker and beat while it lives: signals and the exit code go through; orphans are reaped, as PID 1 must."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Final

from heartwheel_beats.beating import Beats
from heartwheel_beats.checks import Check

NOT_FOUND: Final = 127
"""Exit code if there is no such worker, as shells have it."""

NOT_EXECUTABLE: Final = 126
"""Exit code if the worker cannot be executed, as shells have it."""

_FORWARDED: Final = frozenset(
    {
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
        signal.SIGWINCH,
        signal.SIGCONT,
    }
)
_BY_THE_KERNEL: Final = 128  # SI_KERNEL: a terminal's Ctrl-C, which the worker gets from there itself
_SET_CHILD_SUBREAPER: Final = 36
_TIMEOUT_S_MAX: Final = 10.0


class Supervisor:
    """Start processes, reap every child there is, and forward signals; from the main thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int, threading.Event] = {}
        self._statuses: dict[int, int] = {}

    def supervise(self, worker: Sequence[str], beats: Beats, checks: Sequence[Check] = ()) -> int:
        """Run a worker to its end, beat while it lives and all checks are well, and leave with its exit code.

        Args:
            worker: its program and arguments.
            beats: not started yet.
            checks: each is asked before every beat.

        Returns:
            The exit code for this process: the worker's, 128 and its signal's number, or 126 and 127 as shells have it.
        """
        signals = _FORWARDED | {signal.SIGCHLD}
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, nothing could be waited for
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what PID 1 is by itself
        try:
            try:
                pid, ended = self._spawn(worker)
            except OSError as error:
                print(f"error: cannot start {worker[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201 - to people
                return NOT_EXECUTABLE if isinstance(error, PermissionError) else NOT_FOUND
            over = threading.Event()
            if checks:
                beats.hold("not checked yet")
                threading.Thread(target=_look, args=(checks, beats, over), name="checks", daemon=True).start()
            beats.start()
            while not ended.is_set():
                signalled = signal.sigwaitinfo(signals)
                if signalled.si_signo == signal.SIGCHLD:
                    self._reap()
                elif signalled.si_code != _BY_THE_KERNEL:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signalled.si_signo)
            over.set()
            code = self._statuses.pop(pid)
            beats.close(_words(code))
            return code if code >= 0 else 128 - code
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def run(self, command: Sequence[str], timeout_s: float) -> int | None:
        """Run a command beside the worker, from any other thread while `supervise` runs.

        Returns:
            Its exit code, negative for a signal; `None` if it was killed because it took too long.

        Raises:
            OSError: it cannot be started.
        """
        pid, ended = self._spawn(command)
        if ended.wait(timeout_s):
            return self._statuses.pop(pid)
        with self._lock:
            if not ended.is_set():
                os.kill(pid, signal.SIGKILL)
        ended.wait()
        self._statuses.pop(pid)
        return None

    def _spawn(self, command: Sequence[str]) -> tuple[int, threading.Event]:
        defaults = [*_FORWARDED, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ]  # Python ignores some
        ended = threading.Event()
        # Nobody reaps until it is known who waits for it.
        with self._lock:
            pid = os.posix_spawnp(command[0], list(command), os.environ, setsigmask=[], setsigdef=defaults)
            self._waiting[pid] = ended
        return pid, ended

    def _reap(self) -> None:
        while True:
            with self._lock:
                try:
                    pid, status = os.waitpid(-1, os.WNOHANG)
                except ChildProcessError:
                    return
                if not pid:
                    return
                ended = self._waiting.pop(pid, None)
                if ended is not None:
                    self._statuses[pid] = os.waitstatus_to_exitcode(status)
                    ended.set()


def _look(checks: Sequence[Check], beats: Beats, over: threading.Event) -> None:
    interval_s = beats.member.session_timeout_ms / 4000
    while not over.is_set():
        wrong = next(filter(None, (check(min(_TIMEOUT_S_MAX, interval_s)) for check in checks)), "")
        if wrong:
            beats.hold(wrong)
        else:
            beats.go_on()
        over.wait(min(interval_s, 1.0) if wrong else interval_s)


def _words(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"
