"""How many partitions a topic had before a checkpoint is made, by the ticks that earlier jobs have left in it.

A group that moved when its topic grew has older records in the partition that its id hashed to before. A new checkpoint
that reads the topic from its start has to wait for that partition, too, and so has to know the count of before. Every
tick names the count of its time, and a count only rises, so a few looks into one partition find all of them. A lie
makes groups wait for one more partition, no longer than ten minutes of the log after the growth (`MOVED_MS_MAX`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from heartwheel.kafka.client import reader
from heartwheel.settings import Settings
from heartwheel.wire.tick import read_tick
from kafka import TopicPartition

LOOKS_MAX: Final = 200
"""How often the partition is looked into at most; twenty or so are enough for a growth."""

AGE_MS_MIN: Final = 600_000
"""By how much later the first records of added partitions come, ms: a partition may just have been quiet at first."""

_RECORDS_MAX: Final = 100_000
_LOOK_S_MAX: Final = 3.0
_POLL_MS: Final = 500


class CountAt(NamedTuple):
    """The offset of a tick, and how many partitions it names."""

    offset: int
    partitions: int


def former_counts(settings: Settings, topic: str, partitions: int) -> tuple[int, ...]:
    """Return how many partitions a topic has had before, ascending, as far as the ticks in it tell.

    Raises:
        KafkaUnreachableError: nobody answers.
        KafkaRefusedError: the cluster refuses it.
    """
    part = TopicPartition(topic, 0)
    with reader(settings.kafka.bootstrap_servers, settings.kafka.client, doing=f"look at topic {topic}") as consumer:
        consumer.assign([part])
        begin, end = (offsets([part])[part] for offsets in (consumer.beginning_offsets, consumer.end_offsets))
        return counts_between(lambda offset: _next_tick(consumer, part, offset, end), begin, end, partitions)


def seems_to_have_grown_from(settings: Settings, topic: str) -> int | None:
    """Return how many partitions began long before all others, by their first records; `None` if none did.

    Raises:
        KafkaUnreachableError: nobody answers.
        KafkaRefusedError: the cluster refuses it.
    """
    with reader(settings.kafka.bootstrap_servers, settings.kafka.client, doing=f"look at topic {topic}") as consumer:
        parts = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic) or ())]
        firsts = consumer.offsets_for_times(dict.fromkeys(parts, 0))
    return older_partitions([None if firsts.get(part) is None else firsts[part].timestamp for part in parts])


def older_partitions(first_ms: Sequence[int | None]) -> int | None:
    """Return how many of the first partitions began `AGE_MS_MIN` before all others; `None` if none did.

    Args:
        first_ms: append time of the first record of each partition, epoch ms; `None` where there is none.
    """
    for count in range(1, len(first_ms)):
        before = [each for each in first_ms[:count] if each is not None]
        after = [each for each in first_ms[count:] if each is not None]
        if before and after and min(after) - max(before) >= AGE_MS_MIN:
            return count
    return None


def counts_between(look: Callable[[int], CountAt | None], begin: int, end: int, partitions: int) -> tuple[int, ...]:
    """Return the counts that ticks name, but the last one, ascending.

    Args:
        look: finds the next tick from an offset on; `None` if there is none near.
        begin: the first offset.
        end: the offset behind the last one.
    """
    first = look(begin)
    if first is None:
        return ()
    found, looks = {first.partitions}, 1
    spans = [(first, CountAt(end, partitions))]
    while spans and looks < LOOKS_MAX:
        low, high = spans.pop()
        if low.partitions >= high.partitions or high.offset - low.offset <= 1:
            continue
        middle = (low.offset + high.offset) // 2
        tick, looks = look(middle), looks + 1
        if tick is None or tick.offset >= high.offset:
            spans.append((low, CountAt(middle, high.partitions)))
            continue
        found.add(tick.partitions)
        spans += [(low, CountAt(middle, tick.partitions)), (tick, high)]
    return tuple(sorted(count for count in found if 0 < count < partitions))


def _next_tick(consumer: Any, part: TopicPartition, offset: int, end: int) -> CountAt | None:
    """Find the next tick with a count; none is looked for behind many records, or where nothing comes for long."""
    consumer.seek(part, offset)
    read, give_up_s = 0, time.monotonic() + _LOOK_S_MAX
    while read < _RECORDS_MAX and consumer.position(part) < end and time.monotonic() < give_up_s:
        for record in consumer.poll(_POLL_MS).get(part, ()):
            read += 1
            tick = read_tick(record.value)
            if tick is not None and tick.run and tick.partitions:
                return CountAt(record.offset, tick.partitions)
    return None
