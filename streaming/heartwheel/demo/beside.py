"""Side by side: who was removed from a group by Kafka's coordinator, and by the engine, and what each said of it.

The coordinator's word is its own log. Each removal that one side tells is looked for on the other: same group, same
member, and the reason in the words of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from heartwheel.explain.shown import REASONS
from heartwheel.percentiles import percentile
from heartwheel.wire.explained import ExplainedEvent, Happened
from heartwheel.wire.verdicts import ExpirationRow, ExpiryReason, TriggerRow

LEFT: Final = "left"
"""The reason of a member that left by itself, on either side."""

APART_MS_MAX: Final = 1_000
"""How far apart both sides' moments of one removal may be, ms: the coordinator acts late on a busy machine."""

_LEAVE: Final = re.compile(r"^explicit `LeaveGroup` request for \((?P<members>.*)\) members")
_SAME: Final = {ExpiryReason.NEW_MEMBER_TIMEOUT.value: ExpiryReason.SESSION_TIMEOUT.value}


class Removal(msgspec.Struct, kw_only=True):
    """One member that was removed, as both sides tell it.

    Args:
        group_id: its group.
        member_id: who.
        kafka: the coordinator's reason; `None` if it decided nothing.
        kafka_ms: when it decided so, epoch ms.
        heartwheel: the engine's reason; `None` if it decided nothing.
        deadline_ms: when it was true by the engine, epoch ms.
        known_ms: when the engine's row was in its topic, epoch ms.
    """

    group_id: str
    member_id: str
    kafka: str | None = None
    kafka_ms: int | None = None
    heartwheel: str | None = None
    deadline_ms: int | None = None
    known_ms: int | None = None

    @property
    def is_known_to_both(self) -> bool:
        """Whether both sides have decided it."""
        return self.kafka is not None and self.heartwheel is not None

    @property
    def apart_ms(self) -> int:
        """How much later the engine's moment is than the coordinator's, ms."""
        return (self.deadline_ms or 0) - (self.kafka_ms or 0)


class Agreement(msgspec.Struct, kw_only=True):
    """What comes of holding both sides against each other.

    Args:
        agree: removals that both tell, with the same reason.
        different_reason: removals that both tell, with two reasons.
        false: removals that the engine alone tells, or tells long before the coordinator.
        missed: removals that the coordinator alone tells, or tells long before the engine.
        by_reason: of those that agree.
        apart_ms: from the coordinator's moment to the engine's, ms: p50, the least and the most.
        known_after_ms: from the coordinator's moment to the engine's row in its topic, ms: p50, p99 and the most.
        differ: the removals that do not agree.
    """

    agree: int
    different_reason: int
    false: int
    missed: int
    by_reason: dict[str, int]
    apart_ms: dict[str, int]
    known_after_ms: dict[str, int]
    differ: list[Removal]

    @property
    def waiting(self) -> bool:
        """Whether one side alone has decided something so far."""
        return bool(self.false or self.missed)

    @property
    def ok(self) -> bool:
        """Whether both sides decided the same."""
        return not (self.different_reason or self.false or self.missed)


