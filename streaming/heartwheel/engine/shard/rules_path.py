"""The rules path: groups move from the tables to the state machine, are run event by event, and move back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.departures import expire_at_once
from heartwheel.engine.rules.epochs.config import EpochConfig
from heartwheel.engine.rules.epochs.model import ArmedTimer, EpochGroup, EpochMember, TimerName
from heartwheel.engine.rules.manager import AnyGroup, ClassicRules
from heartwheel.engine.rules.model import NEVER, NO_HEARTBEAT, Group, GroupKind, GroupState, Member
from heartwheel.engine.shard.handles import group_handle, member_handle
from heartwheel.engine.shard.heartbeats import KnownHeartbeat, rest_of
from heartwheel.engine.shard.tables import Table
from heartwheel.wire.events import Event
from heartwheel.wire.verdicts import Verdict
from timing_wheel import TimingWheel

STATES: Final = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
    GroupState.DEAD,
    GroupState.ASSIGNING,
    GroupState.RECONCILING,
)
"""The states by their numbers in a checkpoint. Their order must never change; new ones are appended."""

KINDS: Final = (
    GroupKind.NEW,
    GroupKind.CLASSIC,
    GroupKind.LOADED,
    GroupKind.PRESENCE,
    GroupKind.CONSUMER,
    GroupKind.SHARE,
    GroupKind.STREAMS,
)
"""The kinds, likewise."""

FIRST_EPOCH_KIND: Final = KINDS.index(GroupKind.CONSUMER)
"""The groups of this kind and of the later ones use member epochs."""

VOID_FINGERPRINT: Final = 1
"""A value that is no heartbeat's fingerprint, so that the next heartbeat is read; for a member that has only its
session."""


class _HeartbeatOnly(msgspec.Struct):
    heartbeat: msgspec.Raw = NO_HEARTBEAT


_encode = msgspec.json.Encoder().encode
_decode_heartbeat = msgspec.json.Decoder(_HeartbeatOnly).decode
_decode_member = msgspec.json.Decoder(Member).decode
_decode_epoch_member = msgspec.json.Decoder(EpochMember).decode
_decode_epoch_group = msgspec.json.Decoder(EpochGroup).decode
decode_group = msgspec.json.Decoder(Group).decode
"""Decode what `group_detail` returned: a group without its name and its members."""

_SEQ: Final = attrgetter("seq")

Rows = NDArray[np.intp]
AnyMember = Member | EpochMember


class Loaded:
    """One group while it is run by its rules.

    Args:
        group: its state, changed in place.
        member_rows: member id to row, when the group was loaded.
        renewed_ms: end of the newest outage that has renewed its sessions, epoch ms; -1 if there was none.
        known_heartbeats: the members' heartbeats by fingerprint, when the group was loaded.
    """

    def __init__(
        self,
        row: int,
        group: AnyGroup,
        member_rows: dict[str, int],
        config: EpochConfig,
        emit: Callable[[Verdict], None],
        renewed_ms: int,
        known_heartbeats: dict[int, KnownHeartbeat],
    ) -> None:
        self.row = row
        self._group = group
        self.member_rows = member_rows
        self.known_heartbeats = known_heartbeats
        self.applied: dict[int, Event] = {}
        """The heartbeats of the classic protocol that were applied since, by fingerprint."""
        self._config = config
        self._emit = emit
        self._renewed_ms = renewed_ms

    @cached_property
    def machine(self) -> ClassicRules:
        """The state machine. It counts and files every member when it is created."""
        return ClassicRules(self._group, self._config, self._emit, self._renewed_ms)

    def kept_fingerprints(self) -> list[int]:
        """Return the fingerprints that rows will have once the group is stored."""
        if self.machine.is_forgettable():
            return []
        return [member.fingerprint for member in self.group.all_members()]

    def fire(self, clock_ms: int) -> None:
        """Fire every timer that is due by the clock (epoch ms), in order, if possible without a machine."""
        group = self._group
        coordinator, renewed_ms = self._config.coordinator, self._renewed_ms
        done = isinstance(group, Group) and expire_at_once(group, clock_ms, coordinator, self._emit, renewed_ms)
        if not done or group.forget_deadline_ms <= clock_ms:
            self.machine.advance(clock_ms)

    @property
    def group(self) -> AnyGroup:
        """Its state; another object after it has changed its protocol."""
        return self.machine.group


class GroupLoader:
    """Loads groups from the tables, and stores them back."""

    def __init__(
        self,
        members: Table,
        groups: Table,
        wheel: TimingWheel,
        config: CoordinatorConfig,
        emit: Callable[[Verdict], None],
    ) -> None:
        self._members = members
        self._groups = groups
        self._wheel = wheel
        self._config = EpochConfig(config)
        self._emit = emit

    @property
    def sessions(self) -> int:
        """The session timeouts in use that a broker sets (`EpochConfig.sessions`)."""
        return self._config.sessions

    def clear_epoch_fingerprints(self) -> None:
        """Clear the fingerprints of members of epoch groups, because their session timeout may have changed.

        The running timer stays, as a broker's does, so such a member still has only its session. The rows lose their
        heartbeats by that, so it is done before the first batch of a query, which brings all bytes.
        """
        of_group = np.append(self._groups["kind"] >= FIRST_EPOCH_KIND, False)  # free rows read the last
        fingerprints = self._members["fingerprint"]
        fingerprints[of_group[self._members["group"]] & (fingerprints != 0)] = VOID_FINGERPRINT

    def load(self, rows: Rows) -> Iterator[Loaded]:
        """Load groups.

        Args:
            rows: intp (n,), the groups' rows, ascending.
        """
        member_rows, texts, members = self._load_members(rows)
        owner = self._members["group"][member_rows]
        starts = np.searchsorted(owner, rows).tolist()
        stops = np.searchsorted(owner, rows, side="right").tolist()
        seen = self._groups["seen_ms"][rows].tolist()
        kinds = self._groups["kind"][rows].tolist()
        renewed = self._groups["renewed_ms"][rows].tolist()
        rows_of = member_rows.tolist()
        for i, (group_id, detail) in enumerate(self._groups.text.read(rows)):
            group: AnyGroup = (_decode_epoch_group if kinds[i] >= FIRST_EPOCH_KIND else decode_group)(detail)
            group.group_id = group_id
            group.last_event_ms = seen[i]
            here = slice(starts[i], stops[i])
            for member in sorted(members[here], key=_SEQ):
                _holder(group, member)[member.member_id] = member
            ids = (text[0] for text in texts[here])
            member_rows_of = dict(zip(ids, rows_of[here], strict=True))
            known_heartbeats = _take_heartbeats(group_id, members[here])
            yield Loaded(int(rows[i]), group, member_rows_of, self._config, self._emit, renewed[i], known_heartbeats)

    def heartbeats(self, rows: Rows) -> list[KnownHeartbeat]:
        """Return the known heartbeats of some members.

        Args:
            rows: intp (n,), the members' rows.
        """
        texts = self._members.text.read(rows)
        groups = self._groups.text.ids(self._members["group"][rows])
        return [
            KnownHeartbeat(group_id, member_id, _decode_heartbeat(detail).heartbeat)
            for group_id, (member_id, detail) in zip(groups, texts, strict=True)
        ]

    def _load_members(self, groups: Rows) -> tuple[Rows, list[tuple[str, bytes]], list[AnyMember]]:
        wanted = np.zeros(self._groups.rows + 1, np.bool_)  # free rows read the last element
        wanted[groups] = True
        owner = self._members["group"]
        rows = np.flatnonzero(wanted[owner])
        rows = rows[np.argsort(owner[rows], kind="stable")]
        texts = self._members.text.read(rows)
        columns = [self._members[name][rows].tolist() for name in ("seen_ms", "timeout_ms", "fingerprint")]
        deadlines = self._wheel.deadlines()
        handles = member_handle(rows)
        in_range = handles < len(deadlines)
        deadline = np.full(len(rows), NEVER)
        deadline[in_range] = deadlines[handles[in_range]]
        by_epochs = (self._groups["kind"][owner[rows]] >= FIRST_EPOCH_KIND).tolist()
        members: list[AnyMember] = []
        for (member_id, detail), seen_ms, timeout_ms, fingerprint, deadline_ms, goes_by_epochs in zip(
            texts, *columns, deadline.tolist(), by_epochs, strict=True
        ):
            decode = _epoch_member if goes_by_epochs else _classic_member
            member = decode(detail, timeout_ms, fingerprint, deadline_ms)
            member.member_id = member_id
            member.last_seen_ms = seen_ms
            members.append(member)
        return rows, texts, members

    def store(self, loaded: Iterable[Loaded]) -> bool:
        """Store groups back; they must not be used afterwards.

        Returns:
            Whether any fingerprint changed, so that the index must be rebuilt.
        """
        batch = _Stored()
        for one in loaded:
            self._store_group(one, batch)
        self._wheel.cancel(batch.cancelled)
        rows = np.array(batch.rows, np.intp)
        changed = batch.fingerprints_dropped or bool((self._members["fingerprint"][rows] != batch.fingerprint).any())
        for name, values in (
            ("group", batch.group),
            ("seen_ms", batch.seen_ms),
            ("timeout_ms", batch.timeout_ms),
            ("fingerprint", batch.fingerprint),
        ):
            self._members[name][rows] = values
        self._wheel.file(batch.filed, batch.deadline_ms)
        return changed

    def _store_group(self, loaded: Loaded, batch: _Stored) -> None:
        group, former_rows = loaded.group, loaded.member_rows
        forgotten = loaded.machine.is_forgettable()
        # A member keeps its row, so rows are released only after it is known which members stay.
        stays = [] if forgotten else [(member, former_rows.pop(member.member_id, -1)) for member in group.all_members()]
        if former_rows:
            rows = np.array(list(former_rows.values()), np.intp)
            batch.fingerprints_dropped |= bool(self._members["fingerprint"][rows].any())
            batch.cancelled += member_handle(rows).tolist()
            self._members.release_many(rows)
        if forgotten:
            batch.cancelled.append(group_handle(loaded.row))
            self._groups.release(loaded.row)
            return
        for member, row in stays:
            member.heartbeat = _heartbeat(loaded, member.fingerprint)
            at = row if row >= 0 else self._members.allocate()
            batch.add(at, loaded.row, member)
            self._members.text.write(at, member.member_id, member_detail(member))
        self._groups["renewed_ms"][loaded.row] = loaded.machine.renewed_ms
        self._write_group(loaded.row, group, batch)

    def _write_group(self, row: int, group: AnyGroup, batch: _Stored) -> None:
        if isinstance(group, EpochGroup):
            state, kind, timer_ms = group.state(), GroupKind(group.type.value), group.timer_ms
        else:
            state, kind = group.state, group.kind
            timer_ms = min(
                group.join_deadline_ms, group.sync_deadline_ms, group.store_deadline_ms, group.forget_deadline_ms
            )
        batch.arm(group_handle(row), timer_ms)
        self._groups["state"][row] = STATES.index(state)
        self._groups["kind"][row] = KINDS.index(kind)
        self._groups["seen_ms"][row] = group.last_event_ms
        self._groups.text.write(row, group.group_id, group_detail(group))


class _Stored:
    """The writes of a `store`, which are done together."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.group: list[int] = []
        self.seen_ms: list[int] = []
        self.timeout_ms: list[int] = []
        self.fingerprint: list[int] = []
        self.filed: list[int] = []
        self.deadline_ms: list[int] = []
        self.cancelled: list[int] = []
        self.fingerprints_dropped = False

    def add(self, row: int, group: int, member: AnyMember) -> None:
        self.rows.append(row)
        self.group.append(group)
        self.seen_ms.append(member.last_seen_ms)
        self.timeout_ms.append(member.session_ms if isinstance(member, EpochMember) else member.session_timeout_ms)
        self.fingerprint.append(member.fingerprint)
        self.arm(member_handle(row), member.deadline_ms)

    def arm(self, handle: int, deadline_ms: int) -> None:
        if deadline_ms == NEVER:
            self.cancelled.append(handle)
        else:
            self.filed.append(handle)
            self.deadline_ms.append(deadline_ms)


