"""Rebalances of restarts: each member leaves once and comes back, which is no storm, and so makes no message.

A member that a timeout removed was not restarted in order: its way out and its way back count from the first time on.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from heartwheel.sources.explain.groups import name_in_id
from heartwheel.sources.explain.summary import name_of
from heartwheel.wire.explained import REASON_OF, ExplainedEvent, Happened
from heartwheel.wire.verdicts import Cause

_OF_RESTARTS: Final = frozenset({Cause.MEMBER_JOINED.value, Cause.MEMBER_LEFT.value})
_LEAVES: Final = frozenset({Happened.LEFT, Happened.TEMPORARILY_LEFT})
_OUT: Final = _LEAVES | REASON_OF.keys() - {Happened.PENDING_EXPIRED}
_NAMES_MAX: Final = 50_000


class Restarts:
    """Tells rebalances of a rolling restart from those of members that leave again and again, or are removed.

    Args:
        window_ms: a member that leaves twice within so long is not restarted, it is in a loop, ms.
    """

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._left: OrderedDict[tuple[str, str], list[int]] = OrderedDict()

    def note(self, event: ExplainedEvent) -> None:
        """Note that a member left or was removed, if that is the event."""
        if event.kind not in _OUT:
            return
        times = [event.time_ms] if event.kind in _LEAVES else [event.time_ms] * 2
        # Members of groups with epochs come back under their ids, others under the name that is in these.
        for name in {name_of(event), event.member_id or name_of(event)}:
            key = event.group_id, name
            recent = [each for each in self._left.pop(key, ()) if event.time_ms - each < self._window_ms]
            self._left[key] = [*recent, *times][-2:]
            if len(self._left) > _NAMES_MAX:
                self._left.popitem(last=False)

    def has(self, event: ExplainedEvent) -> bool:
        """Return whether an event is a rebalance because members left once, or came, and none that was removed."""
        if event.kind not in {Happened.REBALANCE, Happened.GROUP_EMPTY} or event.reason not in _OF_RESTARTS:
            return False
        return not any(self._loops(event, member_id) for member_id in event.caused_by)

    def _loops(self, event: ExplainedEvent, member_id: str) -> bool:
        left = self._left.get((event.group_id, name_in_id(member_id) or member_id), [])
        return len(left) > 1 and event.time_ms - left[0] < self._window_ms
