"""The expirations that the engine wrote, compared with those in the log of Kafka's own coordinator."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from heartwheel.proof.audit.match.pairs import (
    COORDINATOR_LATE_MS,
    PAIR_MS_MAX,
    PairOutcome,
    Removal,
    RemovalPair,
    RemovalPairs,
)
from heartwheel.wire.verdict_rows import ExpirationRow


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One expiration, as both sides report it.

    Args:
        held: whether they agree.
        here: the engine's reason; `None` if it wrote nothing.
        there: what the coordinator's log says; `None` if it says nothing.
        here_ms: the engine's time (`ExpirationRow.out_ms`), epoch ms.
        there_ms: when the coordinator decided it, epoch ms.
        apart_ms: how much later the engine's time is, ms.
        evidence: file and line of the coordinator's log.
    """

    held: PairOutcome
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
        ok: whether both sides report the same, within the tolerance, in a time that both cover.
        from_ms: the begin of the time that both sides cover, epoch ms.
        to_ms: its end; before `from_ms` if no time is covered by both.
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
    """Return how far apart the engine's and the coordinator's time of one expiration may be, ms.

    The engine knows time to a tick interval and a tick of its wheel; the coordinator of a busy broker acts up to
    `COORDINATOR_LATE_MS` after a deadline.
    """
    return wheel_tick_ms + tick_interval_ms + COORDINATOR_LATE_MS


def compare(
    rows: Iterable[ExpirationRow],
    logged: Iterable[Removal],
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
        groups: those that the engine knows; others are not compared.
        from_ms: the begin of the time that both sides cover, epoch ms.
        to_ms: its end, epoch ms. What only one side reports within `pair_ms_max` of either end is not counted: the
            other side's report may lie just outside.
        tolerance_ms: how far apart two times that agree may be, ms (`tolerance_of`).
        pair_ms_max: how far apart the two times of one expiration may be for both to mean the same one, ms.
    """
    pair_ms_max, known = max(pair_ms_max, tolerance_ms), set(groups)
    found = RemovalPairs(pair_ms_max)
    for row in {row.id: row for row in rows}.values():
        if from_ms <= row.out_ms <= to_ms:
            found.add("here", Removal(row.group_id, row.member_id, row.reason, row.out_ms))
    covered = [removal for removal in logged if from_ms <= removal.time_ms <= to_ms]
    for removal in covered:
        if removal.group_id in known:
            found.add("there", removal)
    pairs = list(found)
    settled = [
        pair
        for pair in pairs
        if pair.apart_ms is not None or from_ms + pair_ms_max <= pair.either.time_ms <= to_ms - pair_ms_max
    ]
    compared = [_comparison(pair, tolerance_ms) for pair in sorted(settled, key=lambda pair: pair.either.time_ms)]
    return BrokerReport(
        ok=from_ms <= to_ms and all(each.held is PairOutcome.AGREE for each in compared),
        from_ms=from_ms,
        to_ms=to_ms,
        tolerance_ms=tolerance_ms,
        counts={outcome.value: sum(each.held is outcome for each in compared) for outcome in PairOutcome},
        unsettled=len(pairs) - len(settled),
        other_groups=sum(removal.group_id not in known for removal in covered),
        rows=compared,
    )


def _comparison(pair: RemovalPair, tolerance_ms: int) -> Comparison:
    here, there = pair.here, pair.there
    return Comparison(
        held=pair.outcome(tolerance_ms),
        group_id=pair.either.group_id,
        member_id=pair.either.member_id,
        here=here.reason if here else None,
        there=there.reason if there else None,
        here_ms=here.time_ms if here else None,
        there_ms=there.time_ms if there else None,
        apart_ms=pair.apart_ms,
        evidence=there.evidence if there else None,
    )
