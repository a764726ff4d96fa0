"""What a timeline is drawn from: the marks of each group of brokers' logs, the newest, bounded in number."""

from __future__ import annotations

import enum
import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from heartwheel.wire.explained import REASON_OF, ExplainedEvent, Happened

MARKS_MAX: Final = 50_000
"""Most marks of all groups together."""

_DROP_SHARE: Final = 10
_LEFT_MAX: Final = 1_000
_STORMS_MAX: Final = 50


class MemberJoined(NamedTuple):
    """A member that joined a group.

    Args:
        former_id: its id before that, if it came back.
        removal: the removal that it returns from, if its event was returned before and so does not show the return.
    """

    time_ms: int
    group_id: str
    member_id: str
    name: str
    former_id: str = ""
    removal: ExplainedEvent | None = None


class MarkKind(enum.Enum):
    """The kind of a mark."""

    JOINED = enum.auto()
    LEFT = enum.auto()
    REMOVED = enum.auto()
    REPLACED = enum.auto()
    REBALANCE = enum.auto()
    EMPTY = enum.auto()
    """A rebalance after which no member is left."""
    STORM = enum.auto()


class Mark(msgspec.Struct, kw_only=True, gc=False):
    """One thing that happened in a group.

    Args:
        time_ms: when; of a rebalance its end, epoch ms.
        started_ms: when a rebalance or storm began, epoch ms.
        runs: whether a rebalance is not over.
        member_id: the member it is about.
        name: that stays the same when the member comes back under a new id.
        other_id: the member's id before it came back, or after it was replaced.
        reason: of a removal or leave; the cause of a rebalance.
        why: sentences about a removal.
        advice: what to change.
        evidence: file and line of the log.
        returned_ms: when a removed member was back, epoch ms.
        members: those that a rebalance waited for.
        size: members after a rebalance, or rebalances of a storm.
        number: generation or epoch.
        storm: the event of a storm, which grows.
    """

    time_ms: int
    kind: MarkKind
    started_ms: int | None = None
    runs: bool = False
    member_id: str = ""
    name: str = ""
    other_id: str = ""
    reason: str = ""
    why: Sequence[str] = ()
    advice: str = ""
    evidence: str = ""
    returned_ms: int | None = None
    members: Sequence[str] = ()
    size: int | None = None
    number: int | None = None
    storm: ExplainedEvent | None = None


_KINDS: Final[Mapping[Happened, MarkKind]] = {
    **dict.fromkeys(REASON_OF, MarkKind.REMOVED),
    Happened.LEFT: MarkKind.LEFT,
    Happened.TEMPORARILY_LEFT: MarkKind.LEFT,
    Happened.REPLACED: MarkKind.REPLACED,
    Happened.REBALANCE: MarkKind.REBALANCE,
    Happened.REBALANCING: MarkKind.REBALANCE,
    Happened.GROUP_EMPTY: MarkKind.EMPTY,
    Happened.STORM: MarkKind.STORM,
}


class GroupMarks:
    """The marks of one group, in the order of time; ten thousand groups have one each, so what is empty is small."""

    __slots__ = ("_is_sorted", "_left", "_open", "_storms", "kind", "marks")

    def __init__(self) -> None:
        self.kind = ""
        self.marks: list[Mark] = []
        self._open: Mark | None = None
        self._left: dict[str, Mark] = {}
        self._storms: list[Mark] = []
        self._is_sorted = True

    def add(self, mark: Mark) -> int:
        """Add a mark, and return by how many there are more: one that completes or corrects another takes its place."""
        if mark.kind is MarkKind.REBALANCE or mark.kind is MarkKind.EMPTY:
            before, self._open = self._open, mark if mark.runs else None
            if before is not None and before.started_ms == mark.started_ms:
                self._open = self._become(before, mark)
                return 0
        elif mark.kind is MarkKind.STORM:
            self._storms.append(mark)  # it has a length that grows, so it is found by its end too
            del self._storms[:-_STORMS_MAX]
            return 0
        elif mark.kind is MarkKind.LEFT:
            self._left[mark.member_id] = mark
            if len(self._left) > _LEFT_MAX:
                del self._left[next(iter(self._left))]
        elif mark.kind is MarkKind.REMOVED:
            # A leave becomes a poll timeout when its member is back under the same id.
            left = self._left.pop(mark.member_id, None)
            if left is not None and left.time_ms == mark.time_ms:
                self._become(left, mark)
                return 0
        self._is_sorted = self._is_sorted and (not self.marks or self.marks[-1].time_ms <= mark.time_ms)
        self.marks.append(mark)
        return 1

    def _become(self, before: Mark, mark: Mark) -> Mark | None:
        """Make a mark what another one is; return it if it is a rebalance that runs."""
        self._is_sorted = self._is_sorted and before.time_ms == mark.time_ms
        for name in Mark.__struct_fields__:
            setattr(before, name, getattr(mark, name))
        return before if before.runs else None

    def sorted(self) -> list[Mark]:
        """Return the marks in the order of time."""
        if not self._is_sorted:
            self.marks.sort(key=_time)
            self._is_sorted = True
        return self.marks

    def between(self, from_ms: int, to_ms: int) -> list[Mark]:
        """Return the marks of a time."""
        marks = self.sorted()
        if marks and from_ms <= marks[0].time_ms and marks[-1].time_ms < to_ms:
            return marks
        return marks[bisect_left(marks, from_ms, key=_time) : bisect_left(marks, to_ms, key=_time)]

    def storms(self, from_ms: int, to_ms: int) -> list[Mark]:
        """Return the storms of which some part is in a time, also if they began before it."""
        return [mark for mark in self._storms if mark.time_ms < to_ms and storm_end_ms(mark) >= from_ms]

    def drop_before(self, time_ms: int) -> int:
        """Remove older marks, and return how many those were."""
        gone = bisect_left(self.sorted(), time_ms, key=_time)
        del self.marks[:gone]
        for member_id in [member_id for member_id, mark in self._left.items() if mark.time_ms < time_ms]:
            del self._left[member_id]
        while self._storms and storm_end_ms(self._storms[0]) < time_ms:
            del self._storms[0]
        return gone


