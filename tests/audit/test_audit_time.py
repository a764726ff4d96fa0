"""The audit's time is that of the log: watermarks of partitions, ticks that are passed over, groups that have moved."""

from __future__ import annotations

import json

import msgspec
import pytest

from audit.timed_logs import CONFIG, OTHER_RUN, RUN, SESSION_MS, T0, Gone, TimedLog, audited, gone, group_at
from heartwheel.proof.audit import Audit, FindingKind
from heartwheel.proof.audit.partitions import home_of
from heartwheel.proof.audit.ticks import NOBODYS, AuditedTick, read_tick
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.partitioner import partition_of
from heartwheel.wire.tick import read_tick as read_tick_of_job

TICK = b'{"type":"tick","run":"a1","mono_ms":1,"partitions":12,"interval_ms":200}'


# Ticks


def test_a_tick_is_read_whatever_else_is_in_it() -> None:
    """A tick's fields may come in any order and with others; they are strings and whole numbers."""
    assert read_tick(TICK) == AuditedTick("a1", 12)
    assert read_tick(json.dumps({"new": [1], **json.loads(TICK)}, indent=1).encode()) == AuditedTick("a1", 12)


@pytest.mark.parametrize(
    "change",
    [
        {"run": None},
        {"run": 7},
        {"run": "r" * 65},
        {"mono_ms": -1},
        {"mono_ms": "1"},
        {"partitions": 1.5},
        {"partitions": 10**6 + 1},
        {"interval_ms": 2**53},
        {"interval_ms": None},
    ],
)
def test_a_tick_with_fields_that_do_not_fit_is_nobodys(change: dict[str, object]) -> None:
    """It is a tick all the same: it gives time, and is evidence of nothing."""
    assert read_tick(json.dumps(json.loads(TICK) | change).encode()) == NOBODYS


@pytest.mark.parametrize("name", ["run", "mono_ms", "partitions", "interval_ms", "type"])
@pytest.mark.parametrize("value", [None, "", "a1", 0, -1, 2**53, 2**63, 2**70, 1.5, True, [], {}, ...])
def test_the_audit_reads_a_tick_as_the_job_does(name: str, value: object) -> None:
    """Whatever stands in a field, in place of it or before it, or if it is absent, both take the tick for the same."""
    fields = json.loads(TICK)
    rest = {each: fields[each] for each in fields if each != name}
    forms = [json.dumps(rest).encode()]
    if value is not ...:
        forms += [json.dumps(rest | {name: value}).encode(), b'{"%s":%s,' % (name.encode(), json.dumps(value).encode())]
        forms[-1] += TICK[1:]
    for form in forms:
        mine, the_jobs = read_tick(form), read_tick_of_job(form)
        assert (mine and (mine.run, mine.partitions)) == (the_jobs and (the_jobs.run, the_jobs.partitions)), form


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"tick",
        b'"tick"',
        b'["tick"]',
        b'{"type":"ticks"}',
        b'{"type":["tick"]}',
        b'{"a":"tick"}',
        b'{"type":"tick"',
        b'{"type":"tick"}}',
        b"[" * 5_000 + b'"tick"',
    ],
)
def test_what_is_no_tick_is_none(value: bytes | None) -> None:
    """Only an object whose type is `tick` is a tick."""
    assert read_tick(value) is None


def test_ticks_are_neither_events_nor_rejects() -> None:
    """Ticks of anybody are passed over; what is too large, or of another unknown type, is a reject as ever."""
    log = TimedLog()
    log.tick(0)
    log.add(T0, b'{"type":"tick"}')
    log.add(T0, b'{"type":"tick","group_id":"g","member_id":"m"}')
    log.add(T0, b'{"type":"tock"}')
    log.add(T0, b'{"type":"tick","pad":"%s"}' % (b"x" * CONFIG.value_bytes_max))
    report = audited(log)
    assert (report.ticks, report.derived, report.faults) == (3, 0, {FindingKind.REJECT_MISSING: 2})
    assert sorted(finding.offset for finding in report.findings) == [3, 4]


# Watermarks


