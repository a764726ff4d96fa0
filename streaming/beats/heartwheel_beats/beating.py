"""Beat while something runs: a block, a function, an event loop or a process; and leave when it ends."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import inspect
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Self, TypeVar

from .member import JOB, JOB_RUN, Member, default_member_id, next_incarnation, parse_duration_ms
from .senders import LostError, RefusedError, Sender, sender_for

_BEATS_PER_SESSION: Final = 4
_GRACE: Final = "1h"
_RETRY_S: Final = 1.0
_LOOK_S: Final = 0.2
_TIMEOUT_S_MAX: Final = 5.0
_UNDER_WAY_S: Final = 0.5
_LEAVE_S: Final = 1.0
_JOB_LEAVE_S: Final = 10.0
_LEAVE_RETRY_S: Final = 0.1

_log: Final = logging.getLogger("heartwheel_beats")

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Beats:
    """Beat for one member: as a `with` or `async with` block, as a decorator, or from `start` to `close`.

    A `with` block beats from a daemon thread, an `async with` block from a task of the loop. Beats that are lost are
    counted, logged once an outage, and never raise.

    Args:
        group: the group, such as the name of a service.
        member: the member's id; the default names the host and the process.
        session: how long it may be silent until it is expired, such as `"30s"`; four beats are sent in that time.
        to: a gateway or Kafka, see `sender_for`.
        token: what the gateway asks for.
        work: how long `progress` may not be called until the beats stop; without it they go on while the process lives.
        every: how often a job succeeds that runs again and again, such as `"24h"`. At its end it does not leave: its
            next success is expected then. Its member's id is `job` by default, as each run is another process.
        grace: how much later than that the next success may come, `"1h"` by default.
        limit: how long it may take at most; after that it has failed.
        sender: sends the records; wins over `to` and `token`.

    Raises:
        ValueError: a duration is none, an id is empty, or a grace is given to what is no job.
        BeatsError: the address is wrong.
    """

    def __init__(  # noqa: PLR0913 - what a worker says of itself, all named
        self,
        group: str,
        *,
        member: str | None = None,
        session: str | int = "30s",
        to: str | None = None,
        token: str | None = None,
        work: str | int | None = None,
        every: str | int | None = None,
        grace: str | int | None = None,
        limit: str | int | None = None,
        sender: Sender | None = None,
    ) -> None:
        session_ms = parse_duration_ms(session)
        self._options: dict[str, Any] = {
            "member": member, "session": session, "to": to, "token": token, "work": work, "every": every,
            "grace": grace, "limit": limit, "sender": sender,
        }  # fmt: skip
        if grace is not None and every is None:
            raise ValueError(
                "--grace (grace=) says how much later a job may be done, so it needs --every (every=), such as 24h"
            )
        self.is_job = every is not None
        """Whether it runs again and again, and is expected to."""
        self._limit_s = None if limit is None else parse_duration_ms(limit) / 1000
        member = default_member_id(job=self.is_job) if member is None else member
        self.member = Member(group_id=group, member_id=member, session_timeout_ms=session_ms)
        self._next_ms: int | None = None
        if every is not None:
            self.member = replace(self.member, client_id=JOB_RUN)
            self._next_ms = parse_duration_ms(every) + parse_duration_ms(_GRACE if grace is None else grace)
        self.acknowledged, self.lost = 0, 0
        self._interval_s = session_ms / 1000 / _BEATS_PER_SESSION
        self._work_s = None if work is None else parse_duration_ms(work) / 1000
        timeout_s = min(_TIMEOUT_S_MAX, max(0.5, self._interval_s))
        self._sender = sender_for(to, token=token, timeout_s=timeout_s) if sender is None else sender
        self._sending = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None
        self._state = "new"
        self._out = False
        self._stalled = False
        self._began_s = self._worked_s = time.monotonic()
        self._held = self._overdue = ""
        self._give_up_s: float | None = None
        self._failed = self._may_have_failed = False
        self._last_s: float | None = None

    @property
    def beating(self) -> bool:
        """Whether it has been started and not closed, in this process."""
        return self._state == "beating"

    def progress(self) -> None:
        """Report that the work makes progress; cheap, and safe from any thread.

        Raises:
            ValueError: these beats do not know how long a piece of work may take.
        """
        if self._work_s is None:
            raise ValueError('progress() means nothing here: say how long work may take, as in beats(..., work="30s")')
        self._worked_s = time.monotonic()
        if self._stalled:
            self._wake.set()

    def hold(self, reason: str, *, patience_s: float | None = None) -> None:
        """Stop the beats until `go_on`; if that does not come in time, the member is reported as failed.

        Args:
            reason: shown to people.
            patience_s: how long from now it may take, seconds; the default is three quarters of the session, from the
                last beat on. It counts from the first of several calls on.
        """
        if not self._held:
            self._warn(f"does not beat: {reason}")
            if patience_s is not None:
                self._give_up_s = time.monotonic() + patience_s
            else:
                since_s = time.monotonic() if self._last_s is None else self._last_s
                self._give_up_s = since_s + self._interval_s * (_BEATS_PER_SESSION - 1)
        self._held = reason

    def go_on(self) -> None:
        """Beat again after `hold`."""
        if self._held:
            self._warn("beats again")
            self._held, self._give_up_s = "", None
            self._wake.set()

    def _warn(self, words: str) -> None:
        if not self._overdue:  # what checks see changes nothing any more
            _log.warning("member %s of %s %s", self.member.member_id, self.member.group_id, words)

    def start(self) -> Self:
        """Begin to beat from a thread, until `close` or the end of the process; returns itself.

        A process that ends before `close` is no leave, as nobody says with which exit code: an error that ended it is a
        failure, a job has failed, and another member is expired when its session is over.

        Raises:
            RuntimeError: it was started before.
        """
        self._begin()
        self._thread = threading.Thread(target=self._run, name=f"beats-{self.member.group_id}", daemon=True)
        self._thread.start()
        return self

    def close(self, reason: str = "done") -> None:
        """Stop, and leave with a reason; does nothing if it does not beat.

        Args:
            reason: shown to people.
        """
        if self.beating and self._end():
            self._leave(reason)

    def fail(self, failure: str) -> None:
        """Stop, and say that the worker failed; does nothing if it is closed.

        It is an expiration then, which others are told. What was reported before, by a check, is not said again.

        Args:
            failure: how, shown to people, such as `exit code 3`.
        """
        if self._end():
            self._leave(failure, failed=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if self._end():
            self._leave_by(error)

    async def __aenter__(self) -> Self:
        self._begin()
        self._task = asyncio.create_task(self._beat_from_loop(), name=f"beats-{self.member.group_id}")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if not self._end() or self._task is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await _in_thread(lambda: self._leave_by(error))

    def __call__(self, function: F) -> F:
        """Wrap a function or a coroutine function so that it beats while it runs; each call is a member of its own.

        Raises:
            TypeError: it is a generator function, whose call is over before its work begins.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__qualname__} is a generator function: it would beat only while its generator is made; "
                f"hint: write `with beats({self.member.group_id!r}):` in it, or around the loop that reads it"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def beating_loop(*args: Any, **named: Any) -> Any:
                async with self._again():
                    return await function(*args, **named)

            return beating_loop  # type: ignore[return-value]  # it is called as the function was

        @functools.wraps(function)
        def beating(*args: Any, **named: Any) -> Any:
            with self._again():
                return function(*args, **named)

        return beating  # type: ignore[return-value]  # likewise

    def _again(self) -> Beats:
        return Beats(self.member.group_id, **self._options)

    def _begin(self) -> None:
        if self._state != "new":
            raise RuntimeError("these beats were started before; make new ones")
        self._state = "beating"
        self._began_s = self._worked_s = time.monotonic()
        _open.add(self)
        atexit.register(self._at_exit)

    def _end(self) -> bool:
        if self._state not in {"new", "beating"}:
            return False
        self._state = "closed"
        _open.discard(self)
        atexit.unregister(self._at_exit)
        self._wake.set()
        return True

    def _at_exit(self) -> None:
        # What ended the main thread, if something did; a prompt goes on after each of its errors.
        error = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
        # Why the process ends is not known without an error: `sys.exit(3)` looks as its last line does.
        if not self._end():
            return
        if error is not None:
            self._leave_by(error)
        elif self.is_job:
            self._leave("the process ended before the job was closed", failed=True)
        else:
            self._warn("does not leave: the process ended before its beats were closed")

    def _run(self) -> None:
        while self.beating:
            self._wake.wait(self._beat())
            self._wake.clear()

    async def _beat_from_loop(self) -> None:
        while self.beating:  # noqa: ASYNC110 - it waits for time to pass, and for nothing else
            await asyncio.sleep(await _in_thread(self._beat))

    def _beat(self) -> float:
        """Send a heartbeat if one is due, and tell after how many seconds to come again."""
        if self._limit_s is not None and not self._overdue and time.monotonic() - self._began_s > self._limit_s:
            overdue = f"not finished within {self._limit_s:g} s"
            self._warn(f"does not beat: {overdue}")
            self._overdue = overdue
        if self._overdue or self._held:
            self._give_up()
            return min(_LOOK_S, self._interval_s)
        stalled = self._work_s is not None and time.monotonic() - self._worked_s > self._work_s
        if stalled != self._stalled:
            self._stalled = stalled
            _log.log(
                logging.WARNING if stalled else logging.INFO,
                "member %s of %s: %s",
                self.member.member_id,
                self.member.group_id,
                "no progress, so no heartbeats" if stalled else "work continues, and so do the heartbeats",
            )
        if stalled:
            return min(_LOOK_S, self._interval_s)
        self._come_back()
        if not self._send(self.member.heartbeat()):
            return min(_RETRY_S, self._interval_s)
        return self._interval_s

    def _give_up(self) -> None:
        """Report a worker that is over its limit, or has been held for too long, as failed, once."""
        now_s, reason = time.monotonic(), self._overdue or self._held
        if self._failed or not (self._overdue or (self._give_up_s is not None and now_s >= self._give_up_s)):
            return
        silent_s = now_s - (self._began_s if self._last_s is None else self._last_s)
        self._may_have_failed = True
        if not self._send(self.member.fail(reason), failed=True):
            self._wake.wait(_RETRY_S)
        elif self._failed:
            self._warn(f"has not beaten for {silent_s:.1f} s and is reported as failed: {reason}")

    def _come_back(self) -> None:
        """Beat as another incarnation once a failure was sent: it may have arrived though its answer was lost."""
        if self._may_have_failed:
            self._may_have_failed = False
            self.member = replace(self.member, incarnation=next_incarnation())

    def _send(self, value: bytes, *, failed: bool = False) -> bool:
        """Send a record, unless it has ended or the failure was reported before; return whether nothing was lost."""
        with self._sending:
            if not self.beating or (failed and self._failed):
                return True
            sent = self._try(value) is None
            if sent:  # before another thread may send: the end goes by what was said last
                self._failed = failed
            return sent

    def _try(self, value: bytes, *, last: bool = False) -> Exception | None:
        """Send a record; return why it was lost, if it was. Of the last one the caller reports that."""
        try:
            self._sender.send(self.member.key, value)
        except Exception as error:  # noqa: BLE001 - a thread that ends at a mistake would expire a worker that lives
            self.lost += 1
            if not last:
                self._note_lost(error)
            if not isinstance(error, LostError):
                self._sender.close()
            return error
        self.acknowledged += 1
        self._last_s = time.monotonic()
        if self._out:
            self._out = False
            _log.info("member %s of %s sends heartbeats again", self.member.member_id, self.member.group_id)
        return None

    def _note_lost(self, error: Exception) -> None:
        if not self._out:
            self._out = True
            _log.warning("a beat of member %s of %s was lost: %s", self.member.member_id, self.member.group_id, error)

    def _leave_by(self, error: BaseException | None) -> None:
        """Leave; an error is a failure, an end that somebody asked for is none, unless it cuts a job off."""
        code = _exit_code(error)
        if error is None:
            self._leave("done")
        elif code:
            self._leave(f"exit code {code}", failed=True)
        else:
            failed = not _was_asked_for(error) or (self.is_job and code is None)
            self._leave(f"ended with {type(error).__name__}", failed=failed)

    def _leave(self, reason: str, *, failed: bool = False) -> None:
        """Leave, if that takes no longer than a worker may be kept from its end."""
        held = self._overdue or self._held
        reason = f"{reason}; {held}" if held else reason
        what = f"failure ({reason})" if failed else "success" if self.is_job else "leave"
        who = self.member.member_id, self.member.group_id
        # A beat that is under way must not arrive after the leave.
        if not self._sending.acquire(timeout=_JOB_LEAVE_S if self.is_job else _UNDER_WAY_S):
            end = "did not leave" if what == "leave" else f"did not report its {what}"
            where = getattr(self._sender, "to", "")
            words = "member %s of %s %s: its last beat has no answer yet%s"
            _log.warning(words, *who, end, where and f" from {where}")
            return
        try:
            error = self._send_to_the_end(self._last_words(reason, failed=failed))
            if error is not None:
                _log.warning("the %s of member %s of %s was not acknowledged: %s", what, *who, error)
            self._sender.close()
        finally:
            self._sending.release()

    def _send_to_the_end(self, value: bytes) -> Exception | None:
        """Send the last record, and again while it is lost and there is time; return why it was lost, if it was.

        A job's comes only once in its period, so there is more time for it.
        """
        left_s = _JOB_LEAVE_S if self.is_job else _LEAVE_S
        until_s = time.monotonic() + left_s
        usual_s = getattr(self._sender, "timeout_s", None)
        while True:
            if usual_s is not None:
                self._sender.timeout_s = min(usual_s, _LEAVE_S, left_s)  # type: ignore[attr-defined]  # not all senders have it
            error = self._try(value, last=True)
            left_s = until_s - time.monotonic() - _LEAVE_RETRY_S
            if left_s <= 0 or not isinstance(error, LostError) or isinstance(error, RefusedError):
                return error
            time.sleep(_LEAVE_RETRY_S)

    def _last_words(self, reason: str, *, failed: bool) -> bytes:
        if failed and not self._failed:
            return self.member.fail(reason)
        if failed or self._next_ms is None:
            return self.member.leave(reason)
        self._come_back()
        return replace(self.member, client_id=JOB, session_timeout_ms=self._next_ms).heartbeat()

    def _forked(self) -> None:
        """Become nobody in a child: it must neither beat nor leave for its parent."""
        self._state, self._thread, self._task = "forked", None, None
        self._sending, self._wake = threading.Lock(), threading.Event()
        atexit.unregister(self._at_exit)
        self._sender.abandon()


