"""The API: its paths, what each may be asked, and what it answers; the description is made from this table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from heartwheel.dashboard import endpoints
from heartwheel.dashboard.channel import NewExpirations, NewGroups, NewReturn
from heartwheel.dashboard.deps import Deps
from heartwheel.dashboard.params import Param, flag, integer, one_of, some_of, text
from heartwheel.dashboard.stream import Hello, StreamGap
from heartwheel.live.at_risk import AtRiskList
from heartwheel.live.expiration import Expiration
from heartwheel.live.expirations import ExpirationDetail, ExpirationPage
from heartwheel.live.groups import GroupPage
from heartwheel.live.members import MemberView
from heartwheel.live.now import Now
from heartwheel.live.rebalances import RebalancePage
from heartwheel.live.series import Series, SeriesStep
from heartwheel.live.states import ShownState
from heartwheel.live.ticks import STEP_MS
from heartwheel.live.wheel import WheelView
from heartwheel.wire.verdicts import ExpiryReason


class Endpoint(NamedTuple):
    """One endpoint.

    Args:
        answer: makes the document, or a response of its own.
        params: what its query may have.
        body: the type of its document.
        media: the content type of its answer.
    """

    answer: Callable[[Deps, dict[str, Any]], Any]
    params: tuple[Param, ...]
    body: Any
    media: str = "application/json"


CANARY: Final = flag("canary", "Whether to show the canary's own groups too.")
"""The parameter that all share."""

_EXPIRATIONS: Final = (
    text("text", "Words that must all be in the group, member, instance, client or host."),
    some_of("reason", "Reasons, with commas between them.", [reason.value for reason in ExpiryReason]),
    text("group", "A group's id, exactly."),
    text("member", "A member's id, exactly."),
    integer("since_ms", "Appended at or after this, epoch ms."),
    CANARY,
)
_BEFORE: Final = integer("before", "The `next` of the page before.", least=1)

ENDPOINTS: Final[Mapping[str, Endpoint]] = {
    "/api/now": Endpoint(endpoints.now, (CANARY,), Now),
    "/api/series": Endpoint(
        endpoints.series,
        (
            integer("points", "How many steps.", least=1, most=1_000, default=120),
            integer(
                "step_ms",
                f"Length of a step, ms; a multiple of {STEP_MS}.",
                least=STEP_MS,
                most=3_600_000,
                default=STEP_MS,
            ),
        ),
        Series,
    ),
    "/api/expirations": Endpoint(
        endpoints.expirations,
        (*_EXPIRATIONS, _BEFORE, integer("limit", "Most rows.", least=1, most=1_000, default=100)),
        ExpirationPage,
    ),
    "/api/expirations.csv": Endpoint(endpoints.expirations_csv, _EXPIRATIONS, str, "text/csv"),
    "/api/expirations.json": Endpoint(endpoints.expirations_json, _EXPIRATIONS, list[Expiration]),
    "/api/expirations/{id}": Endpoint(endpoints.expiration, (), ExpirationDetail),
    "/api/groups": Endpoint(
        endpoints.groups,
        (
            text("text", "Part of the group's id."),
            one_of("state", "The state.", [state.value for state in ShownState]),
            flag("storm", "Only groups in a storm."),
            CANARY,
            _BEFORE,
            integer("limit", "Most rows.", least=1, most=1_000, default=100),
        ),
        GroupPage,
    ),
    "/api/groups/{group_id}": Endpoint(endpoints.group, (), endpoints.GroupAnswer),
    "/api/members/{group_id}/{member_id}": Endpoint(endpoints.member, (), MemberView),
    "/api/rebalances": Endpoint(
        endpoints.rebalances,
        (
            text("text", "Part of the group's id."),
            text("group", "A group's id, exactly."),
            CANARY,
            integer("limit", "Most groups.", least=1, most=500, default=50),
        ),
        RebalancePage,
    ),
    "/api/at-risk": Endpoint(
        endpoints.members_at_risk,
        (integer("limit", "Most rows.", least=1, most=1_000, default=50), CANARY),
        AtRiskList,
    ),
    "/api/wheel": Endpoint(
        endpoints.wheel, (integer("shard", "Which shard.", most=1_000_000, default=0), CANARY), WheelView
    ),
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

STREAM_PARAMS: Final = (
    integer("wheel", "Tell of the wheel of this shard too.", most=1_000_000),
    CANARY,
)
"""What the stream may be asked."""
