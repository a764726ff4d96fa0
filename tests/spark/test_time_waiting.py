"""Records of a group in two partitions, one of which has stopped: they wait, up to a limit, and none is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.wire.event_codec import encode_event
from heartwheel.wire.events import Event
from heartwheel.wire.partitioner import partition_of
from support.job import Topics, beats_of, running
from support.signs import page_of
from support.verdicts import assert_audit_is_clean

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(600)]

LIMIT = 1_000
BEATS = 600
SESSION_MS = 10_000


def test_p6_reading_stops_where_too_many_records_wait(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path
) -> None:
    """P6, P1: a transaction holds one partition of a group; beyond the limit nothing is read until it ends.

    Nobody is expired meanwhile, and afterwards everybody once, by the deadline that the last of all heartbeats gave.
    """
    made = Topics(kafka_broker.bootstrap, topics)
    heartbeats = made.names["heartbeats"]
    home = partition_of(b"torn", 2)
    held = 1 - home
    beats = beats_of("torn", 5, session_ms=SESSION_MS)
    dead = Event(group_id="torn", member_id="dead", session_timeout_ms=SESSION_MS, client_id="c", client_host="/h")
    plain = Producer({"bootstrap.servers": made.bootstrap, "log_level": 0})
    settings = {"transactional.id": heartbeats, "transaction.timeout.ms": 300_000}
    holder = Producer({"bootstrap.servers": made.bootstrap, "log_level": 0, **settings})

    def write(producer: Producer, event: Event, partition: int) -> None:
        producer.produce(heartbeats, encode_event(event), event.group_id.encode(), partition)

    with running(made, tmp_path / "checkpoint", f"engine.waiting_records_max={LIMIT}") as job:
        job.until_live()
        for event in (*beats, dead):
            write(plain, event, home)
            write(plain, event, held)
        assert plain.flush(30) == 0
        job.wait_for(lambda: " 6 members" in job.log, "the members to be known in both partitions")
        holder.init_transactions(30)
        holder.begin_transaction()
        write(holder, beats[0], held)
        assert holder.flush(30) == 0
        for _ in range(BEATS):
            for event in beats:
                write(plain, event, home)
        assert plain.flush(30) == 0
        job.wait_for(lambda: "reading has stopped" in job.log, "the job to stop reading")
        job.wait_for(lambda: "which has stopped" in page_of(made).sentence, "the page to say so")
        assert f"in partition {held}, which has stopped" in page_of(made).sentence
        assert made.expired() == []
        holder.commit_transaction(30)
        job.wait_for(lambda: made.expired() == ["dead", *sorted(beat.member_id for beat in beats)], "all to be expired")
        rows = made.rows("expirations")
        assert {row["deadline_ms"] - row["last_seen_ms"] for row in rows} == {SESSION_MS}
        job.until_clock(int(time.time() * 1000))
        assert job.stop() == 0
    assert_audit_is_clean(job)
