"""Signs of life: what each member did, in the order of time, and what the coordinator did to it."""

from __future__ import annotations

import bisect
import enum
from array import array
from collections.abc import Iterable
from typing import Final, NamedTuple

from heartwheel.engine.replay.epoch_lane import EpochLine
from heartwheel.engine.replay.lines import ReplayedLine
from heartwheel.engine.replay.recorded import RecordedAnswer
from heartwheel.engine.rules.answer import KEEPS_ALIVE
from heartwheel.engine.rules.epochs.model import TYPE_OF
from heartwheel.wire.events import UNCHECKED_GENERATION, Event, EventType
from heartwheel.wire.group_heartbeats import JOIN_EPOCH, LEAVE_STATIC_EPOCH, GroupHeartbeat
from heartwheel.wire.verdicts import Cause, ExpiryReason, Kind, Verdict


class Sign(enum.IntEnum):
    """The kind of a row, in the order in which rows of one millisecond count: timers, then requests, then effects."""

    EXPIRED = 0
    """The session ran out. The silence goes on: it is the member's, not the coordinator's."""
    REMOVED = 1
    """The member was removed by another timer: its session ends there."""
    BEAT = 2
    """A heartbeat or commit."""
    JOIN = 3
    SYNC = 4
    REFUSED = 5
    """A request that a broker is known to have refused: a sign of life that starts no session."""
    LEAVE = 6
    GONE = 7
    """The member left, or a static member was replaced."""


_OF_EVENT: Final = {
    EventType.HEARTBEAT: Sign.BEAT,
    EventType.COMMIT: Sign.BEAT,
    EventType.JOIN: Sign.JOIN,
    EventType.SYNC: Sign.SYNC,
}
_OF_VERDICT: Final = {
    Kind.MEMBER_REMOVED_AT_JOIN: Sign.REMOVED,
    Kind.SYNC_TIMEOUT: Sign.REMOVED,
    Kind.MEMBER_FENCED_REBALANCE_TIMEOUT: Sign.REMOVED,
    Kind.CLASSIC_MEMBER_JOIN_TIMEOUT: Sign.REMOVED,
    Kind.CLASSIC_MEMBER_SYNC_TIMEOUT: Sign.REMOVED,
    Kind.MEMBER_LEFT: Sign.GONE,
    Kind.STATIC_REPLACED: Sign.GONE,
}
_ACCEPTED: Final = (None, "NONE")
_PHASES: Final = frozenset(
    {
        Kind.REBALANCE_STARTED,
        Kind.REBALANCE_COMPLETED,
        Kind.ASSIGNMENT_RECEIVED,
        Kind.GROUP_EMPTY,
        Kind.GROUP_UPGRADED,
        Kind.GROUP_DOWNGRADED,
    }
)