class LaneStore:
    """The marks of all groups; written by one thread, read by others under `lock`.

    Args:
        marks_max: most marks that are kept, the newest.

    Attributes:
        known_from_ms: from when on it has all marks, epoch ms; `None`: from the begin of the logs on.
        newest_ms: the time of the newest mark, epoch ms.
    """

    def __init__(self, marks_max: int = MARKS_MAX) -> None:
        self.lock = threading.Lock()
        self.groups: dict[str, GroupMarks] = {}
        self.known_from_ms: int | None = None
        self.oldest_ms: int | None = None
        self.newest_ms: int | None = None
        self._marks_max, self._size = marks_max, 0

    def joined(self, joined: MemberJoined) -> None:
        """Add a member that joined."""
        mark = Mark(
            time_ms=joined.time_ms,
            kind=MarkKind.JOINED,
            member_id=joined.member_id,
            name=joined.name,
            other_id=joined.former_id,
        )
        self._add(joined.group_id, "", mark)

    def add(self, event: ExplainedEvent) -> None:
        """Add an event; one that has no place in a timeline of members is left out."""
        kind = _KINDS.get(event.kind)
        if kind is None:
            return
        mark = Mark(time_ms=event.time_ms, kind=kind, started_ms=event.started_ms, reason=event.reason)
        if kind is MarkKind.STORM:
            mark.time_ms, mark.storm = event.started_ms or event.time_ms, event
        elif kind in {MarkKind.REBALANCE, MarkKind.EMPTY}:
            mark.runs = event.kind is Happened.REBALANCING
            mark.members, mark.size = event.blocked_by, event.member_count
            mark.number = event.epoch if event.generation_id is None else event.generation_id
        else:
            mark.member_id, mark.other_id = event.member_id or "", event.new_member_id or ""
            mark.name = event.group_instance_id or event.client_id or mark.member_id
            if kind is MarkKind.REMOVED:
                mark.reason = REASON_OF[event.kind].value
                mark.why, mark.advice, mark.returned_ms = event.explanation, event.advice, event.returned_ms
                mark.evidence = f"{event.evidence.file}:{event.evidence.line}"
            elif event.reason == "left" and event.reason_text not in {"", "not provided"}:
                mark.reason = event.reason_text
        self._add(event.group_id, event.group_type, mark)

    def explain_again(self, event: ExplainedEvent) -> None:
        """Replace why a member was removed, if its mark is kept."""
        evidence = f"{event.evidence.file}:{event.evidence.line}"
        with self.lock:
            group = self.groups.get(event.group_id)
            for mark in () if group is None else group.between(event.time_ms, event.time_ms + 1):
                if (mark.kind, mark.member_id, mark.evidence) == (MarkKind.REMOVED, event.member_id or "", evidence):
                    mark.why, mark.advice = event.explanation, event.advice

    def _add(self, group_id: str, kind: str, mark: Mark) -> None:
        if not group_id:
            return
        with self.lock:
            group = self.groups.get(group_id)
            if group is None:
                group = self.groups[group_id] = GroupMarks()
            group.kind = kind or group.kind
            self._size += group.add(mark)
            self.oldest_ms = mark.time_ms if self.oldest_ms is None else min(self.oldest_ms, mark.time_ms)
            self.newest_ms = mark.time_ms if self.newest_ms is None else max(self.newest_ms, mark.time_ms)
            if self._size > self._marks_max + self._marks_max // _DROP_SHARE:
                self._drop()

    def _drop(self) -> None:
        """Remove the oldest marks of all groups together."""
        times = sorted(mark.time_ms for group in self.groups.values() for mark in group.marks)
        self.oldest_ms = self.known_from_ms = times[len(times) - self._marks_max]
        for group_id, group in list(self.groups.items()):
            self._size -= group.drop_before(self.known_from_ms)
            if not group.marks:
                del self.groups[group_id]


def storm_end_ms(mark: Mark) -> int:
    """Return when the newest rebalance of a storm began, epoch ms."""
    assert mark.storm is not None  # noqa: S101 - marks of storms have one
    return mark.time_ms + (mark.storm.duration_ms or 0)


def _time(mark: Mark) -> int:
    return mark.time_ms
