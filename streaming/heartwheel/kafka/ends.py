"""Look at the first and the last record of each partition of a topic: which of them carry their producers' times."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from heartwheel.kafka.client import KafkaRefusedError, reader
from kafka import TopicPartition

CREATE_TIME: Final = 0
"""The `timestamp_type` of a record that carries its producer's time."""

_POLL_MS: Final = 200
_STALL_S_MAX: Final = 10.0
_LAST_FEW: Final = 8
"""How many offsets from the end the last record is looked for: markers of transactions are no records."""


class Untimed(NamedTuple):
    """The partitions that begin, and those that end, with a record that carries its producer's time."""

    begin: tuple[int, ...]
    end: tuple[int, ...]


def find_untimed(
    bootstrap: str, topic: str, *, only_begin: bool = False, properties: Mapping[str, str] | None = None
) -> Untimed:
    """Find the partitions that begin or end with a record that carries its producer's time.

    Args:
        only_begin: whether the ends are not to be looked at.
        properties: Kafka client properties in dotted style.

    Raises:
        KafkaUnreachableError: nobody answers.
        KafkaRefusedError: the topic cannot be read, or nothing comes for 10 s.
    """
    with reader(bootstrap, properties, doing=f"look at the times of topic {topic}") as consumer:
        numbers = consumer.partitions_for_topic(topic) or set()
        places = [TopicPartition(topic, number) for number in sorted(numbers)]
        begins, ends = consumer.beginning_offsets(places), consumer.end_offsets(places)
        filled = {place: ends[place] for place in places if ends[place] > begins[place]}
        first = _read(consumer, filled, begins, whole=False)
        late = {place: max(begins[place], end - _LAST_FEW) for place, end in filled.items()}
        last = {} if only_begin else _read(consumer, filled, late, whole=True)
    return Untimed(_of_create_time(first), _of_create_time(last))


def _read(consumer: Any, ends: Mapping[Any, int], starts: Mapping[Any, int], *, whole: bool) -> dict[Any, int]:
    """Read from some offsets on; return the type of each partition's first record, or of its last one if `whole`."""
    found: dict[Any, int] = {}
    consumer.assign(list(ends))
    consumer.resume(*ends)  # partitions that are assigned again stay paused as the look before has left them
    for place in ends:
        consumer.seek(place, starts[place])
    moved_s = time.monotonic()
    while wanted := [p for p, end in ends.items() if (whole or p not in found) and consumer.position(p) < end]:
        consumer.pause(*(place for place in ends if place not in wanted))
        batches = consumer.poll(_POLL_MS, max_records=100)
        for place, records in batches.items():
            kinds = [record.timestamp_type for record in records if record.offset < ends[place]]
            if kinds and (whole or place not in found):
                found[place] = kinds[-1 if whole else 0]
        if batches:
            moved_s = time.monotonic()
        elif time.monotonic() - moved_s > _STALL_S_MAX:
            raise KafkaRefusedError(f"nothing came from {wanted[0].topic} for {_STALL_S_MAX:g} s")
    return found


def _of_create_time(kinds: Mapping[Any, int]) -> tuple[int, ...]:
    return tuple(sorted(place.partition for place, kind in kinds.items() if kind == CREATE_TIME))
