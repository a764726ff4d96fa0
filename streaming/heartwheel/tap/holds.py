"""Holds: groups of which a member may wait in a join that the request log does not show yet.

A classic join is logged when it is answered, and that is when the join phase ends: up to the rebalance timeout later.
Meanwhile its member is silent in the log, and alive. So from the first sign of a join phase on the group's time is held
at that sign, until a sign that the phase is over: a join, sync or heartbeat that was accepted later, or, where the
coordinator's own log is read beside it, that log's word. In a consumer group no join waits, so there a heartbeat of the
newer protocol is such a sign, too. Without such a sign (everybody may have died) it ends with the
rebalance timeout, for no join waits longer.
"""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.explain.facts import Fact, Said
from heartwheel.tap.request_log import Answered
from heartwheel.tap.requests import MEMBER_ID_REQUIRED, NO_ERROR, REBALANCE_IN_PROGRESS, error_of, group_of
from heartwheel.tap.settling import SETTLE_MS

_JOIN, _HEARTBEAT, _SYNC, _CONSUMER_HEARTBEAT = 11, 12, 14, 68
_CLASSIC: Final = frozenset({_JOIN, _HEARTBEAT, _SYNC})

_DEFAULT_REBALANCE_MS: Final = 300_000
"""`max.poll.interval.ms` of a Java consumer that says nothing else."""

_TIMEOUTS_MAX: Final = 100_000
"""Of how many groups the rebalance timeout is remembered; of others it is taken to be the default."""

_BEGINS: Final = frozenset({Said.TRIGGER})
_ENDS: Final = frozenset({Said.STABILIZED, Said.EMPTY})


class Hold(msgspec.Struct):
    """One group's hold.

    Args:
        held_ms: the time that the group is held at, epoch ms.
        until_ms: when it ends without a sign, epoch ms.
        over_ms: when a sign said that the join phase is over, epoch ms; -1 while none did.
    """

    held_ms: int
    until_ms: int
    over_ms: int = -1


class Holds:
    """The holds of all groups.

    Args:
        known: those from before a restart, by group.
    """

    def __init__(self, known: dict[str, Hold] | None = None) -> None:
        self.groups: dict[str, Hold] = dict(known or {})
        self._timeouts_ms: dict[str, int] = {}

    def note(self, answered: Answered) -> None:
        """Take in a request of the classic protocol, or a heartbeat of a consumer group, which may have its members."""
        group_id, error = group_of(answered), error_of(answered)
        if answered.api == _CONSUMER_HEARTBEAT and error == NO_ERROR and answered.request.get("memberEpoch", 0) > 0:
            # Above epoch 0 a broker accepts it in a consumer group alone.
            self._end(group_id, answered.logged_ms, answered.arrived_ms)
        if answered.api not in _CLASSIC:
            return
        if answered.api == _JOIN:
            self._note_timeout(group_id, int(answered.request.get("rebalanceTimeoutMs") or 0))
        if error in (REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED):
            self._begin(group_id, answered.arrived_ms)
        elif error == NO_ERROR:
            # A join proves it by its answer, whenever it came; any other request if it came after the hold began.
            self._end(group_id, answered.logged_ms, None if answered.api == _JOIN else answered.arrived_ms)

    def note_fact(self, fact: Fact) -> None:
        """Take in what the coordinator's own log says."""
        if fact.said in _BEGINS:
            self._begin(fact.group_id, fact.time_ms)
        elif fact.said in _ENDS:
            self._end(fact.group_id, fact.time_ms, None)

    def held(self, passed_ms: int) -> dict[str, int]:
        """Return the time that each group is held at, epoch ms, and forget the holds that are over.

        Args:
            passed_ms: what the mark says, epoch ms: all that was logged before is known.
        """
        for group_id, hold in list(self.groups.items()):
            if 0 <= hold.over_ms <= passed_ms or hold.until_ms <= passed_ms:
                del self.groups[group_id]
        return {group_id: hold.held_ms for group_id, hold in self.groups.items()}

    def _begin(self, group_id: str, at_ms: int) -> None:
        hold = self.groups.get(group_id)
        if hold is not None and (hold.over_ms < 0 or at_ms <= hold.over_ms):
            return
        if hold is not None and at_ms <= hold.over_ms + SETTLE_MS:
            # What was parked in the phase before may not have been logged yet.
            hold.over_ms, hold.until_ms = -1, at_ms + self._timeouts_ms.get(group_id, _DEFAULT_REBALANCE_MS)
            return
        limit_ms = self._timeouts_ms.get(group_id, _DEFAULT_REBALANCE_MS)
        self.groups[group_id] = Hold(at_ms, at_ms + limit_ms)

    def _end(self, group_id: str, at_ms: int, arrived_ms: int | None) -> None:
        hold = self.groups.get(group_id)
        if hold is not None and hold.over_ms < 0 and (arrived_ms is None or arrived_ms > hold.held_ms):
            hold.over_ms = at_ms

    def _note_timeout(self, group_id: str, timeout_ms: int) -> None:
        known_ms = self._timeouts_ms.get(group_id, 0)
        if timeout_ms > known_ms and (known_ms or len(self._timeouts_ms) < _TIMEOUTS_MAX):
            self._timeouts_ms[group_id] = timeout_ms
