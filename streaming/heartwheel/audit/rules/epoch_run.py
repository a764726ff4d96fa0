"""What the rules about member epochs share: timers, who is there, and how it is said what was decided."""

from __future__ import annotations

import heapq
from typing import Final

from heartwheel.audit.rules.context import Run
from heartwheel.audit.rules.epoch_model import (
    PAST_MAX,
    REJOIN,
    RESYNC,
    REVOCATION,
    SESSION,
    SHARE,
    Clock,
    Modern,
    Person,
)
from heartwheel.audit.rules.epoch_model import stage_of as stage
from heartwheel.audit.rules.model import NEVER
from heartwheel.wire.group_heartbeats import GroupHeartbeat

PERSON: Final = 4
"""Whose timer an entry of a group's heap stands for: a member's, in a group that goes by epochs."""

OF_GROUP: Final = 5
"""Likewise: the group's own."""

REASONS: Final = {
    SESSION: "session_timeout",
    REVOCATION: "revocation_timeout",
    REJOIN: "rebalance_timeout",
    RESYNC: "sync_timeout",
}
"""What the end of a timer is called in a row."""


class EpochRun(Run):
    """Run a group that goes by member epochs."""

    __slots__ = ()

    @property
    def modern(self) -> Modern:
        """What the group has for that."""
        modern = self.group.modern
        assert modern is not None, "only such groups are run by it"  # noqa: S101 - how it is made
        return modern

    # Settings

    def set_for(self, name: str) -> int:
        """Read a setting of the group's kind: its own, or the broker's; `name` is such as `session_timeout`, ms."""
        kind = self.modern.kind
        own = self.config.group_overrides.get(f"{self.group.group_id}/{kind}.{name.replace('_', '.')}.ms")
        value: int = getattr(self.config, f"group_{kind}_{name}_ms") if own is None else own
        return value

    # Timers

    def start(self, person: Person, what: str, length_ms: int) -> None:
        """Start a timer of a member afresh."""
        modern, end_ms = self.modern, self.group.now_ms + length_ms
        person.clocks[what] = Clock(end_ms, length_ms, modern.steps, person.epoch)
        modern.steps += 1
        self.file(person)

    def file(self, person: Person) -> None:
        """See to it that the group is looked at when the first timer of a member ends."""
        first = min((clock.end_ms for clock in person.clocks.values()), default=NEVER)
        if first < person.filed_ms:
            person.filed_ms = first
            heapq.heappush(self.group.heap, (first, PERSON, person.place, person.member_id))

    def file_group(self, at_ms: int) -> None:
        """See to it that the group is looked at for a timer of its own."""
        heapq.heappush(self.group.heap, (at_ms, OF_GROUP, 0, ""))

    def start_session(self, person: Person) -> None:
        """Start a whole session: of the broker or the group, of a classic member its own, if anybody knows it."""
        person.seen_ms = self.group.now_ms
        if person.classic_ms >= 0:
            self.start(person, SESSION, person.classic_ms or self.set_for("session_timeout"))

    def start_revocation(self, person: Person) -> None:
        """Start the time that a member has to give partitions back."""
        patience = person.patience_ms
        if self.is_guess(person):
            return
        self.start(person, REVOCATION, self.config.default_rebalance_timeout_ms if patience < 0 else patience)

    def is_guess(self, person: Person) -> bool:
        """Tell whether the rebalance timeout of somebody was said before the log begins; answers leave it unknown."""
        return self.modern.met_late and person.proven and person.patience_ms < 0 and not person.classic_ms

    def doubt(self, person: Person, target: int) -> None:
        """Note of who has not come to a target that partitions may be owed which nobody saw to be asked for."""
        if 0 < person.epoch < target and self.modern.kind != SHARE and self.is_guess(person):
            person.owes = True

    # Members

    def holder(self, instance_id: str | None) -> Person | None:
        """Find who holds an instance id."""
        return self.modern.people.get(self.modern.static.get(instance_id or "", ""))

    def enter(self, person: Person) -> Person:
        """Let somebody be a member, the last of all."""
        modern = self.modern
        if person.member_id in modern.people:
            self.drop(modern.people[person.member_id])
        person.place = modern.steps
        modern.steps += 1
        modern.people[person.member_id] = person
        if person.instance_id:
            modern.static[person.instance_id] = person.member_id
        return person

    def drop(self, person: Person) -> None:
        """Take a member out, its timers with it."""
        modern = self.modern
        del modern.people[person.member_id]
        if person.instance_id and modern.static.get(person.instance_id) == person.member_id:
            del modern.static[person.instance_id]
        if modern.met_late:
            modern.past = [*modern.past, person.member_id][-PAST_MAX:]

    # What is decided

    def say_fenced(self, person: Person, what: str, clock: Clock) -> None:
        """Say that a timer ended a member, before it is taken out.

        One that an outage started anew says when that was: a session only if the member was silent since.
        """
        modern, began_ms = self.modern, clock.end_ms - clock.length_ms
        put_off = began_ms == self.group.renewed_ms and person.seen_ms != began_ms
        put_off = put_off and (what != SESSION or person.seen_ms < began_ms)
        self._say(
            "expired",
            {
                "member_id": person.member_id,
                "group_instance_id": person.instance_id,
                "client_id": person.client_id,
                "client_host": person.client_host,
                "generation_id": modern.epoch,
                "reason": REASONS[what],
                "last_seen_ms": person.seen_ms,
                "session_timeout_ms": clock.length_ms,
                "group_state": stage(modern),
                "group_kind": modern.kind,
                "member_epoch": person.epoch,
                "renewed_ms": began_ms if put_off else None,
            },
        )

    def say_late_to_poll(
        self, person: Person, beat: GroupHeartbeat, *, left_ms: int, how: int, limit_ms: int, stage: str
    ) -> None:
        """Say that a member which left is back under its id.

        Args:
            person: as it is now.
            beat: the heartbeat by which it is back.
            left_ms: when it left, epoch ms.
            how: at which epoch.
            limit_ms: how long it may go without a poll, ms.
            stage: where the group stood before.
        """
        self._say(
            "expired",
            {
                "member_id": person.member_id,
                "group_instance_id": person.instance_id,
                "client_id": beat.client_id or person.client_id,
                "client_host": beat.client_host or person.client_host,
                "generation_id": self.modern.epoch,
                "reason": "poll_timeout",
                "last_seen_ms": left_ms,
                "session_timeout_ms": limit_ms,
                "group_state": stage,
                "group_kind": self.modern.kind,
                "member_epoch": how,
                "renewed_ms": None,
            },
        )

    def say_epoch(
        self, type_: str, words: str, cause: str, *, joined: tuple[str, ...] = (), removed: tuple[str, ...] = ()
    ) -> None:
        """Say that the epoch has moved, and who came or went, or that the group has another protocol."""
        modern = self.modern
        self._say(
            type_,
            {
                "generation_id": modern.epoch,
                "reason": words,
                "cause": cause,
                "deadline_ms": None,
                "awaiting": (),
                "leader": None,
                "member_count": len(modern.people),
                "removed": tuple(sorted(removed)),
                "joined": joined,
                "duration_ms": None,
                "loads": 0,
                "group_kind": modern.kind,
            },
        )
