"""The removals of members by Kafka's coordinator and by the engine, side by side.

What the coordinator decided is read from its own log. Each removal that one side reports is looked for on the other:
the same group, the same member, and a reason that means the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from heartwheel.base.percentiles import percentile
from heartwheel.proof.audit.match.pairs import (
    COORDINATOR_LATE_MS,
    PairOutcome,
    Removal,
    RemovalPair,
    RemovalPairs,
    Side,
    same_reasons,
)
from heartwheel.wire.explained import REASON_OF, ExplainedEvent, Happened
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow
from heartwheel.wire.verdicts import ExpiryReason

LEFT: Final = "left"
"""The reason of a member that left by itself, on either side; with a poll timeout, too."""

_LEAVE: Final = re.compile(r"^explicit `LeaveGroup` request for \((?P<members>.*)\) members")
_FALSE: Final = frozenset({PairOutcome.ONLY_HERE, PairOutcome.TOO_EARLY})
_MISSED: Final = frozenset({PairOutcome.ONLY_THERE, PairOutcome.TOO_LATE})


class Agreement(msgspec.Struct, kw_only=True):
    """The result of comparing both sides.

    Args:
        agree: removals that both report, with the same reason.
        different_reason: removals that both report, with two reasons.
        false: removals that the engine alone reports, or reports long before the coordinator.
        missed: removals that the coordinator alone reports, or reports long before the engine.
        by_reason: of those that agree.
        apart_ms: from the coordinator's time to the engine's, ms: p50, the least and the most.
        known_after_ms: from the coordinator's time to the engine's row in its topic, ms: p50, p99 and the most.
        differ: the removals that do not agree.
    """

    agree: int
    different_reason: int
    false: int
    missed: int
    by_reason: dict[str, int]
    apart_ms: dict[str, int]
    known_after_ms: dict[str, int]
    differ: list[dict[str, str | int | None]]

    @property
    def waiting(self) -> bool:
        """Whether one side alone has reported something so far."""
        return bool(self.false or self.missed)

    @property
    def ok(self) -> bool:
        """Whether both sides decided the same."""
        return not (self.different_reason or self.false or self.missed)


class Beside:
    """The reports of both sides.

    Args:
        groups: whose removals count.
    """

    def __init__(self, groups: Iterable[str]) -> None:
        self._groups = frozenset(groups)
        self._pairs = RemovalPairs()
        self._reported: set[tuple[Side, str, str, int]] = set()

    @property
    def pairs(self) -> list[RemovalPair]:
        """All that either side has reported, member by member."""
        return list(self._pairs)

    def add_event(self, event: ExplainedEvent) -> RemovalPair | None:
        """Add an event of the coordinator's log; return the removal once both sides have reported it."""
        has_left = event.kind in {Happened.POLL_TIMEOUT, Happened.LEFT}
        reason = LEFT if has_left else REASON_OF.get(event.kind)
        if reason is None or not event.member_id:
            return None
        alike = same_reasons(reason)
        return self._add("there", Removal(event.group_id, event.member_id, reason, event.time_ms, agrees_with=alike))

    def add_expiration(self, row: ExpirationRow, known_ms: int) -> RemovalPair | None:
        """Add an expiration of the engine."""
        reason = LEFT if row.reason == ExpiryReason.POLL_TIMEOUT else row.reason
        return self._add_written(row.group_id, row.member_id, reason, row.out_ms, known_ms)

    def add_trigger(self, row: TriggerRow, known_ms: int) -> list[RemovalPair]:
        """Add a trigger of the engine: it names the members that left, in Kafka's words."""
        words = _LEAVE.match(row.reason)
        if words is None or row.type != "rebalance_triggered":
            return []
        members = [name.strip() for name in words["members"].split(",")]
        pairs = (self._add_written(row.group_id, name, LEFT, row.time_ms, known_ms) for name in members if name)
        return [pair for pair in pairs if pair is not None]

    def agreement(self) -> Agreement:
        """Compare both sides."""
        by_outcome: dict[PairOutcome, list[RemovalPair]] = {outcome: [] for outcome in PairOutcome}
        for pair in self._pairs:
            outcome = pair.outcome(COORDINATOR_LATE_MS)
            # The last member to leave leaves an empty group: the engine reports that, and no rebalance.
            if outcome is not PairOutcome.ONLY_THERE or pair.either.reason != LEFT:
                by_outcome[outcome].append(pair)
        agree, different = by_outcome[PairOutcome.AGREE], by_outcome[PairOutcome.DIFFERENT_REASON]
        false = [pair for outcome in _FALSE for pair in by_outcome[outcome]]
        missed = [pair for outcome in _MISSED for pair in by_outcome[outcome]]
        both = [(pair.there, pair.here) for pair in self._pairs if pair.there is not None and pair.here is not None]
        apart = [here.time_ms - there.time_ms for there, here in both]
        known = [(here.known_ms or 0) - there.time_ms for there, here in both]
        return Agreement(
            agree=len(agree),
            different_reason=len(different),
            false=len(false),
            missed=len(missed),
            by_reason=dict(Counter(pair.there.reason for pair in agree if pair.there is not None)),
            apart_ms={"p50": percentile(apart, 0.5), "min": min(apart, default=0), "max": max(apart, default=0)},
            known_after_ms={
                "p50": percentile(known, 0.5),
                "p99": percentile(known, 0.99),
                "max": max(known, default=0),
            },
            differ=[_sides(pair) for pair in different + false + missed],
        )

    def _add_written(self, group_id: str, member_id: str, reason: str, at_ms: int, known_ms: int) -> RemovalPair | None:
        return self._add("here", Removal(group_id, member_id, reason, at_ms, known_ms=known_ms))

    def _add(self, side: Side, removal: Removal) -> RemovalPair | None:
        """Add a removal, unless it is of another group or this side has reported it before."""
        report = (side, removal.group_id, removal.member_id, removal.time_ms)
        if removal.group_id not in self._groups or report in self._reported:
            return None
        self._reported.add(report)
        return self._pairs.add(side, removal)


def _sides(pair: RemovalPair) -> dict[str, str | int | None]:
    kafka, heartwheel = pair.there, pair.here
    return {
        "group_id": pair.either.group_id,
        "member_id": pair.either.member_id,
        "kafka": kafka.reason if kafka else None,
        "kafka_ms": kafka.time_ms if kafka else None,
        "heartwheel": heartwheel.reason if heartwheel else None,
        "deadline_ms": heartwheel.time_ms if heartwheel else None,
        "known_ms": heartwheel.known_ms if heartwheel else None,
    }
