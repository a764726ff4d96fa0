"""The API: its paths, the parameters of each, and its answers; the API's description is made from this table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from heartwheel.readers.dashboard import endpoints, queries
from heartwheel.readers.dashboard.channel import NewExpirations, NewGroups, NewReturn
from heartwheel.readers.dashboard.deps import Deps
from heartwheel.readers.dashboard.stream import Hello, StreamGap
from heartwheel.readers.live.at_risk import AtRiskList
from heartwheel.readers.live.expiration import Expiration
from heartwheel.readers.live.expirations import ExpirationDetail, ExpirationPage
from heartwheel.readers.live.group_list import GroupPage
from heartwheel.readers.live.lane_documents import LanePage
from heartwheel.readers.live.members import MemberView
from heartwheel.readers.live.now_document import Now
from heartwheel.readers.live.rebalances import RebalancePage
from heartwheel.readers.live.series import Series, SeriesStep
from heartwheel.readers.live.timeline import TimelinePage
from heartwheel.readers.live.wheel import WheelView


class Endpoint(NamedTuple):
    """One endpoint.

    Args:
        answer: returns the document, or a response of its own.
        query: its parameters.
        body: the type of its document.
        media: the content type of its answer.
    """

    answer: Callable[[Deps, Any], Any]
    query: type[queries.Query]
    body: Any
    media: str = "application/json"


ENDPOINTS: Final[Mapping[str, Endpoint]] = {
    "/api/now": Endpoint(endpoints.now, queries.NowQuery, Now),
    "/api/series": Endpoint(endpoints.series, queries.SeriesQuery, Series),
    "/api/expirations": Endpoint(endpoints.expirations, queries.ExpirationsQuery, ExpirationPage),
    "/api/expirations.csv": Endpoint(endpoints.expirations_csv, queries.MatchQuery, str, "text/csv"),
    "/api/expirations.json": Endpoint(endpoints.expirations_json, queries.MatchQuery, list[Expiration]),
    "/api/expirations/{id}": Endpoint(endpoints.expiration, queries.ExpirationQuery, ExpirationDetail),
    "/api/groups": Endpoint(endpoints.groups, queries.GroupsQuery, GroupPage),
    "/api/timeline/{group_id}": Endpoint(endpoints.timeline, queries.TimelineQuery, TimelinePage),
    "/api/groups/{group_id}": Endpoint(endpoints.group, queries.GroupQuery, endpoints.GroupAnswer),
    "/api/members/{group_id}/{member_id}": Endpoint(endpoints.member, queries.MemberQuery, MemberView),
    "/api/rebalances": Endpoint(endpoints.rebalances, queries.RebalancesQuery, RebalancePage),
    "/api/lanes": Endpoint(endpoints.lanes, queries.LanesQuery, LanePage),
    "/api/at-risk": Endpoint(endpoints.members_at_risk, queries.AtRiskQuery, AtRiskList),
    "/api/wheel": Endpoint(endpoints.wheel, queries.WheelQuery, WheelView),
}
"""Every endpoint by its path."""

STREAM: Final = "/api/stream"
"""The path of the stream of events."""

STREAM_EVENTS: Final[Mapping[str, Any]] = {
    "hello": Hello,
    "now": Now,
    "expirations": NewExpirations,
    "returned": list[NewReturn],
    "groups": NewGroups,
    "at_risk": AtRiskList,
    "wheel": WheelView,
    "series": SeriesStep,
    "gap": StreamGap,
}
"""The type of each event's data, by the event's name."""
