"""The ticker on a real broker: a tick in every partition, new ones too, and its state says what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heartwheel.engine.runtime.driver.ticker import Ticker, new_run
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import admin_client
from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.topic_specs import engine_topics
from heartwheel.kafka.topics import ensure_topics
from heartwheel.wire.tick import Tick, read_tick
from support.job import wait_for

pytestmark = pytest.mark.kafka


def _ticks(broker: EmbeddedKafka, topic: str) -> dict[int, list[Tick]]:
    found: dict[int, list[Tick]] = {}
    for record in read_topic(broker.bootstrap, topic):
        tick = read_tick(record.value)
        assert tick is not None
        assert record.key is None
        found.setdefault(record.partition, []).append(tick)
    return found


def test_a_tick_comes_to_every_partition_and_to_new_ones(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str]
) -> None:
    """Every partition gets ticks of one run that count the partitions, also those that are added meanwhile."""
    topic = topics("heartbeats")
    spec = engine_topics(heartbeat_partitions=2)[0]
    ensure_topics(kafka_broker.bootstrap, [type(spec)(topic, 2, spec.settings)])
    run = new_run()
    with Ticker(kafka_broker.bootstrap, topic, run=run, interval_ms=100) as ticker:
        wait_for(lambda: set(_ticks(kafka_broker, topic)) == {0, 1}, "ticks in both partitions")
        with admin_client(kafka_broker.bootstrap) as admin:
            admin.create_partitions({topic: 3})
        wait_for(lambda: set(_ticks(kafka_broker, topic)) == {0, 1, 2}, "ticks in the new partition")
        state = ticker.state()
    assert (state.run, state.partitions, state.silent_count, state.reason) == (run, 3, 0, "")
    assert state.skew_ms is not None, "the answers carry append times"
    ticks = _ticks(kafka_broker, topic)
    assert {tick.run for of in ticks.values() for tick in of} == {run}
    assert {tick.partitions for tick in ticks[2]} == {3}
    for of in ticks.values():
        assert [tick.mono_ms for tick in of] == sorted(tick.mono_ms for tick in of)


def test_a_ticker_that_finds_no_broker_says_why() -> None:
    """Where nobody answers the state says so, and the ticker goes on trying."""
    with Ticker("127.0.0.1:1", "heartbeats", run="r", interval_ms=50) as ticker:
        wait_for(lambda: ticker.state().reason, "the reason")
        assert ticker.state().written == 0


@pytest.mark.proof
def test_a_broker_that_comes_back_gets_ticks_again() -> None:
    """After a pause of the broker ticks come again within a moment, of the same run."""
    with EmbeddedKafka(heap="256m") as broker:
        spec = engine_topics(heartbeat_partitions=2)[0]
        ensure_topics(broker.bootstrap, [spec])
        with Ticker(broker.bootstrap, spec.name, run="r", interval_ms=100) as ticker:
            wait_for(lambda: ticker.state().written > 4, "the first ticks")
            broker.pause()
            wait_for(lambda: ticker.state().silent_count == 2, "both partitions to fall silent")
            assert ticker.state().silent[0].reason
            broker.resume()
            wait_for(lambda: ticker.state().silent_count == 0, "ticks to go on")
            assert {tick.run for of in _ticks(broker, spec.name).values() for tick in of} == {"r"}
