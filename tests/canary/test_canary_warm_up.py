"""A job that has just started is slow, and the canary says so instead of calling it late."""

from __future__ import annotations

import pytest

from heartwheel.readers.canary.canary import WARM_UP_MS, slow_words
from heartwheel.readers.canary.judge import CanaryJudge, CanaryOutcome, Claim, JudgedOutcome
from heartwheel.wire.job import Phase
from support.output_rows import T0, job

SESSION = 6_000
OBJECTIVE = 3_500
MISSED = 30_000
WHY = "the job had just started"


def judge() -> CanaryJudge:
    """Make a judge of a member that was silent from 2 s on, and was seen to be silent while the job was slow."""
    made = CanaryJudge(session_ms=SESSION, objective_ms=OBJECTIVE, missed_after_ms=MISSED)
    made.sent()
    made.answered(2_000)
    assert list(made.settle(8_100, slow=WHY)) == []
    return made


@pytest.mark.parametrize(
    ("late_ms", "outcome"),
    [
        (OBJECTIVE, JudgedOutcome(CanaryOutcome.IN_TIME, 8_000, OBJECTIVE)),
        (OBJECTIVE + 1, JudgedOutcome(CanaryOutcome.VOID, 8_000, None, WHY)),
    ],
)
def test_what_is_late_while_the_job_warms_up_says_why(late_ms: int, outcome: JudgedOutcome) -> None:
    """Late by a slow first batch is void with the reason, also once the job is no longer slow; in time is in time."""
    of = judge()
    of.claimed(Claim("1", 2_000, 8_000, 8_000 + late_ms))
    assert list(of.settle(8_000 + late_ms)) == [outcome]


def test_p2_what_never_comes_is_missed_all_the_same() -> None:
    """P2: warming up excuses no expiration that never came."""
    of = judge()
    assert list(of.settle(8_000 + MISSED, slow=WHY)) == [JudgedOutcome(CanaryOutcome.MISSED, 8_000, None, None)]


@pytest.mark.parametrize(("since_ms", "is_slow"), [(0, True), (WARM_UP_MS - 1, True), (WARM_UP_MS, False)])
def test_a_job_warms_up_for_a_minute(since_ms: int, is_slow: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """For a minute after it went live, and at every start again, a job may be slow; other phases say their own."""
    row = job(T0, phase_since_ms=T0 - since_ms)
    assert (slow_words(row) is not None) is is_slow
    assert slow_words(job(T0, phase=Phase.CATCHING_UP, phase_since_ms=T0)) is None
