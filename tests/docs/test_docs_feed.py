"""The example that feeds heartwheel runs as it stands, against a real broker."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.kafka.broker.java import find_java
from heartwheel.kafka.readback import LogRecord, read_topic
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import EventType
from heartwheel.wire.partitioner import partition_of
from support.job import Topics, wait_for

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "feed.md").read_text(encoding="utf-8")
JAVA = DOCS / "examples" / "Heartbeats.java"
GROUP = "orders-ü"
PARTITIONS = 7
HEARTBEAT, LEAVE = EventType.HEARTBEAT, EventType.LEAVE


def written(file: Path, code: str, topic: str) -> Path:
    """Write an example down, for a topic that no other test has."""
    assert code.count('"consumer-heartbeats"') == 1
    file.write_text(code.replace('"consumer-heartbeats"', f'"{topic}"'), encoding="utf-8")
    return file


def beats_and_leaves(place: Topics, command: list[str], member: str) -> int:
    """Run an example until it beats, end it as a supervisor does, and hold what it sent against what is wanted.

    Returns:
        Its exit code.
    """
    env = os.environ | {"LC_ALL": "C.UTF-8"}
    with subprocess.Popen([*command, place.bootstrap, GROUP, member], env=env, stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: _read(place), f"{member} to beat")
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    records = _read(place)
    events = [decode_event(record.value) for record in records]
    assert {(event.group_id, event.member_id) for event in events} == {(GROUP, member)}
    assert [events[0].type, events[0].session_timeout_ms, events[-1].type] == [HEARTBEAT, 10_000, LEAVE]
    assert {(record.key, record.partition) for record in records} == {
        (GROUP.encode(), partition_of(GROUP.encode(), PARTITIONS))
    }
    return code


@pytest.mark.kafka
def test_java_beats_and_leaves(kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path) -> None:
    """The example sends what the engine takes, in its group's partition, and says goodbye at SIGTERM.

    The JVM ends with 128 and the number of the signal, after its shutdown hooks.
    """
    java = str(find_java())
    if (
        "jdk.compiler"
        not in subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True).stdout
    ):
        pytest.skip("this Java is no JDK: it cannot run a source file")
    place = Topics(kafka_broker.bootstrap, topics, partitions=PARTITIONS)
    code = JAVA.read_text(encoding="utf-8")
    file = written(tmp_path / "Heartbeats.java", code, place.names["heartbeats"])
    jars = os.pathsep.join(str(jar) for jar in fetch_jars("broker"))
    quick = ("-XX:TieredStopAtLevel=1", "-Dsun.jnu.encoding=UTF-8")
    assert beats_and_leaves(place, [java, *quick, "-cp", jars, str(file)], "java-1") == 128 + signal.SIGTERM


def _read(place: Topics) -> list[LogRecord]:
    return list(read_topic(place.bootstrap, place.names["heartbeats"]))


def test_the_page_shows_events_that_are_accepted() -> None:
    """Every line of JSON on the page is an event."""
    lines = [
        line
        for block in re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    assert [decode_event(line.encode()).type for line in lines] == [HEARTBEAT, LEAVE]
    assert all(json.loads(line)["group_id"] == "orders" for line in lines)


def test_the_page_names_the_partitioner_for_librdkafka() -> None:
    """The default partitioner of librdkafka would send a group elsewhere than Java's client does."""
    assert "librdkafka needs `partitioner=murmur2_random`" in PAGE
