"""What a summary of brokers' logs adds to a picture: a report of all groups, and each group's verdict and troubles."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from heartwheel.base.phrases import count, moment
from heartwheel.readers.live.logged import BrokerLine, EmptyGroup, LoggedLine, LogIncident, LogReport
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.storms import Offender
from heartwheel.readers.live.trouble import FLAPS_MIN, LATE_POLLS_MIN, Trouble, TroubleKind
from heartwheel.sources.explain.lines import what
from heartwheel.sources.explain.scan import Scanned
from heartwheel.sources.explain.summary import GroupSummary, LogSummary
from heartwheel.sources.explain.verdicts import verdict_of
from heartwheel.wire.explained import ExplainedEvent, Happened

_SHOWN_MAX: Final = 50
_OFFENDERS_MAX: Final = 5
_SLOW: Final = (Happened.POLL_TIMEOUT, Happened.REMOVED_AT_REBALANCE, Happened.REVOCATION_TIMEOUT)
_LINES: Final = {
    Happened.LEFT: "left",
    Happened.TEMPORARILY_LEFT: "left",
    Happened.REPLACED: "left",
    Happened.STORM: "storm",
    Happened.COORDINATOR_MOVED: "moved",
}
"""The line kinds of events that have no row in the engine's topics."""


def logged_line(event: ExplainedEvent) -> LoggedLine | None:
    """Return the line of an event that has no row in the engine's topics."""
    kind = _LINES.get(event.kind)
    if kind is None:
        return None
    if kind == "storm":
        return LoggedLine(event.time_ms, kind, lambda: f"Storm: {what(event)}")
    words = what(event)
    if kind == "moved":
        return LoggedLine(event.time_ms, kind, f"The group moved {words}")
    words = f"{event.member_id} {'' if words.startswith(('left', 'came')) else 'left: '}{words}"
    return LoggedLine(event.time_ms, kind, words, event.member_id or "")


def show_summary(picture: Picture, summary: LogSummary, scanned: Scanned) -> None:
    """Add to a picture what a summary contains about its groups, and about all together.

    The summary is asked for verdicts later: add to it under the lock of the picture alone.
    """
    groups, judge = summary.groups(), partial(_verdict, summary)
    with picture.lock:
        picture.log_report = _report(summary, groups, scanned)
        for group in groups:
            entry = picture.groups.entries.get(group.group_id)
            if entry is not None:
                entry.judge, entry.logged_troubles = judge, tuple(_troubles(group))
                entry.of_consumers = not group.from_coordinator


def _verdict(summary: LogSummary, group_id: str) -> list[str]:
    group, known_ms = summary.group(group_id), summary.known_from_ms
    if group is None:
        return []
    note = [] if known_ms is None else [f"Lines before {moment(known_ms)} count for none of that."]
    return verdict_of(group, follows=summary.follows) + note


def _report(summary: LogSummary, groups: list[GroupSummary], scanned: Scanned) -> LogReport:
    empty = [
        EmptyGroup(group_id=group.group_id, since_ms=group.empty_since_ms)
        for group in groups
        if group.empty_since_ms is not None
    ]
    return LogReport(
        zone_assumed=scanned.zone_assumed,
        to_ms=scanned.last_ms,
        empty=empty[:_SHOWN_MAX],
        empty_count=len(empty),
        incidents=[LogIncident(from_ms=each.from_ms, words=each.words) for each in summary.incidents()[-_SHOWN_MAX:]],
        brokers=[
            BrokerLine(broker_id=each.broker_id, time_ms=each.time_ms, words=what(each))
            for each in summary.brokers[-_SHOWN_MAX:]
        ],
        doubts=scanned.doubts(),
    )


def _troubles(group: GroupSummary) -> Iterator[Trouble]:
    """Yield the troubles that a group had at any time of the log, the worst first."""
    offenders = [
        Offender(member_id=name, count=n) for name, n in sorted(group.worst.items(), key=lambda each: -each[1])
    ]
    often = [each for each in offenders if each.count > 1][:_OFFENDERS_MAX]
    if group.lost_all and group.empty_since_ms is not None:
        words = f"no members since {moment(group.empty_since_ms)}"
        yield Trouble(kind=TroubleKind.EMPTY, words=words, count=group.kicked, since_ms=group.empty_since_ms)
    if group.storms:
        words = f"{count(group.storms, 'storm')} of rebalances, {count(group.rebalances, 'rebalance')} in all"
        yield Trouble(kind=TroubleKind.STORM, words=words, count=group.rebalances, offenders=often)
    if often and often[0].count >= FLAPS_MIN:
        words = f"{often[0].member_id} was out {count(often[0].count, 'time')}"
        yield Trouble(kind=TroubleKind.FLAPPING, words=words, count=often[0].count, offenders=often)
    slow = sum(each.number for kind, each in group.enough.items() if kind in _SLOW)
    if slow >= LATE_POLLS_MIN:
        words = f"{count(slow, 'member')} did not poll in time"
        yield Trouble(kind=TroubleKind.LATE_POLLS, words=words, count=slow, offenders=often)
