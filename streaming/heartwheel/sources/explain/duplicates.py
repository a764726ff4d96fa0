"""Events that appear both in brokers' logs and in consumers' own logs, when they are read together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

from heartwheel.sources.explain.explanation import leave_reason
from heartwheel.sources.explain.facts import Fact, FactKind
from heartwheel.wire.explained import ExplainedEvent, Happened

KEPT_MAX: Final = 20_000
"""Most lines of brokers that are remembered: consumers' events lag by at most an hour of the log's time."""

_NEAR_MS: Final = 600_000
"""How far apart the clocks of a broker and of a consumer may be, and how long after a join phase a member syncs, ms."""

_Key = tuple[str, str, str | int | None]


class BrokersLines:
    """The newest rebalances and leaves in brokers' logs."""

    def __init__(self) -> None:
        self._time_ms: OrderedDict[_Key, int] = OrderedDict()

    def noting(self, facts: Iterable[Fact]) -> Iterator[Fact]:
        """Yield facts unchanged, and note them."""
        for fact in facts:
            key: _Key | None = None
            if fact.kind is FactKind.STABILIZED:
                key = (fact.group_id, "", fact.number)
            elif fact.kind is FactKind.LEFT:
                key = (fact.group_id, fact.member_id, leave_reason(fact.words))
            if key is not None:
                self._time_ms[key] = fact.time_ms
                if len(self._time_ms) > KEPT_MAX:
                    self._time_ms.popitem(last=False)
            yield fact

    def have(self, event: ExplainedEvent) -> bool:
        """Return whether an event is a consumer's and a broker's log has the same one."""
        if event.broker_id is not None:
            return False
        if event.kind is Happened.REBALANCE:
            time_ms = self._time_ms.get((event.group_id, "", event.generation_id))
        else:
            time_ms = self._time_ms.get((event.group_id, event.member_id or "", event.reason))
        return time_ms is not None and abs(event.time_ms - time_ms) <= _NEAR_MS
