"""Java's order: the hash, the bucket, and the growth of its tables."""

import pytest

from heartwheel.engine.rules.java_map import bucket_of, grown_table_size, in_map_order, in_set_order


@pytest.mark.parametrize(
    ("text", "bucket"),
    [("", 0), ("a", 1), ("p", 0), ("foo", 7), ("bar", 2), ("groupId", 7), ("polygenelubricants", 0)],
)
def test_bucket_is_that_of_the_spread_hash(text: str, bucket: int) -> None:
    """A string's bucket among 16 is its hash code, its upper half mixed in."""
    assert bucket_of(text, 16) == bucket


@pytest.mark.parametrize(
    ("entries", "before", "after"), [(1, 0, 16), (12, 16, 16), (13, 16, 32), (24, 32, 32), (25, 32, 64)]
)
def test_table_doubles_above_three_quarters(entries: int, before: int, after: int) -> None:
    """A table of 16 takes 12 entries, the 13th doubles it."""
    assert grown_table_size(entries, before) == after


def test_table_never_shrinks() -> None:
    """A map that was big once keeps its table."""
    assert grown_table_size(1, 64) == 64


def test_walk_goes_by_bucket_and_then_by_insertion() -> None:
    """Keys of one bucket come in the order in which they were put in."""
    assert in_map_order(["c", "BB", "Aa", "b"], 16) == ["BB", "Aa", "b", "c"]
    assert in_map_order(["c", "Aa", "BB", "b"], 16) == ["Aa", "BB", "b", "c"]


def test_set_has_the_table_of_its_size() -> None:
    """A set that is filled at once is walked by the table that its size asks for, as a JDK 17 printed it."""
    assert in_set_order(["foo", "bar", "groupId", "q", "a", "p"]) == ["p", "q", "a", "bar", "foo", "groupId"]
    assert in_set_order([]) == []
