"""New members of loaded and presence groups, many at once.

As on the fast path, whole groups are handled: groups with only known heartbeats and plain first heartbeats in the
batch, all from one partition, and without a timer that falls due in it. Their new members get rows and are known from
then on, so the fast path keeps them alive by their own first heartbeats. All other groups go to the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.rules.arrivals import KINDS, STATES, arrive_at_once, may_arrive_at_once
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.shard.admission import Admission
from heartwheel.engine.shard.fast_path import Route
from heartwheel.engine.shard.handles import group_handle
from heartwheel.engine.shard.heartbeats import rests_of
from heartwheel.engine.shard.log import BatchLog
from heartwheel.engine.shard.rules_path import KINDS as KIND_NUMBERS
from heartwheel.engine.shard.rules_path import STATES as STATE_NUMBERS
from heartwheel.engine.shard.rules_path import decode_group, group_detail, member_detail
from heartwheel.engine.shard.tables import Table
from heartwheel.wire.events import Event
from heartwheel.wire.verdicts import Verdict
from timing_wheel import TimingWheel

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

_KINDS = [KIND_NUMBERS.index(kind) for kind in KINDS]
_STATES = [STATE_NUMBERS.index(state) for state in STATES]


def take_out(log: BatchLog, route: Route, groups: Table) -> Rows:
    """Mark the groups whose new members may arrive at once as not busy, so that `mark_busy` checks their timers.

    Returns:
        intp (n,), their rows, ascending.
    """
    group = route.group
    unknown = np.flatnonzero((route.member < 0) & (group >= 0))
    if not len(unknown):
        return unknown
    # It has one more element than groups: entries without a group read and write the last one.
    fit = np.zeros(groups.rows + 1, np.bool_)
    fit[group[unknown]] = True
    fit[group[unknown[log.fingerprint[unknown] == 0]]] = False
    partition = np.zeros(groups.rows + 1, np.int64)
    partition[group] = log.entry_partition
    fit[group[partition[group] != log.entry_partition]] = False
    rows = np.flatnonzero(fit[:-1])
    rows = rows[np.isin(groups["kind"][rows], _KINDS) & np.isin(groups["state"][rows], _STATES)]
    route.busy[rows] = False
    return rows


class _Newcomers(NamedTuple):
    """The first heartbeats of possible new members, by group and in the order in which they count.

    Args:
        entries: intp (entries,), those with the same fingerprints next to each other.
        member: intp (entries,), the new member of each.
        first: intp (members,), the entry of each member's first record.
        group: intp (members,), ascending.
        time_ms: int64 (members,), effective time of that record, epoch ms.
        newest_ms: int64 (members,), of the newest record of its group, epoch ms.
    """

    entries: Rows
    member: Rows
    first: Rows
    group: Rows
    time_ms: Ints
    newest_ms: Ints


def _newcomers(log: BatchLog, route: Route, groups: Table) -> _Newcomers:
    entries = np.flatnonzero((route.member < 0) & ~route.busy[route.group])
    record = np.empty(len(log.fingerprint), np.intp)
    record[log.entry[::-1]] = np.arange(len(log.entry))[::-1]
    first_ms, last_ms = log.first_and_last_ms()
    newest = np.full(groups.rows + 1, -1, np.int64)
    np.maximum.at(newest, route.group, last_ms)
    # A value that came in several packs is an entry of each. It is one member, which arrived with the first of them.
    entries = entries[np.lexsort((record[entries], log.fingerprint[entries], route.group[entries]))]
    fingerprint = log.fingerprint[entries]
    begins = np.ones(len(entries), np.bool_)
    begins[1:] = fingerprint[1:] != fingerprint[:-1]
    member = np.cumsum(begins) - 1
    first = entries[begins]
    order = np.lexsort((record[first], route.group[first]))
    place = np.empty(len(order), np.intp)
    place[order] = np.arange(len(order))
    first = first[order]
    group = route.group[first]
    time_ms = np.maximum(first_ms[first], groups["seen_ms"][group])
    return _Newcomers(entries, place[member], first, group, time_ms, newest[group])


class ArrivingCrowd:
    """Adds members to the tables that arrive together."""

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

    def admit(self, log: BatchLog, route: Route, admission: Admission) -> int:
        """Add the new members of the groups that are not busy; a group that needs the rules is marked busy.

        Args:
            route: the route after `mark_busy`; the rows of new members are filled in.
            admission: the room that is left.

        Returns:
            The number of new members.
        """
        found = _newcomers(log, route, self._groups)
        # If room may run out, the order of arrival counts, also among groups that go to the rules.
        if not admission.has_room_for(int(np.count_nonzero(route.member < 0))):
            route.busy[found.group] = True
            return 0
        rows, starts, counts = np.unique(found.group, return_index=True, return_counts=True)
        sizes = np.bincount(self._members["group"] + 1, minlength=self._groups.rows + 1)[1:][rows]
        row_of = np.full(len(found.first), -1, np.intp)
        for group, start, count, size in zip(
            rows.tolist(), starts.tolist(), counts.tolist(), sizes.tolist(), strict=True
        ):
            here = slice(start, start + count)
            arrived = self._let_into(group, size, log, found, here, admission)
            if arrived is None:
                route.busy[group] = True
            else:
                row_of[here] = arrived
        route.member[found.entries] = row_of[found.member]
        return int(np.count_nonzero(row_of >= 0))

    def _let_into(
        self, row: int, size: int, log: BatchLog, found: _Newcomers, here: slice, admission: Admission
    ) -> Rows | None:
        requests = log.events(found.first[here])
        events = [request for request in requests if isinstance(request, Event)]
        # Heartbeats with a member epoch have rules of their own.
        if len(events) < len(requests) or admission.is_full(size + len(events) - 1):
            return None
        (group_id, detail) = self._groups.text.read([row])[0]
        group = decode_group(detail)
        group.group_id = group_id
        if not may_arrive_at_once(group, size, events, self._config):
            return None
        new_ids = {event.member_id for event in events}
        if len(new_ids) < len(events) or (size and not new_ids.isdisjoint(self._ids_of(row))):
            return None
        fingerprints, times = log.fingerprint[found.first[here]].tolist(), found.time_ms[here]
        if group.loads and int(times[0]) <= group.loaded_ms:
            return None  # the verdicts in the millisecond of a load are counted
        timeouts = [event.session_timeout_ms or self._config.default_session_timeout_ms for event in events]
        if (times + timeouts <= found.newest_ms[here]).any():
            return None  # its session may have ended within the batch
        arrivals = list(zip(events, times.tolist(), fingerprints, strict=True))
        members = arrive_at_once(group, size, arrivals, self._config, self._emit)
        for member, rest in zip(members, rests_of(events), strict=True):
            member.heartbeat = rest
        admission.add_members(len(members))
        self._wheel.cancel([group_handle(row)])
        self._groups["kind"][row] = KIND_NUMBERS.index(group.kind)
        self._groups["state"][row] = STATE_NUMBERS.index(group.state)
        self._groups.text.write(row, group_id, group_detail(group))
        at = self._members.allocate_many(len(members))
        for name, values in (("group", row), ("timeout_ms", timeouts), ("fingerprint", fingerprints)):
            self._members[name][at] = values
        ids = [event.member_id for event in events]
        self._members.text.write_many(at, ids, list(map(member_detail, members)))
        return at

    def _ids_of(self, group: int) -> list[str]:
        return self._members.text.ids(np.flatnonzero(self._members["group"] == group))
