"""Answers from brokers' logs, or from a history of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from heartwheel.base.phrases import count
from heartwheel.base.plain import plain
from heartwheel.sources.explain.lines import what
from heartwheel.sources.explain.wanted import Wanted
from heartwheel.sources.mcp_server.answers import (
    LISTED_MAX,
    TEXT_CHARS,
    AdviceList,
    AdvisedGroup,
    AdvisedSetting,
    AnswerSource,
    GroupTimeline,
    LogEvidence,
    NextList,
    RemovalEntry,
    RemovalList,
    StormEntry,
    StormList,
    TimelineEntry,
    ToolAnswer,
    WhyAnswer,
    quoted,
    quoted_or_none,
    sentences,
    utc,
)
from heartwheel.sources.mcp_server.log_lines import lines_of
from heartwheel.sources.mcp_server.questions import AROUND_MS, Period
from heartwheel.sources.mcp_server.read_log import LogReader, LogReading
from heartwheel.sources.watch.log_source import LogSource
from heartwheel.wire.explained import REASON_OF, ExplainedEvent, Happened

_AROUND_MAX: Final = 40
_NO_NEXT: Final = (
    "Brokers' logs say who was removed, and name no member before that: who is next cannot be seen in them. "
    "A dashboard of the job sees it (heartwheel mcp --dashboard URL)."
)
_NO_REASON: Final = (
    "Of a member that left by itself and gave no reason, the log does not show whether a timeout made it."
)


class LogAnswers:
    """Answers questions from logs or a history.

    Args:
        source: what to read.
    """

    def __init__(self, source: LogSource) -> None:
        self._source, self._reader = source, LogReader(source)

    def who_was_kicked(self, group: str, member: str, period: Period, limit: int) -> RemovalList:
        """Return removals, the newest first."""
        read = self._reader.read()
        found = [each for each in _matching(read, group, member, period) if each.kind in REASON_OF]
        return RemovalList(
            **self._frame(read, group), removals=self._removals(found[-limit:][::-1]), matched=len(found)
        )

    def why(self, group: str, member: str, period: Period) -> WhyAnswer:
        """Return the newest removal, and what its group did within a minute of it."""
        read = self._reader.read()
        found = [each for each in _matching(read, group, member, period) if each.kind in REASON_OF]
        if not found:
            return WhyAnswer(**self._frame(read, group), removal=None, around=[])
        out = found[-1]
        near = [
            each
            for each in read.events
            if each.group_id == out.group_id and abs(each.time_ms - out.time_ms) <= AROUND_MS and each is not out
        ]
        (removal,) = self._removals([out])
        return WhyAnswer(**self._frame(read, ""), removal=removal, around=self._entries(near[:_AROUND_MAX]))

    def storms(self, group: str, period: Period) -> StormList:
        """Return storms, the newest first."""
        read = self._reader.read()
        found = [each for each in _matching(read, group, "", period) if each.kind is Happened.STORM][-LISTED_MAX:][::-1]
        evidence = self._evidence(found)
        storms = [
            StormEntry(
                time=utc(each.time_ms),
                group=quoted(each.group_id),
                rebalances=each.member_count or 0,
                within_ms=each.duration_ms or 0,
                began_with=[quoted(name) for name in each.caused_by[:LISTED_MAX]],
                evidence=shown,
            )
            for each, shown in zip(found, evidence, strict=True)
        ]
        return StormList(**self._frame(read, group), storms=storms)

    def timeline(self, group: str, period: Period, limit: int) -> GroupTimeline:
        """Return what happened in a group, the newest first."""
        read = self._reader.read()
        found = _matching(read, group, "", period)
        return GroupTimeline(
            **self._frame(read, group), entries=self._entries(found[-limit:][::-1]), matched=len(found)
        )

    def advise(self, group: str) -> AdviceList:
        """Return which settings would have prevented what, for the groups with the most removals."""
        read = self._reader.read()
        wanted = [each for each in read.advice if not group or Wanted([group]).takes_group(each.group_id)]
        groups = [
            AdvisedGroup(
                group=quoted(each.group_id),
                removals=each.removals,
                rebalances=each.rebalances,
                settings=[
                    AdvisedSetting(
                        setting=one.setting,
                        value=one.value,
                        prevented=one.prevented,
                        cases=one.cases,
                        words=one.words,
                    )
                    for one in each.settings
                ],
            )
            for each in wanted[:LISTED_MAX]
        ]
        return AdviceList(**self._frame(read, group), groups=groups)

    def who_is_next(self, limit: int) -> NextList:  # noqa: ARG002 - the signature of Questions
        """Return an empty list: a log does not show who is next."""
        frame = self._frame(self._reader.read(), "")
        return NextList(**frame | {"unknowns": [_NO_NEXT, *frame["unknowns"]]}, members=[])

    def _removals(self, events: Sequence[ExplainedEvent]) -> list[RemovalEntry]:
        return [_removal(event, shown) for event, shown in zip(events, self._evidence(events), strict=True)]

    def _entries(self, events: Sequence[ExplainedEvent]) -> list[TimelineEntry]:
        return [
            TimelineEntry(
                time=utc(each.time_ms),
                kind=each.kind.value,
                certainty=each.certainty,
                words=quoted(f"{each.member_id or ''} {what(each)}".strip(), TEXT_CHARS),
                evidence=shown,
            )
            for each, shown in zip(events, self._evidence(events), strict=True)
        ]

    def _evidence(self, events: Iterable[ExplainedEvent]) -> list[LogEvidence]:
        """Return the place of each event, with its line if the command line names the file."""
        wanted: dict[str, set[int]] = defaultdict(set)
        for event in (events := list(events)):
            if event.evidence.file in self._source.files:
                wanted[event.evidence.file].add(event.evidence.line)
        lines = {file: lines_of(file, numbers) for file, numbers in wanted.items()}
        shown = []
        for event in events:
            file, number = event.evidence.file, event.evidence.line
            text = lines.get(file, {}).get(number)
            # A file that was rotated meanwhile has another line at that number.
            line = None if text is None or event.group_id not in text else quoted(text, TEXT_CHARS)
            shown.append(LogEvidence(place=plain(f"{file}, line {number}"), line=line))
        return shown

    def _frame(self, read: LogReading, group: str) -> dict[str, Any]:
        """Return the fields that every answer has."""
        scanned = read.scanned
        is_missing = bool(group) and not any(map(Wanted([group]).takes_group, scanned.groups))
        names = sorted(scanned.groups)[:LISTED_MAX] if is_missing else []
        shared = ToolAnswer(
            source=AnswerSource(
                kind="logs" if self._source.history is None else "history",
                names=[plain(name) for name in self._source.names],
                from_time=None if scanned.first_ms is None else utc(scanned.first_ms),
                to_time=None if scanned.last_ms is None else utc(scanned.last_ms),
            ),
            unknowns=list(_unknowns(read, has_lines=self._source.history is None, is_missing=is_missing)),
            groups_named=[quoted(name) for name in names],
        )
        return shared.fields()


def _matching(read: LogReading, group: str, member: str, period: Period) -> list[ExplainedEvent]:
    wanted = Wanted([group] if group else [], [member] if member else [], *period)
    return [event for event in read.events if wanted.takes(event)]


def _removal(event: ExplainedEvent, evidence: LogEvidence) -> RemovalEntry:
    of_session = event.kind in {Happened.EXPIRED, Happened.PENDING_EXPIRED}
    advice = event.advice
    return RemovalEntry(
        time=utc(event.time_ms),
        time_error_ms=event.time_error_ms,
        reason=REASON_OF[event.kind].value,
        certainty=event.certainty,
        group=quoted(event.group_id),
        group_type=event.group_type,
        member=quoted_or_none(event.member_id),
        instance=quoted_or_none(event.group_instance_id),
        client=quoted_or_none(event.client_id),
        host=quoted_or_none(event.client_host),
        timeout_ms=event.session_timeout_ms if of_session else event.rebalance_timeout_ms,
        returned_after_ms=None if event.returned_ms is None else max(0, event.returned_ms - event.time_ms),
        explanation=sentences([each for each in event.explanation if each != advice]),
        advice=advice,
        evidence=evidence,
    )


def _unknowns(read: LogReading, *, has_lines: bool, is_missing: bool) -> Iterable[str]:
    """Yield sentences about what the source does not show; none has a client's text in it."""
    scanned = read.scanned
    if not scanned.coordinator_lines:
        yield "No line of a group coordinator was read: it may be no broker's log, or the broker logs at WARN."
    if is_missing:
        yield "No line names the group that was asked for; groups_named has the first ones that are named."
    if read.dropped:
        yield f"Only the newest {len(read.events):,} events are searched, and {read.dropped:,} older ones are not."
    if scanned.zone_assumed:
        yield "The logs name no time zone: their times are taken as UTC."
    if scanned.suspicious:
        yield f"{count(scanned.suspicious, 'line')} may be forged by a client, and count for nothing."
    if scanned.unreadable:
        yield f"{count(scanned.unreadable, 'line')} of coordinators could not be read."
    if scanned.unknown_lines:
        yield f"{count(scanned.unknown_lines, 'line')} of coordinators were not understood."
    if not has_lines:
        yield "A history keeps what lines say, and not the lines: evidence has the file and the number."
    yield _NO_REASON
