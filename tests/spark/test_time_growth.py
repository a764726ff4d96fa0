"""The topic grows under a backlog that is read in bounded batches: groups move, and nobody who lives is expired."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import admin_client
from heartwheel.wire.partitioner import partition_of
from support.job import Topics, beats_of, running
from support.living import Living
from support.rawfeed import RawFeed, RawMembers
from support.verdicts import assert_audit_is_clean

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(900)]

PARTITIONS, MORE_PARTITIONS = 4, 12
BACKLOG = 2_000_000
RECORDS_A_BATCH = 100_000
SESSION_MS = 8_000
WHO = RawMembers(members=1_000, groups=100, session_timeout_ms=SESSION_MS)
DEAD_GROUPS, DEAD_PER_GROUP = 12, 5


def _die(topics: Topics, name: str) -> list[str]:
    """Let the members of some groups beat once and never again."""
    beats = [
        beat for i in range(DEAD_GROUPS) for beat in beats_of(f"{name}-{i}", DEAD_PER_GROUP, session_ms=SESSION_MS)
    ]
    topics.send(beats)
    return [beat.member_id for beat in beats]


def _has_read(topics: Topics, goal: int) -> bool:
    return int(topics.rows("job")[-1]["records"]) >= goal


def test_p1_growth_under_a_backlog_expires_nobody_who_lives(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path
) -> None:
    """P1, P3: 2 million records are unread as 4 partitions become 12: the living stay, the dead have true deadlines."""
    made = Topics(kafka_broker.bootstrap, topics, partitions=PARTITIONS)
    heartbeats = made.names["heartbeats"]
    moved = [i for i in range(WHO.groups) if _home(i, PARTITIONS) != _home(i, MORE_PARTITIONS)]
    assert len(moved) > WHO.groups // 3
    with running(made, tmp_path / "checkpoint", f"engine.catch_up_max_records={RECORDS_A_BATCH}") as job:
        job.until_live()
        with RawFeed(made.bootstrap, heartbeats, WHO) as feed:
            feed.run(rounds=1)
            job.wait_for(lambda: f" {WHO.members:,} members" in job.log, "the members to be known")
            dead = _die(made, "before")
            job.freeze()  # however slowly this machine writes, all of it is unread when the topic grows
            feed.run(records=BACKLOG)
        with admin_client(made.bootstrap) as admin:
            admin.create_partitions({heartbeats: MORE_PARTITIONS})
        with Living(made, WHO):
            job.thaw()
            dead += _die(made, "after")
            for goal in range(BACKLOG // 4, BACKLOG + 1, BACKLOG // 4):
                job.wait_for(partial(_has_read, made, goal), f"{goal} records to be read")
            rows = job.until_expired(dead)
            job.until_clock(int(time.time() * 1000))
        assert job.stop() == 0
    assert {row["deadline_ms"] - row["last_seen_ms"] for row in rows} == {SESSION_MS}
    assert {row["member_id"] for row in made.rows("expirations")} == set(dead)
    assert_audit_is_clean(job)


def _home(group: int, partitions: int) -> int:
    return partition_of(WHO.event(group).group_id.encode(), partitions)
