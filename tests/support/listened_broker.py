"""A broker that is listened to: clients of one group, the answers they get, and a request log that is not in order.

The broker is the coordinator's own rules, so what it decided is known. Its log is written as a real one's is seen: each
request stamped up to half a millisecond before it was decided, a parked one with the time of its answer, and some joins
that were let in stamped up to 24 ms late.
"""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Callable
from typing import Any, Final

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import NEVER, Group, GroupState
from heartwheel.wire.event_codec import encode_event
from heartwheel.wire.events import Event, EventType, Protocol
from heartwheel.wire.verdicts import Verdict

CONFIG: Final = CoordinatorConfig(group_initial_rebalance_delay_ms=500)
START_MS: Final = 1_800_000_000_000

Heard = Callable[[str], None]
"""Takes the answer to a request, by Kafka's name of the error."""


class Broker:
    """Decide requests and write the log.

    Args:
        seed: of all that is random.
        late_share: how many of the joins that are let in are logged late.
    """

    def __init__(self, seed: int, late_share: float) -> None:
        self.dice = random.Random(seed)
        self.now_us = START_MS * 1_000
        self.verdicts: list[Verdict] = []
        self.machine = GroupMachine(Group("g"), CONFIG, self.verdicts.append)
        self._late_share = late_share
        self._log: list[dict[str, Any]] = []
        self._parked: list[tuple[Event, dict[str, Any], Heard]] = []
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._entries = 0

    def later(self, after_us: int, do: Callable[[], None]) -> None:
        """Have something done after a while."""
        self._entries += 1
        heapq.heappush(self._agenda, (self.now_us + after_us, self._entries, do))

    def send(self, event: Event, heard: Heard) -> None:
        """Decide a request now; its answer may come later."""
        conditions = self.machine.conditions
        conditions.append_delay_ms = self.dice.randint(1, 9) if event.type is EventType.SYNC else 0
        answer = self.machine.apply(event, self.now_us // 1_000)
        conditions.append_delay_ms = 0
        stamped_us = self.now_us - self.dice.randint(20, 500)
        if event.type is EventType.JOIN and answer is Answer.PARKED and self.dice.random() < self._late_share:
            stamped_us = self.now_us + self.dice.randint(0, 24_000)
        entry = json.loads(encode_event(event)) | {"t_us": stamped_us, "t_ms": stamped_us // 1_000}
        if answer is Answer.PARKED:
            self._parked.append((event, entry, heard))
        else:
            self._answer(event, entry, heard, answer.value)
        self._answer_parked()
        self._wake()

    def run(self, for_ms: int) -> tuple[list[bytes], list[Verdict], int]:
        """Run all that is on the agenda.

        Returns:
            The log in the order of its stamps, what was decided, and up to when the log tells all of it (epoch ms).
        """
        end_us = (START_MS + for_ms) * 1_000
        while self._agenda and self._agenda[0][0] < end_us:
            self.now_us, _, do = heapq.heappop(self._agenda)
            do()
        told_ms = min([entry["t_ms"] for _, entry, _ in self._parked], default=START_MS + for_ms)
        lines = sorted(self._log, key=lambda entry: entry["t_us"])
        return [json.dumps(entry).encode() for entry in lines], self.verdicts, told_ms

    def _answer(self, event: Event, entry: dict[str, Any], heard: Heard, error: str) -> None:
        answered_us = max(self.now_us + self.dice.randint(20, 400), entry["t_us"] + 200)
        entry |= {"error": error, "answer_us": answered_us, "answer_ms": answered_us // 1_000}
        if event.type is EventType.JOIN:
            joined, group = error == Answer.NONE, self.machine.group
            entry["response_generation_id"] = group.generation if joined else -1
            entry["leader"] = group.leader if joined else ""
        self._log.append(entry)
        self.later(answered_us - self.now_us + 100, lambda: heard(error))

    def _answer_parked(self) -> None:
        parked, self._parked = self._parked, []
        for event, entry, heard in parked:
            member = self.machine.group.members.get(event.member_id or event.assigned_member_id or "")
            stable = self.machine.group.state is GroupState.STABLE
            if member is None:
                self._answer(event, entry, heard, Answer.UNKNOWN_MEMBER_ID.value)
            elif event.type is EventType.JOIN and not member.awaiting_join:
                self._answer(event, entry, heard, Answer.NONE.value)
            elif event.type is EventType.SYNC and not member.awaiting_sync:
                self._answer(event, entry, heard, (Answer.NONE if stable else Answer.REBALANCE_IN_PROGRESS).value)
            else:
                self._parked.append((event, entry, heard))

    def _wake(self) -> None:
        deadline_ms = self.machine.next_deadline_ms()
        if deadline_ms != NEVER:
            self.later(max(deadline_ms * 1_000 - self.now_us, 0), self._run_timers)

    def _run_timers(self) -> None:
        before_ms = self.machine.next_deadline_ms()
        self.machine.advance(self.now_us // 1_000)
        self._answer_parked()
        if self.machine.next_deadline_ms() != before_ms:
            self._wake()


class Client:
    """Live as a consumer: join, sync, beat, join again when told to; die, leave, pause and change now and then."""

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker = broker
        self._dice = broker.dice
        self._name = name
        self._lives = 0
        self._member_id = self._metadata = ""
        self._generation = -1
        self._session_ms = self._dice.choice([6_000, 10_000])
        self._rebalance_ms = self._dice.choice([5_000, 8_000, 10_000])
        self._version = self._dice.choice([3, 9, 9])
        broker.later(self._dice.choice([3_000, 3_000_000, 40_000_000]), self.begin)

    def begin(self) -> None:
        """Ask to join for the first time."""
        self._lives += 1
        self._member_id = ""
        self._join()

    def _later(self, most_ms: int, do: Callable[[], None], least_us: int = 100) -> None:
        life = self._lives
        self._broker.later(self._dice.randint(least_us, most_ms * 1_000), lambda: do() if life == self._lives else None)

    def _send(self, kind: EventType, heard: Heard, **fields: Any) -> None:
        life = self._lives
        event = Event(type=kind, group_id="g", **({"member_id": self._member_id} | fields))
        self._broker.send(event, lambda error: heard(error) if life == self._lives else None)

    def _join(self) -> None:
        first = {} if self._member_id else {"assigned_member_id": f"{self._name}-{self._lives}"}
        self._send(
            EventType.JOIN,
            self._joined,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=self._rebalance_ms,
            protocol_type="consumer",
            protocols=(Protocol("range", self._metadata),),
            api_version=self._version,
            **first,
        )

    def _joined(self, error: str) -> None:
        self._member_id = self._member_id or f"{self._name}-{self._lives}"
        if error == Answer.MEMBER_ID_REQUIRED:
            self._later(4, self._join)
        elif error == Answer.NONE:
            self._generation = self._broker.machine.group.generation
            self._later(self._dice.choice([2, 40]), self._sync)
        else:
            self._later(300, self.begin)

    def _sync(self) -> None:
        named = {"protocol_type": "consumer", "protocol_name": "range", "api_version": 9}
        self._send(EventType.SYNC, self._synced, generation_id=self._generation, **named)

    def _synced(self, error: str) -> None:
        if error == Answer.NONE:
            self._later(1_500, self._beat)
        else:
            self._go_on(error)

    def _beat(self) -> None:
        deed = self._dice.random()
        if deed < 0.004:
            self._later(20_000, self.begin)  # it dies, and another one takes its place
        elif deed < 0.008:
            self._send(EventType.LEAVE, lambda _: self._later(9_000, self.begin))
        elif deed < 0.012:
            self._metadata = self._dice.choice("xyz")
            self._join()
        elif deed < 0.016:
            self._later(self._session_ms + 30, self._beat, least_us=(self._session_ms - 30) * 1_000)
        else:
            kind = self._dice.choice([EventType.HEARTBEAT] * 4 + [EventType.COMMIT])
            self._send(kind, self._beaten, generation_id=self._generation)

    def _beaten(self, error: str) -> None:
        if error == Answer.NONE:
            self._later(1_100, self._beat, least_us=900_000)
        else:
            self._go_on(error)

    def _go_on(self, error: str) -> None:
        if error == Answer.REBALANCE_IN_PROGRESS:
            self._later(self._dice.choice([3, 900]), self._join)
        else:
            self._later(300, self.begin)


def listened(seed: int, late_share: float, for_ms: int = 90_000) -> tuple[list[bytes], list[Verdict], int]:
    """Make a history of a group with two to seven clients; see `Broker.run` for what is returned."""
    broker = Broker(seed, late_share)
    for number in range(broker.dice.randint(2, 7)):
        Client(broker, f"c{number}")
    return broker.run(for_ms)
