"""The gateway and a worker as processes, with a real Kafka: what was acknowledged is there, whatever is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.readback import read_topic
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import Event, EventType
from heartwheel_beats import beats
from support.job import Topics, wait_for

pytestmark = pytest.mark.kafka


@contextmanager
def gateway(place: Topics, *settings: str, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `heartwheel gateway` as a process, and give its address."""
    flags = ["--port", str(port)]
    for setting in (f"kafka.topics.heartbeats={place.names['heartbeats']}", *settings):
        flags += ["--set", setting]
    command = [sys.executable, "-m", "heartwheel", "gateway", "--bootstrap-servers", place.bootstrap, *flags]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def events_of(place: Topics) -> list[Event]:
    """Read what is in the topic."""
    return [decode_event(record.value) for record in read_topic(place.bootstrap, place.names["heartbeats"])]


def test_what_was_accepted_survives_a_killed_gateway(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """A gateway that is killed while workers beat loses no beat that it answered with 202."""
    place = Topics(kafka_broker.bootstrap, topics)
    accepted, started = list[str](), threading.Event()
    with gateway(place) as (process, url):

        def beat(thread: int) -> None:
            with httpx.Client(base_url=url, timeout=20) as client:
                for number in range(100_000):
                    member = f"{thread}-{number}"
                    try:
                        if client.post(f"/beat/g-{thread}/{member}").status_code == 202:
                            accepted.append(member)
                    except httpx.HTTPError:
                        return
                    if len(accepted) > 200:
                        started.set()

        threads = [threading.Thread(target=beat, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        assert started.wait(60)
        process.send_signal(signal.SIGKILL)
        for thread in threads:
            thread.join()
    assert set(accepted) <= {event.member_id for event in events_of(place)}


@pytest.mark.proof
def test_what_was_accepted_survives_a_killed_broker(topics: Callable[[str], str]) -> None:
    """A broker is killed while workers beat and comes back: no beat with a 202 is lost, none with a 503 is sent later.

    What had been handed to Kafka when it died may have arrived all the same: nobody knows, and the answer says so.
    """
    accepted, refused, unknown = set[str](), set[str](), set[str]()
    with EmbeddedKafka(heap="256m") as broker:
        place, over = Topics(broker.bootstrap, topics), threading.Event()
        with gateway(place, "gateway.timeout=2s") as (process, url):

            def beat(thread: int) -> None:
                with httpx.Client(base_url=url, timeout=30) as client:
                    for number in range(100_000):
                        if over.is_set():
                            return
                        member = f"{thread}-{number}"
                        answer = client.post(f"/beat/g-{thread}/{member}")
                        kept = {202: accepted, 503: unknown if "in time" in answer.text else refused}
                        kept[answer.status_code].add(member)
                        if answer.status_code == 503 and "Kafka acknowledged" in answer.text:
                            unknown.add(member)

            threads = [threading.Thread(target=beat, args=(thread,)) for thread in range(4)]
            for thread in threads:
                thread.start()
            wait_for(lambda: len(accepted) > 100, "beats to be accepted")
            broker.kill()
            wait_for(lambda: refused | unknown, "a beat to be refused")
            assert httpx.get(f"{url}/healthz").status_code == 200
            broker.start()
            before = len(accepted)
            wait_for(lambda: len(accepted) > before + 100, "beats to be accepted again")
            over.set()
            for thread in threads:
                thread.join()
            assert process.poll() is None
        there = [event.member_id for event in events_of(place)]
    assert accepted <= set(there)
    assert set(there) <= accepted | unknown
    assert len(there) == len(set(there)), "a retry wrote a beat twice"


@pytest.mark.proof
def test_a_worker_outlives_a_killed_gateway(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """A worker beats on when the gateway is back, without being started anew, and at SIGTERM it leaves."""
    place = Topics(kafka_broker.bootstrap, topics)
    with gateway(place) as (first, url):
        words = ["--group", "orders", "--member", "a", "--session", "6s", "--to", url, "--", "sleep", "600"]
        program = [sys.executable, "-c", "from heartwheel_beats.command import main; main()"]
        with subprocess.Popen([*program, *words], stderr=subprocess.DEVNULL) as worker:
            try:
                wait_for(lambda: events_of(place), "the worker to beat")
                first.kill()
                first.wait()
                before = len(events_of(place))
                with gateway(place, port=int(url.rpartition(":")[2])):
                    wait_for(lambda: len(events_of(place)) > before, "the worker to beat again")
                    worker.terminate()
                    assert worker.wait(30) == 128 + signal.SIGTERM
            finally:
                worker.kill()
    last = events_of(place)[-1]
    assert (last.type, last.member_id, last.reason) == (EventType.LEAVE, "a", "ended by SIGTERM, exit code 143")


@pytest.mark.proof
def test_a_killed_command_ends_the_beats(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """When `heartwheel beat` itself is killed its beats end, without a leave: silence tells, as of any crash."""
    place = Topics(kafka_broker.bootstrap, topics)
    with gateway(place) as (_, url):
        words = ["--group", "orders", "--member", "a", "--session", "6s", "--to", url, "--", "sleep", "600"]
        program = [sys.executable, "-c", "from heartwheel_beats.command import main; main()"]
        with subprocess.Popen([*program, *words], stderr=subprocess.DEVNULL, start_new_session=True) as command:
            try:
                wait_for(lambda: len(events_of(place)) > 1, "the worker to beat")
            finally:
                command.kill()
            command.wait()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(command.pid, signal.SIGKILL)  # the worker, which nobody watches any more
        counted = len(events_of(place))
        with beats("orders", member="b", session="6s", to=url) as other:
            wait_for(lambda: other.acknowledged > 3, "another worker to beat for longer than the killed one's interval")
    events = events_of(place)
    assert [event.type for event in events if event.member_id == "a"] == [EventType.HEARTBEAT] * counted


def test_a_worker_beats_to_kafka_itself(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """`heartwheel beat` without a gateway writes to Kafka as the configuration says, in the partition of its group."""
    place = Topics(kafka_broker.bootstrap, topics)
    flags = ["--bootstrap-servers", place.bootstrap, "--set", f"kafka.topics.heartbeats={place.names['heartbeats']}"]
    words = ["--group", "orders", "--member", "a", *flags, "--", "sh", "-c", "sleep 3; exit 3"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEARTWHEEL_BEATS")}
    done = subprocess.run(
        [sys.executable, "-m", "heartwheel", "beat", *words], check=False, env=environment, timeout=120
    )
    assert done.returncode == 3
    events = events_of(place)
    assert (events[0].type, events[0].session_timeout_ms) == (EventType.HEARTBEAT, 30_000)
    assert (events[-1].type, events[-1].failure) == (EventType.LEAVE, "exit code 3")
