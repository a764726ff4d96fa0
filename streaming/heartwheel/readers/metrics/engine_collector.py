"""Metrics of the shards, from the newest status row of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.model import GroupState
from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.readers.metrics.catalogue import shards as about_shards
from heartwheel.readers.metrics.families import family
from heartwheel.wire.events import RejectCause
from heartwheel.wire.status import StatusRow

_FINE: Final = frozenset({Answer.NONE, Answer.PARKED})
_STEPS_BACK: Final = ("append_time_stepped_back",)


class EngineCollector(Collector):
    """The figures of the newest status row of each shard.

    Args:
        shards: how many there are. Sums over them are shown once all are known, because a sum that grows as one shard
            after the other is read would look like a burst.
    """

    def __init__(self, shards: int) -> None:
        self.shards = shards
        self._rows: dict[int, StatusRow] = {}

    def apply(self, rows: Sequence[TopicRow]) -> None:
        """Apply status rows; other rows are ignored."""
        # A new dictionary for each change: Prometheus may be reading in another thread.
        fresh = {each.row.shard: each.row for each in rows if isinstance(each.row, StatusRow)}
        if fresh:
            self._rows = dict(sorted((self._rows | fresh).items()))

    def collect(self) -> Iterable[Family]:
        """Return the figures for `prometheus_client`."""
        rows = list(self._rows.values())
        yield from _by_shard(rows)
        if len(rows) >= self.shards:
            yield from _sums(rows)


def _by_shard(rows: Sequence[StatusRow]) -> Iterator[Family]:
    yield family(about_shards.MEMBERS, {str(row.shard): row.members for row in rows})
    yield family(about_shards.CLOCK, {str(row.shard): row.clock_ms / 1000 for row in rows if row.clock_ms >= 0})
    yield family(about_shards.CLOCK_HELD, {str(row.shard): row.held for row in rows})
    yield family(about_shards.STATE_BYTES, {str(row.shard): row.state_bytes for row in rows})


def _sums(rows: Sequence[StatusRow]) -> Iterator[Family]:
    totals: Counter[str] = Counter()
    states: Counter[str] = Counter(dict.fromkeys(GroupState, 0))
    kinds: Counter[str] = Counter()
    timers: Counter[str] = Counter()
    for row in rows:
        totals.update(row.totals)
        states.update(row.groups_by_state)
        kinds.update(row.groups_by_kind)
        timers.update({str(number): level.entries for number, level in enumerate(row.wheel)})
    yield family(about_shards.GROUPS, states)
    yield family(about_shards.GROUPS_BY_KIND, kinds)
    yield family(about_shards.WHEEL_TIMERS, timers)
    yield family(about_shards.WHEEL_MOVES, sum(row.wheel_moves for row in rows))
    yield family(about_shards.WHEEL_FIRES, sum(row.wheel_fires for row in rows))
    yield family(about_shards.HEARTBEATS, totals["records"])
    yield family(
        about_shards.REQUEST_ERRORS,
        {answer.value: totals[f"answer_{answer}"] for answer in Answer if answer not in _FINE},
    )
    yield family(about_shards.REJECTS, {cause.value: totals[f"rejected_{cause}"] for cause in RejectCause})
    yield family(about_shards.CLOCK_STEPS_BACK, sum(totals[name] for name in _STEPS_BACK))
    yield family(about_shards.STRAY_GROUPS, sum(len(row.strays) for row in rows))
