"""Workers are started beside the first plan; where that fails, the job does without."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JNetworkError

from heartwheel.engine.runtime.driver.warm import warm_workers


class _Session:
    """A session whose JVM is gone."""

    def __init__(self) -> None:
        self.asked: tuple[int, ...] = ()

    def range(self, *numbers: int) -> Any:
        self.asked = numbers
        raise Py4JNetworkError("the JVM is gone")


def test_a_session_that_ends_meanwhile_is_no_error() -> None:
    """The job asks for one task a worker, and nothing is raised or printed if the session is stopped under it."""
    session = _Session()
    worker = warm_workers(session, 3)  # type: ignore[arg-type]  # what is used of it
    worker.join()
    assert (session.asked, worker.failure) == ((0, 3, 1, 3), None)