def group_detail(group: AnyGroup) -> bytes:
    """Encode the fields of a group that the tables do not have; the group must not be used afterwards."""
    group.group_id = ""
    group.members = {}
    if isinstance(group, Group):
        group.pending = {}
    group.last_event_ms = 0
    return _encode(group)


def _holder(group: AnyGroup, member: AnyMember) -> dict[str, Any]:
    """Return the dictionary of a group that holds such a member."""
    return (
        group.pending if isinstance(group, Group) and isinstance(member, Member) and member.pending else group.members
    )


def _classic_member(detail: bytes, session_ms: int, fingerprint: int, deadline_ms: int) -> AnyMember:
    member = _decode_member(detail)
    member.session_timeout_ms, member.fingerprint, member.deadline_ms = session_ms, fingerprint, deadline_ms
    return member


def _epoch_member(detail: bytes, session_ms: int, fingerprint: int, deadline_ms: int) -> AnyMember:
    """Decode a member of an epoch group; if its heartbeats take the fast path, it has only its session."""
    member = _decode_epoch_member(detail)
    member.fingerprint = fingerprint
    if fingerprint:
        old = member.timers[TimerName.SESSION]
        member.timers[TimerName.SESSION] = ArmedTimer(deadline_ms, session_ms, old.seq, old.epoch)
    return member


