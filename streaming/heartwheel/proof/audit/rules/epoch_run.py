"""The context of the rules about member epochs: timers, members, and derived verdicts."""

from __future__ import annotations

import heapq
from typing import Final

from heartwheel.proof.audit.rules.context import Run
from heartwheel.proof.audit.rules.epoch_model import (
    PAST_MAX,
    REJOIN,
    RESYNC,
    REVOCATION,
    SESSION,
    SHARE,
    AuditedTimer,
    Modern,
    Person,
)
from heartwheel.proof.audit.rules.epoch_model import stage_of as stage
from heartwheel.proof.audit.rules.model import NEVER
from heartwheel.wire.group_heartbeats import GroupHeartbeat

PERSON: Final = 4
"""In a group's heap: the timer of a member, in a group with member epochs."""

OF_GROUP: Final = 5
"""In a group's heap: a timer of the group itself."""

REASONS: Final = {
    SESSION: "session_timeout",
    REVOCATION: "revocation_timeout",
    REJOIN: "rebalance_timeout",
    RESYNC: "sync_timeout",
}
"""The reason in a row, by the timer that ended."""


class EpochRun(Run):
    """The context in which the rules handle one event of a group with member epochs."""

    __slots__ = ()

    @property
    def modern(self) -> Modern:
        """The part of the group that has the member epochs."""
        modern = self.group.modern
        assert modern is not None, "only groups with member epochs have this context"  # noqa: S101 - how it is made
        return modern

    # Settings

    def set_for(self, name: str) -> int:
        """Return a setting of the group itself, or else of its kind, ms; `name` is such as `session_timeout`."""
        kind = self.modern.kind
        own = self.config.group_overrides.get(f"{self.group.group_id}/{kind}.{name.replace('_', '.')}.ms")
        value: int = getattr(self.config, f"group_{kind}_{name}_ms") if own is None else own
        return value

    # Timers

    def start(self, person: Person, what: str, length_ms: int) -> None:
        """Restart a timer of a member."""
        modern, end_ms = self.modern, self.group.now_ms + length_ms
        person.clocks[what] = AuditedTimer(end_ms, length_ms, modern.steps, person.epoch)
        modern.steps += 1
        self.file(person)

    def file(self, person: Person) -> None:
        """File a member in the group's heap under the end of its first timer."""
        first = min((clock.end_ms for clock in person.clocks.values()), default=NEVER)
        if first < person.filed_ms:
            person.filed_ms = first
            heapq.heappush(self.group.heap, (first, PERSON, person.place, person.member_id))

    def file_group(self, at_ms: int) -> None:
        """File the group in its heap for a timer of its own."""
        heapq.heappush(self.group.heap, (at_ms, OF_GROUP, 0, ""))

    def start_session(self, person: Person) -> None:
        """Restart a member's session; a classic member has its own timeout, which may be unknown."""
        person.seen_ms = self.group.now_ms
        if person.classic_ms >= 0:
            self.start(person, SESSION, person.classic_ms or self.set_for("session_timeout"))

    def start_revocation(self, person: Person) -> None:
        """Start a member's time to give partitions back."""
        patience = person.patience_ms
        if self.is_guess(person):
            return
        self.start(person, REVOCATION, self.config.default_rebalance_timeout_ms if patience < 0 else patience)

    def is_guess(self, person: Person) -> bool:
        """Return whether a member gave its rebalance timeout before the log begins; answers do not have it."""
        return self.modern.met_late and person.proven and person.patience_ms < 0 and not person.classic_ms

    def doubt(self, person: Person, target: int) -> None:
        """Record that a member behind a target may owe partitions, by a request from before the log begins."""
        if 0 < person.epoch < target and self.modern.kind != SHARE and self.is_guess(person):
            person.must_revoke = True

    # Members

    def holder(self, instance_id: str | None) -> Person | None:
        """Return the member with an instance id."""
        return self.modern.people.get(self.modern.static.get(instance_id or "", ""))

    def enter(self, person: Person) -> Person:
        """Add a member at the end of the join order."""
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
        """Remove a member with its timers."""
        modern = self.modern
        del modern.people[person.member_id]
        if person.instance_id and modern.static.get(person.instance_id) == person.member_id:
            del modern.static[person.instance_id]
        if modern.met_late:
            modern.past = [*modern.past, person.member_id][-PAST_MAX:]

    # Verdicts

    def emit_fenced(self, person: Person, what: str, clock: AuditedTimer) -> None:
        """Add the verdict that a timer expired a member, which is removed afterwards.

        If an outage restarted the timer, the verdict has the time of that; for a session only if the member was silent
        since then.
        """
        modern, began_ms = self.modern, clock.end_ms - clock.length_ms
        put_off = began_ms == self.group.renewed_ms and person.seen_ms != began_ms
        put_off = put_off and (what != SESSION or person.seen_ms < began_ms)
        self._emit(
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

    def emit_late_poll(
        self, person: Person, beat: GroupHeartbeat, *, left_ms: int, how: int, limit_ms: int, stage: str
    ) -> None:
        """Add the verdict that a member which left has returned under its id.

        Args:
            person: the member as it is now.
            how: the epoch with which it left.
            limit_ms: how long it may go without a poll, ms.
            stage: the group's state before.
        """
        self._emit(
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

    def emit_epoch(
        self, type_: str, words: str, cause: str, *, joined: tuple[str, ...] = (), removed: tuple[str, ...] = ()
    ) -> None:
        """Add the verdict that the epoch was bumped, with who joined or left, or that the protocol changed."""
        modern = self.modern
        self._emit(
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
