"""A worker starts, stops, and says what ended it."""

from __future__ import annotations

import threading

import pytest

from heartwheel.base.worker import Worker


def test_a_worker_runs_until_it_is_told_to_stop() -> None:
    """`wait` returns at once when the worker is told to stop, and `stop` returns when the function has."""
    begun, seen = threading.Event(), list[bool]()

    def run() -> None:
        begun.set()
        seen.append(worker.wait(3_600))

    worker = Worker(run, "until-told")
    with worker:
        assert begun.wait(30)
        assert (worker.alive, worker.stopping) == (True, False)
    assert (worker.alive, worker.stopping, seen, worker.failure) == (False, True, [True], None)


def test_a_worker_that_was_never_started_is_stopped_at_once() -> None:
    """Who sets up several things may stop them all, whichever of them failed to start."""
    worker = Worker(lambda: None, "never-started")
    worker.stop()
    assert not worker.alive


def test_a_failure_is_kept_logged_and_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    """A thread that fails ends with a word: in the log, to whoever listens, and to whoever asks."""
    told = threading.Event()

    def run() -> None:
        raise ValueError("the cause")

    worker = Worker(run, "fails", on_failure=told.set)
    with worker:
        assert told.wait(30)
    assert isinstance(worker.failure, ValueError)
    assert "the thread fails has ended" in caplog.text
    assert "the cause" in caplog.text


def test_stop_gives_up_on_a_function_that_does_not_return() -> None:
    """A bound on the end holds: what hangs does not keep the process from going on."""
    over = threading.Event()

    def run() -> None:
        over.wait(60)

    worker = Worker(run, "hangs", close_s=0.01)
    with worker:
        pass
    assert worker.alive
    over.set()
    worker._thread.join()
