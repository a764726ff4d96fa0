"""Simulate members against a real broker, and write down the truth about them."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from heartwheel.events import Event, EventType, encode_event
from heartwheel.kafka.garbage import GARBAGE_KINDS, garbage
from heartwheel.kafka.schedule import Action, FeedPlan, Step, steps
from heartwheel.kafka.sender import Sender, Stamp
from heartwheel.kafka.truth import LifeLine, Summary, TruthWriter, Turn

_WORDS: Final = (
    *("orders", "payments", "invoices", "shipping", "search", "email", "fraud", "ledger", "pricing", "stock"),
    *("audit", "clicks"),
)
_TURNS: Final = {
    Action.START: Turn.STARTED,
    Action.KILL: Turn.KILLED,
    Action.PAUSE: Turn.PAUSED,
    Action.RESUME: Turn.RESUMED,
    Action.LEAVE: Turn.LEFT,
    Action.RETURN: Turn.RETURNED,
}
_BEATS: Final = frozenset({Action.START, Action.BEAT, Action.RESUME, Action.RETURN})
_SILENT: Final = frozenset({Action.KILL, Action.LEAVE})
_STEPS_A_POLL: Final = 512
_NAP_MS_MAX: Final = 50


class Member:
    """Hold one simulated member: its ids, its encoded records, and the stamp of its last one."""

    __slots__ = ("alive", "beat", "event", "key", "last", "leave", "told")

    def __init__(self, plan: FeedPlan, number: int) -> None:
        group, place = divmod(number, plan.members_per_group)
        group_id = group_name(plan, group)
        client_id = f"{group_id}-{place}"
        self.event = Event(
            group_id=group_id,
            member_id=f"{client_id}-{plan.seed:04x}{number:08x}",
            session_timeout_ms=plan.session_timeout_ms,
            client_id=client_id,
            client_host=f"/10.{group >> 8 & 255}.{group & 255}.{place % 254 + 1}",
        )
        self.key = group_id.encode()
        self.beat = encode_event(self.event)
        goodbye = Event(type=EventType.LEAVE, group_id=group_id, member_id=self.event.member_id, reason="shutdown")
        self.leave = encode_event(goodbye)
        self.alive = False
        self.last: Stamp | None = None
        self.told: list[LifeLine] | None = None
        """Lines that wait for the stamp of the record in flight; absent if none is in flight."""


def group_name(plan: FeedPlan, number: int) -> str:
    """Name a group of a plan.

    Args:
        plan: gives the prefix.
        number: the group's number, from 0.
    """
    turn, word = divmod(number, len(_WORDS))
    return f"{plan.group_prefix}{_WORDS[word]}" + (f"-{turn + 1}" if turn else "")


class Feeder:
    """Feed the heartbeats of a plan to a topic in real time.

    Args:
        plan: whom to simulate.
        bootstrap: `host:port[,host:port]`.
        topic: the heartbeat topic.
        truth_file: where the truth goes; it is overwritten.
        properties: Kafka client properties in dotted style.
    """

    def __init__(
        self,
        plan: FeedPlan,
        bootstrap: str,
        topic: str,
        truth_file: str | Path,
        *,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._plan = plan
        self.turns: collections.Counter[Turn] = collections.Counter()
        """Turns of lives so far, by kind."""
        self._bootstrap, self._topic, self._truth_file = bootstrap, topic, truth_file
        self._properties = properties
        self._garbage: collections.Counter[str] = collections.Counter()
        self._members = [Member(plan, number) for number in range(plan.members)]
        self._behind_ms_max = 0.0
        self._sender: Sender
        self._truth: TruthWriter

    @property
    def sent(self) -> int:
        """Count the records sent so far, for whoever shows progress from another thread."""
        return self._sender.sent if hasattr(self, "_sender") else 0

    def run(self, stop: threading.Event | None = None) -> Summary:
        """Feed until the plan ends or somebody says stop.

        Args:
            stop: ends the feed at the next step once it is set.

        Returns:
            What was sent, and what became of it; the last line of the truth as well.

        Raises:
            KafkaUnreachableError: if nobody answers at the start. Later trouble is counted and fed through.
            KafkaRefusedError: if the cluster refuses the login or the topic.
        """
        stop = stop or threading.Event()
        started_ms = _now_ms()
        with (
            closing(Sender(self._bootstrap, self._topic, properties=self._properties)) as sender,
            TruthWriter(self._truth_file) as truth,
        ):
            self._sender, self._truth = sender, truth
            self._feed(stop)
            if self._plan.leave_at_end:
                self._say_goodbye()
            sender.close()
            summary = self._summary(started_ms)
            truth.write(summary)
        return summary

    def _feed(self, stop: threading.Event) -> None:
        start = time.monotonic()
        for number, step in enumerate(steps(self._plan)):
            ahead_ms = step.at_ms - (time.monotonic() - start) * 1000
            if ahead_ms > 1 or number % _STEPS_A_POLL == 0:
                self._sender.poll()
                if self._wait(start + step.at_ms / 1000, stop):
                    return
            self._behind_ms_max = max(self._behind_ms_max, -ahead_ms)
            self._take(step)
        if self._plan.duration_ms is not None:
            self._wait(start + self._plan.duration_ms / 1000, stop)

    def _take(self, step: Step) -> None:
        member = self._members[step.member]
        if step.action in _BEATS:
            member.alive = True
            self._send(member, member.beat)
        elif step.action is Action.GARBAGE:
            self._send_garbage(member, step.draw)
        elif step.action in _SILENT:
            member.alive = False
            if step.action is Action.LEAVE:
                self._send(member, member.leave)
        if step.action is not Action.BEAT and step.action is not Action.GARBAGE:
            self._tell(_TURNS[step.action], member)

    def _wait(self, until: float, stop: threading.Event) -> bool:
        """Wait for a moment of the monotonic clock, looking at answers meanwhile; tell whether to stop."""
        while not stop.is_set() and (left_ms := (until - time.monotonic()) * 1000) > 0:
            stop.wait(min(left_ms, _NAP_MS_MAX) / 1000)
            self._sender.poll()
        return stop.is_set()

    def _send(self, member: Member, value: bytes) -> None:
        lines: list[LifeLine] = []
        member.told = lines
        self._sender.send(member.key, value, partial(self._landed, member, lines))

    def _landed(self, member: Member, lines: list[LifeLine], stamp: Stamp | None) -> None:
        member.last = stamp
        if member.told is lines:
            member.told = None
        for line in lines:
            self._truth.write(_stamped(line, stamp))

    def _tell(self, turn: Turn, member: Member) -> None:
        self.turns[turn] += 1
        event = member.event
        line = LifeLine(
            turn=turn,
            group_id=event.group_id,
            member_id=event.member_id,
            session_timeout_ms=self._plan.session_timeout_ms,
            at_ms=_now_ms(),
        )
        if member.told is None:
            self._truth.write(_stamped(line, member.last))
        else:
            member.told.append(line)

    def _send_garbage(self, member: Member, draw: float) -> None:
        kind = GARBAGE_KINDS[int(draw * len(GARBAGE_KINDS))]
        self._garbage[kind.value] += 1
        event = member.event
        self._sender.send(member.key, garbage(kind, group_id=event.group_id, member_id=event.member_id))

    def _say_goodbye(self) -> None:
        for member in self._members:
            if member.alive:
                member.alive = False
                self._send(member, member.leave)
                self._tell(Turn.LEFT, member)

    def _summary(self, started_ms: int) -> Summary:
        sender = self._sender
        return Summary(
            started_ms=started_ms,
            ended_ms=_now_ms(),
            members=self._plan.members,
            sent=sender.sent,
            acknowledged=sender.acknowledged,
            unknown=sender.unknown,
            garbage=dict(self._garbage),
            turns={turn.value: count for turn, count in self.turns.items()},
            behind_ms_max=round(self._behind_ms_max),
            errors=dict(sender.errors),
        )


def _stamped(line: LifeLine, stamp: Stamp | None) -> LifeLine:
    if stamp is None:
        return line
    partition, offset, append_ms = stamp
    return msgspec.structs.replace(line, last_beat_ms=append_ms, partition=partition, offset=offset)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
