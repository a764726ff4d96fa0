"""Heartbeats that come without their bytes say what they said with them, or the batch ends by name."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heartwheel.engine.heartbeats.packer import Packer
from heartwheel.engine.heartbeats.repeats import BatchOf
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.runtime.map.packed import PayloadKind
from heartwheel.engine.shard import ShardLimits, heartbeats
from heartwheel.engine.shard.heartbeats import (
    REMEMBERED_BATCHES,
    Heartbeats,
    KnownHeartbeat,
    UnknownHeartbeatError,
    rest_of,
    rests_of,
)
from heartwheel.engine.shard.log import BatchLog
from heartwheel.engine.shard.pack import Pack
from heartwheel.engine.shard.sent_pack import decode_sent
from heartwheel.engine.shard.shard import Shard
from heartwheel.engine.time import Reading, ReadingsBuilder
from heartwheel.proof.testing import RUN, LogBuilder, ProducedRecord, by_group, frame_of, run_rules, until
from heartwheel.wire.event_codec import encode_event, fingerprint
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.verdicts import Verdict
from support.epoch_beats import EPOCHS_CONFIG, epoch_logs, migrate, migrating_logs, steady_beat, steady_epoch_logs
from support.heartbeat_logs import CONFIG, EXAMPLES, T0, beating_logs, cuts_of, heartbeat_logs

LATER = 30_000


class Job:
    """One shard and its map side, batch by batch, its state encoded and decoded between batches.

    Args:
        workers: how many pack.
        config: the rules'.
    """

    def __init__(self, workers: int = 1, config: CoordinatorConfig = CONFIG) -> None:
        self.packers = [Packer("beats", 1) for _ in range(workers)]
        self.verdicts: list[Verdict] = []
        self.packs: list[Pack] = []
        self.number = 0
        self.query = 0
        self.limits = ShardLimits()
        self._config = config
        self._blob = ""

    def pack(self, records: Sequence[ProducedRecord], worker: int = 0) -> tuple[list[Pack], list[Reading]]:
        """Let a worker pack the records of the next batch."""
        packer, readings = self.packers[worker], ReadingsBuilder((RUN,), 3_000)
        packer.begin(BatchOf(f"query {self.query}", self.number))
        rows = list(packer.pack(frame_of(records), readings)) if records else []
        return [decode_sent(data) for _, kind, data in rows if kind is PayloadKind.RECORDS], readings.readings()

    def batch(self, records: Sequence[ProducedRecord], worker: int = 0) -> None:
        """Run a batch whose records one worker has packed."""
        self.run(*self.pack(records, worker))

    def run(self, packs: list[Pack], readings: list[Reading]) -> None:
        """Run a batch."""
        self.packs = packs
        shard = self.shard()
        self.verdicts += shard.apply(packs, readings).verdicts
        self._blob = shard.encode()
        self.number += 1

    def shard(self) -> Shard:
        """Make the shard as it is after the last batch."""
        return Shard(coordinator=self._config, limits=self.limits, outage_min_ms=3_000, blob=self._blob)

    @property
    def without_bytes(self) -> int:
        """How many values of the last batch came without their bytes."""
        return sum(len(pack.fingerprints) - len(pack.bodies) for pack in self.packs)


def _run_anyhow(
    log: LogBuilder, cuts: Sequence[int], dice: Random, config: CoordinatorConfig = CONFIG
) -> tuple[Job, int]:
    """Run a log with workers that forget, tasks that are done again by anybody, and queries that start anew."""
    job, without = Job(workers=dice.randrange(1, 4), config=config), 0
    for start, stop in pairwise([0, *sorted(cuts), len(log.records)]):
        if dice.random() < 0.1:
            job.query += 1
        if dice.random() < 0.1:
            job.packers[dice.randrange(len(job.packers))] = Packer("beats", 1, remembered_max=4)
        by_partition: dict[int, list[ProducedRecord]] = {}
        for record in log.records[start:stop]:
            by_partition.setdefault(record.partition, []).append(record)
        packs, readings = [], []
        for records in by_partition.values():
            while dice.random() < 0.3:
                job.pack(records[: dice.randrange(1, len(records) + 1)], dice.randrange(len(job.packers)))
            found, read = job.pack(records, dice.randrange(len(job.packers)))
            packs += found
            readings += read
        job.run(packs, readings)
        without += job.without_bytes
    job.run([], until(_end(log), *({record.partition for record in log.records} or {0})))
    return job, without


def _end(log: LogBuilder) -> int:
    return max([T0, *(record.append_ms for record in log.records)]) + LATER


@pytest.mark.parametrize(
    ("logs", "config"),
    [
        pytest.param(heartbeat_logs(), CONFIG, id="events of all types"),
        pytest.param(beating_logs(), CONFIG, id="members that fall silent and come back"),
        pytest.param(st.one_of(epoch_logs(), steady_epoch_logs()), EPOCHS_CONFIG, id="groups that change protocol"),
        pytest.param(migrating_logs(), EPOCHS_CONFIG, id="classic members of consumer groups"),
    ],
)
@given(st.data(), st.integers(0, 2**32))
@settings(max_examples=EXAMPLES)
def test_p3_without_bytes_verdicts_are_those_of_the_rules(
    logs: st.SearchStrategy[LogBuilder], config: CoordinatorConfig, data: st.DataObject, seed: int
) -> None:
    """P3: whoever packs the events, and however often: per group the very list of the rules alone."""
    log = data.draw(logs)
    job, _ = _run_anyhow(log, data.draw(cuts_of(log)), Random(seed), config)
    assert by_group(job.verdicts) == by_group(run_rules(log, clock_ms=_end(log), config=config))


def _beats(
    *members: str, batch: int, kind: EventType = EventType.HEARTBEAT, generation_id: int = -1
) -> list[ProducedRecord]:
    """Make the records of one batch; a batch a second, a value a member."""
    log = LogBuilder()
    for member in members:
        event = Event(type=kind, group_id="g", member_id=member, generation_id=generation_id, session_timeout_ms=1_500)
        log.add(T0 + 1_000 * batch, event)
    log.tick(T0 + 1_000 * batch)
    return [record._replace(offset=100 * batch + at) for at, record in enumerate(log.records)]


def test_repeated_heartbeats_come_without_their_bytes() -> None:
    """From the second batch on the bytes of a member's heartbeat stay with the worker, and others' still come."""
    job = Job()
    came = []
    for batch in range(4):
        job.batch(_beats("a", "b", *("c" for _ in range(batch)), batch=batch))
        came.append((job.without_bytes, [len(pack.bodies) for pack in job.packs]))
    assert came == [(0, [2]), (2, [1]), (3, [0]), (3, [0])]


def test_a_batch_that_is_packed_again_has_the_bytes_of_what_is_new() -> None:
    """A task that fails and is done again by the same worker brings what it brought the first time."""
    job = Job()
    job.batch(_beats("a", batch=0))
    for _ in range(3):
        packs, readings = job.pack(_beats("a", "b", batch=1))
        assert [len(pack.bodies) for pack in packs] == [1]
    job.run(packs, readings)
    job.batch(_beats("a", "b", batch=2))
    assert job.without_bytes == 2


def test_another_query_and_another_worker_send_all_bytes() -> None:
    """What was sent counts for the query it was sent in, and for the worker that sent it."""
    job = Job(workers=2)
    came = []
    for batch, (query, worker) in enumerate([(0, 0), (0, 1), (0, 1), (1, 1), (1, 1)]):
        job.query = query
        job.batch(_beats("a", *("b" for _ in range(batch in (1, 4))), batch=batch), worker=worker)
        came.append((job.without_bytes, [len(pack.bodies) for pack in job.packs]))
    # In the last batch the worker has sent "b" before, but in another query.
    assert came == [(0, [1]), (0, [2]), (1, [0]), (0, [1]), (1, [1])]


@pytest.mark.parametrize("away", [1, REMEMBERED_BATCHES - 1, REMEMBERED_BATCHES, REMEMBERED_BATCHES + 1])
def test_who_is_gone_comes_back_without_bytes_for_as_long_as_the_shard_remembers(away: int) -> None:
    """A member that was expired meanwhile comes back by bytes that only the shard has, until those are sent again."""
    job = Job()
    job.batch(_beats("a", "b", batch=0))
    for batch in range(1, away):
        job.batch(_beats("b", batch=batch))
    before = len(job.verdicts)
    job.batch(_beats("a", "b", batch=away))
    assert job.without_bytes == (2 if away <= REMEMBERED_BATCHES else 1)
    came_back = [v for v in job.verdicts[before:] if "a" in v.joined]
    assert len(came_back) == (1 if away > 1 else 0)


def test_refused_heartbeats_are_refused_again_without_bytes() -> None:
    """A heartbeat that no rule accepts has no row, and is refused each time for what it says."""
    job = Job()
    job.limits = ShardLimits(members_per_group_max=1)
    refused = []
    for batch in range(5):
        packs, readings = job.pack(_beats("a", "b", batch=batch))
        shard = Shard(coordinator=CONFIG, limits=job.limits, outage_min_ms=3_000, blob=job._blob)
        refused += [(each.group_id, each.offset, each.value) for each in shard.apply(packs, readings).refused]
        job._blob, job.number, job.packs = shard.encode(), job.number + 1, packs
    assert job.without_bytes == 2
    value = _beats("b", batch=0)[0].value
    assert refused == [("g", 100 * batch + 1, value) for batch in range(5)]


def test_what_nobody_can_say_ends_the_batch_by_name() -> None:
    """A worker that remembers what the shard was never given is found out: nothing is guessed, the place is named."""
    job = Job()
    job.batch(_beats("a", batch=0))
    job._blob = ""  # a state of before
    with pytest.raises(UnknownHeartbeatError, match="offset 100 of partition 0 came without its bytes"):
        job.batch(_beats("a", batch=1))
    job.query += 1
    job.batch(_beats("a", batch=1))
    assert job.without_bytes == 0


def test_p6_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes that a shard keeps of who is gone are bounded; beyond, the batch ends by name."""
    value = _beats("m0", batch=0)[0].value or b""
    monkeypatch.setattr(heartbeats, "KEPT_BYTES_MAX", 2 * len(value))
    job = Job()
    job.batch(_beats("m0", "m1", "m2", "stays", batch=0))
    for batch in range(1, 5):
        job.batch(_beats("stays", batch=batch))
    packs, _ = job.pack(_beats("m0", "m1", "m2", batch=5))
    assert [len(pack.bodies) for pack in packs] == [0]
    with pytest.raises(UnknownHeartbeatError):
        job.batch(_beats("m0", "m1", "m2", batch=5))


