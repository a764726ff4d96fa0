"""The documents of the timeline: groups of brokers' logs, and in each the members as lanes."""

from __future__ import annotations

import msgspec


class LaneSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which a member was in its group.

    Args:
        from_ms: when it joined, epoch ms; `None` if that was before what was read.
        to_ms: when it was out, epoch ms; `None` if it still is a member.
    """

    from_ms: int | None
    to_ms: int | None


class LaneMark(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to a member: when (epoch ms), `joined`, `returned`, `replaced`, `left` or `removed`, and why."""

    time_ms: int
    kind: str
    words: str


class MemberLane(msgspec.Struct, frozen=True, kw_only=True):
    """One member through all its returns.

    Args:
        name: its instance id, its client's id, or its first member id.
        member_id: its newest member id.
        removed_id: the id that it had when it was removed last; empty if it was not removed.
        ids: how many member ids it had.
        removals: how often a timeout ended its membership in the shown time.
        blocked: how many rebalances of that time waited for it.
        spans: when it was in the group, the oldest first.
        marks: what happened to it, the oldest first; of many the newest.
    """

    name: str
    member_id: str
    removed_id: str
    ids: int
    removals: int
    blocked: int
    spans: list[LaneSpan]
    marks: list[LaneMark]


class LaneRebalance(msgspec.Struct, frozen=True, kw_only=True):
    """A rebalance, or a new epoch.

    Args:
        started_ms: when it began, epoch ms; `None` if that was before what was read.
        ended_ms: when it was complete, epoch ms; `None` if it runs.
        number: the generation or epoch that it made; `None` while it runs.
        cause: why it began, as a code.
        members: members after it; `None` if the log does not show it.
        blocked_by: members that it waited for until they were out.
    """

    started_ms: int | None
    ended_ms: int | None
    number: int | None
    cause: str
    members: int | None
    blocked_by: list[str]


class LaneStorm(msgspec.Struct, frozen=True, kw_only=True):
    """A storm: when its first and its newest rebalance began, epoch ms, and how many there were."""

    from_ms: int
    to_ms: int
    count: int


class LaneRemoval(msgspec.Struct, frozen=True, kw_only=True):
    """A membership that a timeout ended.

    Args:
        time_ms: when, epoch ms.
        member_id: the member.
        name: of its lane.
        reason: as in `/api/expirations`.
        why: sentences that explain it.
        advice: the setting to change, or where to look.
        evidence: file and line of the log.
        returned_ms: when it was back, epoch ms; `None` if it was not by the end of what was read.
    """

    time_ms: int
    member_id: str
    name: str
    reason: str
    why: list[str]
    advice: str
    evidence: str
    returned_ms: int | None


class GroupLanes(msgspec.Struct, frozen=True, kw_only=True):
    """One group in the shown time.

    Args:
        group_id: its id.
        kind: classic, consumer, share or streams; empty if the log does not show it.
        members: its members at the end of that time; `None` if the log does not show it.
        removals_count: how often a timeout ended a membership.
        rebalances_count: how many rebalances or epochs there were.
        rebalancing_ms: how long those of known length took together, ms.
        storms: the storms, the oldest first.
        lanes: its members, those with the most removals first.
        lanes_left_out: how many more there are.
        rebalances: the newest, the oldest of them first.
        removals: the newest, the newest first.
    """

    group_id: str
    kind: str
    members: int | None
    removals_count: int
    rebalances_count: int
    rebalancing_ms: int
    storms: list[LaneStorm]
    lanes: list[MemberLane]
    lanes_left_out: int
    rebalances: list[LaneRebalance]
    removals: list[LaneRemoval]


class LaneSlot(msgspec.Struct, frozen=True, kw_only=True):
    """One of the slots that the shown time is divided into: its number, and what was in it, of all matching groups."""

    at: int
    removals: int
    rebalances: int


class LanePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of groups as they were in a stretch of time.

    Args:
        from_ms: its begin, epoch ms.
        to_ms: its end, epoch ms.
        is_now: whether it ends at this moment, and goes on.
        known_from_ms: how far the timeline reaches back without the history, epoch ms; `None`: to its begin.
        read_from_ms: if a history has more lines of that time than may be read, from when on they were, epoch ms.
        from_history: whether it was read from the history for this answer.
        groups: the worst first.
        next: the value of `before` for the next page; `None` on the last one.
        matched: how many groups had something happen in that time and match the filter.
        removals: how many memberships a timeout ended in these.
        rebalances: how many rebalances or epochs these had.
        storms: how many storms these had.
        slot_ms: the length of a slot, ms.
        slots: where in time that was; slots without anything are left out.
        newest_ms: the newest thing that is known of any group, epoch ms; `None` if nothing is.
    """

    from_ms: int
    to_ms: int
    is_now: bool
    known_from_ms: int | None
    read_from_ms: int | None
    from_history: bool
    groups: list[GroupLanes]
    next: str | None
    matched: int
    removals: int
    rebalances: int
    storms: int
    slot_ms: float
    slots: list[LaneSlot]
    newest_ms: int | None