class ReplayedPhases:
    """The phases of one group: when each began, and whether its coordinator was away.

    Attributes:
        begins: (epoch ms, kind of the verdict that began it), in the order of time.
        absences: (unloaded, loaded), epoch ms; the second is `None` while it is away.
        joined_ms: when the first join was seen, epoch ms, `None` if none was.
        epochs_ms: when the first heartbeat at a member epoch was seen, epoch ms, `None` if none was.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.begins: list[tuple[int, Kind]] = []
        self._by_expiry: set[int] = set()
        self.absences: list[tuple[int, int | None]] = []
        self.joined_ms: int | None = None
        self.epochs_ms: int | None = None
        self._changes: list[tuple[int, Kind]] = []

    def is_classic(self, at_ms: int) -> bool:
        """Return whether the members had joined in the classic protocol by then."""
        return self.joined_ms is not None and self.joined_ms <= at_ms

    def must_join(self, at_ms: int) -> bool:
        """Return whether the members had to join by then, so that a mere heartbeat does not readmit an expired one."""
        return self.is_classic(at_ms) or (self.epochs_ms is not None and self.epochs_ms <= at_ms)

    def goes_by_epochs(self, at_ms: int) -> bool:
        """Return whether the group had member epochs then, so that an expiration makes a new epoch at once."""
        changes = [kind for time_ms, kind in self._changes if time_ms <= at_ms]
        if changes:
            return changes[-1] is Kind.GROUP_UPGRADED
        return self.epochs_ms is not None and self.epochs_ms <= at_ms

    def begin(self, verdict: Verdict) -> None:
        """Note the start of a phase."""
        if verdict.kind in (Kind.GROUP_UPGRADED, Kind.GROUP_DOWNGRADED):
            self._changes.append((verdict.time_ms, verdict.kind))
        if verdict.kind is Kind.REBALANCE_STARTED and verdict.cause is Cause.MEMBER_EXPIRED:
            self._by_expiry.add(len(self.begins))
        self.begins.append((verdict.time_ms, verdict.kind))

    def latest(self, at_ms: int) -> int:
        """Return how many phases have begun by then."""
        return bisect.bisect_right(self.begins, at_ms, key=lambda begin: begin[0])

    def is_joining_anyway(self, at_ms: int) -> bool:
        """Return whether a join phase was running then that had another cause than an expiration."""
        number = self.latest(at_ms) - 1
        joining = number >= 0 and self.begins[number][1] is Kind.REBALANCE_STARTED and self.is_classic(at_ms)
        return joining and number not in self._by_expiry

    def note(self, event: Event, t_ms: int) -> None:
        """Note a request that concerns the whole group."""
        if event.type is EventType.JOIN and self.joined_ms is None:
            self.joined_ms = t_ms
        elif event.type is EventType.UNLOAD and (not self.absences or self.absences[-1][1] is not None):
            self.absences.append((t_ms, None))
        elif event.type is EventType.LOAD and self.absences and self.absences[-1][1] is None:
            self.absences[-1] = (self.absences[-1][0], t_ms)


class SignRow(NamedTuple):
    """One sign of a member.

    Args:
        sign: a value of `Sign`.
        generation: `UNCHECKED_GENERATION` if the request names none.
    """

    t_ms: int
    sign: int
    generation: int

    @property
    def is_request(self) -> bool:
        """Return whether the member sent it."""
        return Sign.BEAT <= self.sign <= Sign.LEAVE

    @property
    def starts_session(self) -> bool:
        """Return whether a session timer starts with it."""
        return Sign.BEAT <= self.sign <= Sign.SYNC


class _Columns:
    """The signs of one member in the order in which they were added, 17 bytes each."""

    __slots__ = ("generation", "sign", "t_ms")

    def __init__(self) -> None:
        self.t_ms, self.sign, self.generation = array("q"), array("b"), array("q")

    def rows(self) -> list[SignRow]:
        rows = list(map(SignRow, self.t_ms, self.sign, self.generation))
        # Stable: requests of one millisecond stay in the order of the log.
        rows.sort(key=lambda row: (row.t_ms, Sign.BEAT if row.is_request else row.sign))
        return rows


class SignsOfLife:
    """The signs of life of a log.

    Attributes:
        members: (group, member id) by member number.
        kinds: by member number, the kind of group in its heartbeats; empty for the classic protocol.
        phases: the groups by id.
        returned: the numbers of members that left by a heartbeat at an epoch and came back under their id, a number for
            each time.
    """

    def __init__(self) -> None:
        self.members: list[tuple[str, str]] = []
        self.returned: list[int] = []
        self._left: set[tuple[str, str]] = set()
        self.kinds: list[str] = []
        self.phases: dict[str, ReplayedPhases] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._columns: list[_Columns] = []

    def add(self, line: ReplayedLine | EpochLine) -> None:
        """Add a line of the log."""
        if isinstance(line, EpochLine):
            self._add_epoch_line(line)
            return
        event = line.event
        sign = _sign_of(event, line.evidence)
        if sign is Sign.BEAT:
            self._beat(event, line.t_ms)
            return
        self._phases(event.group_id).note(event, line.t_ms)
        if event.type is EventType.LEAVE and not line.recorded().had_no_effect:
            for leaver in event.leaving or (event,):
                if leaver.member_id:
                    self._put(event.group_id, leaver.member_id, line.t_ms, Sign.LEAVE, UNCHECKED_GENERATION)
        elif sign is not None:
            member_id = event.member_id or _id_of_a_member(line)
            if member_id:
                self._put(event.group_id, member_id, line.t_ms, sign, event.generation_id)

    def _add_epoch_line(self, line: EpochLine) -> None:
        event, beat, t_ms = line.event, line.beat, line.evidence.t_ms
        if event is not None and _sign_of(event, line.evidence) is Sign.BEAT:
            self._beat(event, t_ms)
        if beat is None:
            return
        phases = self._phases(beat.group_id)
        phases.epochs_ms = t_ms if phases.epochs_ms is None else phases.epochs_ms
        sign, key = _sign_of_epoch(beat, line.evidence), (beat.group_id, beat.sender)
        if beat.member_epoch < JOIN_EPOCH and line.evidence.error in _ACCEPTED:
            self._left.add(key)
        if sign is not None:
            # A member keeps its id for as long as it lives, and its epoch moves whenever the group's does.
            number = self._put(beat.group_id, beat.sender, t_ms, sign, UNCHECKED_GENERATION)
            self.kinds[number] = TYPE_OF[beat.type].value
            if sign is Sign.JOIN and key in self._left:
                self._left.remove(key)
                self.returned.append(number)

    def _beat(self, event: Event, t_ms: int) -> None:
        """Add a heartbeat or a commit; a commit keeps no member alive in a group with member epochs."""
        if event.type is EventType.COMMIT and self._phases(event.group_id).epochs_ms is not None:
            return
        self._put(event.group_id, event.member_id, t_ms, Sign.BEAT, event.generation_id)

    def judge(self, verdicts: Iterable[Verdict]) -> None:
        """Add the coordinator's verdicts on the whole log, in the order of time."""
        for verdict in verdicts:
            if verdict.kind in _PHASES:
                self._phases(verdict.group_id).begin(verdict)
            expired = verdict.expiry_reason is ExpiryReason.SESSION_TIMEOUT
            sign = Sign.EXPIRED if expired else _OF_VERDICT.get(verdict.kind)
            if sign is not None and verdict.member_id and verdict.new_member_id != verdict.member_id:
                self._put(verdict.group_id, verdict.member_id, verdict.time_ms, sign, verdict.generation_id)

    def rows(self, number: int) -> list[SignRow]:
        """Return the signs of a member, in the order of time."""
        return self._columns[number].rows()

    def _phases(self, group_id: str) -> ReplayedPhases:
        phases = self.phases.get(group_id)
        if phases is None:
            phases = self.phases[group_id] = ReplayedPhases(group_id)
        return phases

    def _put(self, group_id: str, member_id: str, t_ms: int, sign: Sign, generation: int) -> int:
        key = group_id, member_id
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.members)
            self.members.append(key)
            self.kinds.append("")
            self._columns.append(_Columns())
            self._phases(group_id)
        columns = self._columns[number]
        columns.t_ms.append(t_ms)
        columns.sign.append(sign)
        columns.generation.append(generation)
        return number


def _sign_of(event: Event, evidence: RecordedAnswer | None) -> Sign | None:
    if evidence is not None and evidence.error is not None and evidence.error not in KEEPS_ALIVE:
        return None if event.type not in _OF_EVENT else Sign.REFUSED
    return _OF_EVENT.get(event.type)


def _sign_of_epoch(beat: GroupHeartbeat, evidence: RecordedAnswer) -> Sign | None:
    accepted = evidence.error in _ACCEPTED
    if beat.member_epoch >= JOIN_EPOCH:
        alive = Sign.JOIN if beat.member_epoch == JOIN_EPOCH else Sign.BEAT
        return alive if accepted else Sign.REFUSED
    # A static member that leaves temporarily keeps the session of its last heartbeat: nothing starts and nothing ends.
    return Sign.LEAVE if accepted and beat.member_epoch != LEAVE_STATIC_EPOCH else None


def _id_of_a_member(line: ReplayedLine) -> str | None:
    """Return the member that a join without member id creates; one that only gets its id (KIP-394) creates none yet."""
    event, recorded = line.event, line.recorded()
    at_once = event.group_instance_id is not None or not recorded.was_given_its_id
    return event.assigned_member_id if at_once and recorded.evidence.error in (None, "NONE") else None