def test_what_is_said_again_has_its_fingerprint() -> None:
    """What a row says of a heartbeat is all of it: the same fingerprint, whatever fields it has."""
    log = LogBuilder()
    event = Event(
        group_id="g",
        member_id="a",
        session_timeout_ms=1_500,
        client_id="c",
        client_host="/h",
        reason="none",
        api_version=4,
    )
    for t in (0, 100):
        log.add(T0 + t, event)
    log.add(T0 + 150, Event(type=EventType.COMMIT, group_id="g", member_id="a", client_host="/other"))
    log.tick(T0 + 200)
    job = Job()
    job.batch(log.records[:1])
    job.batch(log.records[1:3])
    assert job.without_bytes == 1
    shard = Shard(coordinator=CONFIG, limits=job.limits, outage_min_ms=3_000, blob=job._blob)
    (said,) = shard._loader.heartbeats(shard._members.used())
    assert said.event() == event
    assert fingerprint(said.event()) == int(shard._members["fingerprint"][0])


def test_records_that_wait_have_all_their_bytes() -> None:
    """A record waits for another partition, maybe for longer than heartbeats are kept: it is given its bytes."""
    job, shards = Job(), []
    for batch, partitions in enumerate(((0, 1), (0,))):
        packs, readings = [], []
        for partition in partitions:
            records = [record._replace(partition=partition) for record in _beats("a", batch=batch)]
            found, read = job.pack(records)
            packs += found
            readings += read
        job.packs = packs
        shards.append(Shard(coordinator=CONFIG, limits=job.limits, outage_min_ms=3_000, blob=job._blob))
        shards[-1].apply(packs, readings)
        job._blob, job.number = shards[-1].encode(), job.number + 1
    assert (job.without_bytes, shards[-1].waiting_count) == (1, 1)
    (pack,) = shards[-1]._waiting
    assert [pack.bodies[0]] == [_beats("a", batch=0)[0].value]


