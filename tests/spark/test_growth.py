"""A new checkpoint finds out how many partitions its topic has had, by the ticks that are left in it."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.runtime.driver.growth import (
    AGE_MS_MIN,
    LOOKS_MAX,
    CountAt,
    counts_between,
    former_counts,
    older_partitions,
    seems_to_have_grown_from,
)
from heartwheel.engine.shard import Shard, ShardLimits
from heartwheel.front.cli.checks import Status
from heartwheel.front.cli.growth_check import check_growth, rate_growth
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import admin_client
from heartwheel.proof.testing import LogBuilder, read_records
from heartwheel.settings import load_settings
from heartwheel.wire.partitioner import murmur2
from heartwheel.wire.tick import Tick, encode_tick
from kafka import KafkaProducer
from support.heartbeat_logs import T0


def _look(counts: list[int], looked: list[int]) -> Callable[[int], CountAt | None]:
    """Look into a partition that has a tick where the count is not 0."""

    def look(offset: int) -> CountAt | None:
        looked.append(offset)
        return next((CountAt(at, counts[at]) for at in range(offset, len(counts)) if counts[at]), None)

    return look


@given(st.lists(st.tuples(st.integers(1, 400), st.integers(1, 5)), max_size=5), st.integers(0, 30))
def test_every_count_that_ticks_name_is_found(steps: list[tuple[int, int]], quiet: int) -> None:
    """However often the topic has grown, and wherever no tick stands: all counts but the last, in few looks."""
    dice, counts = random.Random(1), [0] * quiet
    for length, count in zip((length for length, _ in steps), accumulate(more for _, more in steps), strict=True):
        counts += [count, *(count if dice.random() < 0.5 else 0 for _ in range(length)), count]
    looked: list[int] = []
    now = max(counts, default=0) + 1
    assert counts_between(_look(counts, looked), 0, len(counts), now) == tuple(sorted(set(counts) - {0}))
    assert len(looked) <= 100


def test_lies_cost_few_looks() -> None:
    """Ticks that name any count at all are looked at a bounded number of times."""
    dice, looked = random.Random(2), list[int]()
    counts = [dice.randrange(1, 1_000) for _ in range(100_000)]
    found = counts_between(_look(counts, looked), 0, len(counts), 500)
    assert len(looked) <= LOOKS_MAX
    assert all(0 < count < 500 for count in found)


@pytest.mark.parametrize("former", [(), (1,)])
def test_p1_a_member_that_moved_is_not_expired_by_a_new_checkpoint(former: tuple[int, ...]) -> None:
    """P1: a partition of before is waited for, so what is read of it later comes first; without it one is expired."""
    group = next(name for name in map(str, range(99)) if (murmur2(name.encode()) & 0x7FFFFFFF) % 2 == 1)
    log = LogBuilder()
    for t in range(0, 20_000, 1_000):
        log.beat(T0 + t, group, "a", session_timeout_ms=3_000, partition=int(t >= 8_000 and t % 4_000 == 0))
    for t in range(0, 20_001, 1_000):
        log.tick(T0 + t, partition=0, partitions=2)
    for t in range(8_000, 20_001, 1_000):
        log.tick(T0 + t, partition=1, partitions=2)
    old, new = ([record for record in log.records if record.partition == number] for number in (0, 1))
    shard = Shard(
        coordinator=CoordinatorConfig(group_min_session_timeout_ms=1),
        limits=ShardLimits(),
        counts=(*former, 2),
        partitions_max=2,
    )
    # Bounded batches read partitions by their records, so the new one may be ahead of the old one at first.
    verdicts = [verdict for part in (new, old) for verdict in shard.apply(*read_records(part)).verdicts]
    expired = [verdict.member_id for verdict in verdicts if verdict.expiry_reason]
    assert not expired if former else expired


@pytest.mark.parametrize(
    ("first_ms", "count"),
    [
        ([], None),
        ([5], None),
        ([0, 7, None, 3], None),
        ([0, 7, AGE_MS_MIN + 7, None], 2),
        ([0, None, AGE_MS_MIN - 1], None),
        ([AGE_MS_MIN, 0], None),
        ([0, AGE_MS_MIN, 5], None),
    ],
)
def test_partitions_that_began_long_after_the_others_were_added(first_ms: list[int | None], count: int | None) -> None:
    """A growth shows in the first records: those of all new partitions come long after those of all old ones."""
    assert older_partitions(first_ms) == count


@pytest.mark.parametrize(
    ("named", "older", "starting", "status"),
    [
        ((), None, "earliest", Status.OK),
        ((4,), None, "earliest", Status.OK),
        ((4,), 4, "earliest", Status.OK),
        ((4,), 6, "earliest", Status.WARN),
        ((), 4, "earliest", Status.WARN),
        ((), 4, "latest", Status.OK),
    ],
)
def test_doctor_warns_of_a_growth_that_no_tick_tells(
    named: tuple[int, ...], older: int | None, starting: str, status: Status
) -> None:
    """Only a new checkpoint that reads the topic from its start does not know how many partitions there were."""
    check = rate_growth(12, named, older, starting_offsets=starting)
    assert check.status is status
    assert ("latest" in (check.hint or "")) is (status is Status.WARN)


@pytest.mark.kafka
def test_former_counts_are_read_from_the_topic(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """A topic that grew from one partition to three and then to five, and one that has no tick at all."""
    topic, empty = topics("grown"), topics("empty")
    settings = load_settings(overrides=[f"kafka.bootstrap_servers={kafka_broker.bootstrap}"]).settings
    with admin_client(kafka_broker.bootstrap) as admin:
        admin.create_topics(
            {name: {"num_partitions": count, "replication_factor": 1} for name, count in ((topic, 1), (empty, 2))}
        )
    for count, more in ((1, 3), (3, 5), (5, None)):
        with KafkaProducer(bootstrap_servers=kafka_broker.bootstrap) as producer:
            for number in range(300):
                tick = encode_tick(Tick("run", number, count, 200)) if number % 3 == 0 else b"{}"
                producer.send(topic, value=tick, partition=0)
            producer.flush(10)
        if more is not None:
            with admin_client(kafka_broker.bootstrap) as admin:
                admin.create_partitions({topic: more})
    assert former_counts(settings, topic, 5) == (1, 3)
    assert former_counts(settings, empty, 2) == ()
    assert seems_to_have_grown_from(settings, topic) is None
    assert [check.status for check in (check_growth(settings, topic), check_growth(settings, empty))] == [Status.OK] * 2
    assert "from 1, 3 to 5 partitions" in check_growth(settings, topic).detail
