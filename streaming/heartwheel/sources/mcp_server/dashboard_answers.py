"""Answers from a dashboard: of the job, or of `heartwheel watch`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote

import msgspec

from heartwheel.readers.live.at_risk import AtRiskList
from heartwheel.readers.live.expiration import FROM_A_LOG, Expiration
from heartwheel.readers.live.expirations import ExpirationDetail, ExpirationPage
from heartwheel.readers.live.logged import LogReport
from heartwheel.readers.live.now_document import StormLine, Window
from heartwheel.readers.live.timeline import TimelinePage
from heartwheel.sources.mcp_server.answers import (
    LISTED_MAX,
    TEXT_CHARS,
    AdviceList,
    AnswerSource,
    GroupTimeline,
    LogEvidence,
    NextList,
    NextMember,
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
from heartwheel.sources.mcp_server.dashboard_client import DashboardClient
from heartwheel.sources.mcp_server.questions import AROUND_MS, Period
from heartwheel.wire.verdicts import EPOCH_KINDS, PRESENCE, ExpiryReason

_ROWS_MAX: Final = 1_000
_NO_WINDOW: Final = Window(from_ms=0, kept_ms=0, expirations=0, expirations_max=0, dropped=0)
_KINDS: Final = frozenset({"classic", PRESENCE, *EPOCH_KINDS})
_PATTERN: Final = re.compile(r"[*?\[]")
_NO_ADVICE: Final = (
    "A dashboard does not keep what advice is made of: name the brokers' logs, or the history of heartwheel watch."
)
_NO_NEXT: Final = (
    "This dashboard shows brokers' logs. They name a member when it is out, and not before: who is next cannot be seen."
)
_NO_PATTERN: Final = "A dashboard is asked by whole ids, and the one that was given looks like a pattern."


class _Now(msgspec.Struct, kw_only=True):
    """The part of the dashboard's present state that answers need."""

    at_ms: int
    window: Window
    storms: list[StormLine]
    log: LogReport | None


class DashboardAnswers:
    """Answers questions from a dashboard's API.

    Args:
        client: asks it.
    """

    def __init__(self, client: DashboardClient) -> None:
        self._client = client

    def who_was_kicked(self, group: str, member: str, period: Period, limit: int) -> RemovalList:
        """Return removals, the newest first."""
        page, frame = self._page(group, member, period, limit), self._frame(group)
        return RemovalList(**frame, removals=[_removal(row) for row in page.rows], matched=page.matched)

    def why(self, group: str, member: str, period: Period) -> WhyAnswer:
        """Return the newest removal, and what its group did within a minute of it."""
        page, frame = self._page(group, member, period, 1), self._frame(group)
        if not page.rows:
            return WhyAnswer(**frame, removal=None, around=[])
        row = page.rows[0]
        detail = self._client.get(f"/api/expirations/{quote(row.id, safe='')}", ExpirationDetail)
        period = Period(row.deadline_ms - AROUND_MS, row.deadline_ms + AROUND_MS + 1)
        around = [each for each in self._lines(row.group_id, period) if _within(each["time_ms"], period)][:LISTED_MAX]
        removal = _removal(row, [] if detail is None else detail.why)
        return WhyAnswer(**frame, removal=removal, around=[_entry(each) for each in around[::-1]])

    def storms(self, group: str, period: Period) -> StormList:
        """Return the groups that are in a storm now."""
        now = self._now()
        storms = [
            StormEntry(
                time=utc(now.at_ms),
                group=quoted(each.group_id),
                rebalances=each.count,
                within_ms=each.window_ms,
                began_with=[quoted(each.first_cause), *(quoted(one.member_id) for one in each.offenders)],
            )
            for each in now.storms
            if group in {"", each.group_id} and _within(now.at_ms, period)
        ]
        frame = self._frame(group, now)
        frame["unknowns"].append("A dashboard shows the storms of this moment; those that are over are in its logs.")
        return StormList(**frame, storms=storms)

    def timeline(self, group: str, period: Period, limit: int) -> GroupTimeline:
        """Return what happened in a group, the newest first."""
        frame = self._frame(group)
        found = [each for each in self._lines(group, period) if _within(each["time_ms"], period)]
        return GroupTimeline(**frame, entries=[_entry(each) for each in found[:limit]], matched=len(found))

    def advise(self, group: str) -> AdviceList:
        """Return an empty list: the API of a dashboard has no advice."""
        frame = self._frame(group)
        return AdviceList(**frame | {"unknowns": [_NO_ADVICE, *frame["unknowns"]]}, groups=[])

    def who_is_next(self, limit: int) -> NextList:
        """Return the members nearest to their expiry."""
        found = self._client.get("/api/at-risk", AtRiskList, limit=limit) or AtRiskList(at_ms=0, rows=[])
        now = self._now()
        members = [
            NextMember(
                group=quoted(each.group_id),
                member=quoted(each.member_id),
                deadline=utc(each.deadline_ms),
                left_ms=each.deadline_ms - found.at_ms,
                session_timeout_ms=each.session_timeout_ms,
            )
            for each in found.rows
        ]
        frame = self._frame("", now)
        if now.log is not None:
            frame["unknowns"].insert(0, _NO_NEXT)
        return NextList(**frame, members=members)

    def _page(self, group: str, member: str, period: Period, limit: int) -> ExpirationPage:
        """Return the newest expirations; if none is in memory, those that a history has before."""
        found = self._asked(group, member, period, limit)
        if not found.rows and found.older_until_ms is not None:
            found = self._asked(group, member, Period(period.since_ms, found.older_until_ms), limit)
        return found

    def _asked(self, group: str, member: str, period: Period, limit: int) -> ExpirationPage:
        found = self._client.get(
            "/api/expirations",
            ExpirationPage,
            group=group or None,
            member=member or None,
            since_ms=period.since_ms,
            until_ms=period.until_ms,
            limit=limit,
        )
        return found or ExpirationPage(rows=[], next=None, matched=0, total=0)

    def _lines(self, group: str, period: Period) -> list[dict[str, Any]]:
        """Return lines of a group, the newest first; those of a time that memory has not are from a history."""
        lines, until_ms = list[dict[str, Any]](), None
        while len(lines) < _ROWS_MAX:
            path = f"/api/timeline/{quote(group, safe='')}"
            found = self._client.get(path, TimelinePage, limit=_ROWS_MAX, until_ms=until_ms)
            if found is None:
                break
            lines += [dict(each) for each in found.rows]
            until_ms = found.older_until_ms
            if until_ms is None or period.since_ms is None or until_ms <= period.since_ms:
                break
        return lines

    def _now(self) -> _Now:
        now = self._client.get("/api/now", _Now)
        return now or _Now(at_ms=0, window=_NO_WINDOW, storms=[], log=None)

    def _frame(self, group: str, now: _Now | None = None) -> dict[str, Any]:
        """Return the fields that every answer has."""
        now = now or self._now()
        shared = ToolAnswer(
            source=AnswerSource(
                kind="dashboard" if now.log is None else "dashboard on logs",
                names=[self._client.url],
                from_time=utc(now.window.from_ms) if now.log is None and now.window.from_ms > 0 else None,
                to_time=utc(now.at_ms),
            ),
            unknowns=list(_unknowns(now, group)),
        )
        return shared.fields()


