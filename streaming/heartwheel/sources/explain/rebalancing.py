"""Rebalances: what triggers them, how long they take, which members they wait for, and storms of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from heartwheel.base.phrases import count, length
from heartwheel.readers.live.storms import StormRule
from heartwheel.sources.explain.arrivals import LoggedArrivals
from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.groups import OpenRebalance, WatchedGroup
from heartwheel.sources.explain.trigger_causes import instance_of, triggered_by
from heartwheel.sources.explain.watch import FollowedLog
from heartwheel.wire.explained import ExplainedEvent, Happened

LONG_MS: Final = 10_000
"""How long a rebalance has to run before a follower sees it as running, ms."""

_AT_ONCE_MS: Final = 150
_STARTS_MAX: Final = 1_000
_STORM_OF_EPOCHS: Final = 10


class LoggedRebalances:
    """Turns facts about rebalances into events.

    Args:
        watch: groups, members and waiting events.
        arrivals: receives the members that joined with a rebalance.
        storm: the number of rebalances at which a group is in a storm.
    """

    def __init__(self, watch: FollowedLog, arrivals: LoggedArrivals, storm: StormRule) -> None:
        self._watch, self._arrivals, self._storm = watch, arrivals, storm

    def triggered(self, fact: Fact) -> None:
        """Note that a rebalance was triggered."""
        group = self._watch.group(fact)
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
                self._watch.out(fact, group, Happened.SYNC_TIMEOUT, member_id=each, words=fact.words)
        if cause == "member_joined":
            for each in members:
                self._arrivals.note_join(fact, group, each)
        before = group.open
        is_same = before is not None and before.old_generation == fact.number  # triggered again
        group.open = OpenRebalance(
            started_ms=before.started_ms if before and is_same else fact.time_ms,
            seen_ms=before.seen_ms if before and is_same else None,
            is_shown=before.is_shown if before and is_same else False,
            old_generation=fact.number,
            cause=cause,
            words=fact.words,
            client_words=client,
            caused_by=members,
            fact=fact,
        )
        self._note_start(fact, group, cause, members)

    def stabilized(self, fact: Fact) -> None:
        """Note that a rebalance is complete."""
        group = self._watch.group(fact)
        self._completed(fact, group, Happened.REBALANCE)

    def emptied(self, fact: Fact) -> None:
        """Note that a group has lost its last member."""
        self._completed(fact, self._watch.group(fact), Happened.GROUP_EMPTY)

    def _completed(self, fact: Fact, group: WatchedGroup, kind: Happened) -> None:
        open_ = group.open
        event = self._watch.event(fact, group, kind, open_.cause if open_ else "unknown")
        event.generation_id, event.member_count = fact.number, 0 if kind is Happened.GROUP_EMPTY else fact.size
        if open_ is not None:
            event.started_ms, event.duration_ms = open_.started_ms, max(0, fact.time_ms - open_.started_ms)
            event.reason_text, event.caused_by = open_.words, tuple(open_.caused_by)
            if kind is Happened.REBALANCE:
                event.blocked_by = open_.waited_for(fact.time_ms, 1_000 if fact.coarse else _AT_ONCE_MS)
        else:
            event.explanation = ("It began before the log, so how long it took is not known.",)
        for out in group.unsettled:
            out.rebalance_generation, out.rebalance_ms = fact.number, event.duration_ms
        group.unsettled.clear()
        group.generation, group.open = fact.number, None
        group.emptied = event if kind is Happened.GROUP_EMPTY else None
        self._watch.note(event)

    def assigned(self, fact: Fact) -> None:
        """Note that a leader's assignment arrived."""
        group = self._watch.group(fact)
        group.generation = fact.number
        if fact.member_id:
            group.member(fact.member_id)
            self._watch.groups.remember(fact.member_id, group)

    def bumped(self, fact: Fact) -> None:
        """Note that a group has a new epoch."""
        self._arrivals.confirm(fact)
        group = self._watch.group(fact)
        group.group_type = fact.protocol or (group.group_type if group.group_type != "classic" else "consumer")
        causes = group.take_causes(fact.time_ms)
        cause = causes[-1][1] if causes else "metadata_changed"
        members = list(dict.fromkeys(member_id for _, _, member_id in causes))
        event = self._watch.event(fact, group, Happened.REBALANCE, cause)
        event.epoch, event.started_ms, event.caused_by = fact.number, fact.time_ms, tuple(members)
        if fact.number == 1:
            group.roster.begun()
        event.member_count = group.roster.size
        group.generation, group.bumped = fact.number, event
        for out in group.unsettled:
            out.rebalance_generation = fact.number
        group.unsettled.clear()
        self._watch.note(event)
        self._note_start(fact, group, cause, members)

    def reached(self, fact: Fact) -> None:
        """Note that a member has its assignment of an epoch; only 3.7 and 3.8, share and streams groups log it."""
        self._arrivals.confirm(fact)
        group = self._watch.group(fact)
        bumped = group.bumped
        if bumped is not None and fact.number == bumped.epoch and fact.state == "STABLE":
            bumped.duration_ms = max(0, fact.time_ms - bumped.time_ms)

    def finish(self, end_ms: int) -> None:
        """Note that the log ends (epoch ms): as far as it shows, a rebalance that is not complete is still running."""
        for group in self._watch.groups.rebalancing():
            self._watch.note(self._still_runs(group, end_ms))

    def running(self, end_ms: int, now_ms: int) -> Iterator[ExplainedEvent]:
        """Return, once each, the rebalances that have run for `LONG_MS` while the log is followed.

        The log has no new lines while all members wait, so its time alone does not show how long that is.

        Args:
            end_ms: the log's time so far, epoch ms.
            now_ms: the time of a clock that never steps, ms.
        """
        for group in self._watch.groups.rebalancing():
            open_ = group.open
            assert open_ is not None  # noqa: S101 - `rebalancing` returns groups with an open one
            open_.seen_ms = now_ms if open_.seen_ms is None else open_.seen_ms
            until_ms = max(end_ms, open_.started_ms + now_ms - open_.seen_ms)
            if not open_.is_shown and until_ms - open_.started_ms >= LONG_MS:
                open_.is_shown = True
                yield self._still_runs(group, until_ms)

    def _still_runs(self, group: WatchedGroup, until_ms: int) -> ExplainedEvent:
        open_ = group.open
        assert open_ is not None  # noqa: S101 - callers ask for such groups
        event = self._watch.event(open_.fact, group, Happened.REBALANCING, open_.cause)
        event.time_ms, event.started_ms = until_ms, open_.started_ms
        event.duration_ms = max(0, until_ms - open_.started_ms)
        event.generation_id, event.reason_text = open_.old_generation, open_.words
        event.caused_by = tuple(open_.caused_by)
        return event

    def _note_start(self, fact: Fact, group: WatchedGroup, cause: str, members: list[str]) -> None:
        """Count a rebalance that begins, and check whether the group is in a storm."""
        starts = group.starts
        starts.append((fact.time_ms, cause, tuple(members)))
        del starts[:-_STARTS_MAX]
        while starts and starts[0][0] <= fact.time_ms - self._storm.window_ms:
            del starts[0]
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
            storm = self._watch.event(fact, group, Happened.STORM, first_cause)
            storm.started_ms, storm.duration_ms = first_ms, fact.time_ms - first_ms
            storm.caused_by, storm.member_count = first_members, len(starts)
            group.storm = storm
            self._watch.note(storm)
        if group.storm is not None:
            storm = group.storm
            storm.explanation = (f"{count(storm.member_count or 0, 'rebalance')} in {length(storm.duration_ms or 0)}.",)
