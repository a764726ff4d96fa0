"""Matching of written rows with derived verdicts: a row without its verdict is a finding, and so is the reverse.

Rows and derived verdicts may come in any order. A row is false if everything up to its moment was decided and no
verdict matches it. A verdict that has no row at the end of the audit is missed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Final

from heartwheel.proof.audit.config import AuditConfig
from heartwheel.proof.audit.derived import Derived, Row, differences, id_of, time_of
from heartwheel.proof.audit.findings import FindingKind
from heartwheel.proof.audit.match.rows import (
    EXPIRATIONS,
    TRIGGERS,
    claim_of,
    content_of,
    member_of,
    own_differences,
    subject_derived,
    subject_of,
)
from heartwheel.proof.audit.pace import Candidate
from heartwheel.proof.audit.recent import key_of
from heartwheel.proof.audit.state import AuditState, GroupNotes, Noticed, OpenRow, Place
from heartwheel.wire.verdict_rows import ExpirationRow

_CAUSED_BY_EXPIRY: Final = frozenset({"member_expired", "sync_expired"})


class Matcher:
    """The matcher of rows and derived verdicts.

    Args:
        state: the audit's state; changed in place.
        is_stray: returns whether the order of a group's records is not defined.
    """

    def __init__(self, state: AuditState, config: AuditConfig, is_stray: Callable[[GroupNotes], bool]) -> None:
        self._state = state
        self._config = config
        self._is_stray = is_stray
        self._by_subject: dict[int, str] | None = None
        """Ids of derived verdicts by their subject; built when needed, and dropped when another verdict is derived."""

    # Derived verdicts

    def derive(self, verdict: Derived) -> None:
        """Add a verdict that the job must write."""
        state, notes = self._state, self._state.groups[verdict.group_id]
        self._state.count("derived")
        if notes.unknown:
            return
        id_ = verdict.id()
        if id_ in state.derived or key_of(id_) in state.confirmed:
            # A load can reset a group so that the same happens again, even in the same millisecond.
            state.twins.setdefault(id_, []).append(verdict)
            return
        rows = state.open_rows.pop(id_, None)
        if rows is None:
            state.derived[id_] = verdict
            self._by_subject = None
            return
        self._confirm(id_, verdict, rows[0])
        for row in rows[1:]:
            self._judge_repeated(id_, row)

    # Written rows

    def take(self, row: OpenRow) -> None:
        """Read a row of the expirations or triggers topic."""
        self._state.count("written")
        written, state = row.row, self._state
        expected_id = id_of(written)
        if written.id != expected_id:
            self._excuse(expected_id, written.id)
            self._find(FindingKind.FORGED, row, f"its id is {written.id}, its content gives {expected_id or 'none'}")
            return
        verdict = state.derived.pop(written.id, None)
        if verdict is not None:
            self._confirm(written.id, verdict, row)
        elif key_of(written.id) in state.confirmed:
            self._judge_repeated(written.id, row)
        else:
            known = state.open_rows.setdefault(written.id, [])
            known.append(row)
            if len(known) == 1:
                heapq.heappush(state.open_times, (time_of(written), written.id))

    def settle(self, least_ms: int, may_judge: Callable[[str, int], bool]) -> None:
        """Judge the rows whose moment has passed without a verdict.

        Args:
            least_ms: every record before then was applied to its group, and every timer before then has run; epoch ms.
            may_judge: returns for a group and a moment (epoch ms) whether that holds for the group.
        """
        times, state = self._state.open_times, self._state
        later = []
        while times and times[0][0] < least_ms:
            time_ms, id_ = heapq.heappop(times)
            rows = state.open_rows.get(id_)
            if rows and not may_judge(rows[0].row.group_id, time_ms):
                later.append((time_ms, id_))
            else:
                self._judge_open(id_)
        for one in later:
            heapq.heappush(times, one)

    def finish(self, due_ms: Callable[[str], int], known_ms: Callable[[str], int]) -> None:
        """Judge the rows without a verdict, and the verdicts that were never written, up to the time of each group.

        Args:
            due_ms: returns up to when everything about a group is decided and must be written, epoch ms.
            known_ms: returns up to which append time the job has read the records that decide a group, epoch ms.
        """
        state, tick = self._state, self._config.tick_ms
        for id_, rows in list(state.open_rows.items()):
            written = rows[0].row
            if time_of(written) <= due_ms(written.group_id):
                self._judge_open(id_)
            else:
                self._state.count("pending", len(rows))
        for id_, verdict in state.derived.items():
            noticed_ms = -(-verdict.time_ms // tick) * tick
            if noticed_ms > due_ms(verdict.group_id) or verdict.ready_ms > known_ms(verdict.group_id):
                self._state.count("pending")
            elif key_of(id_) not in state.excused:
                self._find_missed(verdict)

    def _judge_open(self, id_: str) -> None:
        for number, row in enumerate(self._state.open_rows.pop(id_, ())):
            if number:
                self._state.count("repeated")
            else:
                self._judge_underived(row)

    # One row

    def _confirm(self, id_: str, verdict: Derived, row: OpenRow) -> None:
        state, notes, written = self._state, self._state.groups.get(verdict.group_id), row.row
        state.confirmed.add(key_of(id_), content_of(written))
        state.silences.add(subject_of(written))
        wrong = differences(verdict, written) + own_differences(written)
        if wrong and not self._is_a_twin(id_, written):
            self._find(FindingKind.WRONG, row, "; ".join(wrong))
            return
        self._state.count("confirmed")
        state.pace.known(
            Candidate(
                time_of(written),
                verdict.ready_ms,
                row.append_ms,
                row.topic,
                row.partition,
                row.offset,
                written.group_id,
                member_of(written),
            ),
            written.shard,
        )
        if notes is not None:
            self._check_order(notes, verdict, row)

    def _check_order(self, notes: GroupNotes, verdict: Derived, row: OpenRow) -> None:
        """Check that the rows of a group are in the order of their verdicts (P4)."""
        last, order = notes.places.get(row.topic), verdict.order
        same = last is not None and last.partition == row.partition
        if last is not None and same and (order - last.order) * (row.offset - last.offset) < 0:
            side = "after" if order < last.order else "before"
            self._find(FindingKind.OUT_OF_ORDER, row, f"it is {side} {last.partition}@{last.offset}")
            return
        if last is None or order > last.order:
            notes.places[row.topic] = Place(order, row.partition, row.offset)
        self._check_pair(notes, verdict, row)

    def _check_pair(self, notes: GroupNotes, verdict: Derived, row: OpenRow) -> None:
        """Check that an expiry was not detected after the rebalance that it triggers, which is in the other topic.

        Both come from one timer, so one trigger detects both. No other two rows of two topics have a defined order.
        """
        is_expiry = verdict.type == "expired"
        if not is_expiry and verdict.facts.get("cause") not in _CAUSED_BY_EXPIRY:
            return
        noticed = Noticed(verdict.order, row.row.detected_ms)
        other = notes.pairs.get(TRIGGERS if is_expiry else EXPIRATIONS)
        notes.pairs[row.topic] = noticed
        if other is None or abs(other.order - noticed.order) != 1:
            return
        expiry, rebalance = (noticed, other) if is_expiry else (other, noticed)
        if expiry.order < rebalance.order and expiry.detected_ms > rebalance.detected_ms:
            words = f"the expiry was detected at {expiry.detected_ms}, its rebalance at {rebalance.detected_ms}"
            self._find(FindingKind.OUT_OF_ORDER, row, words)

    def _judge_repeated(self, id_: str, row: OpenRow) -> None:
        """Judge a row whose id was read before."""
        if self._state.confirmed.get(key_of(id_)) == content_of(row.row) or self._is_a_twin(id_, row.row):
            self._state.count("repeated")
        else:
            self._find(FindingKind.DUPLICATE, row, f"another row with the id {id_} has other content")

    def _is_a_twin(self, id_: str, written: Row) -> bool:
        return any(not differences(twin, written) for twin in self._state.twins.get(id_, ()))

    def _judge_underived(self, row: OpenRow) -> None:
        state, written = self._state, row.row
        notes = state.groups.get(written.group_id)
        if (notes is not None and notes.unknown) or (notes is None and state.begins):
            self._state.count("unjudged")
        elif unknown_name := self._unknown_name(written):
            self._find(FindingKind.FORGED, row, unknown_name)
        elif subject_of(written) in state.silences:
            self._find(FindingKind.DUPLICATE, row, "another row has the same subject and another id")
        else:
            self._judge_false(row)

    def _unknown_name(self, written: Row) -> str:
        """Return which group or member of a row is not in the log; empty if both are, or may have been forgotten."""
        seen = self._state.seen
        if seen.forgot:
            return ""
        if key_of(written.group_id) not in seen:
            return f"group {written.group_id} is not in the log"
        if isinstance(written, ExpirationRow) and key_of(written.group_id, written.member_id) not in seen:
            return f"member {written.member_id} of group {written.group_id} is not in the log"
        return ""

    def _judge_false(self, row: OpenRow) -> None:
        """Judge a row without a verdict; a missed verdict with the same subject may be what it should have been."""
        state, written = self._state, row.row
        if self._by_subject is None:
            self._by_subject = {subject_derived(verdict): id_ for id_, verdict in reversed(state.derived.items())}
        expected_id = self._by_subject.get(subject_of(written), "")
        verdict = state.derived.pop(expected_id, None)
        if verdict is not None:
            state.confirmed.add(key_of(expected_id), 0)
            self._find(FindingKind.WRONG, row, "; ".join(differences(verdict, written)))
        elif state.confirmed.forgot:
            self._state.count("unjudged")  # it may repeat a row that was confirmed and forgotten
        else:
            self._find(FindingKind.FALSE, row, claim_of(written))

    def _excuse(self, *ids: str) -> None:
        for id_ in ids:
            self._state.excused.add(key_of(id_))

    # Findings

    def _find(self, kind: FindingKind, row: OpenRow, detail: str) -> None:
        written = row.row
        self.note(
            kind,
            written.group_id,
            topic=row.topic,
            partition=row.partition,
            offset=row.offset,
            member_id=member_of(written),
            time_ms=time_of(written),
            detail=detail,
        )

    def _find_missed(self, verdict: Derived) -> None:
        member = verdict.facts.get("member_id")
        self.note(
            FindingKind.MISSED,
            verdict.group_id,
            topic="heartbeats",
            member_id=member if isinstance(member, str) else None,
            time_ms=verdict.time_ms,
            detail=f"{verdict.type} {verdict.facts.get('reason')}, id {verdict.id()}",
        )

    def note(self, kind: FindingKind, group_id: str, **fields: Any) -> None:
        """Add a finding about a group, or count it as unsettled if the order of the group's records is not defined."""
        notes = self._state.groups.get(group_id)
        if (
            notes is not None
            and not self._config.judge_strays
            and self._is_stray(notes)
            and kind is not FindingKind.FORGED
        ):
            self._state.ledger.unsettled += 1
        else:
            self._state.ledger.add(kind, group_id=group_id, **fields)
