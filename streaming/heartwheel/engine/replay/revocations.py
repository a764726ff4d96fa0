"""Revocations: how long each member took to give back the partitions that its group took away.

Another rebalance timeout would not change what a member does: it gives partitions back when its callback is done. A
member that was fenced before that learns of it and joins again when its callback is done, so that join ends the stretch
as giving back would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from heartwheel.base.percentiles import percentile
from heartwheel.engine.replay.silences import OPEN
from heartwheel.engine.rules.epochs.model import EpochGroup, TimerName
from heartwheel.wire.verdicts import Kind, Verdict

_ENDS: Final = frozenset({Kind.MEMBER_EXPIRED, Kind.MEMBER_LEFT, Kind.STATIC_LEFT, Kind.STATIC_REPLACED})
"""What ends a stretch without partitions being given back."""


class Stretch(msgspec.Struct):
    """How long a member had partitions to give back.

    Args:
        start_ms: when it was asked, epoch ms.
        timer: which timer of the group ran for it.
        stop_ms: what ended it, epoch ms; `OPEN` if nothing did.
        gave_back: whether the member gave the partitions back or, having been fenced, joined again.
    """

    group_id: str
    member_id: str
    start_ms: int
    timer: int
    stop_ms: int = OPEN
    gave_back: bool = False


class RevocationScenario(msgspec.Struct, kw_only=True, frozen=True):
    """The outcome of one rebalance timeout.

    Args:
        rebalance_timeout_ms: the timeout of every member, ms; `None` for those that the members had.
        fenced: how many members would not have given partitions back in time.
        false_fenced: how many of them gave them back later, or joined again: they were at work.
        free_after_p50_ms: median time from the request to give partitions back until they were free, given back or by
            the fence, ms; `None` if none were free before the end of the log.
        free_after_p99_ms: the same, 99th percentile.
    """

    rebalance_timeout_ms: int | None
    fenced: int
    false_fenced: int
    free_after_p50_ms: int | None
    free_after_p99_ms: int | None


class LongestRevocation(msgspec.Struct, kw_only=True, frozen=True):
    """The longest time that a member took to give partitions back: a shorter timeout would fence a member at work."""

    took_ms: int
    since_ms: int
    group_id: str
    member_id: str


class RevocationsWhatIf(msgspec.Struct, kw_only=True, frozen=True):
    """The outcomes of rebalance timeouts on a log.

    Args:
        recorded: for the timeouts that the members had.
        scenarios: for other timeouts.
        longest: `None` if no member gave partitions back.
        revocations: how often a member was asked to give partitions back.
        end_ms: end of the evaluated time, epoch ms.
    """

    recorded: RevocationScenario
    scenarios: list[RevocationScenario]
    longest: LongestRevocation | None
    revocations: int
    end_ms: int


class Revocations:
    """The revocations of a log, by the rebalance timers that the rules arm: `scheduleConsumerGroupRebalanceTimeout`."""

    def __init__(self) -> None:
        self.stretches: list[Stretch] = []
        self._open: dict[tuple[str, str], Stretch] = {}

    def follow(self, group: EpochGroup, sender: str | None, t_ms: int) -> None:
        """Record a group's timers after an accepted request.

        Args:
            sender: whose request it was; `None` for a load or an unload, which affects the timers of all members.
        """
        members = [*group.members] if sender is None else [sender]
        if sender is None:
            members += [name for of_group, name in self._open if of_group == group.group_id and name not in members]
        for member_id in members:
            self._look(group, member_id, t_ms)

    def _look(self, group: EpochGroup, member_id: str, t_ms: int) -> None:
        key = group.group_id, member_id
        member = group.members.get(member_id)
        timer = None if member is None else member.timers.get(TimerName.REBALANCE)
        known = self._open.get(key)
        if known is not None and (timer is None or timer.seq != known.timer):
            known.stop_ms, known.gave_back = t_ms, not group.unloaded
            del self._open[key]
        if timer is not None and key not in self._open:
            stretch = self._open[key] = Stretch(*key, t_ms, timer.seq)
            self.stretches.append(stretch)


def what_if_revocations(
    revocations: Revocations, verdicts: Sequence[Verdict], timeouts_ms: Sequence[int], end_ms: int
) -> RevocationsWhatIf:
    """Evaluate rebalance timeouts on the revocations of a log.

    Args:
        verdicts: what the coordinator decided on it, in the order of time.
        end_ms: the clock at the end of the log, epoch ms.
    """
    stretches = revocations.stretches
    fenced_ms = _judge(stretches, verdicts)
    back = [stretch for stretch in stretches if stretch.gave_back]
    longest = max(back, key=lambda stretch: stretch.stop_ms - stretch.start_ms, default=None)
    return RevocationsWhatIf(
        recorded=_scenario(None, stretches, fenced_ms, end_ms),
        scenarios=[
            _scenario(ms, stretches, [_fence_ms(stretch, ms, end_ms) for stretch in stretches], end_ms)
            for ms in timeouts_ms
        ],
        longest=None
        if longest is None
        else LongestRevocation(
            took_ms=longest.stop_ms - longest.start_ms,
            since_ms=longest.start_ms,
            group_id=longest.group_id,
            member_id=longest.member_id,
        ),
        revocations=len(stretches),
        end_ms=end_ms,
    )


def _judge(stretches: Sequence[Stretch], verdicts: Sequence[Verdict]) -> list[int | None]:
    """Close the stretches of members that ended otherwise, and return when each was fenced, epoch ms, or `None`.

    Returns:
        A time for each stretch.
    """
    of_member: dict[tuple[str, str], list[int]] = {}
    for number, stretch in enumerate(stretches):
        of_member.setdefault((stretch.group_id, stretch.member_id), []).append(number)
    fenced_ms: list[int | None] = [None] * len(stretches)
    for verdict in verdicts:
        for number in of_member.get((verdict.group_id, verdict.member_id or ""), ()):
            stretch = stretches[number]
            if not stretch.start_ms < verdict.time_ms <= stretch.stop_ms:
                continue
            if verdict.kind is Kind.MEMBER_FENCED_REBALANCE_TIMEOUT:
                fenced_ms[number] = verdict.time_ms
            elif verdict.kind in _ENDS and fenced_ms[number] is None:
                stretch.stop_ms, stretch.gave_back = verdict.time_ms, False
    return fenced_ms


def _fence_ms(stretch: Stretch, timeout_ms: int, end_ms: int) -> int | None:
    """Return when a member would have been fenced; its session, or a request at that moment, comes after the timer.

    If both deadlines of a member are equal, the rebalance timer was armed first, so it fires first.
    """
    deadline_ms = stretch.start_ms + timeout_ms
    return deadline_ms if deadline_ms <= min(stretch.stop_ms, end_ms) else None


def _scenario(
    timeout_ms: int | None, stretches: Sequence[Stretch], fenced_ms: Sequence[int | None], end_ms: int
) -> RevocationScenario:
    pairs = list(zip(stretches, fenced_ms, strict=True))
    free = [
        (stretch.stop_ms if fence_ms is None else fence_ms) - stretch.start_ms
        for stretch, fence_ms in pairs
        if fence_ms is not None or stretch.stop_ms <= end_ms
    ]
    return RevocationScenario(
        rebalance_timeout_ms=timeout_ms,
        fenced=sum(fence_ms is not None for fence_ms in fenced_ms),
        false_fenced=sum(fence_ms is not None and stretch.gave_back for stretch, fence_ms in pairs),
        free_after_p50_ms=percentile(free, 0.5) if free else None,
        free_after_p99_ms=percentile(free, 0.99) if free else None,
    )
