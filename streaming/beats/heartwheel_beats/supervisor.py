"""Run a worker and beat while it lives: signals and the exit code go through; orphans are reaped, as PID 1 must."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Final

from .beating import Beats
from .checks import Check
from .senders import TOKEN

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
_SET_PARENT_DEATH_SIGNAL: Final = 1
_SET_CHILD_SUBREAPER: Final = 36
_ASKS_TO_END: Final = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM})
_DEFAULTS: Final = (*sorted(_FORWARDED), signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores some
_TIMEOUT_S_MAX: Final = 10.0
_NOT_READY: Final = "never ready"


class Supervisor:
    """Start processes, reap every child there is, and forward signals; from the main thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int, threading.Event] = {}
        self._statuses: dict[int, int] = {}
        self._over = False

    def supervise(
        self,
        worker: Sequence[str],
        beats: Beats,
        checks: Sequence[Check] = (),
        *,
        start_s: float = 300.0,
        ok_codes: Collection[int] = (),
    ) -> int:
        """Run a worker to its end, beat while it lives and all checks are well, and report how it ended.

        It has left if its exit code is fine, or if a signal that asked it to end did so. Otherwise it has failed. A job
        has succeeded if its exit code is fine, and failed if not.

        Args:
            worker: its program and arguments.
            beats: not started yet.
            checks: each is asked before every beat.
            start_s: how long the checks may take to be well for the first time, seconds.
            ok_codes: exit codes beside 0 that are fine, as shells see them.

        Returns:
            The exit code for this process: the worker's, 128 and its signal's number, or 126 and 127 as shells have it.
        """
        signals, asked = _FORWARDED | {signal.SIGCHLD}, set[int]()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, nothing could be waited for
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        if (prctl := _prctl()) is not None:
            prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what PID 1 is by itself
        try:
            try:
                pid, ended = self._spawn_worker(worker)
            except OSError as error:
                words = f"cannot start {worker[0]}: {error.strerror}"
                print(f"error: {words}", file=sys.stderr)  # noqa: T201 - to people
                beats.fail(words)
                return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            over = threading.Event()
            if checks:
                named = ", ".join(map(str, checks))
                beats.hold(f"not ready yet, waiting up to {start_s:g} s for {named}", patience_s=start_s)
                threading.Thread(target=_look, args=(checks, beats, over), name="checks", daemon=True).start()
            beats.start()
            while not ended.is_set():
                signalled = signal.sigwaitinfo(signals)
                if signalled.si_signo == signal.SIGCHLD:
                    self._reap()
                    continue
                if signalled.si_signo in _ASKS_TO_END:
                    asked |= {-signalled.si_signo, 128 + signalled.si_signo}
                if signalled.si_code != _BY_THE_KERNEL:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signalled.si_signo)
            over.set()
            self._end_checks()
            code = self._statuses.pop(pid)
            seen = code if code >= 0 else 128 - code
            if (code in asked and not beats.is_job) or seen in {0, *ok_codes}:
                beats.close(_words(code))
            else:
                beats.fail(_words(code))
            return seen
        finally:
            # What came meanwhile was for a worker that is gone; it would end this process before the exit code is said.
            while signal.sigtimedwait(signals, 0) is not None:
                pass
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def run(self, command: Sequence[str], timeout_s: float) -> int | None:
        """Run a command beside the worker, from any other thread while `supervise` runs.

        Returns:
            Its exit code, negative for a signal; `None` if it was killed because it took too long.

        Raises:
            OSError: it cannot be started, or the worker has ended.
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
        ended = threading.Event()
        # Nobody reaps until it is known who waits for it.
        with self._lock:
            if self._over:
                raise InterruptedError(errno.EINTR, "the worker has ended")
            pid = os.posix_spawnp(command[0], list(command), _environment(), setsigmask=[], setsigdef=_DEFAULTS)
            self._waiting[pid] = ended
        return pid, ended

    def _spawn_worker(self, worker: Sequence[str]) -> tuple[int, threading.Event]:
        """Start the worker so that it does not outlive this process, whatever ends it.

        The kernel ends it when the thread that has started it ends, which is the main thread: it lasts as long as the
        process. A worker that takes another user's rights (setuid) is not ended, nor is what the worker has started.
        """
        parent, prctl = os.getpid(), _prctl()

        def prepare() -> None:
            for number in _DEFAULTS:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            if prctl is not None:
                prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
                if os.getppid() != parent:  # it has ended meanwhile
                    os._exit(1)

        # No thread of ours runs yet, so that the child may run Python before it becomes the worker.
        process = subprocess.Popen(list(worker), env=_environment(), preexec_fn=prepare, close_fds=False)  # noqa: PLW1509
        process.returncode = 0  # it is reaped here
        self._waiting[process.pid] = ended = threading.Event()
        return process.pid, ended

    def _end_checks(self) -> None:
        """Kill the checks that still run: nobody waits for what they say."""
        with self._lock:
            self._over = True
            for pid in self._waiting:
                os.kill(pid, signal.SIGKILL)

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


def _environment() -> dict[str, str]:
    """Return the environment of what is started: the token is for the one who beats, and not for the worker."""
    return {name: value for name, value in os.environ.items() if name != TOKEN}


def _prctl() -> Callable[..., int] | None:
    """Find the call of Linux by that name; other systems have none."""
    try:
        found: Callable[..., int] = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None
    return found


def _look(checks: Sequence[Check], beats: Beats, over: threading.Event) -> None:
    interval_s, ready = beats.member.session_timeout_ms / 4000, False
    while not over.is_set():
        wrong = next(filter(None, (check(min(_TIMEOUT_S_MAX, interval_s)) for check in checks)), "")
        if over.is_set():
            return
        if wrong:
            beats.hold(wrong if ready else f"{_NOT_READY}: {wrong}")
        else:
            ready = True
            beats.go_on()
        over.wait(min(interval_s, 1.0) if wrong else interval_s)


def _words(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"ended by {name}, exit code {128 - code}"
