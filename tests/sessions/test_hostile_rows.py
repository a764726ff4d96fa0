"""What rows may be: without a key, without a time, of the future, too many, too long, with equal hashes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from heartwheel import sessions
from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.runtime.state.state_function import StateVersionError, state_function
from heartwheel.engine.sessions import clock
from heartwheel.engine.sessions.advance import SessionsChangedError, advance_sessions, frame_of_sessions
from heartwheel.engine.sessions.codec import decode_sessions
from heartwheel.engine.sessions.packer import UNTIMED_MS, RowKind
from heartwheel.engine.shard.frame import CorruptBlobError, UnknownBlobVersionError
from sessions.oracle import Seen
from sessions.running import Shards, config_of, frame_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BATCH_MS = 10**9


def at(seconds: float) -> datetime:
    """Return a time after noon."""
    return NOON + timedelta(seconds=seconds)


def _events(rows: list[dict[str, Any]]) -> list[tuple[Any, str]]:
    return [(row["key"], row["event"]) for row in rows]


def test_one_wrong_clock_ends_no_other_session() -> None:
    """An event of the year 9999 counts as seen now, one of an hour ahead too; neither moves the clock."""
    rows = [(at(second), [{"key": "a", "at": at(second)}, {"key": "b", "at": far}])
            for second, far in ((0, at(0)), (5, datetime(9999, 1, 1, tzinfo=UTC)), (10, at(3610)))]  # fmt: skip
    found = sessions.test(rows, key="key", timeout="30 seconds", time="at", until=at(39))
    assert [(row["key"], row["event"]) for row in found] == [("a", "came"), ("b", "came")]
    found = sessions.test(rows, key="key", timeout="30 seconds", time="at", until=at(60))
    assert [(row["key"], row["event"], row["at"]) for row in found[2:]] == [
        ("a", "gone", at(40)),
        ("b", "gone", at(40)),
    ]


def test_an_event_a_little_ahead_waits_and_moves_nothing_beyond_the_batch() -> None:
    """A clock that is seven seconds ahead moves the time to that of the batch at most."""
    runner = Shards(config_of(timeout_ms=1_000))
    runner.batch([frame_of([Seen(10_000, "a"), Seen(17_000, "b")])], 10_000)
    assert runner.now_ms == 10_000
    assert runner.figures[-1]["waiting"] == 1


def test_rows_that_say_nothing_are_counted() -> None:
    """Rows without a key, or with a number that is none, without a time, or without a timeout."""
    rows: list[dict[str, Any]] = [
        {"key": "a", "at": at(0), "t": 30.0},
        {"key": None, "at": at(1), "t": 30.0},
        {"key": "b", "at": None, "t": 30.0},
        {"key": "c", "at": at(1), "t": 0.0},
        {"key": "c", "at": at(1), "t": None},
        *({"key": "c", "at": at(1), "t": wrong} for wrong in (-1.0, float("nan"), float("inf"), 1e300)),
    ]
    found = sessions.test(rows, key="key", timeout="t", time="at")
    assert [(row["key"], row["event"]) for row in found] == [("a", "came"), ("b", "came")]
    found = sessions.test(
        [{"key": float("nan"), "at": at(0)}, {"key": 1.5, "at": at(0)}], key="key", timeout="30s", time="at"
    )
    assert [row["key"] for row in found] == [1.5]
    runner = Shards(config_of())
    runner.batch(
        [frame_of([Seen(5, "a"), Seen(UNTIMED_MS, "b"), Seen(4, "c"), Seen(4, "d")],
                  kinds=[RowKind.EVENT, RowKind.UNTIMED, RowKind.UNKEYED, RowKind.UNTIMEOUTED])], BATCH_MS,
    )  # fmt: skip
    figures = runner.figures[-1]
    assert {name: figures[name] for name in ("events", "untimed", "unkeyed", "untimeouted", "alive")} == {
        "events": 2, "untimed": 1, "unkeyed": 1, "untimeouted": 1, "alive": 2,
    }  # fmt: skip


def test_an_event_without_a_time_before_any_time_is_counted_as_refused() -> None:
    """It counts as seen now, and nobody knows when that is."""
    runner = Shards(config_of())
    assert runner.batch([frame_of([Seen(UNTIMED_MS, "a")])], BATCH_MS) == []
    assert runner.figures[-1]["refused"] == 1
    assert runner.now_ms is None


def test_keys_beyond_the_limit_are_refused_and_others_unharmed() -> None:
    """A full table takes no new key, counts their events, and goes on with those that it has."""
    runner = Shards(config_of(keys_max=2))
    runner.batch([frame_of([Seen(1_000, "a"), Seen(1_000, "b")])], BATCH_MS)
    rows = runner.batch([frame_of([Seen(1_500, "c"), Seen(1_600, "a"), Seen(1_700, "c")])], BATCH_MS)
    assert rows == []
    assert runner.figures[-1]["refused"] == 2
    assert runner.figures[-1]["alive"] == 2
    # One leaves, is forgotten, and there is room again.
    runner = Shards(config_of(keys_max=1, forget_ms=100))
    runner.batch([frame_of([Seen(1_000, "a", timeout_ms=50)])], BATCH_MS)
    runner.batch([frame_of([Seen(2_000, "b")])], BATCH_MS)
    assert _events(runner.batch([frame_of([Seen(2_001, "b")])], BATCH_MS)) == [("b", "came")]


def test_long_keys_are_kept_or_refused() -> None:
    """Keys of 10 KiB come back whole; where their bytes are too many they are refused."""
    long = "k" * 10_240
    runner = Shards(config_of())
    rows = runner.batch([frame_of([Seen(1_000, long, timeout_ms=50), Seen(2_000, "b")])], BATCH_MS)
    assert (long, "gone") in _events(rows)
    runner = Shards(config_of(bytes_max=50_000))
    runner.batch([frame_of([Seen(1_000, f"{long}{number}") for number in range(10)])], BATCH_MS)
    assert 0 < runner.figures[-1]["alive"] < 10
    assert runner.figures[-1]["refused"] == 10 - runner.figures[-1]["alive"]


def test_short_keys_beside_long_ones_fill_the_room_and_no_more() -> None:
    """What there is room for is told by the new keys themselves, and not by what else is in the batch."""
    runner = Shards(config_of(bytes_max=50_000))
    known = [Seen(1_000, f"{number}") for number in range(500)]
    runner.batch([frame_of(known)], BATCH_MS)
    runner.batch([frame_of([*known, *(Seen(1_100, f"{number}" * 10_240) for number in range(10))])], BATCH_MS)
    assert 500 < runner.figures[-1]["alive"] < 505
    assert runner.figures[-1]["refused"] == 510 - runner.figures[-1]["alive"]


def test_carried_values_that_grow_are_bounded() -> None:
    """A known key whose new value has no room keeps the old one, is counted and lives on; a shorter one is taken."""

    def saying(second: int, length: int) -> pa.RecordBatch:
        frame = frame_of([Seen(second * 1_000, key, carry=length, timeout_ms=10_000) for key in "abcd"])
        notes = pa.array([key * length for key in "abcd"])
        return frame.set_column(frame.schema.get_field_index("c0"), "c0", notes)

    runner = Shards(config_of(bytes_max=25_000))
    runner.batch([saying(1, 10)], BATCH_MS)
    assert runner.batch([saying(5, 10_000)], BATCH_MS) == []
    assert runner.figures[-1] == {**runner.figures[-1], "alive": 4, "uncarried": 2}
    ended = {**runner.states}
    rows = runner.batch([frame_of([Seen(16_000, "e")])], BATCH_MS)
    assert sorted(len(row["carry"]) for row in rows if row["event"] == "gone") == [10, 10, 10_000, 10_000]
    runner.states.update(ended)
    runner.batch([saying(6, 20)], BATCH_MS)
    assert runner.figures[-1]["uncarried"] == 0
    rows = runner.batch([frame_of([Seen(17_000, "e")])], BATCH_MS)
    assert {len(row["carry"]) for row in rows if row["event"] == "gone"} == {20}


def test_two_keys_of_one_hash_are_not_mixed_up() -> None:
    """The second is refused, whether both are new, or the first one is known."""

    def same_hash(events: list[Seen]) -> pa.RecordBatch:
        frame = frame_of(events)
        place = frame.schema.get_field_index("key")
        return frame.set_column(place, "key", pa.array([7] * len(events), pa.int64()))

    runner = Shards(config_of())
    assert len(runner.batch([same_hash([Seen(1_000, "a"), Seen(1_000, "b")])], BATCH_MS)) == 1
    assert runner.figures[-1]["refused"] == 1
    runner.batch([same_hash([Seen(1_100, "c")])], BATCH_MS)
    assert runner.figures[-1] == {**runner.figures[-1], "refused": 1, "alive": 1}


@pytest.mark.parametrize(
    "key",
    [b"\x00\xff", Decimal("1.50"), 2**62, datetime(2026, 1, 1, tzinfo=UTC), "", "Größe 🚀", True],
)
def test_keys_of_any_type_come_back_as_they_were(key: object) -> None:
    """So do carried values, nested ones too."""
    value = {"site": "a", "tags": ["x", None]}
    rows = [{"key": key, "two": 1, "at": at(0), "value": value}]
    (found,) = sessions.test(rows, key=["key", "two"], timeout="30s", time="at", carry=["value"])
    assert (found["key"], found["two"], found["value"]) == (key, 1, value)


def test_events_that_wait_are_bounded() -> None:
    """Beyond the limit the oldest are applied before the clock has reached them, and counted."""
    runner = Shards(config_of(waiting_max=10))
    runner.batch([frame_of([Seen(0, "x", partition=1), Seen(0, "y")])], BATCH_MS)
    runner.batch([frame_of([Seen(100 + number, f"k{number}") for number in range(30)])], BATCH_MS)
    assert runner.figures[-1]["waiting"] == 10
    assert runner.figures[-1]["released"] == 20
    assert runner.now_ms == 0


def test_events_that_wait_are_bounded_by_their_bytes() -> None:
    """Long keys that wait are applied before the clock has reached them, and counted, before they fill the memory."""
    runner = Shards(config_of(bytes_max=50_000))
    runner.batch([frame_of([Seen(1_000, "a"), Seen(1_000, "b", partition=1)])], BATCH_MS)
    few = [Seen(2_000 + number, f"{number}" * 1_000) for number in range(9)]
    assert runner.batch([frame_of(few)], BATCH_MS) == []
    assert (runner.figures[-1]["waiting"], runner.figures[-1]["released"]) == (9, 0)
    more = [Seen(3_000 + number, f"{number}" * 10_000) for number in range(9)]
    assert 9 < len(runner.batch([frame_of(more)], BATCH_MS)) < 18  # there is room for some of the longer keys
    assert (runner.figures[-1]["waiting"], runner.figures[-1]["released"]) == (0, 18)


def test_a_stop_of_any_length_is_no_silence() -> None:
    """In processing time a minute or a day without the query ends nobody; time goes on from there."""
    for stop in (timedelta(minutes=1), timedelta(days=1)):
        begin = [(at(second), [{"key": "a"}]) for second in range(5)]
        again = NOON + timedelta(seconds=4) + stop
        rows = [*begin, (again, []), (again + timedelta(seconds=1), [{"key": "b"}])]
        assert [row["event"] for row in sessions.test(rows, key="key", timeout="10s")] == ["came", "came"]
        found = sessions.test(rows, key="key", timeout="10s", until=timedelta(seconds=20))
        assert [(row["key"], row["event"]) for row in found[2:]] == [("a", "gone"), ("b", "gone")]


@pytest.mark.parametrize("stop_s", [60, 86_400])
def test_a_stop_of_any_length_is_no_silence_in_event_time(stop_s: int) -> None:
    """Keys beat on meanwhile: their backlog is read a partition after the other, and nobody is gone by the order."""
    step = stop_s // 60

    def beats(device: str, first: int, last: int) -> list[dict[str, Any]]:
        partition = "ab".index(device)
        return [{"key": device, "at": at(second), "partition": partition} for second in range(first, last, step)]

    before = [(at(second), [*beats("a", second, second + 1), *beats("b", second, second + 1)]) for second in range(5)]
    again, every = 4 + stop_s, 20 * step
    pieces = [beats(device, 5, again)[start : start + 20] for device in "ab" for start in range(0, 60, 20)]
    backlog = [(at(again + number / 2), piece) for number, piece in enumerate(pieces)]
    arguments: dict[str, Any] = {"key": "key", "timeout": f"{every} seconds", "time": "at", "idle": "10 seconds"}
    found = sessions.test([*before, *backlog], **arguments)
    assert [(row["key"], row["event"]) for row in found] == [("a", "came"), ("b", "came")]
    alone = sessions.test([*before, *backlog[:3], (at(again + 60), [])], **arguments, until=at(again + 180 + 3 * every))
    assert ("b", "gone", at(4 + every)) in [(row["key"], row["event"], row["at"]) for row in alone]


def test_a_key_that_is_heard_after_a_late_batch_was_not_silent() -> None:
    """In processing time a key came at some time since the last batch; of long batches a stop is hard to tell."""
    times = [0, 16, 21, 36, 38]
    rows = [(at(second), [{"key": "a"}, *([{"key": "b"}] if second < 30 else [])]) for second in times]
    found = sessions.test(rows, key="key", timeout="8s", emit=["gone", "back"])
    assert [(row["key"], row["event"]) for row in found] == [("b", "gone")]
    ended = [(moment, [{**row, "bye": moment == at(16)} for row in batch]) for moment, batch in rows]
    found = sessions.test(ended, key="key", timeout="8s", ends="bye", emit=["gone"])
    assert [(row["key"], row["reason"]) for row in found] == [("a", "ended"), ("b", "ended"), ("b", "timeout")]


@pytest.mark.parametrize(("before_ms", "after_ms"), [(1_000, 3_000), (3_000, 1_000)])
def test_a_query_that_is_started_with_another_timeout(before_ms: int, after_ms: int) -> None:
    """The new one counts from the next event of a key on, even if it has many in each batch."""
    runner = Shards(config_of(timeout_ms=before_ms))
    runner.batch([frame_of([Seen(1_000, "a")])], BATCH_MS)
    runner.config = config_of(timeout_ms=after_ms)
    rows = runner.batch([frame_of([Seen(1_100, "a"), Seen(1_200, "a"), Seen(3_900, "b")])], BATCH_MS)
    gone = [(row["key"], round(row["at"].timestamp() * 1000)) for row in rows if row["event"] == "gone"]
    assert gone == ([] if after_ms == 3_000 else [("a", 2_200)])


def test_a_shorter_timeout_ends_sessions_between_events_of_a_batch() -> None:
    """What an event meets is the deadline that the event before it has set."""
    runner = Shards(config_of(timeout_ms=3_000))
    runner.batch([frame_of([Seen(1_000, "a")])], BATCH_MS)
    runner.config = config_of(timeout_ms=1_000)
    rows = runner.batch([frame_of([Seen(1_100, "a"), Seen(2_900, "a")])], BATCH_MS)
    assert _events(rows) == [("a", "gone"), ("a", "back")]


def test_a_driver_whose_clock_steps_back_ends_nobody() -> None:
    """The clock of a shard stays, and goes on by what passes from then on."""
    rows = [(at(second), [{"key": "a"}]) for second in (100, 101, 102, 0, 1, 2)]
    assert [row["event"] for row in sessions.test(rows, key="key", timeout="5s")] == ["came"]
    found = sessions.test(rows, key="key", timeout="5s", until=timedelta(seconds=10))
    assert [(row["event"], row["at"]) for row in found] == [("came", at(100)), ("gone", at(109))]


def test_an_idle_partition_holds_back_nothing() -> None:
    """After `idle` of running time it is left out; when all are idle, the running query is the clock."""
    rows = [(at(0), [{"key": "a", "at": at(0), "partition": 0}, {"key": "b", "at": at(0), "partition": 1}])]
    rows += [(at(second), [{"key": "a", "at": at(second), "partition": 0}]) for second in range(1, 40)]
    found = sessions.test(rows, key="key", timeout="5s", time="at", idle="20s", emit=["gone"])
    assert [(row["key"], row["at"]) for row in found] == [("b", at(5))]
    found = sessions.test(rows, key="key", timeout="5s", time="at", idle="20s", emit=["gone"], until=at(70))
    assert [(row["key"], row["at"]) for row in found] == [("b", at(5)), ("a", at(44))]


def test_the_clock_waits_for_late_events_if_told_to() -> None:
    """With `wait` an event that comes three seconds too late keeps its key alive."""
    batches = [
        (at(0), [{"key": "a", "at": at(0)}]),
        (at(12), [{"key": "b", "at": at(12)}]),
        (at(12), [{"key": "a", "at": at(9)}]),
    ]
    late = sessions.test(batches, key="key", timeout="10s", time="at")
    assert [(row["key"], row["event"], row["reason"]) for row in late] == [
        ("a", "came", None),
        ("a", "back", "late"),
        ("a", "gone", "timeout"),
        ("b", "came", None),
    ]
    waited = sessions.test(batches, key="key", timeout="10s", time="at", wait="3s", emit=["gone", "back"])
    assert waited == []


def test_a_silent_source_ends_nobody_with_an_outage() -> None:
    """In processing time: without `outage` all are gone, with it they begin again when rows return."""
    rows = [(at(second), [{"key": "a"}] if second < 3 or second > 60 else []) for second in range(64)]
    assert "gone" in [row["event"] for row in sessions.test(rows, key="key", timeout="10s")]
    assert [row["event"] for row in sessions.test(rows, key="key", timeout="10s", outage="20s")] == ["came"]


def test_forgotten_keys_leave_the_state() -> None:
    """A thousand keys that were once seen leave nothing behind, and the others stay as they are."""
    runner = Shards(config_of(forget_ms=1_000))
    runner.batch([frame_of([Seen(1_000, f"old{number}", timeout_ms=100) for number in range(1_000)])], BATCH_MS)
    size = len(runner.states[0].blob)
    runner.batch([frame_of([Seen(1_500, "a", carry=5, timeout_ms=10_000)])], BATCH_MS)
    rows = runner.batch([frame_of([Seen(3_000, "b")])], BATCH_MS)
    assert runner.figures[-1] == {**runner.figures[-1], "alive": 2, "closed": 0}
    assert len(runner.states[0].blob) < size / 4
    rows = runner.batch([frame_of([Seen(20_000, "b")])], BATCH_MS)
    assert [(row["key"], row["carry"]) for row in rows if row["event"] == "gone"] == [("b", 0), ("a", 5)]


def test_ends_alone_leave_no_key() -> None:
    """The last word of a key that was never seen is ignored, and takes no room."""
    runner = Shards(config_of())
    assert runner.batch([frame_of([Seen(1_000, "a", "bye")])], BATCH_MS) == []
    assert runner.figures[-1] == {**runner.figures[-1], "alive": 0, "closed": 0}


def test_another_query_on_the_same_checkpoint_is_refused_by_name() -> None:
    """Other shards or other columns would mix up two states."""
    runner = Shards(config_of(2))
    runner.batch([frame_of([Seen(1_000, "a")])], BATCH_MS)
    runner.config = config_of(3)
    with pytest.raises(SessionsChangedError, match="begun with 2 shards, and sessions\\(shards=3\\)"):
        runner.batch([frame_of([Seen(1_000, "a")])], BATCH_MS)
    runner.config = config_of(2, shape="other string")
    with pytest.raises(SessionsChangedError, match=r"begun with \(key string, carry bigint\)"):
        runner.batch([frame_of([Seen(1_000, "a")])], BATCH_MS)


def test_a_shard_that_the_query_no_longer_has_is_refused_by_name() -> None:
    """Spark calls it, as its state is in the checkpoint."""
    runner = Shards(config_of(3))
    runner.batch([frame_of([Seen(1_000, "a")])], BATCH_MS)

    class State:
        exists = True
        get = tuple(runner.states[2])

        def getCurrentProcessingTimeMs(self) -> int:  # noqa: N802 - Spark's
            return BATCH_MS

    function = state_function(config_of(1), advance_sessions, frame_of_sessions, lambda: 1, every_batch=True)
    gone = next(slot for slot in config_of(3).slots if slot not in config_of(1).slots)
    with pytest.raises(SessionsChangedError, match="begun with 3 shards"):
        list(function((gone,), [], State()))


def test_a_state_that_cannot_be_read_is_named() -> None:
    """Of another release, or damaged."""
    runner = Shards(config_of())
    runner.batch([frame_of([Seen(1_000, "a")])], BATCH_MS)
    whole = runner.states[0]
    spoilt: list[tuple[Any, type[HeartwheelError]]] = [
        (whole._replace(version=99), StateVersionError),
        (whole._replace(blob=whole.blob[:-1]), CorruptBlobError),
        (whole._replace(blob=whole.blob[:4] + "00ff" + whole.blob[8:]), UnknownBlobVersionError),
    ]
    for state, error in spoilt:
        runner.states[0] = state
        with pytest.raises(error):
            runner.batch([], BATCH_MS)


def test_stretches_join_unless_an_outage_lies_between() -> None:
    """Whatever order they come in."""
    assert clock.merged([(50, 60), (0, 10), (15, 20), (5, 12)], 10) == [(0, 20), (50, 60)]


def test_a_column_of_many_values_in_the_place_of_partitions() -> None:
    """Those that were quiet for longest are forgotten, so that the state stays small; no session is harmed."""
    runner = Shards(config_of())
    many = 2 * clock.SOURCES_MAX
    for number in range(3):
        now_ms = 10_000 + 500 * number
        seen = [Seen(now_ms, "a", partition=number * many + part) for part in range(many)]
        rows = runner.batch([frame_of(seen)], now_ms)
        assert [event for _, event in _events(rows)] == (["came"] if number == 0 else [])
        assert len(decode_sessions(runner.states[0].blob).clock.sources) == clock.SOURCES_MAX
    assert runner.now_ms == 11_000
