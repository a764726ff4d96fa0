"""One group's marks as a timeline: its members as lanes, its rebalances, storms and removals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from heartwheel.readers.live.lane_documents import (
    GroupLanes,
    LaneMark,
    LaneRebalance,
    LaneRemoval,
    LaneSpan,
    LaneStorm,
    MemberLane,
)
from heartwheel.readers.live.lane_store import GroupMarks, Mark, MarkKind, storm_end_ms

REBALANCES_MAX: Final = 300
"""Most rebalances of a group that are drawn, the newest."""

_MARKS_MAX: Final = 60
_SPANS_MAX: Final = 60


class _Lane:
    """A member through all its returns, as far as the marks were applied."""

    def __init__(self, name: str, member_id: str) -> None:
        self.name, self.member_id, self.ids = name, member_id, 1
        self.spans: list[tuple[int | None, int | None]] = []
        self.marks: list[LaneMark] = []
        self.removals = self.blocked = 0
        self.removed_id = ""

    @property
    def is_in(self) -> bool:
        return bool(self.spans) and self.spans[-1][1] is None

    def comes(self, time_ms: int | None) -> None:
        if not self.is_in:
            self.spans.append((time_ms, None))

    def goes(self, time_ms: int) -> None:
        if self.is_in:
            self.spans[-1] = (self.spans[-1][0], time_ms)
        elif not self.spans:
            self.spans.append((None, time_ms))

    def is_seen(self, from_ms: int, to_ms: int) -> bool:
        """Return whether it was a member in a time, or something happened to it then."""
        if any((begin or 0) < to_ms and (end is None or end >= from_ms) for begin, end in self.spans):
            return True
        return any(from_ms <= mark.time_ms < to_ms for mark in self.marks)


class _Lanes:
    """The lanes of a group while its marks are applied."""

    def __init__(self, from_ms: int) -> None:
        self._from_ms = from_ms
        self._by_id: dict[str, _Lane] = {}

    def lane(self, member_id: str, name: str = "") -> _Lane:
        """Return the lane of a member; a new one if it was not named before."""
        lane = self._by_id.get(member_id)
        if lane is None:
            lane = self._by_id[member_id] = _Lane(name or member_id, member_id)
        return lane

    def all(self) -> Iterable[_Lane]:
        """Return each lane once."""
        return {id(lane): lane for lane in self._by_id.values()}.values()

    def apply(self, mark: Mark) -> None:
        """Apply the next mark."""
        match mark.kind:
            case MarkKind.JOINED:
                self._joined(mark)
            case MarkKind.LEFT | MarkKind.REMOVED:
                lane = self.lane(mark.member_id, mark.name)
                lane.goes(mark.time_ms)
                self._note(lane, mark, "left" if mark.kind is MarkKind.LEFT else "removed")
            case MarkKind.REPLACED:
                lane = self.lane(mark.member_id, mark.name)
                self._renamed(lane, mark.other_id)
                lane.comes(mark.time_ms if lane.spans else None)
                self._note(lane, mark, "replaced")
            case MarkKind.EMPTY:
                for lane in self.all():
                    lane.goes(mark.time_ms)
        if mark.kind is MarkKind.REBALANCE:
            for member_id in mark.members:
                lane = self.lane(member_id)
                if not lane.spans:
                    lane.comes(None)
                lane.blocked += mark.time_ms >= self._from_ms

    def _joined(self, mark: Mark) -> None:
        lane = self._by_id.get(mark.member_id) or self._by_id.get(mark.other_id)
        is_back = lane is not None and bool(lane.spans)
        if lane is None:
            lane = self.lane(mark.member_id, mark.name)
        self._renamed(lane, mark.member_id)
        lane.comes(mark.time_ms)
        self._note(lane, mark, "returned" if is_back else "joined")

    def _renamed(self, lane: _Lane, member_id: str) -> None:
        if member_id and self._by_id.get(member_id) is not lane:
            self._by_id[member_id] = lane
            lane.member_id, lane.ids = member_id, lane.ids + 1

    def _note(self, lane: _Lane, mark: Mark, kind: str) -> None:
        if mark.time_ms >= self._from_ms:
            if kind == "removed":
                lane.removals, lane.removed_id = lane.removals + 1, mark.member_id
            lane.marks.append(LaneMark(time_ms=mark.time_ms, kind=kind, words=mark.reason))


def group_lanes(
    group_id: str, group: GroupMarks, from_ms: int, to_ms: int, *, lanes_max: int, removals_max: int
) -> GroupLanes:
    """Return a group in a stretch of time; hold the lock of its store during that.

    Args:
        lanes_max: most members, those with the most removals.
        removals_max: most removals, the newest.
    """
    lanes, size = _Lanes(from_ms), None
    for mark in group.between(0, to_ms):
        lanes.apply(mark)
        if mark.kind in {MarkKind.REBALANCE, MarkKind.EMPTY} and not mark.runs:
            size = 0 if mark.kind is MarkKind.EMPTY else mark.size
    seen = sorted((each for each in lanes.all() if each.is_seen(from_ms, to_ms)), key=_worst)
    marks = group.between(from_ms, to_ms)
    removed = [mark for mark in marks if mark.kind is MarkKind.REMOVED]
    rebalances = [mark for mark in marks if mark.kind in {MarkKind.REBALANCE, MarkKind.EMPTY}]
    back = {mark.other_id: mark.time_ms for mark in reversed(marks) if mark.kind is MarkKind.JOINED}
    return GroupLanes(
        group_id=group_id,
        kind=group.kind,
        members=size,
        removals_count=len(removed),
        rebalances_count=len(rebalances),
        rebalancing_ms=sum(mark.time_ms - mark.started_ms for mark in rebalances if mark.started_ms is not None),
        storms=[_storm(mark, to_ms) for mark in group.storms(from_ms, to_ms)],
        lanes=[_lane(each, from_ms) for each in seen[:lanes_max]],
        lanes_left_out=max(0, len(seen) - lanes_max),
        rebalances=[_rebalance(mark) for mark in rebalances[-REBALANCES_MAX:]],
        removals=[_removal(mark, lanes, back.get(mark.member_id)) for mark in removed[: -removals_max - 1 : -1]],
    )


def _worst(lane: _Lane) -> tuple[int, int, str]:
    return -lane.removals, -lane.blocked, lane.name


def _lane(lane: _Lane, from_ms: int) -> MemberLane:
    spans = [(begin, end) for begin, end in lane.spans if end is None or end >= from_ms][-_SPANS_MAX:]
    return MemberLane(
        name=lane.name,
        member_id=lane.member_id,
        removed_id=lane.removed_id,
        ids=lane.ids,
        removals=lane.removals,
        blocked=lane.blocked,
        spans=[LaneSpan(from_ms=begin, to_ms=end) for begin, end in spans],
        marks=lane.marks[-_MARKS_MAX:],
    )


def _rebalance(mark: Mark) -> LaneRebalance:
    return LaneRebalance(
        started_ms=mark.started_ms,
        ended_ms=None if mark.runs else mark.time_ms,
        number=mark.number,
        cause=mark.reason,
        members=0 if mark.kind is MarkKind.EMPTY else mark.size,
        blocked_by=list(mark.members),
    )


def _storm(mark: Mark, to_ms: int) -> LaneStorm:
    count = mark.storm.member_count if mark.storm is not None else None
    return LaneStorm(from_ms=mark.time_ms, to_ms=min(storm_end_ms(mark), to_ms), count=count or 0)


def _removal(mark: Mark, lanes: _Lanes, back_ms: int | None) -> LaneRemoval:
    return LaneRemoval(
        time_ms=mark.time_ms,
        member_id=mark.member_id,
        name=lanes.lane(mark.member_id, mark.name).name,
        reason=mark.reason,
        why=list(mark.why),
        advice=mark.advice,
        evidence=mark.evidence,
        returned_ms=mark.returned_ms or back_ms,
    )