@pytest.mark.parametrize(("at_ms", "due"), [(SESSION_MS - 1, False), (SESSION_MS, True)])
@pytest.mark.parametrize("value", [TICK.replace(b"12", b"1"), b'{"type":"tick"}', b"garbage", None])
def test_any_record_of_its_partition_proves_that_a_deadline_has_passed(
    at_ms: int, value: bytes | None, *, due: bool
) -> None:
    """A verdict is due once the partition has a record at its deadline: a tick, garbage, a tombstone."""
    log = TimedLog()
    log.beats("a", 0)
    log.add(T0 + at_ms, value)
    assert gone(log) == ([Gone("a", SESSION_MS)] if due else [])


def test_a_partition_without_time_holds_its_own_groups_alone() -> None:
    """Where nothing comes nothing is due; in the partition beside it everything is."""
    log = TimedLog()
    here, there = group_at(0, partitions=2), group_at(1, partitions=2)
    log.beats("a", 0, group_id=here, partition=0)
    log.beats("b", 0, group_id=there, partition=1)
    log.ticks(200, 20_000, partition=1, partitions=2)
    assert gone(log) == [Gone("b", SESSION_MS)]
    assert audited(log).derived == 6  # of one the beginning, of the other the end, too


def test_effective_time_is_that_of_the_partition() -> None:
    """A record whose leader's clock is behind counts at the greatest append time before it, whoever wrote that."""
    log = TimedLog()
    log.add(T0 + 5_000, None)
    log.beats("a", 1_000)
    log.add(T0 + 5_000 + SESSION_MS - 1, None)
    log.add(T0 + 2_000, None)
    assert gone(log) == []
    log.add(T0 + 5_000 + SESSION_MS, None)
    report = audited(log)
    assert gone(log) == [Gone("a", 5_000 + SESSION_MS)]
    assert report.clamped == 2


def test_timers_of_a_millisecond_fire_before_a_record_of_it() -> None:
    """A heartbeat at the very deadline is late, one a millisecond before is not."""
    for at_ms, late in ((SESSION_MS, True), (SESSION_MS - 1, False)):
        log = TimedLog()
        log.beats("a", 0, at_ms)
        log.tick(SESSION_MS + 1)
        assert gone(log) == ([Gone("a", SESSION_MS)] if late else [])


# Groups in several partitions


GREW_MS = 6_000


def _grown(until_ms: int, *, last_there_ms: int) -> TimedLog:
    """Write a log of a topic that grows from one partition to two, where a member goes from 0 to 1."""
    group = group_at(1, partitions=2)
    log = TimedLog()
    log.beats("a", 0, 3_000, 5_900, group_id=group)
    log.ticks(200, GREW_MS)
    log.ticks(GREW_MS + 200, until_ms, partitions=2)
    log.beats("a", 9_000, 12_000, group_id=group, partition=1)
    log.tick(last_there_ms, partition=1, partitions=2)
    return log


def test_a_group_waits_for_the_partition_that_it_moves_to() -> None:
    """Once a tick has named more partitions a group is not judged before its new one has been read."""
    log = TimedLog()
    log.beats("a", 0, group_id=group_at(1, partitions=2))
    log.ticks(200, 20_000, partitions=2)
    assert gone(log) == []
    log.tick(SESSION_MS - 1, partition=1, partitions=2)
    assert gone(log) == []
    log.tick(SESSION_MS + 1, partition=1, partitions=2)
    assert gone(log) == [Gone("a", SESSION_MS)]


def test_a_group_that_has_moved_is_merged_by_time() -> None:
    """Heartbeats in the new partition keep a member alive, and its silence counts from the last of them."""
    assert gone(_grown(40_000, last_there_ms=12_500)) == []
    assert gone(_grown(40_000, last_there_ms=40_000)) == [Gone("a", 12_000 + SESSION_MS)]
    report = audited(_grown(40_000, last_there_ms=40_000))
    assert report.unsettled == 0


def test_equal_times_are_ordered_by_partition() -> None:
    """A group's records of one millisecond count in the order of their partitions."""
    group = group_at(1, partitions=2)
    joined = Event(group_id=group, member_id="a", session_timeout_ms=SESSION_MS)
    left = Event(type=EventType.LEAVE, group_id=group, member_id="a")
    for first, second, alive in ((joined, left, False), (left, joined, True)):
        log = TimedLog()
        log.event(1_000, first, partition=0)
        log.event(1_000, second, partition=1)
        for partition in (0, 1):
            log.tick(2_000 + SESSION_MS, partition=partition, partitions=2)
        assert gone(log) == ([Gone("a", 1_000 + SESSION_MS)] if alive else [])


