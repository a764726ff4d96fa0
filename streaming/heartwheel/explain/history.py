"""Facts of a log in the order of time, turned into explained events.

What a line means depends on those around it: a leave is a poll timeout if its member is back under the same id, an
expiry that follows a static member's leave is its second line, a rebalance has the members it waited for. So events
are held back until what belongs to them has been read, in bounded memory.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from heartwheel.explain.explanation import explain, leave_reason
from heartwheel.explain.facts import Fact, Said
from heartwheel.explain.groups import BROKER_START_MS, Groups, Member, OpenRebalance, WatchedGroup
from heartwheel.explain.texts import instance_of, triggered_by
from heartwheel.live.phrases import length
from heartwheel.live.storms import StormRule
from heartwheel.wire.explained import KICKS, Evidence, ExplainedEvent, Happened

HOLD_MS: Final = 3_600_000
"""How long an event waits for what belongs to it, ms of the log's time: a poll may take that long."""

HELD_MAX: Final = 50_000
"""Most events that wait at once."""

_AT_ONCE_MS: Final = 150
_CAUSED_WITHIN_MS: Final = 2_000
_CAUSES_MAX: Final = 100
_RECENT_LOAD_MS: Final = 120_000
_STORM_OF_EPOCHS: Final = 10
_UNNAMED_MAX: Final = 10_000
_FENCED: Final[Sequence[tuple[re.Pattern[str], Happened, str]]] = (
    (re.compile(r"the member session expired"), Happened.EXPIRED, "session_timeout"),
    (re.compile(r"it failed to transition from epoch"), Happened.REVOCATION_TIMEOUT, "revocation_timeout"),
    (re.compile(r".*failed to join within"), Happened.REMOVED_AT_REBALANCE, "rebalance_timeout"),
    (re.compile(r".*failed to sync within"), Happened.SYNC_TIMEOUT, "sync_timeout"),
)
_TIMEOUT_MS: Final = re.compile(r"within (\d+)ms")
_EPOCH: Final = re.compile(r"from epoch (-?\d+)")


