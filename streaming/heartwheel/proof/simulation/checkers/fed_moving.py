"""Groups that feeds tell of in two partitions, as the topic has grown: how far they come with each batch.

Two partitions are read in parallel, and either may be ahead. So this module does not tell how far such a group may come
wherever batches end, as `heartwheel.proof.simulation.checkers.fed_partition` does for others, but how far it came with
each batch of this history. What a feed reports later about a time before that came too late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heartwheel.proof.simulation.checkers.fed_partition import (
    MINUTE_MS,
    NOWHERE,
    Aside,
    BatchEnd,
    FedPartition,
    FeedSeen,
    Followed,
    Missed,
    Reach,
    latest_timer,
    newest_of,
)
from heartwheel.proof.simulation.checkers.read_log import PlacedRequest

_UNREAD_MS = -1
_FOREVER_MS = 2**62


class MovingGroup:
    """A group in the partitions that it may be in.

    Args:
        group_id: its name.
        parts: those partitions, as feeds have written them.
        homes: by batch, the partitions that the job knows to be the group's by its id.
        is_foreseen: whether the job was there when the topic grew, so that it knows of both.
    """

    def __init__(
        self, group_id: str, parts: dict[int, FedPartition], homes: Sequence[set[int]], *, is_foreseen: bool
    ) -> None:
        self._group_id, self._parts, self._homes = group_id, parts, homes
        told = [part.groups[group_id] for part in parts.values() if group_id in part.groups]
        self._entries = [entry for each in told for entry in each.entries]
        group = self.followed = Followed(told[0].shard, [gap for part in parts.values() for gap in part.missed])
        group.several = bool(homes) and len(homes[-1] | {entry.record.partition for entry, _ in self._entries}) > 1
        group.feeds = list(dict.fromkeys(name for each in told for name in each.feeds))
        group.entries = sorted(self._entries, key=lambda each: each[0].time_ms)
        group.aside = next((each.aside for each in told if each.aside is not None), None)
        if len(told) > 1 and not is_foreseen:
            group.aside = Aside.UNFORESEEN
        moments = {(entry.time_ms, entry.record.partition, name) for entry, name in self._entries}
        if len({time_ms for time_ms, _, _ in moments}) < len(moments):
            group.aside = group.aside or Aside.TIED
        reach = NOWHERE
        for batch in range(len(homes)):
            if any(entry.time_ms <= max(reach.records, reach.at_most) for entry in self._read_in(batch, reach)):
                group.aside = group.aside or Aside.LATE
            reach = self._reach(batch).or_further(reach)
            group.reached.append(reach)
        group.passed_ms = {name: self._passed_in_the_end(name) for name in group.feeds}

    def _ends(self, batch: int) -> dict[int, BatchEnd]:
        return {number: part.batches[batch] for number, part in self._parts.items() if batch < len(part.batches)}

    def _is_read(self, entry: PlacedRequest, batch: int) -> bool:
        end = self._ends(batch).get(entry.record.partition)
        return end is not None and entry.record.offset < end.offset

    def _read_in(self, batch: int, before: Reach) -> Iterator[PlacedRequest]:
        """Return what was read in one batch, except what came with the gap that the group has reached."""
        for entry, name in self._entries:
            new = self._is_read(entry, batch) and not (batch and self._is_read(entry, batch - 1))
            if new and not any(_falls_into(gap, name, self._group_id, entry, before) for gap in self.followed.missed):
                yield entry

    def _reach(self, batch: int) -> Reach:
        """Return how far the group comes with the end of a batch."""
        ends = self._ends(batch)
        told = [(entry, name) for entry, name in self._entries if self._is_read(entry, batch)]
        if not told:
            return NOWHERE
        places = {entry.record.partition for entry, _ in told} | self._homes[batch]
        names = list(dict.fromkeys(name for _, name in told))
        awaited = [passed for name in names for passed in self._passed(name, places, ends, self._group_id)]
        written = [feed for name in names for feed in self._written(name, places, ends).values()]
        marked = [feed.passed_of(self._group_id) for feed in written]
        awaited = awaited or marked
        read_ms = min(awaited)
        shard = self.followed.shard
        met = {
            name for place in places & ends.keys() for name, feed in ends[place].feeds.items() if shard in feed.known_to
        }
        everywhere = [passed for name in met for passed in self._passed(name, places, ends, "")]
        everywhere_ms = min(everywhere, default=_FOREVER_MS)
        missed = [gap for end in ends.values() for gap in end.missed if gap.feed in names]
        missed_ms = max((gap.to_ms for gap in missed), default=-1)
        times = [entry.time_ms for entry, _ in told]
        return Reach(
            read_ms,
            min(read_ms - (len(awaited) > 1), max(newest_of(times, read_ms), everywhere_ms)),
            latest_timer(times, read_ms, max(missed_ms, everywhere_ms)),
            latest_timer(times, max(marked), max(missed_ms, everywhere_ms)),
        )

    def _passed(self, name: str, places: set[int], ends: dict[int, BatchEnd], group_id: str) -> list[int]:
        """Return up to when a feed has passed on everything in each place; nothing of a feed that is gone."""
        here = self._written(name, places, ends)
        newest_ms = max((feed.written_ms for feed in here.values()), default=-1)
        passed = [feed.passed_of(group_id) for feed in here.values()]
        for place in places:
            unread = place not in ends or ends[place].now_ms - newest_ms <= MINUTE_MS
            if unread and _feed_in(place, name, ends, self.followed.shard) is None:
                return [*passed, _UNREAD_MS]
        is_gone = all(ends[place].now_ms - feed.written_ms > MINUTE_MS for place, feed in here.items())
        return [] if is_gone else passed

    def _written(self, name: str, places: set[int], ends: dict[int, BatchEnd]) -> dict[int, FeedSeen]:
        """Return where a feed has written, except where it stopped long ago while it wrote elsewhere."""
        found = {place: _feed_in(place, name, ends, self.followed.shard) for place in sorted(places)}
        met = {place: feed for place, feed in found.items() if feed is not None}
        newest_ms = max((feed.written_ms for feed in met.values()), default=-1)
        return {
            place: feed
            for place, feed in met.items()
            if newest_ms - feed.written_ms <= MINUTE_MS or ends[place].now_ms - feed.written_ms <= MINUTE_MS
        }

    def _passed_in_the_end(self, name: str) -> int:
        ends = self._ends(len(self._homes) - 1)
        places = {entry.record.partition for entry, teller in self._entries if teller == name}
        return min(ends[place].feeds[name].passed_of(self._group_id) for place in places)


def _feed_in(place: int, name: str, ends: dict[int, BatchEnd], shard: int) -> FeedSeen | None:
    feed = ends[place].feeds.get(name) if place in ends else None
    return feed if feed is not None and shard in feed.known_to else None


def _falls_into(gap: Missed, name: str, group_id: str, entry: PlacedRequest, before: Reach) -> bool:
    return gap.feed == name and gap.began_ms(group_id) < entry.time_ms and before.records == gap.to_ms
