"""The guard against threads that outlive their file: it names those that go on, and no others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from support.threads import left_threads, started_for_the_run


@pytest.fixture
def waiting() -> Iterator[Callable[[str], threading.Thread]]:
    """Give a function that starts a thread, which waits for the end of the test."""
    over, started = threading.Event(), list[threading.Thread]()

    def start(name: str) -> threading.Thread:
        started.append(threading.Thread(target=over.wait, name=name))
        started[-1].start()
        return started[-1]

    yield start
    over.set()
    for thread in started:
        thread.join()


def test_a_thread_that_goes_on_is_named(waiting: Callable[[str], threading.Thread]) -> None:
    """One that was there before is another file's; one that is new, and does not end, is named."""
    waiting("another file's")
    before = threading.enumerate()
    waiting("beats-orders")
    assert left_threads(before, seconds=0) == ["beats-orders"]


def test_a_thread_that_is_about_to_end_is_waited_for() -> None:
    """A thread that has been told to end, and has not yet, is no mistake of its file."""
    before, over = threading.enumerate(), threading.Event()
    ending = threading.Thread(target=over.wait)
    ending.start()
    teller = threading.Timer(0.05, over.set)
    teller.start()
    assert left_threads(before) == []
    assert not ending.is_alive()


def test_what_a_fixture_of_the_whole_run_starts_may_go_on(waiting: Callable[[str], threading.Thread]) -> None:
    """A server that is shared by all files has threads to the end of the run."""
    before = threading.enumerate()
    with started_for_the_run():
        waiting("a server of the run")
    waiting("AnyIO worker thread")
    assert left_threads(before, seconds=0) == []
