"""Slots spread the shards evenly over the state partitions."""

from __future__ import annotations

from collections import Counter

import pytest

from heartwheel.engine.runtime.map.slots import murmur3_int, slots_of


@pytest.mark.parametrize(("value", "expected"), [(0, 933211791), (1, -559580957), (-1, -1604776387), (42, 29417773)])
def test_murmur3_is_sparks(value: int, expected: int) -> None:
    """The hash agrees with what `SELECT hash(value)` prints, for positive and negative integers."""
    assert murmur3_int(value) == expected


@pytest.mark.parametrize("partitions", [1, 2, 3, 8, 16])
@pytest.mark.parametrize("shards", [1, 2, 7, 8, 64])
def test_slots_are_balanced_and_distinct(shards: int, partitions: int) -> None:
    """No state partition gets more than one shard more than another, and no two shards share a slot."""
    slots = slots_of(shards, partitions)
    load = Counter(murmur3_int(slot) % partitions for slot in slots)
    assert len(set(slots)) == shards
    assert max(load.values()) - min(load.get(p, 0) for p in range(min(shards, partitions))) <= 1
