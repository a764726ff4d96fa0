"""Workers, a gateway and the job, each of which may crash: who beats is alive, and who stops is expired once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.readback import LogRecord
from heartwheel.settings import load_settings
from heartwheel.sources.gateway.gateway import Gateway
from heartwheel_beats import beats
from support.job import Topics, running

WORKER = """
import sys, time
from heartwheel_beats import beats
with beats("orders", member="dead", session="6s", to=sys.argv[1]):
    time.sleep(600)
"""

pytestmark = [pytest.mark.proof, pytest.mark.spark, pytest.mark.kafka]


def test_a_killed_job_loses_no_beat(kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path) -> None:
    """The job is killed while two workers beat, and one dies: the next job expires that one, once, and no other."""
    place = Topics(kafka_broker.bootstrap, topics)
    flags = ["gateway.port=0", f"kafka.bootstrap_servers={place.bootstrap}"]
    settings = load_settings(None, {}, [*flags, f"kafka.topics.heartbeats={place.names['heartbeats']}"]).settings
    with (
        Gateway(settings) as gateway,
        beats("orders", member="alive", session="6s", to=gateway.url),
        subprocess.Popen([sys.executable, "-c", WORKER, gateway.url]) as dying,
        running(place, tmp_path / "checkpoint") as job,
    ):
        job.until_live()
        job.wait_for(lambda: len(beats_of_dead(place)) > 1, "the worker that will die to beat")
        job.kill()
        dying.kill()
        dying.wait()
        job.start()
        job.wait_for(lambda: place.expired() == ["dead"], "the dead worker to be expired")
        job.until_clock(place.rows("expirations")[0]["deadline_ms"] + 6_000)
        assert job.stop() == 0
    (row,) = place.rows("expirations")
    assert row["deadline_ms"] == beats_of_dead(place)[-1].append_ms + 6_000


def beats_of_dead(place: Topics) -> list[LogRecord]:
    """Read the beats of the worker that dies."""
    return [record for record in place.read("heartbeats") if b'"dead"' in (record.value or b"")]
