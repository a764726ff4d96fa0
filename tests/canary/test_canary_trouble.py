"""A canary knows when no expiration can come, and says why in words for people."""

from __future__ import annotations

from heartwheel.readers.canary.canary import Canary
from heartwheel.settings import Settings
from heartwheel.wire.job import Phase
from support.output_rows import T0, expired, job, topic_rows

NOW_S = 100.0


def canary(*, linked: bool = True) -> Canary:
    """Make a canary that is not started, whose brokers answer or not."""
    made = Canary(Settings())
    made._follower._linked = linked
    return made


def hear(of: Canary, *phases: Phase) -> None:
    """Let the job tell its phases."""
    of._hear(topic_rows(*(job(phase=phase) for phase in phases)))
    of._take_heard()


def test_only_a_live_job_is_held_to_its_promise() -> None:
    """Before the job is seen, and in every phase but live, what does not come is no fault; the newest phase counts."""
    found = {}
    for phase in Phase:
        of = canary()
        hear(of, Phase.LIVE, phase)
        found[phase] = of._trouble(NOW_S)
    assert found.pop(Phase.LIVE) is None
    assert found == {
        Phase.STARTING: "the job was starting",
        Phase.CATCHING_UP: "the job was catching up",
        Phase.RETRYING: "the job was coming back from a fault",
        Phase.STOPPED: "the job was stopped",
    }
    assert canary()._trouble(NOW_S) == "no job has been seen yet"


def test_while_kafka_is_away_nothing_is_missed() -> None:
    """Whatever the job said last: what cannot be read was perhaps written."""
    of = canary(linked=False)
    hear(of, Phase.LIVE)
    assert of._trouble(NOW_S) == "Kafka did not answer"


def test_a_canary_that_stood_still_excuses_the_engine() -> None:
    """After a pause of its own process it gives the expirations time to be read, and then judges as before."""
    of = canary()
    hear(of, Phase.LIVE)
    of._paused_until_s = NOW_S
    assert of._trouble(NOW_S - 0.1) == "the canary's own process was stopped"
    assert of._trouble(NOW_S) is None


def test_the_job_tells_the_objective() -> None:
    """A canary beside a job of another pace measures by that job's own promise."""
    of = canary()
    of._hear(topic_rows(job(trigger_interval_ms=5_000, tick_interval_ms=200)))
    of._take_heard()
    assert of._members.figures(enabled=True).objective_ms == 10_300


def test_what_others_are_told_is_not_kept() -> None:
    """Expirations of real members are passed over at once, so that a thousand of them a second cost no memory."""
    of = canary()
    of._hear(topic_rows(*(expired("orders", f"m{n}", T0 + n) for n in range(100))))
    assert len(of._received) == 0
