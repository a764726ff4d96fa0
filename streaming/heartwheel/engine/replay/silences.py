"""Silences: the stretches in which a member's session timer would have run, and how each ended.

| after                                    | the timer runs from                                                     |
|------------------------------------------|-------------------------------------------------------------------------|
| a heartbeat, a commit                    | that moment                                                             |
| a join that waits for others             | the end of the join phase: a member that waits for it cannot expire     |
| a sync that waits for the leader         | the assignment, or the next rebalance                                   |
| a heartbeat at a member epoch, 0 too      | that moment; a commit starts nothing there                              |
| the load of the group by its coordinator | that moment; while the coordinator is away no timer runs                |

An expiration does not end a silence: what the coordinator thinks of a member changes nothing about the member.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.replay.signs import ReplayedPhases, Rows, Sign, SignsOfLife
from heartwheel.wire.events import UNCHECKED_GENERATION
from heartwheel.wire.verdicts import Kind

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

OPEN: Final = 2**62
"""The end of a silence that lasts until the end of the log, epoch ms."""


class Silences(NamedTuple):
    """Silences as columns.

    Args:
        member: int64 (n,), the member's number.
        last_sign_ms: int64 (n,), the sign of life before it, epoch ms.
        start_ms: int64 (n,), from when the timer runs, epoch ms.
        stop_ms: int64 (n,), what ended it, epoch ms, `OPEN` if nothing did.
        alive: bool (n,), whether a later sign of the member follows, at the same generation if both name one.
    """

    member: Ints
    last_sign_ms: Ints
    start_ms: Ints
    stop_ms: Ints
    alive: Flags

    def where(self, wanted: Flags) -> Silences:
        """Return the wanted silences, in their order."""
        member, last_sign_ms, start_ms, stop_ms, alive = self
        return Silences(member[wanted], last_sign_ms[wanted], start_ms[wanted], stop_ms[wanted], alive[wanted])


def find_silences(signs: SignsOfLife, rows: Rows) -> Silences:
    """Return every silence of a log, also those that lasted no longer than a heartbeat interval."""
    phases = [signs.phases[group_id] for group_id, _ in signs.members]
    stop = _next_where(rows.sign != Sign.EXPIRED, rows.member)
    opens = (rows.sign >= Sign.BEAT) & (rows.sign <= Sign.SYNC)
    _close_after_removal(opens, rows, phases)
    _skip_unseen_joins(opens, rows, stop, phases)
    opened = np.flatnonzero(opens)
    start = rows.t_ms.copy()
    for row in opened[np.isin(rows.sign[opened], (Sign.JOIN, Sign.SYNC))].tolist():
        start[row] = _released_ms(phases[rows.member[row]], Sign(rows.sign[row]), int(rows.t_ms[row]))
    stop_ms = np.where(stop >= 0, rows.t_ms[stop], OPEN) if len(rows) else rows.t_ms
    alive = has_later_sign(rows)
    found = Silences(rows.member[opened], rows.t_ms[opened], start[opened], stop_ms[opened], alive[opened])
    return _without_absences(found, phases)


def has_later_sign(rows: Rows) -> Flags:
    """Return for each row whether a later sign of the member follows, at the same generation if both name one."""
    request = (rows.sign >= Sign.BEAT) & (rows.sign <= Sign.LEAVE)
    following = _next_where(request, rows.member)
    if not len(rows):
        return request
    then, now = rows.generation, rows.generation[following]
    unnamed = (then == UNCHECKED_GENERATION) | (now == UNCHECKED_GENERATION)
    again: Flags = (following >= 0) & (unnamed | (then == now))
    return again


def _next_where(wanted: Flags, member: Ints) -> Ints:
    """Return for each row the next wanted row of the same member; -1 for none."""
    count = len(wanted)
    nearest = np.where(wanted, np.arange(count), count)
    following = np.minimum.accumulate(nearest[::-1])[::-1] if count else nearest
    after = np.append(following[1:], count).astype(np.int64)[:count]
    same = after < count
    same[same] = member[after[same]] == member[same]
    return np.where(same, after, -1)


def _close_after_removal(opens: Flags, rows: Rows, phases: list[ReplayedPhases]) -> None:
    """Clear the session starts, other than by a join, of members that a group with joins has removed."""
    lost = (Sign.EXPIRED, Sign.REMOVED, Sign.LEAVE, Sign.GONE)
    for removal in np.flatnonzero(np.isin(rows.sign, lost)).tolist():
        member = rows.member[removal]
        if not phases[member].must_join(int(rows.t_ms[removal])):
            continue
        row = removal + 1
        while row < len(rows) and rows.member[row] == member and rows.sign[row] != Sign.JOIN:
            opens[row] = False
            row += 1


def _skip_unseen_joins(opens: Flags, rows: Rows, stop: Ints, phases: list[ReplayedPhases]) -> None:
    """Drop silences that end in a later generation of a group whose joins are not in the log.

    The member has joined in between, at an unknown time.
    """
    then, now = rows.generation, rows.generation[stop] if len(rows) else rows.generation
    later = (stop >= 0) & (then != UNCHECKED_GENERATION) & (now > then)
    for row in np.flatnonzero(opens & later).tolist():
        if not phases[rows.member[row]].is_classic(int(rows.t_ms[row])):
            opens[row] = False


def _released_ms(phases: ReplayedPhases, sign: Sign, t_ms: int) -> int:
    """Return when a join or a sync was answered; `OPEN` if it never was."""
    waits_in = Kind.REBALANCE_STARTED if sign is Sign.JOIN else Kind.REBALANCE_COMPLETED
    at = phases.latest(t_ms)
    if at == 0 or phases.begins[at - 1][1] is not waits_in:
        return t_ms
    return next((begin_ms for begin_ms, kind in phases.begins[at:] if kind is not waits_in), OPEN)


def _without_absences(silences: Silences, phases: list[ReplayedPhases]) -> Silences:
    """Stop the timers at each unload of the group, and restart them at the load."""
    away = {number for number, of_group in enumerate(phases) if of_group.absences}
    if not away:
        return silences
    touched = np.isin(silences.member, list(away))
    rows = zip(*(column[touched].tolist() for column in silences), strict=True)
    pieces = [piece for row in rows for piece in _pieces(row, phases[row[0]])]
    member, last_sign_ms, start_ms, stop_ms, alive = np.array(pieces, np.int64).reshape(-1, 5).T
    kept = silences.member[~touched], silences.last_sign_ms[~touched], silences.start_ms[~touched]
    return Silences(
        np.append(kept[0], member),
        np.append(kept[1], last_sign_ms),
        np.append(kept[2], start_ms),
        np.append(silences.stop_ms[~touched], stop_ms),
        np.append(silences.alive[~touched], alive.astype(np.bool_)),
    )


def _pieces(silence: tuple[int, ...], phases: ReplayedPhases) -> Iterator[tuple[int, ...]]:
    member, last_sign_ms, start_ms, stop_ms, alive = silence
    for unloaded_ms, loaded_ms in phases.absences:
        back_ms = OPEN if loaded_ms is None else loaded_ms
        if start_ms < back_ms and unloaded_ms < stop_ms:
            if start_ms < unloaded_ms:
                yield member, last_sign_ms, start_ms, unloaded_ms, alive
            start_ms = back_ms
    yield member, last_sign_ms, start_ms, stop_ms, alive