def _unknowns(now: _Now, group: str) -> Iterable[str]:
    """Yield sentences about what the dashboard does not show; none has a client's text in it."""
    if group and _PATTERN.search(group):
        yield _NO_PATTERN
    if now.log is not None and now.window.from_ms > 0:
        yield f"Without a time, removals since {utc(now.window.from_ms)} are searched, and older ones if none."
    elif now.window.dropped:
        yield f"The dashboard has dropped {now.window.dropped:,} older removals, because there were too many."
    if now.log is None:
        yield "A dashboard of the job sees members that send heartbeats to it, and no others."
    elif now.log.zone_assumed:
        yield "The logs name no time zone: their times are taken as UTC."
    if now.log is not None and now.log.doubts:
        yield "Lines of coordinators that could not be read, or that a client may have forged, count for nothing."


def _removal(row: Expiration, why: list[str] | tuple[str, ...] = ()) -> RemovalEntry:
    place = row.evidence or f"topic member-expirations, partition {row.partition}, offset {row.offset}"
    words = [each for each in (why or row.explanation) if each != row.advice]
    return RemovalEntry(
        time=utc(row.deadline_ms),
        reason=row.reason if row.reason in set(ExpiryReason) else "unknown",
        certainty="not given" if row.shard == FROM_A_LOG else "certain",
        group=quoted(row.group_id),
        group_type=row.group_kind if row.group_kind in _KINDS else "",
        member=quoted_or_none(row.member_id),
        instance=quoted_or_none(row.group_instance_id),
        client=quoted_or_none(row.client_id),
        host=quoted_or_none(row.client_host),
        timeout_ms=row.session_timeout_ms,
        returned_after_ms=None if row.returned_ms is None else max(0, row.returned_ms - row.deadline_ms),
        explanation=sentences(words),
        advice="",
        evidence=LogEvidence(place=quoted(place).untrusted),
    )


def _entry(line: dict[str, Any]) -> TimelineEntry:
    evidence = line.get("evidence")
    return TimelineEntry(
        time=utc(line["time_ms"]),
        kind=quoted(line["kind"]).untrusted,
        certainty="not given",
        words=quoted(line["text"], TEXT_CHARS),
        evidence=LogEvidence(place=quoted(evidence).untrusted) if isinstance(evidence, str) else None,
    )


def _within(time_ms: int, period: Period) -> bool:
    since_ms, until_ms = period
    return (since_ms is None or time_ms >= since_ms) and (until_ms is None or time_ms < until_ms)
