"""Holds: groups in which a member may wait in a join that the request log does not show yet.

A classic join is logged when it is answered, and that is when the join phase ends: up to the rebalance timeout later.
Until then its member is silent in the log, and alive. So from the first sign of a join phase on, the group's time is
held at that sign, until a sign that the phase is over: a later join, sync or heartbeat that was accepted or, where the
coordinator's own log is read as well, a message of that log. In a consumer group no join waits, so there a heartbeat of
the newer protocol is such a sign, too. Without such a sign (all members may have died) the hold ends with the rebalance
timeout, because no join waits longer. Only a join that the coordinator has accepted shows what that timeout is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from heartwheel.sources.explain.facts import Fact, FactKind
from heartwheel.sources.tap.request_log import Answered
from heartwheel.sources.tap.requests import (
    MEMBER_ID_REQUIRED,
    NO_ERROR,
    REBALANCE_IN_PROGRESS,
    code_of,
    error_of,
    group_of,
)
from heartwheel.sources.tap.settling import SETTLE_MS
from heartwheel.wire.events import FROM_MEMBERS
from heartwheel.wire.relayed import HELD_BYTES_MAX, HELD_MAX

_JOIN, _HEARTBEAT, _SYNC, _CONSUMER_HEARTBEAT = 11, 12, 14, 68
_CLASSIC: Final = frozenset({_JOIN, _HEARTBEAT, _SYNC})

_DEFAULT_REBALANCE_MS: Final = 300_000
"""`max.poll.interval.ms` of a Java consumer that does not set it."""

_GROUPS_MAX: Final = 100_000
"""How many rebalance timeouts are remembered, of the groups with members and the latest requests, as they are saved."""

_GROUPS_BYTES_MAX: Final = 4 * 1024 * 1024
"""Most UTF-8 bytes of their ids."""

_STRANGERS_MAX: Final = 10_000
"""At this many holds, no further one begins in a group without known members."""

_BEGINS: Final = frozenset({FactKind.TRIGGER})
_ENDS: Final = frozenset({FactKind.STABILIZED, FactKind.EMPTY})


class Hold(msgspec.Struct):
    """One group's hold.

    Args:
        held_ms: the time at which the group is held, epoch ms.
        until_ms: when it ends without a sign, epoch ms.
        over_ms: when a sign showed that the join phase is over, epoch ms; -1 while there is none.
    """

    held_ms: int
    until_ms: int
    over_ms: int = -1


class Holds:
    """The holds of all groups.

    Args:
        known: those from before a restart, by group.
        rebalance_ms: the rebalance timeouts from before a restart, ms; see below.

    Attributes:
        rebalance_ms: for each group that has had members, their longest rebalance timeout, ms, or 0 if no join showed
            it; the group with the latest request is last.
    """

    def __init__(self, known: Mapping[str, Hold] | None = None, rebalance_ms: Mapping[str, int] | None = None) -> None:
        self.groups: dict[str, Hold] = dict(known or {})
        self.rebalance_ms: dict[str, int] = dict(rebalance_ms or {})
        self._bytes = sum(len(group_id.encode()) for group_id in self.rebalance_ms)

    def note(self, answered: Answered) -> None:
        """Note a request of the classic protocol, or a heartbeat of a consumer group with classic members."""
        group_id, error = group_of(answered), error_of(answered)
        if answered.api == _CONSUMER_HEARTBEAT and error == NO_ERROR and answered.request.get("memberEpoch", 0) > 0:
            # Above epoch 0 a broker accepts it only in a consumer group.
            self._end(group_id, answered.logged_ms, answered.arrived_ms)
        if answered.api not in _CLASSIC:
            return
        if code_of(answered) in FROM_MEMBERS:
            asked_ms = answered.request.get("rebalanceTimeoutMs") if answered.api == _JOIN else 0
            self._note_members(group_id, int(asked_ms or 0))
        if error in (REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED):
            self._begin(group_id, answered.arrived_ms)
        elif error == NO_ERROR:
            # An accepted join proves it, whenever it arrived; any other request, if it arrived after the hold began.
            self._end(group_id, answered.logged_ms, None if answered.api == _JOIN else answered.arrived_ms)

    def note_fact(self, fact: Fact) -> None:
        """Note a message of the coordinator's own log."""
        if fact.kind in _BEGINS:
            self._begin(fact.group_id, fact.time_ms)
        elif fact.kind in _ENDS:
            self._end(fact.group_id, fact.time_ms, None)

    def held(self, passed_ms: int) -> dict[str, int]:
        """Return the time at which each group is held, epoch ms, and remove the holds that are over.

        Args:
            passed_ms: the watermark, epoch ms: everything logged before is known.
        """
        for group_id, hold in list(self.groups.items()):
            if 0 <= hold.over_ms <= passed_ms or hold.until_ms <= passed_ms:
                del self.groups[group_id]
        return {group_id: hold.held_ms for group_id, hold in self.groups.items()}

    def named(self, passed_ms: int, held: Mapping[str, int]) -> tuple[int, dict[str, int]]:
        """Return the tap's watermark, epoch ms, and the held groups that it names.

        A watermark names only so many groups. Any client can begin holds in groups without known members and leave them
        unfinished, so of these the ones held longest are released. If the groups with members alone are too many, the
        watermark waits for all of them, but for none of them longer than for a join of the default timeout: so it may
        lag that far behind, and never stops.

        Args:
            passed_ms: the watermark if no group were held, epoch ms.
            held: the time at which each group is held, epoch ms.
        """
        ranked = sorted(held, key=lambda group_id: (group_id in self.rebalance_ms, held[group_id]), reverse=True)
        count = size = 0
        while count < min(len(ranked), HELD_MAX) and size + len(ranked[count].encode()) <= HELD_BYTES_MAX:
            size, count = size + len(ranked[count].encode()), count + 1
        waited_ms = [held[group_id] for group_id in ranked[count:] if group_id in self.rebalance_ms]
        waited_ms = [held_ms for held_ms in waited_ms if held_ms > passed_ms - _DEFAULT_REBALANCE_MS]
        if waited_ms:
            return min(passed_ms, *waited_ms), {}
        return passed_ms, {group_id: held[group_id] for group_id in ranked[:count]}

    def _begin(self, group_id: str, at_ms: int) -> None:
        hold = self.groups.get(group_id)
        if hold is None and group_id not in self.rebalance_ms and len(self.groups) >= _STRANGERS_MAX:
            return
        until_ms = at_ms + (self.rebalance_ms.get(group_id) or _DEFAULT_REBALANCE_MS)
        if hold is not None and (hold.over_ms < 0 or at_ms <= hold.over_ms):
            return
        if hold is not None and at_ms <= hold.over_ms + SETTLE_MS:
            # A request that was parked in the phase before may not have been logged yet.
            hold.over_ms, hold.until_ms = -1, until_ms
            return
        self.groups[group_id] = Hold(at_ms, until_ms)

    def _end(self, group_id: str, at_ms: int, arrived_ms: int | None) -> None:
        hold = self.groups.get(group_id)
        if hold is not None and hold.over_ms < 0 and (arrived_ms is None or arrived_ms > hold.held_ms):
            hold.over_ms = at_ms

    def _note_members(self, group_id: str, asked_ms: int) -> None:
        known_ms = self.rebalance_ms.pop(group_id, None)
        if known_ms is None:
            self._bytes += len(group_id.encode())
        self.rebalance_ms[group_id] = max(known_ms or 0, asked_ms)
        while len(self.rebalance_ms) > _GROUPS_MAX or self._bytes > _GROUPS_BYTES_MAX:
            oldest = next(iter(self.rebalance_ms))
            del self.rebalance_ms[oldest]
            self._bytes -= len(oldest.encode())
