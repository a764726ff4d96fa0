"""The state while a log is read: groups and members, and the events that wait for lines that belong to them."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from heartwheel.readers.live.lane_store import MemberJoined
from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.groups import Groups, LoggedMember, WatchedGroup
from heartwheel.wire.explained import KICKS, REASON_OF, Evidence, ExplainedEvent, Happened
from heartwheel.wire.verdicts import ExpiryReason

_UNNAMED_MAX: Final = 10_000


class FollowedLog:
    """Groups and members as far as the log was read, and the newest events about them.

    Args:
        files: names of the logs, by the number that facts have.
        joined: called with each member that joins, which is no event.
    """

    def __init__(
        self, files: Sequence[str] | Mapping[int, str], joined: Callable[[MemberJoined], None] | None = None
    ) -> None:
        self._files, self._joined = files, joined
        self.groups = Groups()
        self.waiting: deque[ExplainedEvent] = deque()
        """Events that wait."""
        self._waiting_ids: set[int] = set()
        """Their identities."""
        self.unnamed: OrderedDict[str, list[ExplainedEvent]] = OrderedDict()
        """Events of Kafka 2.4 whose line does not name the group, by member."""

    def note(self, event: ExplainedEvent) -> None:
        """Add an event to those that wait."""
        self.waiting.append(event)
        self._waiting_ids.add(id(event))

    def take_first(self) -> ExplainedEvent:
        """Return the first event that waits, which does not wait any more."""
        event = self.waiting.popleft()
        self._waiting_ids.discard(id(event))
        return event

    def take_all(self) -> list[ExplainedEvent]:
        """Return all events that wait, which do not wait any more."""
        events = list(self.waiting)
        self.waiting.clear()
        self._waiting_ids.clear()
        return events

    def put_before(self, event: ExplainedEvent, other: ExplainedEvent) -> None:
        """Move the event that was noted last before another of the same time, if that one still waits."""
        same = 0
        while same < len(self.waiting) and self.waiting[-1 - same].time_ms == event.time_ms:
            if self.waiting[-1 - same] is other:
                self.waiting.insert(len(self.waiting) - 1 - same, self.waiting.pop())
                return
            same += 1

    def group(self, fact: Fact) -> WatchedGroup:
        """Return the group of a fact, found by its member if its line does not name it."""
        group_id = fact.group_id or self.groups.where(fact.member_id)
        group = self.groups.get(group_id)
        group.broker_id, group.unloaded = fact.broker_id, None
        if not group.group_type:
            group.group_type = fact.protocol
        for name in (fact.member_id, *fact.members):
            if name and group_id:
                self.name_unnamed(name, group)
        return group

    def note_unnamed(self, event: ExplainedEvent) -> None:
        """Keep an event whose line names no group until another line names one of its members with a group."""
        for name in (event.new_member_id, event.member_id):
            if name:
                self.unnamed.setdefault(name, []).append(event)
        while len(self.unnamed) > _UNNAMED_MAX:
            self.unnamed.popitem(last=False)

    def name_unnamed(self, member_id: str, group: WatchedGroup) -> None:
        """Set the group of events of Kafka 2.4 whose lines left it out, when a line names it for this member.

        A static member that was replaced several times is followed through all its ids.
        """
        names = [member_id] if group.group_id else []
        while names:
            for event in self.unnamed.pop(names.pop(), ()):
                if event.group_id:
                    continue
                event.group_id = group.group_id
                for name in filter(None, (event.member_id, event.new_member_id)):
                    self.groups.remember(name, group)
                    names.append(name)

    def out(
        self,
        fact: Fact,
        group: WatchedGroup,
        kind: Happened,
        reason: str = "",
        *,
        member_id: str = "",
        words: str = "",
        causes: bool = True,
        explanation: Sequence[str] = (),
    ) -> ExplainedEvent:
        """Note that a member is out; without a reason it is that of the kind."""
        member = group.member(member_id or fact.member_id)
        self.groups.remember(member.member_id, group)
        member.learn(fact)
        event = self.event(fact, group, kind, reason or REASON_OF[kind], member=member)
        event.reason_text, event.explanation = words, tuple(explanation)
        member.is_in = False
        if kind in KICKS or kind is Happened.POLL_TIMEOUT:
            event.times_out = group.count_out(member.name)
        member.out = event
        if kind not in {Happened.TEMPORARILY_LEFT, Happened.REPLACED}:
            group.roster.went(member.member_id)
        if causes:
            group.unsettled.append(event)
            cause = "member_left" if kind in {Happened.LEFT, Happened.POLL_TIMEOUT} else "member_expired"
            group.add_cause(fact.time_ms, cause, member.member_id)
            if group.open is not None:
                group.open.left.append((fact.time_ms, member.member_id))
        for forgotten in group.note_gone(member, event):
            self.groups.forget(forgotten, group)
        self.note(event)
        return event

    def event(
        self,
        fact: Fact,
        group: WatchedGroup,
        kind: Happened,
        reason: str,
        *,
        member: LoggedMember | None = None,
        moved_from: int | None = None,
    ) -> ExplainedEvent:
        """Make an event from a fact, with the known facts about its group and member."""
        classic = group.group_type == "classic"
        return ExplainedEvent(
            kind=kind,
            group_id=group.group_id,
            group_type=group.group_type,
            member_id=member.member_id if member else None,
            client_id=(member.client_id or None) if member else None,
            client_host=(member.client_host or None) if member else None,
            group_instance_id=(member.group_instance_id or None) if member else None,
            time_ms=fact.time_ms,
            time_error_ms=1_000 if fact.coarse else 0,
            zone_assumed=fact.zone_assumed,
            reason=reason,
            generation_id=group.generation if classic else None,
            epoch=None if classic else group.generation,
            session_timeout_ms=member.session_timeout_ms if member else None,
            rebalance_timeout_ms=member.rebalance_timeout_ms if member else None,
            broker_id=fact.broker_id if reason != "unloaded" else None,
            moved_from=moved_from,
            evidence=Evidence(self._files[fact.file], fact.line),
        )

    def joined(self, time_ms: int, group: WatchedGroup, member: LoggedMember, out: ExplainedEvent | None) -> None:
        """Note that a member joined, unless several lines say so, and the departure that it returns from."""
        if not member.is_in and self._joined is not None:
            former_id = (out.member_id if out is not None else None) or ""
            is_known = out is not None and out.kind in REASON_OF and id(out) not in self._waiting_ids
            removal = out if is_known else None
            self._joined(MemberJoined(time_ms, group.group_id, member.member_id, member.name, former_id, removal))
        member.is_in = True

    def make_poll_timeout(self, event: ExplainedEvent, times_out: int) -> None:
        """Make a leave a poll timeout, because its member came back under the same id.

        An event that was returned already is returned once more, with the same evidence.
        """
        event.kind, event.reason, event.certainty = Happened.POLL_TIMEOUT, ExpiryReason.POLL_TIMEOUT, "likely"
        event.times_out = times_out
        if id(event) not in self._waiting_ids:
            event.explanation = ()
            self.waiting.appendleft(event)
            self._waiting_ids.add(id(event))
