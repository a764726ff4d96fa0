"""What-if analysis: what a log of requests shows about another session timeout or heartbeat interval.

A log contains what members did under the timeout that they had. Running the rules on it under another timeout is wrong
from the first difference on: after an expiration that did not happen, the rules wait for joins that no member had a
reason to send. So the log is replayed once, unchanged, and every silence in it (`silences`) is compared with each
timeout. A silence that reaches the timeout is an expiration, and a false one if the member sent something later at the
same generation. What members would have done after it cannot be known: the rebalance that an expiration triggers is
counted, and the join of a member that comes back from a false one is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

from heartwheel.base.percentiles import percentile
from heartwheel.engine.replay.signs import Sign, SignsOfLife
from heartwheel.engine.replay.silences import OPEN, FollowedRow, MemberSilence, find_silences, followed
from heartwheel.engine.replay.what_if_answer import IntervalScenario, IntervalWhatIf, LongestSilence, Scenario, WhatIf
from heartwheel.wire.verdicts import EPOCH_KINDS, Cause, ExpiryReason, Kind, Verdict


class _Members:
    """What the log shows of some members.

    Args:
        signs: every line of the log.
        at_least_ms: silences that are shorter are not kept, ms.

    Attributes:
        silences: the silences that are long enough.
        longest: the longest silence that a member came back from; `None` if there is none.
        first_ms: the first sign, epoch ms; `None` if there is none.
        beats: how many heartbeats and commits there are.
        intervals_ms: the times between two of them in sequence, ms.
        expired_alive: for each expired session, whether the member sent something later.
        delays_ms: for each expired session of a member that did not, the time since its last sign of life, ms.
    """

    def __init__(self, signs: SignsOfLife, members: Iterable[int], at_least_ms: int) -> None:
        self.silences: list[MemberSilence] = []
        self.longest: MemberSilence | None = None
        self.first_ms: int | None = None
        self.beats = 0
        self.intervals_ms: list[int] = []
        self.expired_alive: list[bool] = []
        self.delays_ms: list[int] = []
        for member in members:
            rows = followed(signs.rows(member))
            self._add(rows)
            for silence in find_silences(signs, member, rows):
                self._add_silence(silence, at_least_ms)

    def heartbeat_interval_ms(self) -> int | None:
        """Return the median time between two heartbeats of a member, ms; `None` without heartbeats."""
        return _percentile(self.intervals_ms, 0.5)

    def _add(self, rows: Sequence[FollowedRow]) -> None:
        if rows:
            first_ms = rows[0].row.t_ms
            self.first_ms = first_ms if self.first_ms is None else min(self.first_ms, first_ms)
        self.beats += sum(row.sign == Sign.BEAT for row, _, _ in rows)
        self.intervals_ms += [
            after.t_ms - before.t_ms
            for (before, _, _), (after, _, _) in pairwise(rows)
            if before.sign == after.sign == Sign.BEAT
        ]
        last_ms = None
        for row, _, alive in rows:
            if row.starts_session:
                last_ms = row.t_ms
            elif row.sign == Sign.EXPIRED:
                self.expired_alive.append(alive)
                if not alive and last_ms is not None:
                    self.delays_ms.append(row.t_ms - last_ms)

    def _add_silence(self, silence: MemberSilence, at_least_ms: int) -> None:
        length_ms = silence.stop_ms - silence.start_ms
        if length_ms >= at_least_ms:
            self.silences.append(silence)
        if silence.alive and silence.stop_ms < OPEN and length_ms >= 0:
            longest = self.longest
            if longest is None or length_ms > longest.stop_ms - longest.start_ms:
                self.longest = silence


def what_if(
    signs: SignsOfLife, verdicts: Sequence[Verdict], timeouts_ms: Sequence[int], end_ms: int, group_kind: str = ""
) -> WhatIf:
    """Evaluate session timeouts on the silences of a log.

    Args:
        signs: every line of the log.
        verdicts: what the coordinator decided on it, in the order of time.
        end_ms: the clock at the end of the log, epoch ms.
        group_kind: only members with heartbeats of this kind of group, whose session timeout the broker sets:
            `consumer`, `share` or `streams`; empty for all members of all groups.
    """
    signs.judge(verdicts)
    asked = [number for number, kind in enumerate(signs.kinds) if group_kind in ("", kind)]
    found = _Members(signs, asked, min(timeouts_ms, default=0))
    names = {signs.members[number] for number in asked}
    by_expiry, other = _count_rebalances(verdicts, names, {group_id for group_id, _ in names})
    return WhatIf(
        recorded=_scenario(None, found.expired_alive, found.delays_ms, by_expiry),
        scenarios=[_outcome(signs, found.silences, ms, end_ms) for ms in timeouts_ms],
        longest_silence=_longest(signs, found.longest),
        heartbeat_interval_ms=found.heartbeat_interval_ms(),
        other_rebalances=other,
        poll_timeouts=sum(
            verdict.expiry_reason is ExpiryReason.POLL_TIMEOUT and (verdict.group_id, verdict.member_id) in names
            for verdict in verdicts
        )
        + sum(signs.members[number] in names for number in signs.returned),
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
        end_ms: the clock at the end of the log, epoch ms.
    """
    signs.judge(verdicts)
    found = _Members(signs, range(len(signs.members)), OPEN)
    silence_ms = None if found.longest is None else found.longest.stop_ms - found.longest.start_ms
    interval_ms = found.heartbeat_interval_ms()
    span_ms = 1 if found.first_ms is None else max(end_ms - found.first_ms, 1)
    per_s = found.beats * 1000 / span_ms

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


