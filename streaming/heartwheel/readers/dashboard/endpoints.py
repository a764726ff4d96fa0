"""The answers of the API: one function per endpoint, from a request's query to a document."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec
from starlette.responses import Response

from heartwheel.readers.dashboard.deps import Deps
from heartwheel.readers.dashboard.downloads import CSV, CSV_NO_ZONE, JSON_FILE, Download
from heartwheel.readers.dashboard.queries import (
    AtRiskQuery,
    ExpirationQuery,
    ExpirationsQuery,
    GroupQuery,
    GroupsQuery,
    LanesQuery,
    MatchQuery,
    MemberQuery,
    NowQuery,
    RebalancesQuery,
    SeriesQuery,
    TimelineQuery,
    WheelQuery,
)
from heartwheel.readers.http_server.problems import RequestError
from heartwheel.readers.live.at_risk import AtRiskList, at_risk
from heartwheel.readers.live.expiration import Expiration
from heartwheel.readers.live.expirations import (
    ExpirationDetail,
    ExpirationFilter,
    ExpirationPage,
    expiration_detail,
    list_expirations,
    matching,
)
from heartwheel.readers.live.group_list import GroupFilter, GroupPage, list_groups
from heartwheel.readers.live.groups import GroupDetail, group_detail
from heartwheel.readers.live.history_documents import GroupTail, HistoryBusyError, MemberHistory, MemberSeen
from heartwheel.readers.live.lane_documents import LanePage
from heartwheel.readers.live.lane_page import LaneFilter, LanesBusyError, lane_page
from heartwheel.readers.live.members import MemberView, expirations_of, member_view
from heartwheel.readers.live.now import now_of
from heartwheel.readers.live.now_document import Now
from heartwheel.readers.live.rebalances import RebalancePage, list_rebalances
from heartwheel.readers.live.series import Series, series_of
from heartwheel.readers.live.timeline import TimelinePage, timeline_page
from heartwheel.readers.live.wheel import WheelView, shards_of, wheel_of

T = TypeVar("T")

_GONE_HINT: Final = "it may be older than what is kept; /api/now tells how long that is in memory"


class GroupAnswer(GroupDetail, frozen=True, kw_only=True):
    """A group with its newest history and its members: all fields of the group, and these.

    Args:
        members_seen: the members that sent heartbeats lately, from the end of the heartbeat topic.
        members_note: what could not be read, if anything.
    """

    members_seen: list[MemberSeen]
    members_note: str


def now(deps: Deps, query: NowQuery) -> Now:
    """Return the present state."""
    return now_of(deps.picture, deps.view(query.canary), now_ms=deps.now_ms())


def series(deps: Deps, query: SeriesQuery) -> Series:
    """Return the figures of each step of the last minutes."""
    return series_of(deps.picture, now_ms=deps.now_ms(), points=query.points, step_ms=query.step_ms)


def expirations(deps: Deps, query: ExpirationsQuery) -> ExpirationPage:
    """Return a page of expirations, newest first."""
    wanted = msgspec.structs.replace(_filter(query), order=query.order)
    with _readable():
        return list_expirations(deps.picture, wanted, before=query.before, limit=query.limit)


def expirations_csv(deps: Deps, query: MatchQuery) -> Response:
    """Return all expirations that match, as CSV."""
    report = deps.picture.log_report
    kind = CSV_NO_ZONE if report is not None and report.zone_assumed else CSV
    return Download(deps.downloads, lambda: _rows(deps, query), kind)


def expirations_json(deps: Deps, query: MatchQuery) -> Response:
    """Return all expirations that match, as JSON."""
    return Download(deps.downloads, lambda: _rows(deps, query), JSON_FILE)


def _rows(deps: Deps, query: MatchQuery) -> list[Expiration]:
    with _readable():
        return matching(deps.picture, _filter(query)).rows


def _filter(query: MatchQuery) -> ExpirationFilter:
    return ExpirationFilter(
        text=query.text,
        reasons=query.reason,
        group=query.group,
        member=query.member,
        since_ms=query.since_ms,
        until_ms=query.until_ms,
        canary=query.canary,
    )


def expiration(deps: Deps, query: ExpirationQuery) -> ExpirationDetail:
    """Return one expiration with its explanation."""
    with _readable():
        return _found(expiration_detail(deps.picture, query.id), "expiration", query.id)


def groups(deps: Deps, query: GroupsQuery) -> GroupPage:
    """Return a page of groups, those that changed last first."""
    wanted = GroupFilter(
        text=query.text,
        state=query.state or "",
        storm=query.storm,
        trouble=query.trouble,
        order=query.order,
        canary=query.canary,
    )
    return list_groups(deps.picture, wanted, deps.storm, now_ms=deps.now_ms(), before=query.before, limit=query.limit)


def group(deps: Deps, query: GroupQuery) -> GroupAnswer:
    """Return one group, its events, and the members that send heartbeats."""
    group_id = query.group_id
    with _readable():
        shown = group_detail(deps.picture, group_id, deps.storm, now_ms=deps.now_ms())
    found = _found(shown, "group", group_id)
    tail = _read_tail(deps, group_id)
    fields = {name: getattr(found, name) for name in GroupDetail.__struct_fields__}
    return GroupAnswer(**fields, members_seen=list(tail.members), members_note=tail.note)


def timeline(deps: Deps, query: TimelineQuery) -> TimelinePage:
    """Return a part of one group's timeline."""
    with _readable():
        found = timeline_page(
            deps.picture, query.group_id, before=query.before, until_ms=query.until_ms, limit=query.limit
        )
    return _found(found, "group", query.group_id)


