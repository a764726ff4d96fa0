"""Removals of members as two sides report them: the coordinator, and the engine.

Each side reports a removal with a time of its own, so no id tells which two are the same one: they are of one member,
and nearest to each other in time.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from heartwheel.wire.verdicts import ExpiryReason

Side = Literal["there", "here"]
"""The coordinator, or the engine."""

PAIR_MS_MAX: Final = 30_000
"""How far apart two times may be for both sides to mean the same removal, ms."""

COORDINATOR_LATE_MS: Final = 1_000
"""How much later than its deadline the coordinator of a busy broker may act, ms."""


_NAMED_ALIKE: Final = frozenset({ExpiryReason.SESSION_TIMEOUT.value, ExpiryReason.NEW_MEMBER_TIMEOUT.value})


def same_reasons(reason: str) -> frozenset[str]:
    """Return the engine's reasons that the coordinator's log has one line for."""
    return _NAMED_ALIKE if reason in _NAMED_ALIKE else frozenset({reason})


class Removal(msgspec.Struct, frozen=True):
    """The removal of a member from its group, as one side reports it.

    Args:
        reason: in the words of this side.
        agrees_with: the other side's reasons that mean the same; only of what was expected.
        known_ms: when the report could be read, epoch ms; `None` if that is not asked for.
        evidence: file and line of the report, if it is in a log.
    """

    group_id: str
    member_id: str
    reason: str
    time_ms: int
    agrees_with: frozenset[str] = frozenset()
    known_ms: int | None = None
    evidence: str | None = None


class PairOutcome(enum.StrEnum):
    """How the engine's report of a removal compares with the coordinator's."""

    AGREE = "agree"
    TOO_EARLY = "too_early"
    TOO_LATE = "too_late"
    DIFFERENT_REASON = "different_reason"
    ONLY_HERE = "only_here"
    ONLY_THERE = "only_there"


class RemovalPair(msgspec.Struct):
    """One removal.

    Args:
        there: as the coordinator reports it; `None` if it does not.
        here: as the engine reports it; `None` if it does not.
    """

    there: Removal | None = None
    here: Removal | None = None

    @property
    def either(self) -> Removal:
        """The engine's report, or the coordinator's if there is no other."""
        either = self.here or self.there
        assert either is not None, "a pair begins with a report"  # noqa: S101 - how it is made
        return either

    @property
    def apart_ms(self) -> int | None:
        """How much later the engine's time is than the coordinator's, ms; `None` if one of them is missing."""
        return None if self.here is None or self.there is None else self.here.time_ms - self.there.time_ms

    def outcome(self, tolerance_ms: int) -> PairOutcome:
        """Compare both reports. A wrong time counts before a wrong reason, as it expires a living member.

        Args:
            tolerance_ms: how far apart two times that agree may be, ms.
        """
        if self.there is None or self.here is None:
            return PairOutcome.ONLY_HERE if self.there is None else PairOutcome.ONLY_THERE
        apart_ms = self.here.time_ms - self.there.time_ms
        if abs(apart_ms) > tolerance_ms:
            return PairOutcome.TOO_EARLY if apart_ms < 0 else PairOutcome.TOO_LATE
        is_same = self.here.reason in self.there.agrees_with
        return PairOutcome.AGREE if is_same else PairOutcome.DIFFERENT_REASON


class RemovalPairs:
    """All removals that either side has reported.

    Args:
        pair_ms_max: how far apart the two times of one removal may be, ms.
    """

    def __init__(self, pair_ms_max: int = PAIR_MS_MAX) -> None:
        self._pair_ms_max = pair_ms_max
        self._pairs: dict[tuple[str, str], list[RemovalPair]] = {}

    def __iter__(self) -> Iterator[RemovalPair]:
        return (pair for pairs in self._pairs.values() for pair in pairs)

    def add(self, side: Side, removal: Removal) -> RemovalPair | None:
        """Add what one side reports; return the pair if the other side has reported it before."""

        def apart_ms(pair: RemovalPair) -> int:
            return abs(pair.either.time_ms - removal.time_ms)

        pairs = self._pairs.setdefault((removal.group_id, removal.member_id), [])
        near = min((pair for pair in pairs if getattr(pair, side) is None), key=apart_ms, default=None)
        if near is None or apart_ms(near) > self._pair_ms_max:
            pairs.append(RemovalPair(**{side: removal}))
            return None
        setattr(near, side, removal)
        return near
