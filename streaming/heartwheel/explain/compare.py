"""Hold the engine's expirations against the coordinator's own lines: who agrees, who is only here, who only there."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from heartwheel.explain.shown import REASONS
from heartwheel.wire.explained import ExplainedEvent, Happened
from heartwheel.wire.verdicts import ExpirationRow, ExpiryReason

PAIR_MS_MAX: Final = 30_000
"""How far apart the two times of one expiration may be for the sides to mean the same one, ms."""

COORDINATOR_LATE_MS: Final = 1_000
"""How much later than its deadline the coordinator of a busy broker may act, ms."""

_ALSO: Final = {ExpiryReason.NEW_MEMBER_TIMEOUT.value: Happened.EXPIRED}
_KIND_OF: Final[Mapping[str, Happened]] = {reason.value: kind for kind, reason in REASONS.items()} | _ALSO


class Held(enum.StrEnum):
    """The outcome of comparing one expiration with the other side's."""

    AGREE = "agree"
    TOO_EARLY = "too_early"
    TOO_LATE = "too_late"
    DIFFERENT_REASON = "different_reason"
    ONLY_HERE = "only_here"
    ONLY_THERE = "only_there"


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Hold one expiration as both sides tell it.

    Args:
        held: whether they agree.
        group_id: its group.
        member_id: who.
        here: the engine's reason; `None` if it wrote nothing.
        there: what the coordinator's log says; `None` if it says nothing.
        here_ms: the engine's moment (`ExpirationRow.out_ms`), epoch ms.
        there_ms: when the coordinator decided it, epoch ms.
        apart_ms: how much later the engine's moment is, ms.
        evidence: file and line of the coordinator's log.
    """

    held: Held
    group_id: str
    member_id: str
    here: str | None = None
    there: str | None = None
    here_ms: int | None = None
    there_ms: int | None = None
    apart_ms: int | None = None
    evidence: str | None = None


class BrokerReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a comparison.

    Args:
        ok: whether both sides tell the same, within the tolerance, in a time that both cover.
        from_ms: since when both are known, epoch ms.
        to_ms: until when; before `from_ms` if no time is covered by both.
        tolerance_ms: how far apart two times that agree may be, ms.
        counts: how many expirations of each outcome.
        unsettled: expirations of one side so near to an end that the other's may lie outside; not in `counts`.
        other_groups: expirations in the log of groups that the engine does not know, which are not compared.
        rows: those that differ, and those that agree, in the order of time.
    """

    ok: bool
    from_ms: int
    to_ms: int
    tolerance_ms: int
    counts: dict[str, int]
    unsettled: int
    other_groups: int
    rows: list[Comparison]


def tolerance_of(*, wheel_tick_ms: int, tick_interval_ms: int) -> int:
    """Return how far apart the engine's and the coordinator's moment of one expiration may be, ms.

    The engine knows time to a tick interval and a tick of its wheel; the coordinator of a busy broker acts up to
    `COORDINATOR_LATE_MS` after a deadline.
    """
    return wheel_tick_ms + tick_interval_ms + COORDINATOR_LATE_MS


def compare(
    rows: Iterable[ExpirationRow],
    events: Iterable[ExplainedEvent],
    *,
    groups: Iterable[str],
    from_ms: int,
    to_ms: int,
    tolerance_ms: int,
    pair_ms_max: int = PAIR_MS_MAX,
) -> BrokerReport:
    """Compare what the engine has written with what the coordinator's log says.

    Args:
        rows: of the expirations topic; a row that was written again counts once.
        events: of the log.
        groups: those that the engine knows; others are not its business.
        from_ms: since when both sides are known, epoch ms.
        to_ms: until when. What only one side tells within `pair_ms_max` of either end is not counted: the other side's
            may lie just outside.
        tolerance_ms: how far apart two times that agree may be, ms (`tolerance_of`).
        pair_ms_max: how far apart the two times of one expiration may be for both to mean the same one, ms.
    """
    pair_ms_max = max(pair_ms_max, tolerance_ms)
    known = set(groups)
    here: dict[tuple[str, str], list[ExpirationRow]] = defaultdict(list)
    for row in {row.id: row for row in rows}.values():
        if from_ms <= row.out_ms <= to_ms:
            here[row.group_id, row.member_id].append(row)
    other, found = 0, []
    for event in events:
        if event.kind not in REASONS or not from_ms <= event.time_ms <= to_ms:
            continue
        if event.group_id not in known:
            other += 1
            continue
        found.append(_compared(event, here, tolerance_ms, pair_ms_max))
    found += [_only_here(row) for left in here.values() for row in left]
    settled = [each for each in found if not _may_come(each, from_ms, to_ms, pair_ms_max)]
    settled.sort(key=_time_of)
    counts = {held.value: sum(each.held is held for each in settled) for held in Held}
    return BrokerReport(
        ok=from_ms <= to_ms and all(each.held is Held.AGREE for each in settled),
        from_ms=from_ms,
        to_ms=to_ms,
        tolerance_ms=tolerance_ms,
        counts=counts,
        unsettled=len(found) - len(settled),
        other_groups=other,
        rows=settled,
    )


def _compared(
    event: ExplainedEvent, here: dict[tuple[str, str], list[ExpirationRow]], tolerance_ms: int, pair_ms_max: int
) -> Comparison:
    """Compare an event with the engine's nearest row of that member, and remove that row from `here`."""
    rows = here.get((event.group_id, event.member_id or ""), [])
    near = min(rows, key=lambda row: abs(row.out_ms - event.time_ms), default=None)
    evidence = f"{event.evidence.file}:{event.evidence.line}"
    if near is None or abs(near.out_ms - event.time_ms) > pair_ms_max:
        return Comparison(
            held=Held.ONLY_THERE,
            group_id=event.group_id,
            member_id=event.member_id or "",
            there=event.kind,
            there_ms=event.time_ms,
            evidence=evidence,
        )
    rows.remove(near)
    return Comparison(
        held=_outcome(near, event, tolerance_ms),
        group_id=event.group_id,
        member_id=near.member_id,
        here=near.reason,
        there=event.kind,
        here_ms=near.out_ms,
        there_ms=event.time_ms,
        apart_ms=near.out_ms - event.time_ms,
        evidence=evidence,
    )


def _outcome(row: ExpirationRow, event: ExplainedEvent, tolerance_ms: int) -> Held:
    """Return how a pair compares; a wrong time comes before a wrong reason, as it expires a living member."""
    apart_ms = row.out_ms - event.time_ms
    if apart_ms < -tolerance_ms:
        return Held.TOO_EARLY
    if apart_ms > tolerance_ms:
        return Held.TOO_LATE
    return Held.AGREE if _KIND_OF.get(row.reason) == event.kind else Held.DIFFERENT_REASON


def _only_here(row: ExpirationRow) -> Comparison:
    return Comparison(
        held=Held.ONLY_HERE,
        group_id=row.group_id,
        member_id=row.member_id,
        here=row.reason,
        here_ms=row.out_ms,
    )


def _may_come(each: Comparison, from_ms: int, to_ms: int, pair_ms_max: int) -> bool:
    """Return whether the other side of an expiration may lie just outside of what is known."""
    if each.held not in {Held.ONLY_HERE, Held.ONLY_THERE}:
        return False
    return not from_ms + pair_ms_max <= _time_of(each) <= to_ms - pair_ms_max


def _time_of(each: Comparison) -> int:
    time_ms = each.there_ms if each.here_ms is None else each.here_ms
    assert time_ms is not None  # noqa: S101 - one side has it
    return time_ms