def test_only_heartbeats_come_without_bytes() -> None:
    """A request that is no heartbeat has no fingerprint to be known by, and always has its bytes."""
    job = Job()
    for batch in range(3):
        job.batch(_beats("a", batch=batch, kind=EventType.SYNC))
        assert [len(pack.bodies) for pack in job.packs] == [1]


def _answered(epoch: int, at_ms: int) -> list[ProducedRecord]:
    """Make the records of one batch of a consumer group: one heartbeat, and the tick."""
    log = LogBuilder()
    log.group_beat(T0 + at_ms, "g", "a", epoch, answer=max(epoch, 2))
    log.tick(T0 + at_ms)
    return log.records


def test_heartbeats_at_a_member_epoch_always_come_with_their_bytes() -> None:
    """Whether it is known or not, whichever query is running, and with nothing of it kept or stored."""
    job = Job(config=EPOCHS_CONFIG)
    for batch in range(8):
        job.query = batch // 4
        job.batch(_answered(min(batch, 1) * 2, 300 * batch))
        assert [(len(pack.bodies), len(pack.fingerprints)) for pack in job.packs] == [(1, 1)]
    shard = job.shard()
    assert not shard._heartbeats.state()
    assert b"heartbeat" not in b"".join(detail for _, detail in shard._members.text.read(shard._members.used()))


