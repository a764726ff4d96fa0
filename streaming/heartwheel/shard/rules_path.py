"""The rules path: groups move out of the tables into the state machine, are run event by event, and move back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from heartwheel.coordinator.config import CoordinatorConfig
from heartwheel.coordinator.departures import expire_at_once
from heartwheel.coordinator.machine import GroupMachine
from heartwheel.coordinator.model import NEVER, UNSAID, Group, GroupKind, GroupState, Member
from heartwheel.shard.handles import group_handle, member_handle
from heartwheel.shard.heartbeats import Said, rest_of
from heartwheel.shard.tables import Table
from heartwheel.wire.events import Event
from heartwheel.wire.verdicts import Verdict
from timing_wheel import TimingWheel

STATES: Final = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
    GroupState.DEAD,
)
"""The states by the numbers that a checkpoint holds: never to be put in another order, only to be added to."""

KINDS: Final = (GroupKind.NEW, GroupKind.CLASSIC, GroupKind.LOADED, GroupKind.PRESENCE)
"""The kinds likewise."""

_encode = msgspec.json.Encoder().encode
_decode_member = msgspec.json.Decoder(Member).decode
decode_group = msgspec.json.Decoder(Group).decode
"""Decode what `group_detail` wrote: a group without its name and its members."""

Rows = NDArray[np.intp]


class Loaded:
    """Hold one group while the rules have it.

    Args:
        row: the group's row.
        group: its state, changed in place.
        member_rows: member id to row, as it was when the group was loaded.
        config: the rules' configuration.
        emit: takes each verdict.
        renewed_ms: end of the newest outage that has renewed its sessions, epoch ms; -1 if there was none.
        said: the members' heartbeats by fingerprint, as they were when the group was loaded.
    """

    def __init__(
        self,
        row: int,
        group: Group,
        member_rows: dict[str, int],
        config: CoordinatorConfig,
        emit: Callable[[Verdict], None],
        renewed_ms: int,
        said: dict[int, Said],
    ) -> None:
        self.row = row
        self.group = group
        self.member_rows = member_rows
        self.said = said
        self.heard: dict[int, Event] = {}
        """The heartbeats that were applied since, by fingerprint."""
        self._config = config
        self._emit = emit
        self._renewed_ms = renewed_ms

    @cached_property
    def machine(self) -> GroupMachine:
        """The state machine; it counts and files every member when it is made."""
        return GroupMachine(self.group, self._config, self._emit, self._renewed_ms)

    def kept_fingerprints(self) -> list[int]:
        """List the fingerprints that rows will have once the group is stored."""
        if self.machine.is_forgettable():
            return []
        return [member.fingerprint for member in self.group.all_members()]

    def fire(self, clock_ms: int) -> None:
        """Fire every timer with a deadline at or before the clock (epoch ms), in order, without a machine if it can."""
        done = expire_at_once(self.group, clock_ms, self._config, self._emit, self._renewed_ms)
        if not done or self.group.forget_deadline_ms <= clock_ms:
            self.machine.advance(clock_ms)


class GroupLoader:
    """Load groups from the tables, and store them back.

    Args:
        members: the table of members.
        groups: the table of groups.
        wheel: where deadlines are.
        config: the rules' configuration.
        emit: takes each verdict.
    """

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
        self._config = config
        self._emit = emit

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
        renewed = self._groups["renewed_ms"][rows].tolist()
        rows_of = member_rows.tolist()
        for i, (group_id, detail) in enumerate(self._groups.text.read(rows)):
            group = decode_group(detail)
            group.group_id = group_id
            group.last_event_ms = seen[i]
            here = slice(starts[i], stops[i])
            for member in sorted(members[here], key=_seq):
                (group.pending if member.pending else group.members)[member.member_id] = member
            ids = (text[0] for text in texts[here])
            member_rows_of = dict(zip(ids, rows_of[here], strict=True))
            said = _take_said(group_id, members[here])
            yield Loaded(int(rows[i]), group, member_rows_of, self._config, self._emit, renewed[i], said)

    def said(self, rows: Rows) -> list[Said]:
        """Read the heartbeats of some members.

        Args:
            rows: intp (n,), the members' rows.
        """
        texts = self._members.text.read(rows)
        groups = self._groups.text.ids(self._members["group"][rows])
        return [
            Said(group_id, member_id, _decode_member(detail).heartbeat)
            for group_id, (member_id, detail) in zip(groups, texts, strict=True)
        ]

    def _load_members(self, groups: Rows) -> tuple[Rows, list[tuple[str, bytes]], list[Member]]:
        wanted = np.zeros(self._groups.rows + 1, np.bool_)  # the last element is read by free rows
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
        members = []
        for (member_id, detail), seen_ms, timeout_ms, mark, deadline_ms in zip(
            texts, *columns, deadline.tolist(), strict=True
        ):
            member = _decode_member(detail)
            member.member_id = member_id
            member.last_seen_ms = seen_ms
            member.session_timeout_ms = timeout_ms
            member.fingerprint = mark
            member.deadline_ms = deadline_ms
            members.append(member)
        return rows, texts, members

    def store(self, loaded: Iterable[Loaded]) -> bool:
        """Store groups back; they must not be used afterwards.

        Returns:
            Whether any fingerprint changed, so that their order must be made anew.
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
        group, gone = loaded.group, loaded.member_rows
        forgotten = loaded.machine.is_forgettable()
        # A member keeps its row, so rows are given back only once the stayers are known.
        stays = [] if forgotten else [(member, gone.pop(member.member_id, -1)) for member in group.all_members()]
        if gone:
            rows = np.array(list(gone.values()), np.intp)
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
        self._write_group(loaded.row, group, batch)

    def _write_group(self, row: int, group: Group, batch: _Stored) -> None:
        batch.arm(
            group_handle(row),
            min(group.join_deadline_ms, group.sync_deadline_ms, group.store_deadline_ms, group.forget_deadline_ms),
        )
        self._groups["state"][row] = STATES.index(group.state)
        self._groups["kind"][row] = KINDS.index(group.kind)
        self._groups["seen_ms"][row] = group.last_event_ms
        self._groups.text.write(row, group.group_id, group_detail(group))