class Beside:
    """Collect what both sides tell.

    Args:
        groups: whose removals count.
    """

    def __init__(self, groups: Iterable[str]) -> None:
        self._groups = frozenset(groups)
        self._removals: dict[tuple[str, str], list[Removal]] = {}

    def add_event(self, event: ExplainedEvent) -> Removal | None:
        """Take what the coordinator's log says; return the removal once both sides have decided it."""
        reason = REASONS.get(event.kind)
        if event.kind is Happened.POLL_TIMEOUT or event.kind is Happened.LEFT:
            decided = LEFT
        elif reason is None:
            return None
        else:
            decided = reason.value
        if event.group_id not in self._groups or not event.member_id:
            return None
        removal = self._open(event.group_id, event.member_id, kafka=True, at_ms=event.time_ms)
        if removal is None:
            return None
        removal.kafka, removal.kafka_ms = decided, event.time_ms
        return removal if removal.is_known_to_both else None

    def add_expiration(self, row: ExpirationRow, known_ms: int) -> Removal | None:
        """Take an expiration of the engine, likewise."""
        reason = LEFT if row.reason == ExpiryReason.POLL_TIMEOUT else _SAME.get(row.reason, row.reason)
        return self._engine_decided(row.group_id, row.member_id, reason, row.out_ms, known_ms)

    def add_trigger(self, row: TriggerRow, known_ms: int) -> list[Removal]:
        """Take a trigger of the engine: it names the members that left, in Kafka's words."""
        words = _LEAVE.match(row.reason)
        if words is None or row.type != "rebalance_triggered":
            return []
        members = [name.strip() for name in words["members"].split(",")]
        removals = (self._engine_decided(row.group_id, name, LEFT, row.time_ms, known_ms) for name in members if name)
        return [removal for removal in removals if removal is not None]

    @property
    def removals(self) -> list[Removal]:
        """All that either side has decided, member by member."""
        return [removal for removals in self._removals.values() for removal in removals]

    def agreement(self, *, from_ms: int, to_ms: int) -> Agreement:
        """Hold both sides against each other.

        Args:
            from_ms: since when both are known, epoch ms.
            to_ms: until when, epoch ms.
        """
        counted = [
            removal for removal in self.removals if from_ms <= (removal.kafka_ms or removal.deadline_ms or 0) <= to_ms
        ]
        known_to_both = [removal for removal in counted if removal.is_known_to_both]
        both = [removal for removal in known_to_both if abs(removal.apart_ms) <= APART_MS_MAX]
        early = [removal for removal in known_to_both if removal.apart_ms < -APART_MS_MAX]
        late = [removal for removal in known_to_both if removal.apart_ms > APART_MS_MAX]
        agree = [removal for removal in both if removal.kafka == removal.heartwheel]
        by_reason: dict[str, int] = {}
        for removal in agree:
            by_reason[str(removal.kafka)] = by_reason.get(str(removal.kafka), 0) + 1
        apart = [removal.apart_ms for removal in known_to_both]
        known = [(removal.known_ms or 0) - (removal.kafka_ms or 0) for removal in known_to_both]
        # Who left last leaves an empty group, of which the engine says so, and no rebalance.
        false = early + [removal for removal in counted if removal.kafka is None]
        missed = late + [removal for removal in counted if removal.heartwheel is None and removal.kafka != LEFT]
        return Agreement(
            agree=len(agree),
            different_reason=len(both) - len(agree),
            false=len(false),
            missed=len(missed),
            by_reason=by_reason,
            apart_ms={"p50": percentile(apart, 0.5), "min": min(apart, default=0), "max": max(apart, default=0)},
            known_after_ms={
                "p50": percentile(known, 0.5),
                "p99": percentile(known, 0.99),
                "max": max(known, default=0),
            },
            differ=[removal for removal in both if removal.kafka != removal.heartwheel] + false + missed,
        )

    def _engine_decided(self, group_id: str, member_id: str, reason: str, at_ms: int, known_ms: int) -> Removal | None:
        if group_id not in self._groups:
            return None
        removal = self._open(group_id, member_id, kafka=False, at_ms=at_ms)
        if removal is None:
            return None
        removal.heartwheel, removal.deadline_ms, removal.known_ms = reason, at_ms, known_ms
        return removal if removal.is_known_to_both else None

    def _open(self, group_id: str, member_id: str, *, kafka: bool, at_ms: int) -> Removal | None:
        """Return the member's removal that this side has not decided yet; `None` if it has decided this very one."""
        removals = self._removals.setdefault((group_id, member_id), [])
        for removal in removals:
            told_ms = removal.kafka_ms if kafka else removal.deadline_ms
            if told_ms == at_ms:
                return None
            if told_ms is None:
                return removal
        removals.append(Removal(group_id=group_id, member_id=member_id))
        return removals[-1]