def test_a_group_astray_is_put_aside() -> None:
    """Findings about a group that is in several partitions, although the topic has not grown, are counted apart."""
    group = group_at(0, partitions=3)
    log = TimedLog()
    for partition in range(3):
        log.tick(0, partition=partition, partitions=3)
    log.beats("a", 2_100, 2_500, group_id=group)
    log.beats("a", 2_900, group_id=group, partition=2)
    for partition in range(3):
        log.tick(20_000, partition=partition, partitions=3)
    report = audited(log)
    assert (report.ok, report.unsettled) == (True, report.derived)
    assert gone(log, msgspec.structs.replace(CONFIG, judge_strays=True)) == [Gone("a", 2_900 + SESSION_MS)]


def test_a_moved_group_was_in_both_homes_and_is_judged() -> None:
    """A group that went with the growth of its topic is no stray, however often the topic grew."""
    group = group_at(5, partitions=8, before=(1, 4))
    log = TimedLog()
    for count, partition, at_ms in ((4, home_of(group, 4), 0), (8, 5, 3_000)):
        for each in range(count):
            log.tick(at_ms, partition=each, partitions=count)
        log.beats("a", at_ms + 10, group_id=group, partition=partition)
    for each in range(8):
        for at_ms in (20_000, 30_001):
            log.tick(at_ms, partition=each, partitions=8, run=OTHER_RUN)
    assert gone(log, msgspec.structs.replace(CONFIG, runs=(RUN, OTHER_RUN))) == [Gone("a", 3_010 + SESSION_MS)]


def test_a_tick_that_names_partitions_that_are_not_there_is_forged() -> None:
    """No group waits for a partition that the topic has not."""
    log = TimedLog()
    log.beats("a", 0)
    log.ticks(200, 20_000, partitions=1)
    log.tick(20_200, partitions=1_000_000)
    log.ticks(20_400, 30_000, partitions=1)
    found = []
    for exist in (None, 1):
        audit = Audit(msgspec.structs.replace(CONFIG, judge_strays=True))
        if exist:
            audit.exist(exist)
        for record in log.records[:2] + log.records[-60:]:
            audit.event(record.append_ms, record.partition, record.offset, record.value)
        found.append(len(audit.finish().findings))
    assert found[0] < found[1]


@pytest.mark.parametrize("key", ["", "g", "ab", "abc", "abcd", "orders-17", "grüße", "群组"])
def test_keys_are_hashed_as_by_kafka(key: str) -> None:
    """The home of a group is the partition that Kafka's clients choose for its key, by a murmur2 of the audit's own."""
    assert [home_of(key, count) for count in (1, 4, 12, 100)] == [
        partition_of(key.encode(), count) for count in (1, 4, 12, 100)
    ]


# The end of the log


def test_a_clock_caps_what_is_due() -> None:
    """What the log shows and the job had not decided by then is pending, not missed."""
    log = TimedLog()
    log.beats("a", 0)
    log.tick(20_000)
    audit = Audit(CONFIG)
    for record in log.in_order():
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    at_first = {FindingKind.MISSED: 2}  # a group of one that began
    assert audit.finish(T0 + SESSION_MS - 1).faults == at_first
    assert audit.finish(T0 + SESSION_MS).faults == audit.finish().faults == {FindingKind.MISSED: 4}


def test_a_moment_is_rounded_up_to_the_tick_of_the_wheel() -> None:
    """The job notices a deadline at the end of its tick of the wheel: until then it is pending."""
    config = msgspec.structs.replace(CONFIG, tick_ms=100)
    for at_ms, due in ((SESSION_MS + 50, False), (SESSION_MS + 101, True)):
        log = TimedLog()
        log.beats("a", 1)
        log.tick(at_ms)
        assert bool(gone(log, config)) == due


def test_who_is_gone_makes_room_before_a_record_is_weighed() -> None:
    """P6: a reject as `shard_full` is believed of a member that has expired by then: it is a stranger by now."""
    log = TimedLog()
    log.beats("a", 0)
    log.beats("a", SESSION_MS + 100)
    audit = Audit(CONFIG)
    audit.rejected(0, 1, "shard_full")
    for record in log.in_order():
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    assert FindingKind.REJECT_FORGED not in audit.finish().faults