def member_detail(member: AnyMember) -> bytes:
    """Encode the fields of a member that the tables do not have; the member must not be used afterwards."""
    member.member_id = ""
    member.last_seen_ms = 0
    member.fingerprint = 0
    if isinstance(member, Member):
        member.session_timeout_ms = 0
        member.deadline_ms = NEVER
    return _encode(member)


def _take_heartbeats(group_id: str, members: Iterable[AnyMember]) -> dict[int, KnownHeartbeat]:
    """Remove and return the heartbeats of members, which the rules must not see."""
    known_heartbeats = {}
    for member in members:
        if member.heartbeat is not NO_HEARTBEAT:
            if member.fingerprint != VOID_FINGERPRINT:
                known_heartbeats[member.fingerprint] = KnownHeartbeat(group_id, member.member_id, member.heartbeat)
            member.heartbeat = NO_HEARTBEAT
    return known_heartbeats


def _heartbeat(loaded: Loaded, fingerprint: int) -> msgspec.Raw:
    """Return what to store as the heartbeat with a fingerprint; nothing for one with a member epoch."""
    if not fingerprint:
        return NO_HEARTBEAT
    if (known := loaded.known_heartbeats.get(fingerprint)) is not None:
        return known.rest
    event = loaded.applied.get(fingerprint)
    return NO_HEARTBEAT if event is None else rest_of(event)
