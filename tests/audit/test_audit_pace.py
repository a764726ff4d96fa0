"""P2: a verdict is late only while the job ran, by its own status rows; nobody is accused without them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from audit.engine_runs import engine_run
from audit.rich_log import CONFIG, T0, rich_log
from heartwheel.proof.audit import FindingKind
from heartwheel.proof.audit.clocks import Clocks
from heartwheel.proof.audit.pace import Candidate, LatenessJudge

BOUND_MS = 3_000
CLOCK_MS = T0 + 32_000


def _candidate(time_ms: int, append_ms: int, ready_ms: int = 0) -> Candidate:
    return Candidate(time_ms, ready_ms, append_ms, "expirations", 0, 7, "g", "m")


def _late(time_ms: int, append_ms: int, batches: list[int], behind: tuple[int, ...] = (), ready_ms: int = 0) -> bool:
    """Tell whether a verdict is late, in a job that went through batches at these times."""
    pace = LatenessJudge(BOUND_MS)
    late = []

    def go_through(batch_ms: int) -> None:
        clock_ms = batch_ms - BOUND_MS - (batch_ms in behind)
        late.extend(pace.batch(0, batch_ms, clock_ms=clock_ms))

    for batch_ms in [at for at in batches if at < append_ms]:
        go_through(batch_ms)
    pace.known(_candidate(time_ms, append_ms, ready_ms), 0)
    for batch_ms in [at for at in batches if at >= append_ms]:
        go_through(batch_ms)
    return bool(late + pace.rest())


STEADY = list(range(0, 60_000, 1_000))


@pytest.mark.parametrize(
    ("append_ms", "batches", "behind", "late"),
    [
        (23_000, STEADY, (), False),  # just within the bound
        (23_001, STEADY, (), True),
        (50_000, STEADY, (), True),
        (50_000, [t for t in STEADY if t <= 21_000 or t >= 49_000], (), False),  # down meanwhile
        (50_000, [t for t in STEADY if t <= 21_000 or t >= 40_000], (), True),  # back for longer than the bound
        (50_000, STEADY, tuple(range(20_000, 49_000, 1_000)), False),  # a backlog was read
        (50_000, STEADY, tuple(range(20_000, 40_000, 1_000)), True),
        (50_000, [0, 59_000], (), False),  # rows are missing
        (50_000, [59_000], (), False),
        (50_000, [t for t in STEADY if t < 49_000], (), False),  # nothing shows that it ran then
    ],
)
def test_p2_late_is_what_a_running_job_tells_late(
    append_ms: int, batches: list[int], behind: tuple[int, ...], *, late: bool
) -> None:
    """P2: a verdict that was true at 20,000 ms is late by the bound, while the status rows come in step."""
    assert _late(20_000, append_ms, batches, behind) == late


@pytest.mark.parametrize(("ready_ms", "late"), [(19_000, True), (46_999, True), (47_000, False), (60_000, False)])
def test_p2_nobody_can_know_what_no_record_shows(ready_ms: int, *, late: bool) -> None:
    """P2: where no record comes, time does not pass: the bound counts from the record that shows a verdict first."""
    assert _late(20_000, 50_000, STEADY, ready_ms=ready_ms) == late


def test_without_status_rows_all_of_the_time_counts_but_known_pauses() -> None:
    """An audit that knows nothing of batches takes the bound at its word, but for the pauses that it knows of."""
    assert _late(20_000, 50_000, [])
    pace = LatenessJudge(BOUND_MS, pauses=[(19_000, 48_000)])
    pace.known(_candidate(20_000, 50_000), 0)
    assert pace.rest() == []


def test_without_a_bound_nothing_is_late() -> None:
    """The bound is for the user to set."""
    pace = LatenessJudge(None)
    pace.known(_candidate(0, 10**9), 0)
    assert pace.batch(0, 10**9, clock_ms=None) + pace.rest() == []


@pytest.mark.parametrize("number", [0, 7, -1])
def test_p2_a_late_row_is_found(number: int) -> None:
    """P2: of one row that stands in the topic later than the bound, just that is found, with its place."""
    run = copy.deepcopy(engine_run(rich_log(), clock_ms=CLOCK_MS, config=CONFIG))
    for each in run.written:
        decided_ms: Any = getattr(each.row, "time_ms", each.row.deadline_ms)
        each.append_ms = decided_ms + 500
    run.written[number].append_ms += BOUND_MS
    report = run.audit(late_ms_max=BOUND_MS)
    assert report.faults == {FindingKind.LATE: 1}
    assert report.findings[0].offset == run.written[number].offset


def test_a_clock_is_proven_by_the_batch_after_it() -> None:
    """Verdicts and status rows are written side by side: only the next batch shows that a batch is all there."""
    clocks = Clocks()
    for shard in (0, 1):
        clocks.batch(shard, 1_000, 400)
    assert clocks.proven_ms(2) == -1
    clocks.batch(0, 2_000, 1_400)
    assert (clocks.proven_ms(1), clocks.proven_ms(2)) == (399, -1)  # of its last millisecond more may come
    clocks.batch(1, 2_000, 1_400)
    clocks.batch(1, 2_000, 1_400)  # the same row again
    assert (clocks.proven_ms(2), clocks.proven_ms(3)) == (399, -1)


def test_the_clock_of_a_driver_that_was_set_back_is_proven() -> None:
    """The first batch after the step has an earlier timestamp than the one before it, and is the next one."""
    clocks = Clocks()
    for batch_ms, clock_ms in ((90_000, 400), (60_500, 1_400), (61_000, 1_900)):
        clocks.batch(0, batch_ms, clock_ms)
    assert clocks.proven_ms(1) == 1_399


def test_a_row_of_the_batch_before_proves_nothing() -> None:
    """An attempt that was given up writes the row of its batch when the next batch has written its own."""
    clocks = Clocks()
    for batch_ms, clock_ms in ((1_000, 400), (2_000, 1_400), (1_000, 400)):
        clocks.batch(0, batch_ms, clock_ms)
    assert clocks.proven_ms(1) == 399
