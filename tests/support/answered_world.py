"""A group whose coordinator is the rules themselves: clients that join, beat, leave and die, and the answers.

What a broker's request log would have of it, so that a reader may begin anywhere in it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group, GroupState
from heartwheel.wire.events import Event, EventType, Protocol
from heartwheel.wire.verdicts import ExpiryReason, Verdict

T0: Final = 1_795_239_795_000
STEP_MS: Final = 50
CODES: Final = {Answer.NONE: 0, Answer.REBALANCE_IN_PROGRESS: 27, Answer.MEMBER_ID_REQUIRED: 79}


class Line(NamedTuple):
    """A request, when it arrived and when it was answered, epoch ms, and the event of it."""

    at_ms: int
    logged_ms: int
    event: Event


@dataclass
class Client:
    """One consumer.

    Args:
        session_ms: its session timeout, ms.
        instance: its instance id, if it is static.
        beat_ms: how often it beats, ms.
    """

    name: str
    session_ms: int
    instance: str | None
    beat_ms: int
    alive: bool = True
    member_id: str = ""
    generation: int = -1
    parked: Event | None = None
    parked_ms: int = 0
    next_ms: int = 0
    synced: bool = False
    told: bool = False


@dataclass
class World:
    """A group of clients, from its begin.

    Args:
        seed: of everything that happens by chance.
        clients: how many there are at first.

    Attributes:
        lines: the request log, in the order of the answers.
        verdicts: what the coordinator decided.
    """

    seed: int
    clients: int = 3
    config: CoordinatorConfig = field(default_factory=lambda: CoordinatorConfig(group_initial_rebalance_delay_ms=1_000))
    lines: list[Line] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now_ms = T0
        self.group = Group("g")
        self.machine = GroupMachine(self.group, self.config, self.verdicts.append)
        self.random = random.Random(self.seed)
        self.ids = 0
        self.all = [self._client(number) for number in range(self.clients)]

    def _client(self, number: int) -> Client:
        static = self.random.random() < 0.3
        session_ms = self.random.choice((6_000, 8_000, 10_000))
        return Client(f"c{number}", session_ms, f"i{number}" if static else None, self.random.choice((500, 1_000)),
                      next_ms=T0 + self.random.randrange(0, 400))  # fmt: skip

    @property
    def living(self) -> list[Client]:
        """The clients that live."""
        return [client for client in self.all if client.alive]

    def run(self, seconds: float) -> None:
        """Let time pass; clients do what they do."""
        until_ms = self.now_ms + int(seconds * 1000)
        while self.now_ms < until_ms:
            self.now_ms += STEP_MS
            self.machine.advance(self.now_ms)
            self._answer()
            for client in self.all:
                if client.alive and client.parked is None and client.next_ms <= self.now_ms:
                    self._act(client)
                    self._answer()

    def add(self) -> Client:
        """Start another client."""
        client = self._client(len(self.all))
        client.next_ms = self.now_ms
        self.all.append(client)
        return client

    def leave(self, client: Client) -> None:
        """Close a client in order."""
        client.alive = False
        if client.member_id and client.instance is None:
            self._ask(client, EventType.LEAVE)

    def restart(self, client: Client) -> None:
        """Kill a client, and start it again at once under its instance id, if it has one."""
        client.alive = False
        again = self.add()
        again.instance, again.session_ms = client.instance, client.session_ms

    def _act(self, client: Client) -> None:
        client.next_ms = self.now_ms + client.beat_ms + self.random.randrange(0, STEP_MS)
        if client.generation < 0 or client.told:
            self._join(client)
        else:
            kind = EventType.HEARTBEAT if client.synced else EventType.SYNC
            answer = self._ask(client, kind)
            if answer is Answer.REBALANCE_IN_PROGRESS:
                client.told, client.next_ms = True, self.now_ms + self.random.randrange(0, 300)
            elif answer is Answer.NONE:
                client.synced = True
            elif answer is not Answer.PARKED:
                self._reset(client)

    def _join(self, client: Client) -> None:
        client.told = False
        given = None if client.member_id else f"{client.name}-{self._new_id()}"
        answer = self._ask(client, EventType.JOIN, given)
        if answer is Answer.MEMBER_ID_REQUIRED:
            client.member_id, client.next_ms = given or "", self.now_ms + 1
        elif answer is Answer.NONE:
            self._joined(client, given)
        elif answer is not Answer.PARKED:
            self._reset(client)

    def _joined(self, client: Client, given: str | None) -> None:
        client.member_id = client.member_id or given or ""
        client.generation, client.synced, client.next_ms = self.group.generation, False, self.now_ms + 1

    def _reset(self, client: Client) -> None:
        client.member_id, client.generation, client.synced, client.told = "", -1, False, False
        client.next_ms = self.now_ms + 100

    def _new_id(self) -> int:
        self.ids += 1
        return self.ids

    def _ask(self, client: Client, kind: EventType, given: str | None = None) -> Answer:
        joins = kind is EventType.JOIN
        asked = Event(
            group_id="g",
            type=kind,
            member_id=client.member_id,
            group_instance_id=client.instance,
            generation_id=-1 if joins or kind is EventType.LEAVE else client.generation,
            session_timeout_ms=client.session_ms if joins else None,
            rebalance_timeout_ms=20_000 if joins else None,
            assigned_member_id=given,
            protocol_type="consumer" if joins else None,
            protocols=(Protocol("range", "aa"),) if joins else (),
            api_version=9 if joins else 4,
        )
        answer = self.machine.apply(asked, self.now_ms)
        if answer is Answer.PARKED:
            client.parked, client.parked_ms = asked, self.now_ms
        elif (code := CODES.get(answer)) is not None:
            self._log(self.now_ms, asked, code)
        return answer

    def _log(self, at_ms: int, asked: Event, code: int) -> None:
        shown = {"generation_id": self.group.generation, "leader": self.group.leader} if code == 0 else {}
        fields = shown if asked.type is EventType.JOIN else {}
        self.lines.append(Line(at_ms, self.now_ms, msgspec.structs.replace(asked, error_code=code, **fields)))

    def _answer(self) -> None:
        """Answer what was parked and is no more."""
        for client in self.all:
            asked = client.parked
            if asked is None:
                continue
            member_id = asked.member_id or asked.assigned_member_id or ""
            member = self.group.members.get(member_id)
            if member is not None and (member.awaiting_join or member.awaiting_sync):
                continue
            client.parked = None
            client.next_ms = self.now_ms + 1
            if member is None:
                self._reset(client)
            elif asked.type is EventType.JOIN:
                self._log(client.parked_ms, asked, 0)
                self._joined(client, asked.assigned_member_id)
            else:
                client.synced = self.group.state is GroupState.STABLE
                client.told = not client.synced
                self._log(client.parked_ms, asked, 0 if client.synced else 27)

    # What a reader gets that begins in the middle.

    def since(self, start_ms: int, *, broker_log: bool) -> list[tuple[int, Event]]:
        """Return what a tap passes on that begins at a moment, in the order of the times of the events.

        Args:
            start_ms: the moment, epoch ms.
            broker_log: whether it reads the coordinator's own log, too.
        """
        found = [(max(line.at_ms, start_ms), line.event) for line in self.lines if line.logged_ms >= start_ms]
        if broker_log:
            for verdict in self.verdicts:
                if verdict.time_ms >= start_ms and verdict.expiry_reason is ExpiryReason.SESSION_TIMEOUT:
                    event = Event(group_id="g", type=EventType.EXPIRED, member_id=verdict.member_id or "", error_code=0)
                    found.append((verdict.time_ms, event))
        return sorted(found, key=lambda each: each[0])


def lived_world(seed: int) -> World:
    """Make a world of which some clients leave, die, come back and are joined by others, with pauses between."""
    world = World(seed, clients=2 + seed % 4)
    world.run(6)
    for _ in range(6):
        act = world.random.choice(("kill", "kill", "leave", "add", "restart", "nothing"))
        if act == "add" or len(world.living) < 2:
            world.add()
        elif act != "nothing":
            client = world.random.choice(world.living)
            if act == "kill":
                client.alive = False
            else:
                (world.leave if act == "leave" else world.restart)(client)
        world.run(world.random.choice((2, 5, 12, 15)))
    world.run(25)
    return world
