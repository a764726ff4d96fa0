"""A small language for the life of one group, so that a test reads like the log of a coordinator.

    A new s=5000 -> MEMBER_ID_REQUIRED      a first join; the member is given its id
    A join -> PARKED                        a join with that id; options are remembered
    A first / A static i=x                  a first join that is let in at once: of an old client, of a static member
    A beat g=1 -> NONE                      a heartbeat; without g= it carries the group's generation
    A sync / A commit / A leave             likewise; `A+B leave` is a batch, `- leave i=x` names the instance alone
    - unload / - load                       the coordinator goes away and comes back
    +2500                                   time passes, ms
    = Stable 2 A B | P                      state, generation, members in join order, pending members
    ! member_expired A, rebalance_started   all verdicts since the last such line
    !                                       no verdict since then

Options: s= session timeout, r= rebalance timeout (ms), p= protocols as `range/roundrobin`, i= instance id,
g= generation, why= the client's reason, type= protocol type.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.config import coordinator_config
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group
from heartwheel.wire.event_codec import fingerprint
from heartwheel.wire.events import Event, EventType, Leaving, Protocol
from heartwheel.wire.verdicts import Verdict

UPSTREAM = {"group_min_session_timeout_ms": 10, "group_max_session_timeout_ms": 600_000}
"""The bounds of Kafka's own test context; its delays are the defaults."""

_FIRST_JOINS = frozenset({"new", "first", "static"})


@dataclass
class Stage:
    """Run lines of the language against one machine.

    Args:
        settings: settings of the coordinator that differ from those of Kafka's test context.
    """

    settings: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.now_ms = 0
        self.verdicts: list[Verdict] = []
        self.config = coordinator_config(UPSTREAM | self.settings)
        self.machine = GroupMachine(Group("g"), self.config, self.verdicts.append)
        self._checked = 0
        self._options: dict[str, dict[str, str]] = {}

    @property
    def group(self) -> Group:
        """The group as it is now."""
        return self.machine.group

    def run(self, text: str) -> Stage:
        """Run lines from here on; a failing one is named."""
        for number, line in enumerate(text.strip().splitlines(), 1):
            words = line.split("#")[0].strip()
            if words:
                try:
                    self._line(words)
                except AssertionError as error:
                    raise AssertionError(f"line {number}, `{words}`, at {self.now_ms} ms: {error}") from None
        return self

    def _line(self, words: str) -> None:
        if words[0] == "+":
            self.now_ms += int(words[1:])
            self.machine.advance(self.now_ms)
        elif words[0] == "=":
            self._check_state(words[1:])
        elif words[0] == "!":
            self._check_verdicts(words[1:])
        else:
            self._request(words)

    def _check_state(self, words: str) -> None:
        joined, _, pending = words.partition("|")
        state, generation, *members = joined.split()
        group = self.group
        found = (group.state.value, group.generation, list(group.members), list(group.pending))
        assert found == (state, int(generation), members, pending.split()), f"it is {found}"

    def _check_verdicts(self, words: str) -> None:
        expected = [part.strip() for part in words.split(",") if part.strip()]
        fresh = self.verdicts[self._checked :]
        self._checked = len(self.verdicts)
        found = [f"{v.kind.value} {v.member_id or ''}".strip() for v in fresh]
        assert found == expected, f"it said {found}"

    def _request(self, words: str) -> None:
        request, _, expected = words.partition("->")
        who, verb, *given = request.split()
        options = self._options.setdefault(who, {})
        once = dict(option.split("=", 1) for option in given)
        options |= {name: value for name, value in once.items() if name in "srpi" and who != "-"}
        answer = self.send(who, verb, options | once)
        assert not expected or answer.value == expected.strip(), f"the answer is {answer.value}"

    def send(self, who: str, verb: str, options: dict[str, str]) -> Answer:
        """Send one request now."""
        self.machine.advance(self.now_ms)
        self.machine.conditions.member_id_required = verb != "first"
        event = self._event(who, verb, options)
        return self.machine.apply(event, self.now_ms, fingerprint(event) if verb == "beat" else 0)

    def _event(self, who: str, verb: str, options: dict[str, str]) -> Event:
        kind = EventType("join" if verb in _FIRST_JOINS else "heartbeat" if verb == "beat" else verb)
        member_id = "" if verb in _FIRST_JOINS or who == "-" or "+" in who else who
        instance = options.get("i")
        if kind is EventType.JOIN:
            return Event(
                type=kind,
                group_id="g",
                member_id=member_id,
                assigned_member_id=None if member_id else who,
                group_instance_id=instance,
                session_timeout_ms=int(options.get("s", 5_000)),
                rebalance_timeout_ms=int(options.get("r", 10_000)),
                protocol_type=options.get("type", "consumer"),
                protocols=tuple(Protocol(*name.split(":")) for name in options.get("p", "range").split("/") if name),
                reason=options.get("why"),
            )
        leaving = tuple(Leaving(name) for name in who.split("+")) if "+" in who else ()
        generation = int(options.get("g", self.group.generation))
        checked = kind in (EventType.HEARTBEAT, EventType.SYNC, EventType.COMMIT)
        return Event(
            type=kind,
            group_id="g",
            member_id=member_id,
            generation_id=generation if checked else -1,
            group_instance_id=instance,
            leaving=leaving,
            reason=options.get("why"),
            session_timeout_ms=int(options["s"]) if verb == "beat" and generation < 0 and "s" in options else None,
        )


def play(text: str, **settings: int) -> Stage:
    """Run a whole script on a fresh group; its assertions are the test."""
    return Stage(settings).run(text)


STABLE_A = """
    A new -> MEMBER_ID_REQUIRED
    A join -> PARKED
    +3000
    A sync -> NONE
    = Stable 1 A
    ! rebalance_started, rebalance_completed, assignment_received A
"""
"""Kafka's `joinClassicGroupAsDynamicMemberAndCompleteRebalance`: A leads a Stable group, with 5 s and 10 s."""

STABLE_AB = (
    STABLE_A
    + """
    B first -> PARKED
    A join -> PARKED
    A sync -> NONE
    B sync -> NONE
    = Stable 2 A B
    ! rebalance_started, rebalance_completed, assignment_received A
"""
)
"""A leads and B follows, both with the timeouts of A."""

STATIC_AB = """
    A static i=x p=range/roundrobin -> PARKED
    B static i=y p=range/roundrobin -> PARKED
    +6000
    A sync -> NONE
    B sync -> NONE
    = Stable 1 A B
    ! rebalance_started, rebalance_completed, assignment_received A
"""
"""Kafka's `staticMembersJoinAndRebalance`: two static members, A leads."""
