"""The queries of the endpoints as structs: the limits of every parameter, and its description."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from heartwheel.readers.live.expirations import ExpirationOrder
from heartwheel.readers.live.group_list import GroupOrder
from heartwheel.readers.live.states import ShownState
from heartwheel.readers.live.ticks import STEP_MS
from heartwheel.wire.verdicts import ExpiryReason

TEXT_MAX: Final = 1_024
"""Longest text of a filter, characters; ids are no longer."""

Text = Annotated[str, Meta(max_length=TEXT_MAX)]
Before = Annotated[Annotated[int, Meta(ge=1, le=2**53)] | None, Meta(description="The `next` of the page before.")]
Limit = Annotated[int, Meta(ge=1, le=1_000, description="Most rows.")]
Shard = Annotated[int, Meta(ge=0, le=1_000_000)]
Whole = Annotated[int, Meta(ge=0, le=2**53)]
Until = Annotated[Whole | None, Meta(description="The `older_until_ms` of the answer before.")]


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of an endpoint; this one has none.

    A field without default is a part of the path, the others are parameters of the query.
    """


class NowQuery(Query, frozen=True, kw_only=True):
    """The parameter that nearly all queries share."""

    canary: Annotated[bool, Meta(description="Whether to show the canary's own groups too.")] = False


class SeriesQuery(Query, frozen=True, kw_only=True):
    """The number and length of steps."""

    points: Annotated[int, Meta(ge=1, le=1_000, description="How many steps.")] = 120
    step_ms: Annotated[
        int, Meta(ge=STEP_MS, le=3_600_000, multiple_of=STEP_MS, description="Length of a step, ms.")
    ] = STEP_MS


class MatchQuery(NowQuery, frozen=True, kw_only=True):
    """A filter of expirations."""

    text: Annotated[Text, Meta(description="Words that are all in the group, member, instance, client or host.")] = ""
    reason: Annotated[frozenset[ExpiryReason], Meta(description="Reasons, with commas between them.")] = frozenset()
    group: Annotated[Text, Meta(description="A group's id, exactly.")] = ""
    member: Annotated[Text, Meta(description="A member's id, exactly.")] = ""
    since_ms: Annotated[Whole | None, Meta(description="Appended at or after this, epoch ms.")] = None
    until_ms: Annotated[Whole | None, Meta(description="Appended before this, epoch ms.")] = None


class ExpirationsQuery(MatchQuery, frozen=True, kw_only=True):
    """A page of filtered expirations."""

    order: Annotated[ExpirationOrder, Meta(description="Which come first.")] = ExpirationOrder.NEWEST
    before: Before = None
    limit: Limit = 100


class ExpirationQuery(Query, frozen=True, kw_only=True):
    """One expiration."""

    id: str


class GroupsQuery(NowQuery, frozen=True, kw_only=True):
    """A page of filtered groups."""

    text: Annotated[Text, Meta(description="Part of the group's id.")] = ""
    state: Annotated[ShownState | None, Meta(description="The state.")] = None
    storm: Annotated[bool, Meta(description="Only groups in a storm.")] = False
    trouble: Annotated[bool, Meta(description="Only groups in trouble.")] = False
    order: Annotated[GroupOrder, Meta(description="Which groups come first.")] = GroupOrder.CHANGED
    before: Before = None
    limit: Limit = 100


class GroupQuery(Query, frozen=True, kw_only=True):
    """One group."""

    group_id: str


class TimelineQuery(GroupQuery, frozen=True, kw_only=True):
    """A part of a group's timeline."""

    before: Before = None
    until_ms: Until = None
    limit: Limit = 100


class MemberQuery(GroupQuery, frozen=True, kw_only=True):
    """One member."""

    member_id: str
    until_ms: Until = None


class RebalancesQuery(NowQuery, frozen=True, kw_only=True):
    """A filter of groups with rebalances."""

    text: Annotated[Text, Meta(description="Part of the group's id.")] = ""
    group: Annotated[Text, Meta(description="A group's id, exactly.")] = ""
    limit: Annotated[int, Meta(ge=1, le=500, description="Most groups.")] = 50


class LanesQuery(Query, frozen=True, kw_only=True):
    """A stretch of time of brokers' logs, and which groups of it."""

    since_ms: Annotated[Whole | None, Meta(description="The begin, epoch ms.")] = None
    until_ms: Annotated[Whole | None, Meta(description="The end, epoch ms; else now.")] = None
    last_ms: Annotated[Whole | None, Meta(description="The length, ms, where no begin is given.")] = None
    text: Annotated[Text, Meta(description="Part of the group's id.")] = ""
    group: Annotated[Text, Meta(description="A group's id, exactly.")] = ""
    members: Annotated[int, Meta(ge=1, le=500, description="Most members of a group.")] = 8
    removals: Annotated[int, Meta(ge=0, le=500, description="Most removals of a group.")] = 4
    before: Before = None
    limit: Annotated[int, Meta(ge=1, le=100, description="Most groups.")] = 10


class AtRiskQuery(NowQuery, frozen=True, kw_only=True):
    """The number of members at risk."""

    limit: Limit = 50


class WheelQuery(NowQuery, frozen=True, kw_only=True):
    """The shard of a wheel."""

    shard: Annotated[Shard, Meta(description="Which shard.")] = 0


class StreamQuery(NowQuery, frozen=True, kw_only=True):
    """The content of a stream."""

    wheel: Annotated[Shard | None, Meta(description="Send the wheel of this shard too.")] = None
