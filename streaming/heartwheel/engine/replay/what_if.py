"""What-if analysis: what a log of requests shows about another session timeout or heartbeat interval.

A log contains what members did under the timeout that they had. Running the rules on it under another timeout is wrong
from the first difference on: after an expiration that did not happen, the rules wait for joins that no member had a
reason to send. So the log is replayed once, unchanged, and every silence in it (`silences`) is compared with each
timeout. A silence that reaches the timeout is an expiration, and a false one if the member sent something later at the
same generation. What members would have done after it cannot be known: the rebalance that an expiration triggers is
counted, and the join of a member that comes back from a false one is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.replay.signs import ReplayedPhases, Rows, Sign, SignsOfLife
from heartwheel.engine.replay.silences import OPEN, Silences, find_silences, has_later_sign
from heartwheel.engine.replay.what_if_answer import IntervalScenario, IntervalWhatIf, LongestSilence, Scenario, WhatIf
from heartwheel.wire.verdicts import EPOCH_KINDS, Cause, ExpiryReason, Kind, Verdict

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class _Expiry(NamedTuple):
    group: Ints
    last_sign_ms: Ints
    start_ms: Ints
    deadline_ms: Ints
    alive: Flags


def what_if(
    signs: SignsOfLife, verdicts: Sequence[Verdict], timeouts_ms: Sequence[int], end_ms: int, group_kind: str = ""
) -> WhatIf:
    """Evaluate session timeouts on the silences of a log.

    Args:
        signs: every line of the log.
        verdicts: what the coordinator decided on it, in the order of time.
        timeouts_ms: session timeouts, ms.
        end_ms: the clock at the end of the log, epoch ms.
        group_kind: only members with heartbeats of this kind of group, whose session timeout the broker sets:
            `consumer`, `share` or `streams`; empty for all members of all groups.
    """
    signs.judge(verdicts)
    asked = np.array([group_kind in ("", kind) for kind in signs.kinds], np.bool_)
    all_rows = signs.rows()
    silences = find_silences(signs, all_rows)
    silences = silences.where(asked[silences.member])
    rows = all_rows.where(asked[all_rows.member])
    names = {name for name, wanted in zip(signs.members, asked, strict=True) if wanted}
    numbers = {group_id: number for number, group_id in enumerate(signs.phases)}
    group = np.array([numbers[group_id] for group_id, _ in signs.members], np.int64)
    phases = list(signs.phases.values())
    by_expiry, other = _count_rebalances(verdicts, names, {group_id for group_id, _ in names})
    return WhatIf(
        recorded=_recorded(rows, by_expiry),
        scenarios=[_scenario(_expirations(silences, group, ms, end_ms), phases, ms) for ms in timeouts_ms],
        longest_silence=_longest(signs, silences),
        heartbeat_interval_ms=_heartbeat_interval_ms(rows),
        other_rebalances=other,
        poll_timeouts=sum(
            verdict.expiry_reason is ExpiryReason.POLL_TIMEOUT and (verdict.group_id, verdict.member_id) in names
            for verdict in verdicts
        )
        + sum(bool(asked[number]) for number in signs.returned),
        members=len(names),
        group_kind=group_kind,
        end_ms=end_ms,
    )


def what_if_intervals(
    signs: SignsOfLife, verdicts: Sequence[Verdict], intervals_ms: Sequence[int], end_ms: int
) -> IntervalWhatIf:
    """Evaluate other heartbeat intervals on the silences of a log.

    A silence in the log begins at the last heartbeat before the member hung: at another interval that heartbeat came at
    most that much earlier.

    Args:
        signs: every line of the log.
        verdicts: what the coordinator decided on it, in the order of time.
        intervals_ms: heartbeat intervals, ms.
        end_ms: the clock at the end of the log, epoch ms.
    """
    signs.judge(verdicts)
    rows = signs.rows()
    longest = _longest(signs, find_silences(signs, rows))
    silence_ms = None if longest is None else longest.silence_ms
    interval_ms = _heartbeat_interval_ms(rows)
    span_ms = max(end_ms - int(rows.t_ms.min()), 1) if len(rows) else 1
    per_s = int(np.count_nonzero(rows.sign == Sign.BEAT)) * 1000 / span_ms

    def scenario(asked_ms: int) -> IntervalScenario:
        was_ms = asked_ms if interval_ms is None else max(interval_ms, 1)
        worst_ms = None if silence_ms is None else max(silence_ms + max(asked_ms - was_ms, 0), asked_ms)
        return IntervalScenario(
            heartbeat_interval_ms=asked_ms, heartbeats_per_s=per_s * was_ms / asked_ms, longest_silence_ms=worst_ms
        )

    return IntervalWhatIf(
        recorded=IntervalScenario(heartbeat_interval_ms=None, heartbeats_per_s=per_s, longest_silence_ms=silence_ms),
        scenarios=[scenario(ms) for ms in intervals_ms],
        heartbeat_interval_ms=interval_ms,
        members=len(signs.members),
        end_ms=end_ms,
    )


def _count_rebalances(
    verdicts: Sequence[Verdict], members: AbstractSet[tuple[str, str]], groups: AbstractSet[str]
) -> tuple[int, int]:
    """Count the rebalances and new epochs that expired sessions triggered, and those of other causes.

    In a group with member epochs each expired session triggers one at once: a new epoch, which no line of a broker
    shows for a share or streams group, or the rebalance of a group that thereby becomes a classic one.
    """
    by_expiry = other = 0
    expired_ms: dict[str, int] = {}
    for verdict in verdicts:
        if verdict.group_kind in EPOCH_KINDS and verdict.expiry_reason is ExpiryReason.SESSION_TIMEOUT:
            expired_ms[verdict.group_id] = verdict.time_ms
            by_expiry += (verdict.group_id, verdict.member_id or "") in members
        elif verdict.kind in (Kind.EPOCH_BUMPED, Kind.REBALANCE_STARTED) and verdict.group_id in groups:
            if expired_ms.pop(verdict.group_id, None) == verdict.time_ms:
                continue
            if verdict.kind is Kind.REBALANCE_STARTED and verdict.cause is Cause.MEMBER_EXPIRED:
                by_expiry += 1
            else:
                other += 1
    return by_expiry, other


def _expirations(silences: Silences, group: Ints, timeout_ms: int, end_ms: int) -> _Expiry:
    deadline = silences.start_ms + timeout_ms
    expired = deadline <= np.minimum(silences.stop_ms, end_ms)
    return _Expiry(
        group[silences.member[expired]],
        silences.last_sign_ms[expired],
        silences.start_ms[expired],
        deadline[expired],
        silences.alive[expired],
    )


def _scenario(expiry: _Expiry, phases: Sequence[ReplayedPhases], timeout_ms: int) -> Scenario:
    delays = (expiry.deadline_ms - expiry.last_sign_ms)[~expiry.alive]
    return Scenario(
        session_timeout_ms=timeout_ms,
        expirations=len(expiry.alive),
        false_expirations=int(np.count_nonzero(expiry.alive)),
        detection_delay_p50_ms=_percentile(delays, 50),
        detection_delay_p99_ms=_percentile(delays, 99),
        rebalances=_rebalances(expiry, phases),
    )


def _rebalances(expiry: _Expiry, phases: Sequence[ReplayedPhases]) -> int:
    """Count the join phases: a member that is silent when one begins holds it up until its own session ends."""
    order = np.lexsort((expiry.deadline_ms, expiry.group))
    count, last_group, end_ms = 0, -1, 0
    for group, start_ms, deadline_ms in zip(
        *(column[order].tolist() for column in (expiry.group, expiry.start_ms, expiry.deadline_ms)), strict=True
    ):
        is_apart = group != last_group or start_ms >= end_ms
        if phases[group].goes_by_epochs(deadline_ms) or (is_apart and not phases[group].is_joining_anyway(deadline_ms)):
            count += 1
        last_group, end_ms = group, deadline_ms
    return count


def _recorded(rows: Rows, rebalances: int) -> Scenario:
    expired = rows.sign == Sign.EXPIRED
    alive = has_later_sign(rows)
    is_sign = (rows.sign >= Sign.BEAT) & (rows.sign <= Sign.SYNC)
    last = np.maximum.accumulate(np.where(is_sign, np.arange(len(rows)), 0)) if len(rows) else rows.t_ms
    delays = (rows.t_ms - rows.t_ms[last])[expired & ~alive & (rows.member == rows.member[last])]
    return Scenario(
        session_timeout_ms=None,
        expirations=int(np.count_nonzero(expired)),
        false_expirations=int(np.count_nonzero(expired & alive)),
        detection_delay_p50_ms=_percentile(delays, 50),
        detection_delay_p99_ms=_percentile(delays, 99),
        rebalances=rebalances,
    )


def _percentile(values: Ints, percent: int) -> int | None:
    # The nearest rank, as in `heartwheel.base.percentiles`; NumPy finds it without sorting.
    return int(np.percentile(values, percent, method="inverted_cdf")) if len(values) else None


def _longest(signs: SignsOfLife, silences: Silences) -> LongestSilence | None:
    length = np.where(silences.alive & (silences.stop_ms < OPEN), silences.stop_ms - silences.start_ms, -1)
    if not len(length) or length.max() < 0:
        return None
    at = int(length.argmax())
    group_id, member_id = signs.members[int(silences.member[at])]
    return LongestSilence(
        silence_ms=int(length[at]), since_ms=int(silences.start_ms[at]), group_id=group_id, member_id=member_id
    )


def _heartbeat_interval_ms(rows: Rows) -> int | None:
    beat = rows.sign == Sign.BEAT
    pairs = beat[1:] & beat[:-1] & (rows.member[1:] == rows.member[:-1])
    return _percentile(np.diff(rows.t_ms)[pairs], 50)
