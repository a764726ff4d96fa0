"""The fast path: heartbeats that only keep a known member alive, a whole batch at a time.

A group is *quiet* in a batch if all its records are heartbeats whose fingerprints the rules have accepted before, and
if none of its timers falls due before its newest record. Then the order of its records does not matter, and the rules,
run record by record, would only do this: the member was last seen at its newest record. Every other group is *busy* and
goes to the rules. `test_shard_paths.py` checks that both paths give the same verdicts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.shard.log import BatchLog
from heartwheel.engine.shard.tables import Table

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Rows = NDArray[np.intp]

_NEVER_SEEN = -1


class Route(NamedTuple):
    """The members and groups of a batch's entries.

    Args:
        member: intp (entries,), the member's row, -1 if the fingerprint is not known.
        group: intp (entries,), the group's row, -1 if the entry was refused.
        busy: bool (groups + 1,), whether the group goes to the rules. The last element, for entries without a group, is
            true.
    """

    member: Rows
    group: Rows
    busy: Flags


class Alive(NamedTuple):
    """The members that a batch kept alive.

    Args:
        rows: intp (n,), the members' rows, each once.
        seen_ms: int64 (n,), effective time of their newest record.
        clamped: the number of records whose time was raised, because their group's time never goes back.
    """

    rows: Rows
    seen_ms: Ints
    records: int
    clamped: int


def mark_busy(
    log: BatchLog, route: Route, members: Table, groups: Table, member_deadline: Ints, group_deadline: Ints
) -> None:
    """Mark every group of the batch that is not quiet, in `route.busy`.

    Args:
        route: the route; a group is busy already if one of its records is not a known heartbeat.
        member_deadline: int64 (members,), epoch ms.
        group_deadline: int64 (groups,), of the group's own timers, epoch ms.
    """
    quiet = np.flatnonzero(~route.busy[route.group])
    first, last = log.first_and_last_ms()
    group = route.group[quiet]
    # There is one more element than groups: free member rows have the group -1 and read the last one.
    newest = np.full(groups.rows + 1, _NEVER_SEEN, np.int64)
    oldest = np.full(groups.rows + 1, np.iinfo(np.int64).max)
    np.maximum.at(newest, group, last[quiet])
    np.minimum.at(oldest, group, first[quiet])
    touched = newest != _NEVER_SEEN
    # A group's time never goes back (`seen_ms`): a record that was appended earlier counts as of that time.
    newest[:-1][touched[:-1]] = np.maximum(newest[:-1], groups["seen_ms"])[touched[:-1]]
    oldest[:-1] = np.maximum(oldest[:-1], groups["seen_ms"])
    # If a timer of the group itself, such as a join phase's, fires before the newest record, the rules have to run it.
    route.busy[:-1] |= group_deadline <= newest[:-1]

    # So far this was about whole groups; from here on it is about members. `limit` is how far the batch moves the group
    # of each member. For a group without records this is never: what is due there fires later, by the group's own time.
    of_member = members["group"]
    limit = newest[of_member]
    due = member_deadline <= limit
    # A member may beat, fall silent and be due within one batch, if the batch spans its session timeout.
    spans = touched[of_member] & (limit - oldest[of_member] >= members["timeout_ms"])
    suspects = due | spans
    suspects &= ~route.busy[of_member]
    if suspects.any():
        silent = _fell_silent(log, route, suspects, due, members, groups, member_deadline, limit)
        route.busy[of_member[silent]] = True


def _fell_silent(
    log: BatchLog,
    route: Route,
    suspects: Flags,
    due: Flags,
    members: Table,
    groups: Table,
    member_deadline: Ints,
    limit: Ints,
) -> Rows:
    """Return the suspects whose timer falls due before their group's newest record; every record of theirs counts.

    A suspect was silent if one of these holds: it has no record and its timer is due; one of its records comes at or
    after the deadline set by the record before it or by the state; or its last record's deadline is within the batch.
    """
    known = route.member >= 0
    suspect_entry = np.zeros(len(route.member), np.bool_)
    suspect_entry[known] = suspects[route.member[known]]
    records = np.flatnonzero(suspect_entry[log.entry])
    if not len(records):
        return np.flatnonzero(due & suspects)
    member = route.member[log.entry[records]]
    time = np.maximum(log.append_ms[records], groups["seen_ms"][members["group"][member]])
    # Each member's records are in a row, in the order of time, so that a shift by one compares neighbours.
    order = np.lexsort((time, member))
    member, time = member[order], time[order]

    silent = due & suspects
    silent[member] = False  # it has records, which decide
    starts = np.flatnonzero(np.diff(member, prepend=-1))
    previous_deadline = np.empty(len(time), np.int64)
    # The deadline set by the record before; for a member's first record, which follows another member's, by the state.
    previous_deadline[1:] = time[:-1] + members["timeout_ms"][member[:-1]]
    previous_deadline[starts] = member_deadline[member[starts]]
    late = time >= previous_deadline
    silent[member[late]] = True
    ends = np.append(starts[1:], len(member)) - 1
    last = member[ends]
    silent[last[time[ends] + members["timeout_ms"][last] <= limit[last]]] = True
    return np.flatnonzero(silent)


def keep_alive(log: BatchLog, route: Route, groups: Table) -> Alive:
    """Return the effect of the records of all quiet groups.

    Args:
        route: the route after `mark_busy`.
        groups: the groups; the effective time of the quiet ones is advanced.
    """
    quiet_entry = ~route.busy[route.group]
    entries = np.flatnonzero(quiet_entry)
    if not len(entries):
        return Alive(np.empty(0, np.intp), np.empty(0, np.int64), 0, 0)
    _, last = log.first_and_last_ms()
    group, member = route.group[entries], route.member[entries]
    seen = np.maximum(last[entries], groups["seen_ms"][group])
    records = log.entry if len(entries) == len(quiet_entry) else log.entry[quiet_entry[log.entry]]
    clamped = 0
    if not (log.append_ms >= groups["seen_ms"].max(initial=_NEVER_SEEN)).all():
        behind = log.append_ms < groups["seen_ms"][route.group[log.entry]]
        clamped = int(np.count_nonzero(behind & quiet_entry[log.entry]))
    newest = np.full(int(member.max()) + 1, _NEVER_SEEN, np.int64)
    np.maximum.at(newest, member, seen)
    rows = np.flatnonzero(newest != _NEVER_SEEN)
    np.maximum.at(groups["seen_ms"], group, seen)
    return Alive(rows, newest[rows], len(records), clamped)
