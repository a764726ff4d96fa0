"""The job topic tells how the job stands, whatever becomes of Kafka, and the engine never waits for it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.runtime.driver.job_tally import JobTally
from heartwheel.engine.runtime.driver.progress import Progress
from heartwheel.engine.runtime.driver.reporter import JobReporter
from heartwheel.engine.runtime.state.faults import Fault
from heartwheel.kafka.client import KafkaUnreachableError
from heartwheel.settings import Settings
from heartwheel.wire.job import JobRow, Phase
from support.job import wait_for

SETTINGS = Settings()
NEVER_S = 3_600.0


def batch(number: int, **figures: Any) -> Progress:
    """Make a batch in which little happened."""
    usual = {"held": False, "heartbeats": 10, "behind": 0, "members": 5, "groups": 1, "expired": 1, "triggers": 2}
    times = {"rejected": 0, "duration_ms": 300, "read_ms": 200}
    return Progress(**{"batch_id": number, **usual, **times, **figures})


class Desk:
    """Stand for Kafka: keep the rows that are written while it is open."""

    def __init__(self, *, away: bool = False) -> None:
        self.rows: list[JobRow] = []
        self.tries = 0
        self.open = threading.Event()
        if not away:
            self.open.set()

    def connect(self, _: Settings) -> Desk:
        """Answer as a broker does, or not at all."""
        self.tries += 1
        if not self.open.is_set():
            raise KafkaUnreachableError("no Kafka answers")
        return self

    def write(self, row: JobRow) -> None:
        """Keep a row."""
        self.rows.append(row)

    def close(self) -> None:
        """Have nothing to let go of."""

    def phases(self) -> list[str]:
        """List the phases of the rows."""
        return [row.phase.value for row in self.rows]


def reporter(desk: Desk, *, quiet_s: float = NEVER_S) -> JobReporter:
    """Make a reporter that writes to a desk."""
    return JobReporter(SETTINGS, connect=desk.connect, quiet_s=quiet_s)


def ticking(*times_ms: int) -> Callable[[], int]:
    """Make a clock that says these times, one a look."""
    left = list(times_ms)
    return lambda: left.pop(0)


def test_each_phase_and_each_batch_is_a_row() -> None:
    """From the start to an orderly stop, the topic has one row for all that happened, in its order."""
    desk = Desk()
    with reporter(desk) as reporting:
        for phase in ("starting", "catching up", "live"):
            reporting.on_phase(phase)
        reporting.on_progress(batch(0))
        reporting.on_progress(batch(1, heartbeats=7))
        reporting.on_phase("stopped")
    assert desk.phases() == ["starting", "catching up", "live", "live", "live", "stopped"]
    last = desk.rows[-1]
    assert (last.batches, last.records, last.fault, last.faults) == (2, 17, None, 0)
    assert last.last_batch is not None
    assert (last.last_batch.batch_id, last.last_batch.records) == (1, 7)


def test_silence_is_broken_when_no_batch_ends() -> None:
    """Though nothing happens, rows go on: only a process that is gone or hangs is silent."""
    desk = Desk()
    with reporter(desk, quiet_s=0.01) as reporting:
        reporting.on_phase("live")
        wait_for(lambda: len(desk.rows) >= 4, "rows of a quiet job")
        assert set(desk.phases()) == {"live"}


def test_the_engine_never_waits_for_kafka() -> None:
    """While Kafka is away a thousand batches are noted at once; when it is back the newest rows are written."""
    desk = Desk(away=True)
    with reporter(desk) as reporting:
        for number in range(1_000):
            reporting.on_progress(batch(number))
        assert desk.rows == []
        desk.open.set()
        wait_for(lambda: desk.rows, "rows after the return of Kafka")
    told_batches = [row.last_batch.batch_id for row in desk.rows if row.last_batch]
    assert told_batches == sorted(told_batches)
    assert (told_batches[-1], len(told_batches) <= 65) == (999, True)


def test_a_fault_is_told_until_a_batch_has_ended() -> None:
    """`retrying` says what went wrong, so does the next try; a batch that ends clears it and counts it."""
    desk = Desk()
    with reporter(desk) as reporting:
        reporting.on_fault(Fault("the disk of the checkpoint is full", None, None))
        for phase in ("retrying", "catching up"):
            reporting.on_phase(phase)
        reporting.on_progress(batch(3))
    told_faults = [(row.phase.value, row.fault, row.faults) for row in desk.rows]
    assert told_faults == [
        ("retrying", "the disk of the checkpoint is full", 0),
        ("catching up", "the disk of the checkpoint is full", 0),
        ("catching up", None, 1),
        ("stopped", None, 1),
    ]


def test_a_job_that_failed_says_why() -> None:
    """The last row of a job that could not go on is `stopped`, with the reason that its user sees."""
    desk = Desk()
    with pytest.raises(HeartwheelError), reporter(desk):
        raise HeartwheelError("a topic of the job is missing in Kafka")
    assert (desk.rows[-1].phase, desk.rows[-1].fault) == (Phase.STOPPED, "a topic of the job is missing in Kafka")


def test_no_row_holds_a_secret() -> None:
    """A fault that quotes a password, alone or within a JAAS line, is written with a mask in its place."""
    line = 'ScramLoginModule required username="u" password="jaas-hush";'
    kafka = {"client": {"sasl.password": "plain-hush", "sasl.jaas.config": line}}
    tally = JobTally(Settings.model_validate({"kafka": kafka}))
    tally.add_fault(Fault(f"no login as plain-hush, jaas-hush, {line}", None, None))
    assert tally.row().fault == "no login as ********, ********, ********"


def test_a_phase_lasts_from_its_first_mention() -> None:
    """`phase_since_ms` is when the phase was entered, not when it was last written."""
    tally = JobTally(SETTINGS, now_ms=ticking(100, 200, 900))
    tally.enter("live")
    tally.enter("live")
    row = tally.row()
    assert (row.started_ms, row.phase_since_ms, row.at_ms) == (100, 200, 900)


def test_the_row_counts_records_without_append_times_and_how_far_a_clock_is_behind() -> None:
    """What no time passes by is counted since the start, with when it was read last; a step back is that of now."""
    tally = JobTally(SETTINGS, now_ms=itertools.count(1).__next__)
    tally.add_batch(batch(0, untimed=2, stepped_back_ms=29_800))
    seen = tally.row()
    tally.add_batch(batch(1))
    after = tally.row()
    assert (seen.untimed, seen.stepped_back_ms) == (2, 29_800)
    assert (after.untimed, after.untimed_at_ms, after.stepped_back_ms) == (2, seen.untimed_at_ms, 0)