class _Stored:
    """Collect what a `store` writes, so that it is written in one go."""

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

    def add(self, row: int, group: int, member: Member) -> None:
        self.rows.append(row)
        self.group.append(group)
        self.seen_ms.append(member.last_seen_ms)
        self.timeout_ms.append(member.session_timeout_ms)
        self.fingerprint.append(member.fingerprint)
        self.arm(member_handle(row), member.deadline_ms)

    def arm(self, handle: int, deadline_ms: int) -> None:
        if deadline_ms == NEVER:
            self.cancelled.append(handle)
        else:
            self.filed.append(handle)
            self.deadline_ms.append(deadline_ms)


def group_detail(group: Group) -> bytes:
    """Encode what the tables do not hold of a group; the group is not to be used afterwards."""
    group.group_id = ""
    group.members = {}
    group.pending = {}
    group.last_event_ms = 0
    return _encode(group)


def member_detail(member: Member) -> bytes:
    """Encode what the tables do not hold of a member; the member is not to be used afterwards."""
    member.member_id = ""
    member.last_seen_ms = 0
    member.session_timeout_ms = 0
    member.fingerprint = 0
    member.deadline_ms = NEVER
    return _encode(member)


def _take_said(group_id: str, members: Iterable[Member]) -> dict[int, Said]:
    """Take away from members what their heartbeats say, of which the rules know nothing."""
    said = {}
    for member in members:
        if member.heartbeat is not UNSAID:
            said[member.fingerprint] = Said(group_id, member.member_id, member.heartbeat)
            member.heartbeat = UNSAID
    return said


def _heartbeat(loaded: Loaded, fingerprint: int) -> msgspec.Raw:
    """Find what is to stand in a row as the heartbeat with a fingerprint."""
    if not fingerprint:
        return UNSAID
    if (said := loaded.said.get(fingerprint)) is not None:
        return said.rest
    event = loaded.heard.get(fingerprint)
    return UNSAID if event is None else rest_of(event)


def _seq(member: Member) -> int:
    return member.seq
