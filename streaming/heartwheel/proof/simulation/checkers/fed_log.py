"""What feeds wrote: the events of each group, how far their marks came, and what they missed.

It follows the words of docs/tap.md and docs/events.md alone, and reads the partition of the feeds record by record, as
no batch of any job does. So it knows how far each group can have come wherever batches end, and what then comes too
late for it.

Whether the job still used an event from before a mark that covers it depended on where its batches ended. Such groups
are put aside, with one exception: no member of them expires before the marks have come so far. Of several feeds it is
then enough that one has come so far. A group without members that is forgotten begins again without the feeds that
relayed it before, and whether it was forgotten may depend on the batches, too.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from heartwheel.proof.log_builder import ProducedRecord
from heartwheel.proof.simulation.checkers.read_log import PlacedRequest, is_of_a_feed
from heartwheel.proof.simulation.plan.parameters import VALUE_BYTES_MAX, Plan
from heartwheel.wire.events import RejectedError
from heartwheel.wire.partitioner import shard_of
from heartwheel.wire.relayed import FEEDS_PARTITION
from heartwheel.wire.requests import decode_request

MINUTE_MS: Final = 60_000
"""How far a feed's times may be ahead of the append time, and how long another feed is waited for, ms."""

_FOREVER_MS: Final = 2**62


class Aside(enum.StrEnum):
    """Why the verdicts about a group are not promised."""

    LATE = "too late"
    """A feed relayed an event from before its marks, or from before those of the feed that the group went on with."""
    TIED = "in one millisecond"
    """Two feeds relayed events of one millisecond, and nothing says which came first."""


class Reach(NamedTuple):
    """How far a group has come, epoch ms.

    Args:
        records: all of its events of an earlier time have been read.
        surely: its timers have run up to here.
        at_most: none of its timers can have run beyond this, unless the job has forgotten it.
        forgotten: none of its timers can have run beyond this, even so: a group that begins again waits only for the
            feeds that have relayed it since, and there is at least one.
    """

    records: int
    surely: int
    at_most: int
    forgotten: int

    def or_further(self, other: Reach) -> Reach:
        """Return the later one of each."""
        return Reach(*map(max, self, other))


NOWHERE: Final = Reach(-1, -1, -1, -1)


class Missed(NamedTuple):
    """The time that a feed has missed, epoch ms; for groups that it held back it began earlier."""

    feed: str
    from_ms: int
    to_ms: int
    held: dict[str, int]

    def began_ms(self, group_id: str) -> int:
        """Return since when nothing is known of a group."""
        return min(self.from_ms, self.held.get(group_id, self.from_ms))


@dataclass
class RelayedGroup:
    """A group that feeds relay.

    Args:
        feeds: those that relayed it, in the order of their first events.
        entries: its events and the feed of each, in the order of the log.
        furthest: how far it can have come, wherever batches end.
        reached: how far it came with each batch.
        aside: why nothing is promised of it.
    """

    shard: int
    feeds: list[str] = field(default_factory=list)
    entries: list[tuple[PlacedRequest, str]] = field(default_factory=list)
    furthest: Reach = NOWHERE
    reached: list[Reach] = field(default_factory=list)
    aside: Aside | None = None


@dataclass
class FeedSeen:
    """A feed; times are epoch ms, -1 before the first mark."""

    written_ms: int
    passed_ms: int = -1
    held: dict[str, int] = field(default_factory=dict)
    known_to: set[int] = field(default_factory=set)
    """The shards that have met it: all of them once it has written a mark."""

    def passed_of(self, group_id: str) -> int:
        """Return up to when it has relayed everything of a group, epoch ms."""
        return min(self.passed_ms, self.held.get(group_id, self.passed_ms))