def test_a_classic_member_of_a_consumer_group_comes_without_its_bytes() -> None:
    """Its row says its heartbeat: the fast path knows it again, and so do the rules when the group is busy."""
    job, log = Job(config=EPOCHS_CONFIG), LogBuilder()
    now = migrate(log, members=3, classic={1, 2})
    without = []
    for batch in range(12):
        now += 200
        for member in range(3):
            steady_beat(log, now, member, members=3, classic={1, 2})
        if batch == 8:
            log.group_beat(now, "g", "another", 0, answer=5)
        log.tick(now)
        job.batch(log.records)
        without.append(job.without_bytes)
        log.records.clear()
        if batch in (7, 8):
            shard = job.shard()
            rows = shard._members.used()
            marks = [mark for mark in shard._members["fingerprint"][rows].tolist() if mark]
            said = [each.event() for each in shard._loader.heartbeats(rows) if each.rest]
            kept = [shard._heartbeats.event(mark) for mark in shard._heartbeats.state()]
            beats = [Event(group_id="g", member_id=name, generation_id=4) for name in ("m1", "m2")]
            assert sorted([*said, *filter(None, kept)], key=lambda event: event.member_id) == beats
            assert set(map(fingerprint, said)) <= set(marks)
            assert len(said) == (2 if batch == 7 else 0)
    assert without == [0, *[2] * 11]


def test_each_row_says_what_its_own_heartbeat_says() -> None:
    """Members whose first heartbeats the rules see in one batch are told apart by their fingerprints."""
    log, job = LogBuilder(), Job()
    events = [Event(group_id="g", member_id=f"m{i}", group_instance_id=f"i{i}") for i in range(3)]
    for event in events:
        log.add(T0, event)
    log.tick(T0)
    job.batch(log.records)
    shard = Shard(coordinator=CONFIG, limits=job.limits, outage_min_ms=3_000, blob=job._blob)
    rows = shard._members.used()
    said = [each.event() for each in shard._loader.heartbeats(rows)]
    assert sorted(said, key=lambda event: event.member_id) == events
    assert list(map(fingerprint, said)) == shard._members["fingerprint"][rows].tolist()


@given(
    group=st.text(min_size=1),
    member=st.text(min_size=1),
    client=st.none() | st.text(),
    instance=st.none() | st.text(),
    generation=st.integers(-1, 5),
    timeout=st.none() | st.integers(1, 10_000),
)
def test_a_row_spells_its_heartbeat_as_it_is_encoded(
    group: str, member: str, client: str | None, instance: str | None, generation: int, timeout: int | None
) -> None:
    """Put together from its ids and the rest, a heartbeat has the bytes that it has encoded, whatever stands in it."""
    event = Event(
        group_id=group,
        member_id=member,
        client_id=client,
        group_instance_id=instance,
        generation_id=generation,
        session_timeout_ms=timeout,
    )
    (rest,) = rests_of([event])
    said = KnownHeartbeat(group, member, rest)
    assert (rest_of(event), said.event(), said.value()) == (rest, event, encode_event(event))


def test_a_log_without_heartbeats_to_ask_wants_all_bytes() -> None:
    """Whoever reads packs alone is told by name of a value that has no bytes in them."""
    job = Job()
    job.batch(_beats("a", batch=0))
    packs, _ = job.pack(_beats("a", batch=1))
    with pytest.raises(UnknownHeartbeatError):
        BatchLog(packs, Heartbeats({})).event(0)
