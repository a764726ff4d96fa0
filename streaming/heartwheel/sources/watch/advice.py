"""What other settings would have prevented in each group, as far as brokers' logs show it, and what they cost.

Nothing is guessed: a timeout would have been long enough for a member that came back, by as much as it was late. Of one
that did not come back the log shows nothing, and where none did the advice says so. Rebalances of unknown length count
for no stopped work.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

import msgspec

from heartwheel.base.phrases import count, length, setting
from heartwheel.sources.explain.enough import POLL, POLLS, SESSION, later_ms, needed_ms
from heartwheel.wire.explained import ExplainedEvent, Happened

GROUPS_MAX: Final = 50_000
_REBALANCES_MAX: Final = 10_000
_SESSION_MS: Final = 45_000
_PROTOCOL: Final = "group.protocol"


class SettingAdvice(msgspec.Struct, kw_only=True):
    """One setting, and what it would have prevented.

    Args:
        setting: its name.
        value: the value that would have been enough, in words; empty if it is not known, or the setting is on or off.
        prevented: how many cases it would have prevented, as far as the log shows: 0 if no removed member came back.
            Of `group.protocol`, in how many nobody had waited for all.
        cases: how many there were.
        stopped_ms: member-milliseconds of stopped work in the rebalances of these; `None` if no length is known.
        words: the same for people, with what it costs.
    """

    setting: str
    value: str
    prevented: int
    cases: int
    stopped_ms: int | None
    words: str


class GroupAdvice(msgspec.Struct, kw_only=True):
    """The advice about a group.

    Args:
        group_id: its id.
        group_type: classic, consumer, share or streams.
        removals: how often a timeout ended a membership.
        rebalances: how many there were.
        stopped_ms: member-milliseconds of stopped work in those of known length; `None` if there are none.
        settings: the one that would have prevented the most first, and another protocol last.
    """

    group_id: str
    group_type: str = ""
    removals: int = 0
    rebalances: int = 0
    stopped_ms: int | None = None
    settings: list[SettingAdvice] = msgspec.field(default_factory=list)


class Advice:
    """Collects events into advice."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, _Cases] = OrderedDict()

    def add(self, event: ExplainedEvent) -> None:
        """Add an event of a coordinator's log."""
        if not event.group_id or event.broker_id is None:
            return
        cases = self._groups.setdefault(event.group_id, _Cases())
        if len(self._groups) > GROUPS_MAX:
            self._groups.popitem(last=False)
        cases.add(event)

    def groups(self) -> list[GroupAdvice]:
        """Return the groups of which there is something to say, those with the most removals and stopped work first."""
        found = [cases.advice(group_id) for group_id, cases in self._groups.items()]
        wanted = [each for each in found if each.settings]
        return sorted(wanted, key=lambda each: (-each.removals, -(each.stopped_ms or 0), each.group_id))