def _exit_code(error: BaseException | None) -> int | None:
    """Return the exit code that Python gives a process for an error; `None` if it asks for none."""
    if not isinstance(error, SystemExit):
        return None
    if error.code is None:
        return 0
    return int(error.code) if isinstance(error.code, int) else 1


def _was_asked_for(error: BaseException) -> bool:
    """Return whether somebody wanted this end; whatever else ends a worker is a crash, of whatever class it is."""
    if isinstance(error, BaseExceptionGroup):
        return all(_was_asked_for(each) for each in error.exceptions)
    asked = isinstance(error, KeyboardInterrupt | asyncio.CancelledError | GeneratorExit)
    return asked or _exit_code(error) == 0


async def _in_thread(function: Callable[[], T]) -> T:
    """Await a function that runs in a daemon thread: an event loop, and the process, end without waiting for it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # without an error there is one

    def run() -> None:
        result, failed = None, None
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - it is raised where it is awaited
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            loop.call_soon_threadsafe(settle, result, failed)

    threading.Thread(target=run, name="beats-of-a-loop", daemon=True).start()
    return await done


_open: weakref.WeakSet[Beats] = weakref.WeakSet()


def _forget_all() -> None:
    for each in list(_open):
        each._forked()  # noqa: SLF001 - its own module
    _open.clear()


os.register_at_fork(after_in_child=_forget_all)