class FedLog:
    """What feeds have written in a history, as far as the job has read it.

    Args:
        logs: the records of each partition.
        ends: the end offset of each batch in the partition of the feeds.

    Attributes:
        missed: what feeds have missed, in the order of the log.
    """

    def __init__(self, plan: Plan, logs: Sequence[Sequence[ProducedRecord]], ends: Sequence[int]) -> None:
        self.missed: list[Missed] = []
        self._groups: dict[str, RelayedGroup] = {}
        self._plan = plan
        self._feeds: dict[str, FeedSeen] = {}
        self._now_ms = 0
        batch = 0
        here = (record for log in logs for record in log if record.partition == FEEDS_PARTITION)
        for record in here if plan.relayed.feeds else ():
            while batch < len(ends) and ends[batch] <= record.offset:
                self._end_batch(batch)
                batch += 1
            self._read(record)
        for last in range(batch, len(ends)):
            self._end_batch(last)

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def why_aside(self, group_id: str) -> Aside | None:
        """Return why nothing is promised of a group; `None` if all is."""
        return self._groups[group_id].aside

    def reach(self, group_id: str, batch: int) -> Reach:
        """Return how far a group had come with the end of a batch; before the first batch nowhere."""
        reached = self._groups[group_id].reached
        return reached[batch] if 0 <= batch < len(reached) else NOWHERE

    def feeds_of(self, group_id: str) -> int:
        """Return how many feeds relayed a group."""
        return len(self._groups[group_id].feeds)

    def entries(self, group_id: str) -> list[PlacedRequest]:
        """Return a group's events in the order in which they happened."""
        entries = (entry for entry, _ in self._groups[group_id].entries)
        return sorted(entries, key=lambda entry: (entry.time_ms, entry.record.offset))

    def _read(self, record: ProducedRecord) -> None:
        fields = _fields_of(record.value)
        if fields is None:
            self._now_ms = max(self._now_ms, record.append_ms)
            return
        self._advance_all()
        self._now_ms = max(self._now_ms, record.append_ms)
        feed = fields.get("feed")
        if feed in self._plan.relayed.names:
            if fields.get("type") == "mark":
                self._read_mark(feed, fields, record.append_ms)
            elif _is_moment(fields.get("at_ms")):
                self._read_event(record, feed, min(fields["at_ms"], record.append_ms + MINUTE_MS))
        self._advance_all()

    def _read_event(self, record: ProducedRecord, name: str, time_ms: int) -> None:
        try:
            request = decode_request(record.value, size_max=VALUE_BYTES_MAX)
        except RejectedError:
            return
        group_id = request.group_id
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = RelayedGroup(shard_of(group_id, self._plan.shards))
        self._feeds.setdefault(name, FeedSeen(self._now_ms)).known_to.add(group.shard)
        if time_ms < group.furthest.records and not self._comes_with_a_gap(name, group_id, time_ms):
            group.aside = Aside.LATE
        elif any(entry.time_ms == time_ms and feed != name for entry, feed in group.entries):
            group.aside = group.aside or Aside.TIED
        if name not in group.feeds:
            group.feeds.append(name)
        group.entries.append((PlacedRequest(time_ms, record, request), name))

    def _comes_with_a_gap(self, name: str, group_id: str, time_ms: int) -> bool:
        """Return whether a time is one that the feed missed, and the group has not gone on since the gap's end."""
        return any(
            gap.feed == name
            and gap.began_ms(group_id) < time_ms
            and self._groups[group_id].furthest.records == gap.to_ms
            for gap in self.missed
        )

    def _read_mark(self, name: str, fields: dict[str, Any], append_ms: int) -> None:
        held = fields.get("held", {})
        if not all(map(_is_moment, (fields.get("passed_ms"), fields.get("since_ms"), *held.values()))):
            return
        feed = self._feeds.setdefault(name, FeedSeen(self._now_ms))
        feed.known_to = set(range(self._plan.shards))
        feed.written_ms = self._now_ms
        passed_ms = min(fields["passed_ms"], append_ms + MINUTE_MS)
        if passed_ms < feed.passed_ms:
            return
        since_ms = min(fields["since_ms"], passed_ms)
        if 0 <= feed.passed_ms < since_ms:
            self.missed.append(Missed(name, feed.passed_ms, since_ms, feed.held))
        feed.passed_ms, feed.held = passed_ms, held

    def _advance_all(self) -> None:
        for group_id, group in self._groups.items():
            group.furthest = group.furthest.or_further(self._reach(group_id, group))

    def _end_batch(self, batch: int) -> None:
        for group_id, group in self._groups.items():
            group.reached += [NOWHERE] * (batch - len(group.reached))
            before = group.reached[-1] if group.reached else NOWHERE
            group.reached.append(self._reach(group_id, group).or_further(before))

    def _reach(self, group_id: str, group: RelayedGroup) -> Reach:
        """Return how far a group comes if a batch ends here."""
        living = {name: feed for name, feed in self._feeds.items() if self._now_ms - feed.written_ms <= MINUTE_MS}
        awaited = [living[name] for name in group.feeds if name in living]
        awaited = awaited or [self._feeds[name] for name in group.feeds]
        read_ms = min(feed.passed_of(group_id) for feed in awaited)
        furthest_ms = max(self._feeds[name].passed_of(group_id) for name in group.feeds)
        if len(self._feeds) < 2:
            return Reach(read_ms, read_ms, read_ms, read_ms)
        # A group without new events may have moved: its timers go on as far as every feed has come.
        met = (feed.passed_ms for feed in living.values() if group.shard in feed.known_to)
        everywhere_ms = min(met, default=_FOREVER_MS)
        missed_ms = max((gap.to_ms for gap in self.missed if gap.feed in group.feeds), default=-1)
        times = [entry.time_ms for entry, _ in group.entries]
        # Which of several brokers was first in a millisecond is known once all have come beyond it.
        several = len(awaited) > 1
        return Reach(
            read_ms,
            min(read_ms - several, max(_newest_of(times, read_ms), everywhere_ms)),
            _latest_timer(times, read_ms, max(missed_ms, everywhere_ms)),
            _latest_timer(times, furthest_ms, max(missed_ms, everywhere_ms)),
        )


def _newest_of(times: list[int], until_ms: int) -> int:
    """Return the newest of some times that is not later than a moment, epoch ms; -1 if none is."""
    return max((time_ms for time_ms in times if time_ms <= until_ms), default=-1)


def _latest_timer(times: list[int], read_ms: int, moved_ms: int) -> int:
    """Return up to when the timers of a group may have run, epoch ms.

    Args:
        read_ms: up to when the feeds that it waits for have relayed everything.
        moved_ms: up to when no other feed can still have events of it.
    """
    return min(read_ms, max(_newest_of(times, read_ms), moved_ms))


def _fields_of(value: bytes | None) -> dict[str, Any] | None:
    """Return a record of a feed, or of a client that pretends to be one; `None` for any other."""
    if value is None or not is_of_a_feed(value):
        return None
    try:
        fields = json.loads(value)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None


def _is_moment(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= 2**53