class _Cases:
    """The cases of one group."""

    def __init__(self) -> None:
        self.group_type = ""
        self.sessions: list[ExplainedEvent] = []
        self.polls: list[ExplainedEvent] = []
        self.restarts: list[ExplainedEvent] = []
        self.rebalances = 0
        self._stopped: OrderedDict[int, int] = OrderedDict()
        """Member-milliseconds of stopped work, by the generation that the rebalance began."""

    def add(self, event: ExplainedEvent) -> None:
        self.group_type = event.group_type or self.group_type
        if event.kind is Happened.REBALANCE:
            self.rebalances += 1
            if event.duration_ms is not None and event.member_count and event.generation_id is not None:
                self._stopped[event.generation_id] = event.duration_ms * event.member_count
                if len(self._stopped) > _REBALANCES_MAX:
                    self._stopped.popitem(last=False)
        kept = (
            self.sessions
            if event.kind is Happened.EXPIRED
            else self.polls
            if event.kind in POLLS
            else self.restarts
            if event.kind is Happened.LEFT and event.reason != "unsubscribed"
            else None
        )
        if kept is not None and len(kept) < _REBALANCES_MAX:
            kept.append(event)

    def advice(self, group_id: str) -> GroupAdvice:
        """Return what to advise about the group."""
        settings = [
            each
            for each in (
                self._timeout(self.sessions, SESSION[self.group_type], "dies"),
                self._timeout(self.polls, POLL, "hangs"),
                self._static(),
                self._protocol(),
            )
            if each is not None
        ]
        return GroupAdvice(
            group_id=group_id,
            group_type=self.group_type,
            removals=len(self.sessions) + len(self.polls),
            rebalances=self.rebalances,
            stopped_ms=sum(self._stopped.values()) if self._stopped else None,
            settings=sorted(settings, key=lambda each: (each.setting == _PROTOCOL, -each.prevented)),
        )

    def _timeout(self, outs: list[ExplainedEvent], name: str, fault: str) -> SettingAdvice | None:
        """Return how long a timeout would have had to be for the members that came back, or that none did."""
        if not outs:
            return None
        back = [each for each in outs if each.returned_ms is not None]
        if not back:
            words = _none_back(len(outs), name)
            return SettingAdvice(setting=name, value="", prevented=0, cases=len(outs), stopped_ms=None, words=words)
        late_ms = max(map(later_ms, back))
        needed = [each for each in map(needed_ms, back) if each is not None]
        value = setting(max(needed)) if len(needed) == len(back) else ""
        enough = f"{name} of {value}" if value else f"{name} longer by more than {length(late_ms)}"
        if_same = " if each was the same process when it came back" if fault == "dies" else ""
        words = (
            f"A {enough} would have prevented {len(back)} of {count(len(outs), 'removal')}{if_same}{self._work(back)}. "
            f"A member that {fault} is then noticed {length(late_ms)} later."
        )
        return SettingAdvice(
            setting=name, value=value, prevented=len(back), cases=len(outs), stopped_ms=self._sum(back), words=words
        )

    def _static(self) -> SettingAdvice | None:
        """Return how many restarts a static membership would have kept from the others."""
        back = [
            each
            for each in self.restarts
            if each.returned_ms is not None
            and each.returned_ms - each.time_ms < (each.session_timeout_ms or _SESSION_MS)
            and not each.group_instance_id
        ]
        if not back or self.group_type not in {"", "classic", "consumer"}:
            return None
        words = (
            f"A group.instance.id for each member would have prevented the rebalances of {len(back)} of "
            f"{count(len(self.restarts), 'leave')}, after which the member was back within its session"
            f"{self._work(back)}. "
            "A member that is closed for good is then noticed by its session timeout alone."
        )
        return SettingAdvice(
            setting="group.instance.id",
            value="",
            prevented=len(back),
            cases=len(self.restarts),
            stopped_ms=self._sum(back),
            words=words,
        )

    def _protocol(self) -> SettingAdvice | None:
        """Return how much work stopped in rebalances for which all members wait, which the new protocol has not."""
        if self.group_type != "classic" or not self._stopped:
            return None
        stopped_ms = sum(self._stopped.values())
        words = (
            f"With group.protocol=consumer (Kafka 4.0) no member waits for all others: {len(self._stopped)} of "
            f"{count(self.rebalances, 'rebalance')} stopped at most {length(stopped_ms)} of members' work; "
            "cooperative members stopped less."
        )
        return SettingAdvice(
            setting=_PROTOCOL,
            value="consumer",
            prevented=len(self._stopped),
            cases=self.rebalances,
            stopped_ms=stopped_ms,
            words=words,
        )

    def _sum(self, events: Iterable[ExplainedEvent]) -> int | None:
        generations = {each.rebalance_generation for each in events if each.rebalance_generation is not None}
        found = [self._stopped[each] for each in generations if each in self._stopped]
        return sum(found) if found else None

    def _work(self, events: Iterable[ExplainedEvent]) -> str:
        stopped_ms = self._sum(events)
        return "" if stopped_ms is None else f", and {length(stopped_ms)} of members' stopped work"


def _none_back(number: int, name: str) -> str:
    unknown = "so it does not show which value would have been enough"
    if number == 1:
        return f"The log does not show the member that was removed by {name} back within an hour, {unknown}."
    members = f"none of the {count(number, 'member')} that were removed by {name}"
    return f"The log shows {members} back within an hour, {unknown}."