def _read_tail(deps: Deps, group_id: str) -> GroupTail:
    if deps.history is None:
        return GroupTail(members=[], note="Heartbeats are not read here.")
    try:
        return deps.history.tail(group_id, now_ms=deps.now_ms())
    except HistoryBusyError:
        return GroupTail(members=[], note="Too many look at heartbeats right now; try again in some seconds.")


def member(deps: Deps, query: MemberQuery) -> MemberView:
    """Return one member: its expirations, why, whether it is back, and its last heartbeats."""
    group_id, member_id = query.group_id, query.member_id
    with _readable():
        found = expirations_of(deps.picture, group_id, member_id, query.until_ms)
    rows = found.rows
    history = _read_history(deps, group_id, member_id, rows)
    unread = deps.history is not None and history.note
    if not rows and not history.events and not unread and found.older_until_ms is None:
        _found(None, f"member of group {group_id}", member_id)
    return member_view(group_id, member_id, found, history)


def _read_history(deps: Deps, group_id: str, member_id: str, rows: list[Any]) -> MemberHistory:
    if deps.history is None:
        return MemberHistory.nothing("Heartbeats are not read here.")
    try:
        return deps.history.member(group_id, member_id, newest=rows[-1] if rows else None, now_ms=deps.now_ms())
    except HistoryBusyError:
        return MemberHistory.nothing("Too many look at heartbeats right now; try again in some seconds.")


def rebalances(deps: Deps, query: RebalancesQuery) -> RebalancePage:
    """Return the cost of rebalances for each group, those that lost most time first."""
    return list_rebalances(deps.picture, text=query.text, group=query.group, canary=query.canary, limit=query.limit)


def lanes(deps: Deps, query: LanesQuery) -> LanePage:
    """Return a stretch of time of brokers' logs: the groups, worst first, with their members as lanes."""
    source = deps.picture.lanes
    if source is None:
        raise RequestError(404, "timelines are drawn from brokers' logs, and none is shown here", "heartwheel watch")
    wanted = LaneFilter(
        since_ms=query.since_ms,
        until_ms=query.until_ms,
        last_ms=query.last_ms,
        text=query.text,
        group=query.group,
        members=query.members,
        removals=query.removals,
    )
    with _readable():
        return lane_page(source, wanted, now_ms=deps.now_ms(), before=query.before or 0, limit=query.limit)


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Answer 503 while another time is being read from the history."""
    try:
        yield
    except LanesBusyError as error:
        raise RequestError(503, str(error), error.hint or "", retry_s=5) from error


def members_at_risk(deps: Deps, query: AtRiskQuery) -> AtRiskList:
    """Return the members nearest to their expiry."""
    return at_risk(deps.picture, now_ms=deps.now_ms(), limit=query.limit, canary=query.canary)


def wheel(deps: Deps, query: WheelQuery) -> WheelView:
    """Return the timing wheel of a shard."""
    found = wheel_of(deps.picture, query.shard, canary=query.canary)
    if found is None:
        shards = shards_of(deps.picture)
        hint = f"there are shards 0 to {shards - 1}" if shards else "no job has written anything yet: heartwheel run"
        raise RequestError(404, f"nothing is known of shard {query.shard}", hint)
    return found


def _found(what: T | None, kind: str, id_: str) -> T:
    if what is None:
        shown = id_ if len(id_) <= 60 else f"{id_[:60]}..."
        raise RequestError(404, f"no {kind} {shown!r} is known here", _GONE_HINT)
    return what


def encoded(body: Any) -> bytes:
    """Return a document as JSON."""
    return msgspec.json.encode(body)
