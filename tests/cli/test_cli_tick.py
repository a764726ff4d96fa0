"""`heartwheel tick` on a real broker: ticks until SIGTERM, and a line where none can be written."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from heartwheel.front.cli.app import run
from heartwheel.front.cli.tick import trouble_of
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import admin_client
from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.topic_specs import TopicSpec
from heartwheel.kafka.topics import ensure_topics
from heartwheel.wire.job import SilentPartition, TickerState
from heartwheel.wire.tick import read_tick
from support.job import PATIENCE_S, wait_for

pytestmark = pytest.mark.kafka


def test_ticks_come_until_sigterm_and_what_stops_them_is_said(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str]
) -> None:
    """Every partition gets ticks; a topic that goes away is named with the reason; SIGTERM ends it with 0."""
    topic, bootstrap = topics("events"), kafka_broker.bootstrap
    ensure_topics(bootstrap, [TopicSpec(topic, 3, {})])
    words = ["tick", "--topic", topic, "--every", "100ms", "--bootstrap-servers", bootstrap]
    process = subprocess.Popen([sys.executable, "-m", "heartwheel", *words], stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: _partitions(bootstrap, topic) == {0, 1, 2}, "ticks in three partitions")
        assert process.stderr is not None
        assert process.stderr.readline() == f"a tick every 100ms to 3 partitions of {topic}; Ctrl-C ends it\n"
        with admin_client(bootstrap) as admin:
            admin.delete_topics([topic])
        assert process.stderr.readline().startswith(f"no tick in 3 of 3 partitions of {topic} (0, 1, 2): ")
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, rest
    assert rest.splitlines()[-1].endswith("ticks written")
    assert "Traceback" not in rest


def _partitions(bootstrap: str, topic: str) -> set[int]:
    return {record.partition for record in read_topic(bootstrap, topic) if read_tick(record.value) is not None}


def test_a_topic_that_is_not_there_is_an_error(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped topic is not created and not waited for."""
    topic = topics("mistyped")
    assert run(["tick", "--topic", topic, "--bootstrap-servers", kafka_broker.bootstrap]) == 1
    assert f"has no topic {topic}" in capsys.readouterr().err


@pytest.mark.parametrize("every", ["49ms", "2m", "often"])
def test_an_interval_that_is_none_is_wrong_usage(every: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Out of bounds, or no duration: exit 2, and the option is named."""
    assert run(["tick", "--topic", "t", "--every", every]) == 2
    assert "--every" in capsys.readouterr().err


def test_the_line_says_where_and_why() -> None:
    """One partition, several, more than can be named, and the whole ticker."""
    silent = tuple(SilentPartition(number, 9_000, "why") for number in range(10))
    parts = {"run": "r", "written": 1, "failed": 1, "lag_ms": 9_000}
    one = TickerState(partitions=3, silent_count=1, silent=silent[2:3], reason="", **parts)  # type: ignore[arg-type]
    many = TickerState(partitions=1200, silent_count=12, silent=silent, reason="", **parts)  # type: ignore[arg-type]
    none = TickerState(partitions=0, silent_count=0, silent=(), reason="its leader cannot be reached", **parts)  # type: ignore[arg-type]
    well = TickerState(partitions=3, silent_count=0, silent=(), reason="", **parts)  # type: ignore[arg-type]
    assert trouble_of(one, "t") == "no tick in partition 2 of t: why"
    assert trouble_of(many, "t") == ("no tick in 12 of 1,200 partitions of t (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...): why")
    assert trouble_of(none, "t") == "no ticks in t: its leader cannot be reached"
    assert trouble_of(well, "t") == ""
