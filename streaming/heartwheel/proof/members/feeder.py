"""Simulate members against a real broker, and write down the truth about them."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from heartwheel.base.wall_clock import wall_ms
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.kafka.sender import Sender, Stamp
from heartwheel.proof.members.classic import ClassicMembers
from heartwheel.proof.members.garbage import GARBAGE_KINDS, garbage
from heartwheel.proof.members.members import BEATS, Members, PresenceMembers, Sent, group_name
from heartwheel.proof.members.mix import MixedMembers, mixed_steps
from heartwheel.proof.members.schedule import Action, FeedPlan, MemberStep, steps
from heartwheel.proof.members.truth import LifeLine, Summary, TruthWriter, Turn

_TURNS: Final = {
    Action.START: Turn.STARTED,
    Action.KILL: Turn.KILLED,
    Action.PAUSE: Turn.PAUSED,
    Action.RESUME: Turn.RESUMED,
    Action.LEAVE: Turn.LEFT,
    Action.RETURN: Turn.RETURNED,
    Action.STALL: Turn.STALLED,
    Action.POLL_TIMEOUT: Turn.POLL_TIMED_OUT,
}
_MEMBERS: Final[Mapping[str, Callable[[FeedPlan, CoordinatorConfig | None], Members]]] = {
    "presence": lambda plan, _: PresenceMembers(plan),
    "classic": ClassicMembers,
    "mix": MixedMembers,
}
_STEPS_A_POLL: Final = 512
_NAP_MS_MAX: Final = 50


class _MemberQueue:
    """What the feeder keeps of one member: the stamp of its last record, and the lines that wait for the next."""

    __slots__ = ("alive", "last", "unconfirmed")

    def __init__(self) -> None:
        self.alive = False
        self.last: Stamp | None = None
        self.unconfirmed: list[LifeLine] | None = None
        """Lines that wait for the stamp of the record in flight; absent if none is in flight."""


class Feeder:
    """A feeder of the heartbeats of a plan to a topic, in real time.

    Args:
        truth_file: where the truth goes; it is overwritten.
        properties: Kafka client properties in dotted style.
        coordinator: what the engine's coordinators are set to, by which classic members go; the defaults, if left out.
    """

    def __init__(
        self,
        plan: FeedPlan,
        bootstrap: str,
        topic: str,
        truth_file: str | Path,
        *,
        properties: Mapping[str, str] | None = None,
        coordinator: CoordinatorConfig | None = None,
    ) -> None:
        self._plan = plan
        self.turns: collections.Counter[Turn] = collections.Counter()
        """Turns of lives so far, by kind."""
        self._bootstrap, self._topic, self._truth_file = bootstrap, topic, truth_file
        self._properties = properties
        self._garbage: collections.Counter[str] = collections.Counter()
        self._members: Members = _MEMBERS[plan.protocol](plan, coordinator)
        self._keys = [group_name(plan, number).encode() for number in range(plan.groups)]
        self._queues = [_MemberQueue() for _ in range(plan.members)]
        self._behind_ms_max = 0.0
        self._start = 0.0
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
        started_ms = wall_ms()
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
        self._start = time.monotonic()
        for number, step in enumerate(mixed_steps(self._plan) if self._plan.protocol == "mix" else steps(self._plan)):
            ahead_ms = step.at_ms - self._elapsed_ms()
            if ahead_ms > 1 or number % _STEPS_A_POLL == 0:
                self._sender.poll()
                if self._wait(step.at_ms, stop):
                    return
            self._behind_ms_max = max(self._behind_ms_max, -ahead_ms)
            self._take(step)
        if self._plan.duration_ms is not None:
            self._wait(self._plan.duration_ms, stop)

    def _take(self, step: MemberStep) -> None:
        if step.action is Action.GARBAGE:
            self._send_garbage(step.member, step.draw)
            return
        for sent in self._members.act(step.member, step.action, self._elapsed_ms()):
            self._send(sent)
        if step.action is not Action.BEAT:
            self._queues[step.member].alive = step.action in BEATS
            self._tell(_TURNS[step.action], step.member)

    def _elapsed_ms(self) -> float:
        return (time.monotonic() - self._start) * 1000

    def _wait(self, until_ms: float, stop: threading.Event) -> bool:
        """Wait for a moment of the feed, looking at answers meanwhile; return whether to stop."""
        while not stop.is_set() and (left_ms := until_ms - self._elapsed_ms()) > 0:
            stop.wait(min(left_ms, _NAP_MS_MAX) / 1000)
            self._sender.poll()
        return stop.is_set()

    def _send(self, sent: Sent) -> None:
        queue = self._queues[sent.member]
        lines: list[LifeLine] = []
        queue.unconfirmed = lines
        self._sender.send(self._key(sent.member), sent.value, partial(self._landed, queue, lines, sent))

    def _landed(self, queue: _MemberQueue, lines: list[LifeLine], sent: Sent, stamp: Stamp | None) -> None:
        queue.last = stamp
        self._members.landed(sent, None if stamp is None else stamp.append_ms, self._elapsed_ms())
        if queue.unconfirmed is lines:
            queue.unconfirmed = None
        for line in lines:
            self._truth.write(_stamped(line, stamp))

    def _tell(self, turn: Turn, member: int) -> None:
        self.turns[turn] += 1
        line = LifeLine(
            turn=turn,
            group_id=self._key(member).decode(),
            member_id=self._members.member_id(member),
            session_timeout_ms=self._plan.session_timeout_ms,
            at_ms=wall_ms(),
        )
        queue = self._queues[member]
        if queue.unconfirmed is None:
            self._truth.write(_stamped(line, queue.last))
        else:
            queue.unconfirmed.append(line)

    def _key(self, member: int) -> bytes:
        return self._keys[member // self._plan.members_per_group]

    def _send_garbage(self, member: int, draw: float) -> None:
        kind = GARBAGE_KINDS[int(draw * len(GARBAGE_KINDS))]
        self._garbage[kind.value] += 1
        key = self._key(member)
        self._sender.send(key, garbage(kind, group_id=key.decode(), member_id=self._members.member_id(member)))

    def _say_goodbye(self) -> None:
        for number, queue in enumerate(self._queues):
            if queue.alive:
                self._take(MemberStep(self._elapsed_ms(), number, Action.LEAVE))

    def _summary(self, started_ms: int) -> Summary:
        sender = self._sender
        return Summary(
            started_ms=started_ms,
            ended_ms=wall_ms(),
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
