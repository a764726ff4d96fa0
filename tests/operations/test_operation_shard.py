"""Shards of operations: any cut, any interleaving of partitions, any restart gives the outcomes of the reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heartwheel.engine.operations import Ending, Needs, OperationEvent, OperationLimits, OperationShard, outcome_id
from heartwheel.engine.shard import CorruptBlobError, UnknownBlobVersionError
from heartwheel.engine.shard.frame import encode_frame
from support.heartbeat_logs import EXAMPLES
from support.operation_logs import (
    LATER_MS,
    LIMITS,
    T0,
    OperationRecord,
    Reference,
    Shards,
    done,
    fetch,
    finished,
    mark,
    operation_logs,
    packets_of,
    plain,
    produce,
    watch,
)

END = T0 + 10 * LATER_MS


def run(
    *rows: tuple[int, OperationEvent] | tuple[int, OperationEvent, int], shards: int = 3
) -> list[tuple[str, str, int]]:
    """Run a log in one batch, and give (operation, ending, ms after the begin) of each outcome."""
    log = [OperationRecord(T0 + row[0], row[2] if len(row) > 2 else 0, row[1]) for row in rows]
    job = Shards(log, shards)
    job.batch({p: len(log) for p in job.left()}, END)
    assert job.outcomes() == Reference().run(log, END)
    return [(each.operation_id, each.ending, each.time_ms - T0) for each in job.outcomes()]


@given(operation_logs(), st.integers(1, 3), st.data())
@settings(max_examples=3 * EXAMPLES)
def test_p3_any_cut_and_any_restart_give_the_outcomes_of_the_reference(
    log: list[OperationRecord], shards: int, data: st.DataObject
) -> None:
    """P3: batches of any part of each partition, catching up or live, a restart after each: the same outcomes."""
    job = Shards(log, shards)
    while job.left():
        left = {p: len(rows) for p, rows in job.left().items()}
        live = data.draw(st.booleans())
        # In catch-up each partition with a backlog is read from; a live batch may meet any part of any partition.
        take = {p: data.draw(st.integers(0 if live else 1, n)) for p, n in left.items()}
        clock_ms = job.unread_from_ms(take) - data.draw(st.sampled_from([0, 1, 500])) if live else None
        job.batch(take, clock_ms)
    job.batch({}, END)
    reference = Reference()
    assert job.outcomes() == reference.run(log, END)
    duplicates = [each for each in job.refused if each.cause == "duplicate_operation"]
    assert len(duplicates) == len(job.refused) == reference.duplicates


@given(operation_logs(), st.integers(1, 4))
@settings(max_examples=EXAMPLES)
def test_p3_every_operation_ends_exactly_once(log: list[OperationRecord], shards: int) -> None:
    """P3: one outcome for each watch that was accepted, each under an id of its own."""
    job = Shards(log, shards)
    job.batch({p: len(log) for p in job.left()}, END)
    watches = sum(record.event.type == "watch" for record in log)
    ids = [outcome_id(each.operation_id, each.watched_ms) for each in job.ended]
    assert len(ids) == len(set(ids)) == watches - len(job.refused)


def test_an_operation_that_watches_keys_of_all_shards_ends_once() -> None:
    """Keys that hash to every shard, completed at once in every partition: one outcome, by the first completion."""
    keys = [f"key-{n}" for n in range(20)]
    log = [OperationRecord(T0, 0, watch("op", *keys))]
    log += [OperationRecord(T0 + 5, n % 4, done(key)) for n, key in enumerate(keys)]
    job = Shards(log, 8)
    job.batch(dict.fromkeys(job.left(), 100), END)
    assert [(each.ending, each.completed_by) for each in job.ended] == [(Ending.COMPLETED, "key-0")]


@pytest.mark.parametrize(("at_ms", "ending"), [(999, "completed"), (1_000, "expired"), (1_001, "expired")])
@pytest.mark.parametrize("how", [done("k"), finished("op"), mark("k", 1)])
def test_a_completion_at_the_deadline_is_late(how: OperationEvent, at_ms: int, ending: str) -> None:
    """An operation waits while now < deadline: at T - 1 it completes, at T and T + 1 it has expired at T."""
    begin = produce("op", {"k": 1}) if how.type == "high_watermark" else watch("op", "k")
    assert run((0, begin), (at_ms, how)) == [("op", ending, min(at_ms, 1_000))]


@pytest.mark.parametrize(
    ("watched", "completed", "ending"),
    [((10, 0), (10, 1), "completed"), ((10, 1), (10, 0), "expired"), ((10, 1), (11, 0), "completed")],
)
def test_before_means_append_time_then_partition(
    watched: tuple[int, int], completed: tuple[int, int], ending: str
) -> None:
    """A completion counts for a watch before it: by append time, at the same millisecond by partition."""
    rows = [(watched[0], watch("op", "k"), watched[1]), (completed[0], done("k"), completed[1])]
    assert [each[1] for each in run(*rows)] == [ending]


def test_equal_times_wait_for_every_partition() -> None:
    """A watch is read before a completion of the same millisecond that stands before it: it was still too early."""
    log = [OperationRecord(T0 + 10, 1, watch("op", "k")), OperationRecord(T0 + 10, 0, done("k"))]
    job = Shards(log, 1)
    job.batch({1: 1}, T0 + 10)
    job.batch({0: 1}, END)
    assert [each.ending for each in job.ended] == [Ending.EXPIRED]


def test_c5_time_never_goes_back_within_a_partition() -> None:
    """C5: append time steps back at a change of leader, right where the log is cut: the newest time so far counts."""
    log = [OperationRecord(T0 + 500, 0, done("x")), OperationRecord(T0 + 493, 0, watch("op", "k"))]
    for cuts in ([2], [1, 1]):
        job = Shards(log, 1)
        for records in cuts:
            job.batch({0: records}, T0 + 400)
        job.batch({}, END)
        assert [each.time_ms - T0 for each in job.ended] == [1_500]


def test_a_completion_before_the_watch_does_not_count_but_a_high_watermark_does() -> None:
    """What happened to a key before the watch is over; how far a partition is replicated is remembered."""
    outcomes = run((0, done("k")), (0, mark("t-0", 5)), (1, watch("op", "k")), (1, produce("write", {"t-0": 5})))
    assert outcomes == [("op", "expired", 1_001), ("write", "completed", 1)]


def test_expiry_names_what_lacks() -> None:
    """Of three keys one came, of two partitions one was replicated: the others are named."""
    log = [
        OperationRecord(T0, 0, watch("all", "a", "b", "c", needs=Needs.ALL)),
        OperationRecord(T0, 0, produce("write", {"t-0": 5, "t-1": 9})),
        OperationRecord(T0, 0, fetch("read", {"t-0": 10, "t-1": 0}, bytes_min=100)),
        OperationRecord(T0 + 1, 1, done("b")),
        OperationRecord(T0 + 2, 1, mark("t-0", 5, 60)),
        OperationRecord(T0 + 3, 1, mark("t-1", 8)),
    ]
    job = Shards(log, 4)
    job.batch(dict.fromkeys(job.left(), 100), END)
    by_id = {each.operation_id: each for each in job.ended}
    assert {each.ending for each in job.ended} == {Ending.EXPIRED}
    assert by_id["all"].lacking == ("a", "c")
    assert by_id["write"].lacking == ("t-1",)
    assert (by_id["read"].lacking, by_id["read"].bytes_available) == (("t-1",), 50)


def test_the_first_key_completes_unless_all_are_needed() -> None:
    """Any of the keys completes an operation; one that needs all completes with the last."""
    rows = [(0, watch("any", "a", "b")), (0, watch("all", "a", "b", needs=Needs.ALL)), (1, done("a")), (2, done("b"))]
    assert run(*rows) == [("all", "completed", 2), ("any", "completed", 1)]


def test_a_settled_partition_stays_settled() -> None:
    """A write whose partitions are replicated one after the other completes, however long ago the first was done."""
    log = [(0, mark("t-0", 5)), (2_000, produce("op", {"t-0": 5, "t-1": 1}, timeout_ms=4_000)), (5_500, mark("t-1", 1))]
    assert run(*log) == [("op", "completed", 5_500)]


def test_an_id_is_refused_until_it_is_forgotten() -> None:
    """The same id again is refused while it waits and while its end is remembered; then it is another operation."""
    log = [
        OperationRecord(T0 + at_ms, 0, event)
        for at_ms, event in (
            (0, watch("op", "k")),
            (1, watch("op", "other")),
            (2, done("k")),
            (2 + LIMITS.remembered_ms - 1, watch("op", "k")),
            (2 + LIMITS.remembered_ms, watch("op", "k")),
        )
    ]
    job = Shards(log, 1)
    job.batch({0: len(log)}, END)
    assert [(each.cause, each.entry.offset, each.everywhere) for each in job.refused] == [
        ("duplicate_operation", 1, False),
        ("duplicate_operation", 3, False),
    ]
    assert [(each.ending, each.time_ms - T0) for each in job.ended] == [
        (Ending.COMPLETED, 2),
        (Ending.EXPIRED, 2 + LIMITS.remembered_ms + 1_000),
    ]


def test_p5_a_backlog_is_not_silence() -> None:
    """P5: while catching up, an operation does not expire before the partition with its completion was read so far."""
    log = [OperationRecord(T0, 0, watch("op", "k")), OperationRecord(T0 + 900, 1, done("k"))]
    log += [OperationRecord(T0 + 50_000 + n, 0, done("x")) for n in range(3)]
    log.append(OperationRecord(T0 + 60_000, 1, done("y")))
    job = Shards(log, 2)
    job.batch({0: 3, 1: 1}, None)
    assert job.ended == []
    job.batch({0: 1, 1: 1}, None)
    assert [(each.ending, each.time_ms - T0) for each in job.ended] == [(Ending.COMPLETED, 900)]


def test_p6_limits_refuse_by_name() -> None:
    """P6: operations, high watermarks and records over the limit are refused with their cause, each reported once."""
    limits = OperationLimits(operations_max=2, watermarks_max=1, waiting_max=2, timeout_ms_max=4_000, remembered_ms=10)
    log = [OperationRecord(T0, 0, watch(f"op-{n}", "k")) for n in range(3)]
    log += [OperationRecord(T0, 0, mark(f"t-{n}", 1)) for n in range(2)]
    log += [OperationRecord(T0 + 50, 0, done(f"k-{n}")) for n in range(4)]
    job = Shards(log, 1, limits)
    job.batch({0: len(log)}, T0 + 50)
    assert [(each.cause, each.entry.offset, each.everywhere) for each in job.refused] == [
        ("shard_full", 2, False),
        ("shard_full", 4, True),
        ("shard_full", 7, True),
        ("shard_full", 8, True),
    ]


def test_p6_what_is_forgotten_makes_room() -> None:
    """P6: ended operations and old high watermarks give their place to new ones, to the millisecond."""
    limits = OperationLimits(operations_max=1, watermarks_max=1, timeout_ms_max=100, remembered_ms=10)
    steps = [(0, watch("a", "k", timeout_ms=100)), (0, mark("t-0", 1)), (109, watch("b", "k")), (109, mark("t-1", 1))]
    steps += [(110, watch("c", "k", timeout_ms=100)), (110, mark("t-2", 1))]
    log = [OperationRecord(T0 + at_ms, 0, event) for at_ms, event in steps]
    job = Shards(log, 1, limits)
    job.batch({0: len(log)}, END)
    assert [each.entry.offset for each in job.refused] == [2, 3]
    assert [each.operation_id for each in job.ended] == ["a", "c"]


def test_records_from_behind_the_frontier_are_late_and_counted() -> None:
    """A broker's clock that is off by more than the allowance: the record counts at the frontier, and is counted."""
    shard = OperationShard(LIMITS, clock_ms=T0 + 500)
    (packet,) = packets_of(0, 0, [OperationRecord(T0, 0, watch("op", "k"))], 1)
    result = shard.apply([packet], T0 + 2_000)
    assert result.counts["records_late"] == 1
    assert [plain(each).time_ms for each in result.ended] == [T0 + 1_500]