class History:
    """Explain facts.

    Args:
        files: names of the logs, by the number that facts have.
        hold_ms: how long events wait for what belongs to them, ms of the log's time; 0 lets them go at once.
        storm: from how many rebalances on a group is in a storm.
    """

    def __init__(self, files: Sequence[str], *, hold_ms: int = HOLD_MS, storm: StormRule | None = None) -> None:
        self._files = files
        self._hold_ms = hold_ms
        self._storm = storm or StormRule()
        self._groups = Groups()
        self._held: deque[ExplainedEvent] = deque()
        self._unnamed: OrderedDict[str, ExplainedEvent] = OrderedDict()
        self._started_ms: dict[int, int] = {}
        self._first_ms: dict[int, int] = {}
        self._take: dict[Said, Callable[[Fact], None]] = {
            Said.FAILED: self._failed,
            Said.FENCED: self._fenced,
            Said.PENDING_EXPIRED: self._pending_expired,
            Said.PENDING_LEFT: self._pending_left,
            Said.LEFT: self._left,
            Said.TEMPORARILY_LEFT: self._temporarily_left,
            Said.REMOVED_AT_BARRIER: self._removed_at_barrier,
            Said.TRIGGER: self._triggered,
            Said.STABILIZED: self._stabilized,
            Said.ASSIGNED: self._assigned,
            Said.EMPTY: self._emptied,
            Said.NEW_ID: self._joined,
            Said.JOINED: self._joined,
            Said.REPLACED: self._replaced,
            Said.BUMPED: self._bumped,
            Said.REACHED: self._reached,
            Said.LOADED: self._loaded,
            Said.UNLOADED: self._unloaded,
            Said.STARTED: self._started,
            Said.STOPPING: self._stopping,
        }

    def explain(self, facts: Iterable[Fact]) -> Iterator[ExplainedEvent]:
        """Explain all facts of some logs.

        Args:
            facts: in the order of time.

        Returns:
            The events, in the order of time.
        """
        for fact in facts:
            yield from self.add(fact)
        yield from self.finish()

    def add(self, fact: Fact) -> Iterator[ExplainedEvent]:
        """Take the next fact, and give the events that wait for nothing any more."""
        self._first_ms.setdefault(fact.broker_id, fact.time_ms)
        take = self._take.get(fact.said)
        if take is not None:
            take(fact)
        until_ms = fact.time_ms - self._hold_ms
        while self._held and (self._held[0].time_ms <= until_ms or len(self._held) > HELD_MAX):
            yield _done(self._held.popleft())

    def finish(self) -> Iterator[ExplainedEvent]:
        """Give the events that still wait, as the log is over."""
        for group in self._groups.moved_away():
            assert group.unloaded is not None  # noqa: S101 - that is what they are
            self._note(
                self._event(
                    group.unloaded, group, Happened.COORDINATOR_MOVED, "unloaded", moved_from=group.unloaded.broker_id
                )
            )
        for event in sorted(self._held, key=lambda each: each.time_ms):
            yield _done(event)
        self._held.clear()

    # Members that are out

    def _failed(self, fact: Fact) -> None:
        group = self._group(fact)
        self._out(fact, group, Happened.EXPIRED, "session_timeout", explanation=self._late(fact, group))

    def _fenced(self, fact: Fact) -> None:
        group = self._group(fact)
        kind, reason = next(
            ((kind, reason) for pattern, kind, reason in _FENCED if pattern.match(fact.words)),
            (Happened.EXPIRED, "fenced"),
        )
        notes = self._late(fact, group) if kind is Happened.EXPIRED else []
        before = group.member(fact.member_id).out
        if before is not None and before.kind is Happened.TEMPORARILY_LEFT and before.returned_ms is None:
            ago = length(fact.time_ms - before.time_ms)
            notes = [f"Its static member had left {ago} before and did not come back in time.", *notes]
            reason = "static_not_back"
        event = self._out(fact, group, kind, reason, words=fact.words, explanation=notes)
        limit, epoch = _TIMEOUT_MS.search(fact.words), _EPOCH.search(fact.words)
        if limit is not None:
            event.rebalance_timeout_ms = int(limit[1])
        if epoch is not None:
            event.epoch = int(epoch[1])

    def _pending_expired(self, fact: Fact) -> None:
        group = self._group(fact)
        if group.member(fact.member_id).left_pending:
            return  # the old coordinator says so of a pending member that has left, too
        self._out(fact, group, Happened.PENDING_EXPIRED, "pending_timeout", causes=False)

    def _pending_left(self, fact: Fact) -> None:
        group = self._group(fact)
        self._out(fact, group, Happened.LEFT, leave_reason(fact.words), words=fact.words, causes=False)
        group.member(fact.member_id).left_pending = True

    def _left(self, fact: Fact) -> None:
        group = self._group(fact)
        reason = leave_reason(fact.words)
        kind = Happened.POLL_TIMEOUT if reason == "poll_timeout" else Happened.LEFT
        emptied = group.emptied
        if emptied is None or fact.time_ms - emptied.time_ms > _AT_ONCE_MS:
            self._out(fact, group, kind, reason, words=fact.words)
            return
        # The old coordinator first says that the group is empty, and then who left it last.
        event = self._out(fact, group, kind, reason, words=fact.words, causes=False)
        event.generation_id = None if emptied.generation_id is None else emptied.generation_id - 1
        event.rebalance_generation, event.rebalance_ms = emptied.generation_id, emptied.duration_ms

    def _temporarily_left(self, fact: Fact) -> None:
        self._out(fact, self._group(fact), Happened.TEMPORARILY_LEFT, "left", causes=False)

    def _removed_at_barrier(self, fact: Fact) -> None:
        group = self._group(fact)
        for member_id in fact.members:
            event = self._out(fact, group, Happened.REMOVED_AT_REBALANCE, "rebalance_timeout", member_id=member_id)
            if group.open is not None:
                event.duration_ms = max(0, fact.time_ms - group.open.started_ms)
                group.open.blocked_by.append(member_id)

    # Rebalances

    def _triggered(self, fact: Fact) -> None:
        group = self._group(fact)
        cause, members, client = triggered_by(fact.words)
        member_id, instance_id = instance_of(fact.words)
        if member_id and instance_id:
            group.member(member_id).group_instance_id = instance_id
        group.generation = fact.number
        for event in group.unsettled:
            if event.generation_id is None and event.group_type == "classic":
                event.generation_id = fact.number
        if cause == "sync_expired":
            for each in members:
                self._out(fact, group, Happened.SYNC_TIMEOUT, "sync_timeout", member_id=each, words=fact.words)
        if cause == "member_joined":
            for each in members:
                self._note_join(fact, group, each)
        started_ms = fact.time_ms
        if group.open is not None and group.open.old_generation == fact.number:
            started_ms = group.open.started_ms  # the same rebalance, triggered again
        group.open = OpenRebalance(
            started_ms=started_ms,
            old_generation=fact.number,
            cause=cause,
            words=fact.words,
            client_words=client,
            caused_by=members,
            fact=fact,
        )
        self._note_start(fact, group, cause, members)

    def _stabilized(self, fact: Fact) -> None:
        group = self._group(fact)
        self._completed(fact, group, Happened.REBALANCE)

    def _emptied(self, fact: Fact) -> None:
        self._completed(fact, self._group(fact), Happened.GROUP_EMPTY)

    def _completed(self, fact: Fact, group: WatchedGroup, kind: Happened) -> None:
        open_ = group.open
        event = self._event(fact, group, kind, open_.cause if open_ else "unknown")
        event.generation_id, event.member_count = fact.number, 0 if kind is Happened.GROUP_EMPTY else fact.size
        if open_ is not None:
            event.started_ms, event.duration_ms = open_.started_ms, max(0, fact.time_ms - open_.started_ms)
            event.reason_text, event.caused_by = open_.words, list(open_.caused_by)
            if kind is Happened.REBALANCE:
                event.blocked_by = open_.waited_for(fact.time_ms, 1_000 if fact.coarse else _AT_ONCE_MS)
        else:
            event.explanation = ["It began before the log, so how long it took is not known."]
        for out in group.unsettled:
            out.rebalance_generation, out.rebalance_ms = fact.number, event.duration_ms
        group.unsettled.clear()
        group.generation, group.open = fact.number, None
        group.emptied = event if kind is Happened.GROUP_EMPTY else None
        self._note(event)

    def _assigned(self, fact: Fact) -> None:
        group = self._group(fact)
        group.generation = fact.number
        if fact.member_id:
            group.member(fact.member_id)
            self._groups.remember(fact.member_id, group)

    def _bumped(self, fact: Fact) -> None:
        group = self._group(fact)
        group.group_type = fact.protocol or (group.group_type if group.group_type != "classic" else "consumer")
        causes = [each for each in group.causes if fact.time_ms - each[0] <= _CAUSED_WITHIN_MS]
        group.causes = []
        cause = causes[-1][1] if causes else "metadata_changed"
        members = list(dict.fromkeys(member_id for _, _, member_id in causes))
        event = self._event(fact, group, Happened.REBALANCE, cause)
        event.epoch, event.started_ms, event.caused_by = fact.number, fact.time_ms, members
        group.generation, group.bumped = fact.number, event
        for out in group.unsettled:
            out.rebalance_generation = fact.number
        group.unsettled.clear()
        self._note(event)
        self._note_start(fact, group, cause, members)

    def _reached(self, fact: Fact) -> None:
        """Take that a member has what an epoch gives it; only 3.7 and 3.8, and share and streams groups, say so."""
        group = self._group(fact)
        bumped = group.bumped
        if bumped is not None and fact.number == bumped.epoch and fact.state == "STABLE":
            bumped.duration_ms = max(0, fact.time_ms - bumped.time_ms)

    def _note_start(self, fact: Fact, group: WatchedGroup, cause: str, members: list[str]) -> None:
        """Count a rebalance that begins, and see whether the group is in a storm."""
        starts = group.starts
        starts.append((fact.time_ms, cause, members))
        while starts and starts[0][0] <= fact.time_ms - self._storm.window_ms:
            starts.popleft()
        many = (
            self._storm.rebalances if group.group_type == "classic" else max(self._storm.rebalances, _STORM_OF_EPOCHS)
        )
        if len(starts) < many:
            group.storm = None
        elif group.storm is not None:
            storm = group.storm
            storm.member_count = (storm.member_count or 0) + 1
            storm.duration_ms = fact.time_ms - (storm.started_ms or fact.time_ms)
        else:
            first_ms, first_cause, first_members = starts[0]
            storm = self._event(fact, group, Happened.STORM, first_cause)
            storm.started_ms, storm.duration_ms = first_ms, fact.time_ms - first_ms
            storm.caused_by, storm.member_count = list(first_members), len(starts)
            group.storm = storm
            self._note(storm)
        if group.storm is not None:
            storm = group.storm
            storm.explanation = [f"{storm.member_count} rebalances in {length(storm.duration_ms or 0)}."]

    # Members that come

    def _joined(self, fact: Fact) -> None:
        group = self._group(fact)
        if fact.protocol and fact.protocol != "classic":
            group.group_type = fact.protocol
            group.causes.append((fact.time_ms, "member_joined", fact.member_id))
        member = group.member(fact.member_id)
        member.group_instance_id = fact.group_instance_id or member.group_instance_id
        self._note_join(fact, group, fact.member_id)

    def _note_join(self, fact: Fact, group: WatchedGroup, member_id: str) -> None:
        self._groups.remember(member_id, group)
        self._name_unnamed(member_id, group)
        member = group.member(member_id)
        out = member.out
        if out is not None and out.returned_ms is None:
            out.returned_ms, out.returned_as = fact.time_ms, member_id
            if out.kind is Happened.LEFT and group.group_type != "classic" and not out.reason_text:
                self._make_poll_timeout(out, group.count_out(member.name))
            member.out = None
            return
        back = group.return_of(member, fact.time_ms)
        if back is not None:
            back.returned_ms, back.returned_as = fact.time_ms, member_id

    def _replaced(self, fact: Fact) -> None:
        group = self._group(fact)
        old = group.member(fact.member_id)
        old.group_instance_id = fact.group_instance_id or old.group_instance_id
        before, old.out = old.out, None
        if before is not None and before.kind is Happened.TEMPORARILY_LEFT:
            before.returned_ms, before.returned_as = fact.time_ms, fact.new_member_id or None
        if fact.new_member_id == fact.member_id:
            if before is not None and before.kind is Happened.TEMPORARILY_LEFT:
                self._make_poll_timeout(before, group.count_out(old.name))
            return
        event = self._out(fact, group, Happened.REPLACED, "static_replaced", causes=False)
        event.new_member_id = fact.new_member_id or None
        event.returned_ms, event.returned_as = fact.time_ms, fact.new_member_id or None
        if fact.new_member_id:
            new = group.member(fact.new_member_id)
            new.group_instance_id, new.client_id = fact.group_instance_id, old.client_id
            self._groups.remember(fact.new_member_id, group)
        if not group.group_id:
            for name in (fact.new_member_id, fact.member_id):
                self._unnamed[name] = event
            while len(self._unnamed) > _UNNAMED_MAX:
                self._unnamed.popitem(last=False)

    # Coordinators

    def _loaded(self, fact: Fact) -> None:
        group = self._groups.get(fact.group_id)
        before, unloaded = group.broker_id, group.unloaded
        group.group_type = fact.protocol or group.group_type
        group.loaded_ms, group.open, group.unloaded = fact.time_ms, None, None
        group.broker_id = fact.broker_id
        if fact.number is not None:
            group.generation = fact.number
        if before == fact.broker_id or (before is None and self._is_starting(fact)):
            return
        event = self._event(fact, group, Happened.COORDINATOR_MOVED, "loaded", moved_from=before)
        event.member_count = fact.size
        if unloaded is not None and unloaded.broker_id == before:
            event.started_ms, event.duration_ms = unloaded.time_ms, max(0, fact.time_ms - unloaded.time_ms)
        event.explanation = ["Every member has a whole new session since then, so a death shows later than it would."]
        self._note(event)

    def _is_starting(self, fact: Fact) -> bool:
        """Tell whether a load, of a group of which nothing was read before, belongs to the start of its broker."""
        since_ms = max(self._started_ms.get(fact.broker_id, 0), self._first_ms[fact.broker_id])
        return fact.time_ms - since_ms <= BROKER_START_MS

    def _unloaded(self, fact: Fact) -> None:
        group = self._groups.get(fact.group_id)
        group.unloaded, group.open = fact, None
        group.broker_id = fact.broker_id

    def _started(self, fact: Fact) -> None:
        self._started_ms[fact.broker_id] = fact.time_ms

    def _stopping(self, fact: Fact) -> None:
        self._groups.stopped(fact.broker_id)

    # What they share

    def _group(self, fact: Fact) -> WatchedGroup:
        group_id = fact.group_id or self._groups.where(fact.member_id)
        group = self._groups.get(group_id)
        group.broker_id, group.unloaded = fact.broker_id, None
        if not group.group_type:
            group.group_type = fact.protocol
        for name in (fact.member_id, *fact.members):
            if name and group_id:
                self._name_unnamed(name, group)
        return group

    def _name_unnamed(self, member_id: str, group: WatchedGroup) -> None:
        """Give an event of Kafka 2.4 its group, which its line left out, as its member is seen in one now."""
        event = self._unnamed.pop(member_id, None)
        if event is not None and not event.group_id:
            event.group_id = group.group_id

    def _out(
        self,
        fact: Fact,
        group: WatchedGroup,
        kind: Happened,
        reason: str,
        *,
        member_id: str = "",
        words: str = "",
        causes: bool = True,
        explanation: Sequence[str] = (),
    ) -> ExplainedEvent:
        """Note that a member is out."""
        member = group.member(member_id or fact.member_id)
        self._groups.remember(member.member_id, group)
        member.learn(fact)
        event = self._event(fact, group, kind, reason, member=member)
        event.reason_text, event.explanation = words, list(explanation)
        if kind in KICKS or kind is Happened.POLL_TIMEOUT:
            event.times_out = group.count_out(member.name)
        member.out = event
        if causes:
            group.unsettled.append(event)
            cause = "member_left" if kind in {Happened.LEFT, Happened.POLL_TIMEOUT} else "member_expired"
            group.causes.append((fact.time_ms, cause, member.member_id))
            del group.causes[:-_CAUSES_MAX]
            if group.open is not None:
                group.open.gone.append((fact.time_ms, member.member_id))
        group.note_gone(member, event)
        self._note(event)
        return event

    def _event(
        self,
        fact: Fact,
        group: WatchedGroup,
        kind: Happened,
        reason: str,
        *,
        member: Member | None = None,
        moved_from: int | None = None,
    ) -> ExplainedEvent:
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
            reason=reason,
            generation_id=group.generation if classic else None,
            epoch=None if classic else group.generation,
            session_timeout_ms=member.session_timeout_ms if member else None,
            rebalance_timeout_ms=member.rebalance_timeout_ms if member else None,
            broker_id=fact.broker_id if reason != "unloaded" else None,
            moved_from=moved_from,
            evidence=Evidence(self._files[fact.file], fact.line),
        )

    def _late(self, fact: Fact, group: WatchedGroup) -> list[str]:
        """Say that a death shows late, if the coordinator gave everybody a new session not long before."""
        if group.loaded_ms is None or fact.time_ms - group.loaded_ms > _RECENT_LOAD_MS:
            return []
        since = length(fact.time_ms - group.loaded_ms)
        said = f"Its coordinator had been loaded {since} before, which gives every member a whole new session"
        return [f"{said}: it may have been silent for longer."]

    def _make_poll_timeout(self, event: ExplainedEvent, times_out: int) -> None:
        """Make a leave a poll timeout, as its member came back under the same id.

        If it was given away already, it is given once more, with the same evidence.
        """
        event.kind, event.reason, event.certainty = Happened.POLL_TIMEOUT, "poll_timeout", "likely"
        event.times_out = times_out
        if not self._held or event.time_ms < self._held[0].time_ms:
            event.explanation = []
            self._held.appendleft(event)

    def _note(self, event: ExplainedEvent) -> None:
        self._held.append(event)


def _done(event: ExplainedEvent) -> ExplainedEvent:
    event.explanation = explain(event)
    return event
