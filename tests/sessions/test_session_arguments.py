"""Wrong arguments are refused together, each by its name; and what `describe` says."""

from __future__ import annotations

import doctest
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

import heartwheel.engine.sessions.api
from heartwheel import sessions
from heartwheel.engine.sessions.arguments import Checks, Options, SessionsArgumentError, checked, duration_ms
from heartwheel.engine.sessions.config import bytes_of_shard
from heartwheel.engine.sessions.described import described

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EAST = timezone(timedelta(hours=5))


@pytest.mark.parametrize(
    ("text", "ms"),
    [("30 seconds", 30_000), ("1 minute", 60_000), ("500ms", 500), ("1.5 hours", 5_400_000), ("2 days", 172_800_000),
     (timedelta(seconds=2), 2_000)],
)  # fmt: skip
def test_durations(text: str | timedelta, ms: int) -> None:
    """As Spark writes them, and as the configuration does."""
    assert duration_ms(text) == ms


@pytest.mark.parametrize("wrong", ["soon", "30", 30, "3 fortnights", ""])
def test_what_is_no_duration(wrong: Any) -> None:
    """A number without a unit is none."""
    with pytest.raises(ValueError, match="duration"):
        duration_ms(wrong)


def test_all_errors_come_at_once() -> None:
    """Whoever calls it wrongly learns everything in one go."""
    with pytest.raises(SessionsArgumentError) as caught:
        sessions.test(
            [{"key": "a", "id": 1}],
            key=["key", "kee"],
            timeout="soon",
            carry=["id"],
            emit=["went"],  # type: ignore[list-item]
            forget="0s",
            shards=0,
        )
    for part in ("key: there is no column 'kee'", "carry: 'id' is a column of the output", "timeout: 'soon'",
                 "emit: ['went']", "forget: '0s' is too short", "shards: 0"):  # fmt: skip
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"key": 1}, "key: (1,) has what is no name"),
        ({"carry": None}, "carry: None is no list"),
        ({"emit": None}, "emit: None, but it takes a list"),
        ({"emit": 5}, "emit: 5, but it takes a list"),
        ({"emit": [1, ["gone"]]}, "emit: [1, ['gone']], but it takes a list"),
        ({"keys_max": "many"}, "keys_max: 'many' is not a positive number"),
        ({"keys_max": None}, "keys_max: None is not a positive number"),
        ({"keys_max": True}, "keys_max: True is not a positive number"),
        ({"time": "when"}, "time: no row has 'when'"),
        ({"ends": "bye"}, "ends: no row has 'bye'"),
        ({"key": "list"}, "key: 'list' is a list or a dict; a key is a number"),
        ({"time": "key"}, "'a' is no datetime"),
        ({"until": 30}, "30 is no datetime"),
        ({"shards": True}, "shards: True is not a number from 1 to 4096"),
        ({"key": ["key", 2]}, "key: ('key', 2) has what is no name"),
        ({"carry": "key"}, "carry: 'key' is no list"),
        ({"emit": "gone"}, "emit: 'gone', but it takes a list"),
        ({"timeout": 30}, "timeout: 30 is neither a duration nor the name of a column"),
        ({"timeout": "101 years"}, "timeout: '101 years'"),
        ({"timeout": timedelta.max}, "is too long, at most 36525 days"),
        ({"forget": "36526 days"}, "forget: '36526 days' is too long, at most 36525 days"),
        ({"carry": ["At"]}, "carry: 'At' is a column of the output"),
    ],
)
def test_what_a_user_may_give_in_its_place(arguments: dict[str, Any], words: str) -> None:
    """Values of another type, and durations with which a deadline would be later than any time."""
    given: dict[str, Any] = {"key": "key", "timeout": "30 seconds", **arguments}
    with pytest.raises(SessionsArgumentError) as caught:
        sessions.test([{"key": "a", "At": 1, "list": [1]}], **given)
    assert words in str(caught.value)


def test_a_list_is_no_dataframe() -> None:
    """The error names what takes one."""
    rows: Any = [{"key": "a"}]
    for call in (sessions, sessions.describe):
        with pytest.raises(SessionsArgumentError, match="is no DataFrame") as caught:
            call(rows, key="key", timeout="30 seconds")
        assert "sessions.test" in str(caught.value.hint)


@pytest.mark.parametrize("pair", [(0.0, -0.0), (Decimal("1.5"), Decimal("1.50")), (NOON, NOON.astimezone(EAST))])
def test_values_that_are_equal_are_one_key(pair: tuple[Any, Any]) -> None:
    """As they are in Spark."""
    rows = [{"key": value, "at": NOON} for value in pair]
    assert len(sessions.test(rows, key="key", timeout="30 seconds", time="at", emit=["came"])) == 1


def _text(**arguments: Any) -> str:
    given: dict[str, Any] = {
        "key": "device", "timeout": "30 seconds", "time": None, "ends": None, "carry": (), "emit": ["gone"],
        "idle": "30 seconds", "wait": "0 seconds", "outage": None, "ahead": "10 seconds", "forget": "7 days",
        "shards": 2, "keys_max": 1_000,
    }  # fmt: skip
    options = Options(**{**given, **arguments})
    checks = Checks()
    config = checked(options, {"device": "string", "at": "timestamp"}, shards=2, whole=False, checks=checks)
    checks.end()
    return described(
        config, options, by_partition=True, has_ticks=False, state_partitions=200, keeps_running=True, name="metrics"
    )


@pytest.mark.parametrize(
    ("heap", "shards", "size"),
    [
        ("1g", 2, 22_369_621),
        ("1024", 2, 22_369_621),
        ("512m", 8, 2_796_202),
        ("1g", 200, 223_696),
        ("64g", 1, 512 << 20),
    ],
)
def test_the_state_has_a_part_of_the_heap(heap: str, shards: int, size: int) -> None:
    """However Spark's settings write it, and at most what one text may have."""
    assert bytes_of_shard(heap, shards) == size


def test_describe_says_which_time_is_used() -> None:
    """And what is assumed of stops, silence and late events."""
    text = _text()
    assert "processing time" in text
    assert "a source that is silent for the timeout ends all sessions" in text
    assert "spark.sql.shuffle.partitions is 200" in text
    assert "set a trigger" in text
    text = _text(time="at")
    assert "time=at" in text
    assert "the least of the newest times of the source's partitions" in text
    assert "is left out after 30s of running time" in text
    assert "while no key is heard no time passes" in _text(time="at", outage="1 minute")


def test_examples_of_the_docstrings() -> None:
    """They are what a reader tries first."""
    assert doctest.testmod(heartwheel.engine.sessions.api).failed == 0
    assert doctest.testmod(heartwheel.engine.sessions.api).attempted > 3
