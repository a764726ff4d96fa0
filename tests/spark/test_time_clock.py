"""The driver's clock is set while the job runs: forward, back, and back again; no verdict is another one."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support import stepping_clock
from support.job import Job, Topics, beats_of, ended, running
from support.living import Living
from support.rawfeed import RawMembers
from support.stepping_clock import SteppingClock
from support.verdicts import assert_audit_is_clean

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.proof,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not stepping_clock.can_be_built(), reason="a C compiler builds the clock: apt install gcc libc6-dev"
    ),
]

SESSION_MS = 8_000
STEP_S = 30
LIVING = 200
DEAD = 10
NOT_OF_THE_LOG = {"detected_ms", "lateness_ms"}
"""Fields that tell what the driver's clock showed; they are for people."""


def _verdicts(topics: Topics, until_ms: int) -> dict[str, dict[str, Any]]:
    """List all verdicts of a job up to a moment of the log by their ids, without what the driver's clock showed."""
    return {
        row["id"]: {name: value for name, value in row.items() if name not in NOT_OF_THE_LOG}
        for topic, moment in (("expirations", "deadline_ms"), ("triggers", "time_ms"))
        for row in topics.rows(topic)
        if row[moment] <= until_ms
    }


def _are_expired(topics: Topics, members: set[str]) -> bool:
    return set(topics.expired()) >= members


def _outputs_of_its_own(topics: Topics) -> Topics:
    """Make topics for another job that reads the same heartbeats."""
    names = topics.names
    return Topics(topics.bootstrap, lambda part: names[part] if part == "heartbeats" else f"{names[part]}-undisturbed")


def test_no_verdict_depends_on_the_drivers_clock(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1, P3: the clock of the driver, its JVM and workers is stepped by 30 s: the verdicts are those of a steady one.

    Who falls silent is expired while the clock is wrong, too, and not when it is right again.
    """
    made = Topics(kafka_broker.bootstrap, topics)
    clock = SteppingClock(tmp_path)
    with monkeypatch.context() as patch:
        for name, value in clock.environment.items():
            patch.setenv(name, value)
        job = Job(made, tmp_path / "checkpoint").start()
    who = RawMembers(members=LIVING, groups=20, session_timeout_ms=SESSION_MS)
    dead: set[str] = set()
    with ended(job), Living(made, who):
        job.until_live()
        job.wait_for(lambda: f" {LIVING:,} members" in job.log, "the members to be known")
        for step, offset_s in (("forward", STEP_S), ("back", 0), ("back-again", -STEP_S)):
            beats = beats_of(step, DEAD, session_ms=SESSION_MS)
            made.send(beats)
            clock.set(offset_s)
            dead.update(beat.member_id for beat in beats)
            job.wait_for(partial(_are_expired, made, dead), f"who died as the clock went {step} to be expired")
        assert job.log.count("the clock was set back by 30 s") == 2
        late_ms = {row["member_id"]: row["lateness_ms"] for row in made.rows("expirations")}
        # By a clock that is wrong they were decided that much too late or too early, and not when it had caught up.
        assert late_ms["forward-m0"] > (STEP_S - 10) * 1_000
        assert late_ms["back-again-m0"] < -(STEP_S - 10) * 1_000
        until_ms = int(time.time() * 1_000)
        job.until_clock(until_ms)
        assert made.rows("job")[-1]["sessions_renewed"] == 0
        assert job.stop() == 0
    undisturbed = _outputs_of_its_own(made)
    with running(undisturbed, tmp_path / "undisturbed") as other:
        other.until_clock(until_ms)
        assert other.stop() == 0
    found = _verdicts(made, until_ms)
    assert found == _verdicts(undisturbed, until_ms)
    assert {row["member_id"] for row in found.values() if "member_id" in row} == dead
    assert_audit_is_clean(job)