def test_a_clock_that_steps_back_is_held() -> None:
    """C1: the frontier never goes back; the step is counted."""
    shard = OperationShard(LIMITS, clock_ms=T0 + 500)
    result = shard.apply([], T0)
    assert (shard.clock_ms, result.counts["clock_stepped_back"]) == (T0 + 500, 1)


def test_w7_a_bad_blob_is_refused_by_name() -> None:
    """W7: random bytes, a cut blob, foreign content and a newer version each say what they are."""
    blob = OperationShard(LIMITS).encode()
    for bad in ("random!", blob[: len(blob) // 2], encode_frame(1, {"members": ""})):
        with pytest.raises(CorruptBlobError):
            OperationShard(LIMITS, blob=bad)
    with pytest.raises(UnknownBlobVersionError, match="version 99"):
        OperationShard(LIMITS, blob=encode_frame(99, {}))


def test_rows_of_forgotten_operations_are_used_again() -> None:
    """A thousand short operations one after the other need the room of those that are remembered at a time."""
    log = [OperationRecord(T0 + 1_000 * n, 0, watch(f"op-{n}", "k", timeout_ms=500)) for n in range(1_000)]
    job = Shards(log, 1)
    for _ in range(100):
        job.batch({0: 10}, T0 + 1_000 * (job._read.get(0, 0) + 9) + 1)
    shard = OperationShard(LIMITS, clock_ms=job.clocks_ms[0], blob=job._blobs[0])
    assert len(job.ended) + shard.waiting_count == 1_000
    assert shard._operations.table.rows < 20
