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

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from heartwheel.engine.replay.signs import ReplayedPhases, Sign, SignRow, SignsOfLife
from heartwheel.wire.events import UNCHECKED_GENERATION
from heartwheel.wire.verdicts import Kind

OPEN: Final = 2**62
"""The end of a silence that lasts until the end of the log, epoch ms."""

_REMOVES: Final = frozenset({Sign.EXPIRED, Sign.REMOVED, Sign.LEAVE, Sign.GONE})


class MemberSilence(NamedTuple):
    """One silence of a member.

    Args:
        last_sign_ms: the sign of life before it, epoch ms.
        start_ms: from when the timer runs, epoch ms.
        stop_ms: what ended it, epoch ms, `OPEN` if nothing did.
        alive: whether a later sign of the member follows, at the same generation if both name one.
    """

    member: int
    last_sign_ms: int
    start_ms: int
    stop_ms: int
    alive: bool


class FollowedRow(NamedTuple):
    """A sign of a member, with what follows.

    Args:
        stop: the next sign other than an expiration; `None` if there is none.
        alive: whether a later request of the member follows, at the same generation if both name one.
    """

    row: SignRow
    stop: SignRow | None
    alive: bool


def followed(rows: Sequence[SignRow]) -> list[FollowedRow]:
    """Return each sign of a member with what follows it."""
    found: list[FollowedRow] = []
    stop = request = None
    for row in reversed(rows):
        unnamed = request is None or UNCHECKED_GENERATION in (row.generation, request.generation)
        alive = request is not None and (unnamed or row.generation == request.generation)
        found.append(FollowedRow(row, stop, alive))
        if row.sign != Sign.EXPIRED:
            stop = row
        if row.is_request:
            request = row
    found.reverse()
    return found


def find_silences(signs: SignsOfLife, member: int, rows: Sequence[FollowedRow]) -> Iterator[MemberSilence]:
    """Yield every silence of a member, also those that lasted no longer than a heartbeat interval.

    Args:
        signs: every line of the log.
        rows: what `followed` returned for it.
    """
    phases = signs.phases[signs.members[member][0]]
    is_removed = False
    for row, stop, alive in rows:
        if row.sign in _REMOVES:
            # A group with joins does not readmit a member that it has removed by a mere heartbeat.
            is_removed |= phases.must_join(row.t_ms)
            continue
        is_removed &= row.sign != Sign.JOIN
        if is_removed or not row.starts_session or _joined_unseen(row, stop, phases):
            continue
        start_ms = _released_ms(phases, row) if row.sign in (Sign.JOIN, Sign.SYNC) else row.t_ms
        silence = MemberSilence(member, row.t_ms, start_ms, OPEN if stop is None else stop.t_ms, alive)
        yield from _pieces(silence, phases) if phases.absences else (silence,)


def _joined_unseen(row: SignRow, stop: SignRow | None, phases: ReplayedPhases) -> bool:
    """Return whether a silence ends in a later generation of a group whose joins are not in the log.

    The member has joined in between, at an unknown time.
    """
    later = stop is not None and stop.generation > row.generation != UNCHECKED_GENERATION
    return later and not phases.is_classic(row.t_ms)


def _released_ms(phases: ReplayedPhases, row: SignRow) -> int:
    """Return when a join or a sync was answered; `OPEN` if it never was."""
    waits_in = Kind.REBALANCE_STARTED if row.sign == Sign.JOIN else Kind.REBALANCE_COMPLETED
    at = phases.latest(row.t_ms)
    if at == 0 or phases.begins[at - 1][1] is not waits_in:
        return row.t_ms
    return next((begin_ms for begin_ms, kind in phases.begins[at:] if kind is not waits_in), OPEN)


def _pieces(silence: MemberSilence, phases: ReplayedPhases) -> Iterator[MemberSilence]:
    """Stop the timer at each unload of the group, and restart it at the load."""
    start_ms = silence.start_ms
    for unloaded_ms, loaded_ms in phases.absences:
        back_ms = OPEN if loaded_ms is None else loaded_ms
        if start_ms < back_ms and unloaded_ms < silence.stop_ms:
            if start_ms < unloaded_ms:
                yield silence._replace(start_ms=start_ms, stop_ms=unloaded_ms)
            start_ms = back_ms
    yield silence._replace(start_ms=start_ms)
