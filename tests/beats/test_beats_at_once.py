"""A worker's thread and its end at the same moment: a failure is said exactly once, wherever one meets the other."""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from heartwheel_beats import Beats, beats


class Kept:
    """A sender that keeps what it is given."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []

    def send(self, key: bytes, value: bytes) -> None:  # noqa: ARG002 - as a sender is called
        """Keep one record."""
        self.rows.append(msgspec.json.decode(value))

    def close(self) -> None:
        """Give up nothing."""

    abandon = close

    def said(self) -> list[str]:
        """List what came: a failure's words, `left` or `beat`."""
        return [row.get("failure", "left" if "type" in row else "beat") for row in self.rows]


class Meeting:
    """The lock of the sender, where the scheduler lets another thread run just before it is taken, or just after it."""

    def __init__(
        self, *, before: Callable[[], object] | None = None, after: Callable[[], object] | None = None
    ) -> None:
        self._lock = threading.Lock()
        self._before, self._after = before, after
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> None:
        then, self._before = self._before, None
        if then is not None:
            then()
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
        then, self._after = self._after, None
        if then is not None:
            then()


def _job(kept: Kept) -> Beats:
    """Return a job that is over its limit, and whose thread is played by the test."""
    job = beats("backup", member="job", every="24h", limit="1ms", sender=kept)
    job._begin()
    job._began_s -= 1
    return job


def _meet(worker: Beats, **where: Callable[[], object]) -> None:
    worker._sending = Meeting(**where)  # type: ignore[assignment]  # it does what a lock does


def test_an_end_just_after_a_failure_was_reported_does_not_repeat_it() -> None:
    """The limit is reported from the thread; the error that ends the job at that moment leaves."""
    kept = Kept()
    job = _job(kept)
    _meet(job, after=lambda: job.fail("exit code 3"))
    job._beat()
    assert kept.said() == ["not finished within 0.001 s", "left"]


def test_an_end_just_before_a_failure_is_reported_says_it() -> None:
    """The thread comes too late to report the limit: then the end has to."""
    kept = Kept()
    job = _job(kept)
    _meet(job, before=job._end)
    job._beat()
    job._leave("exit code 3", failed=True)
    assert kept.said() == ["exit code 3; not finished within 0.001 s"]


def test_a_failure_just_after_a_beat_is_a_new_one() -> None:
    """A worker that was reported as failed, and beats again, fails anew, however soon after its beat."""
    kept = Kept()
    worker = beats("orders", member="a", sender=kept)
    worker._begin()
    worker.hold("check x: exit code 1", patience_s=0)
    worker._beat()
    worker.go_on()
    _meet(worker, after=lambda: worker.fail("exit code 3"))
    worker._beat()
    assert kept.said() == ["check x: exit code 1", "beat", "exit code 3"]


def test_two_that_report_at_once_report_it_once() -> None:
    """Whoever waits for the sender while the failure is reported has nothing more to report."""
    kept = Kept()
    job = _job(kept)
    _meet(job, before=job._beat)
    job._beat()
    assert kept.said() == ["not finished within 0.001 s"]