def _outcome(signs: SignsOfLife, silences: Iterable[MemberSilence], timeout_ms: int, end_ms: int) -> Scenario:
    expired = [one for one in silences if one.start_ms + timeout_ms <= min(one.stop_ms, end_ms)]
    delays_ms = [one.start_ms + timeout_ms - one.last_sign_ms for one in expired if not one.alive]
    rebalances = _rebalances(signs, expired, timeout_ms)
    return _scenario(timeout_ms, [one.alive for one in expired], delays_ms, rebalances)


def _scenario(timeout_ms: int | None, alive: Sequence[bool], delays_ms: Sequence[int], rebalances: int) -> Scenario:
    return Scenario(
        session_timeout_ms=timeout_ms,
        expirations=len(alive),
        false_expirations=sum(alive),
        detection_delay_p50_ms=_percentile(delays_ms, 0.5),
        detection_delay_p99_ms=_percentile(delays_ms, 0.99),
        rebalances=rebalances,
    )


def _rebalances(signs: SignsOfLife, expired: Iterable[MemberSilence], timeout_ms: int) -> int:
    """Count the join phases: a member that is silent when one begins holds it up until its own session ends."""
    count, last_group, end_ms = 0, "", 0
    by_group = sorted((signs.members[one.member][0], one.start_ms) for one in expired)
    for group_id, start_ms in by_group:
        phases, deadline_ms = signs.phases[group_id], start_ms + timeout_ms
        is_apart = group_id != last_group or start_ms >= end_ms
        if phases.goes_by_epochs(deadline_ms) or (is_apart and not phases.is_joining_anyway(deadline_ms)):
            count += 1
        last_group, end_ms = group_id, deadline_ms
    return count


def _percentile(values: Sequence[int], share: float) -> int | None:
    return percentile(values, share) if values else None


def _longest(signs: SignsOfLife, silence: MemberSilence | None) -> LongestSilence | None:
    if silence is None:
        return None
    group_id, member_id = signs.members[silence.member]
    return LongestSilence(
        silence_ms=silence.stop_ms - silence.start_ms,
        since_ms=silence.start_ms,
        group_id=group_id,
        member_id=member_id,
    )
