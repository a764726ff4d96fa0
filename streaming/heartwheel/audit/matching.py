"""What was written, against what is derived: each row finds its verdict, or is a finding.

Rows and derived verdicts may come in any order. A row whose moment lies behind what was swept, and that has found no
verdict by then, is false; a verdict that the end of the audit finds without a row is missed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Final

from heartwheel.audit.config import AuditConfig
from heartwheel.audit.derived import Derived, Row, differences, id_of, time_of
from heartwheel.audit.findings import FindingKind
from heartwheel.audit.pace import Candidate
from heartwheel.audit.recent import key_of
from heartwheel.audit.state import Held, Noticed, OpenRow, Place, State
from heartwheel.wire.verdicts import ExpirationRow

EXPIRATIONS: Final = "expirations"
TRIGGERS: Final = "triggers"
_CAUSED_BY_EXPIRY: Final = frozenset({"member_expired", "sync_expired"})


class Matcher:
    """Match rows with derived verdicts.

    Args:
        state: what the audit knows; changed in place.
        config: what the audited job was set to.
        is_stray: tells whether nothing promises the order of a group's records.
    """

    def __init__(self, state: State, config: AuditConfig, is_stray: Callable[[Held], bool]) -> None:
        self._state = state
        self._config = config
        self._is_stray = is_stray
        self._by_silence: dict[int, str] | None = None
        """Ids of derived verdicts by what they are about; made when it is needed, and void once more is derived."""

    # What the rules derive

    def derive(self, verdict: Derived) -> None:
        """Take a verdict that must be written."""
        state, held = self._state, self._state.groups[verdict.group_id]
        self._count("derived")
        if held.unknown:
            return
        id_ = verdict.id()
        if id_ in state.derived or key_of(id_) in state.confirmed:
            # A load can bring a group back to where the same happens again, in the same millisecond even.
            state.twins.setdefault(id_, []).append(verdict)
            return
        rows = state.open_rows.pop(id_, None)
        if rows is None:
            state.derived[id_] = verdict
            self._by_silence = None
            return
        self._confirm(id_, verdict, rows[0])
        for row in rows[1:]:
            self._again(id_, row)

    # What was written

    def take(self, row: OpenRow) -> None:
        """Take a row of the two topics of verdicts."""
        self._count("written")
        written, state = row.row, self._state
        rightly = id_of(written)
        if written.id != rightly:
            self._excuse(rightly, written.id)
            self._find(FindingKind.FORGED, row, f"its id is {written.id}, by its content {rightly or 'it has none'}")
            return
        verdict = state.derived.pop(written.id, None)
        if verdict is not None:
            self._confirm(written.id, verdict, row)
        elif key_of(written.id) in state.confirmed:
            self._again(written.id, row)
        else:
            known = state.open_rows.setdefault(written.id, [])
            known.append(row)
            if len(known) == 1:
                heapq.heappush(state.open_times, (time_of(written), written.id))

    def settle(self, least_ms: int, may_judge: Callable[[str, int], bool]) -> None:
        """Judge the rows whose moment has been passed without a verdict.

        Args:
            least_ms: every record before then was applied to its group, and every timer before then has run; epoch ms.
            may_judge: tells of a group and a moment (epoch ms) whether that holds for the group.
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
        """Judge the rows that have no verdict, and the verdicts that were never written, as far as each group goes.

        Args:
            due_ms: tells up to when all of a group is decided and must be written, epoch ms.
            known_ms: tells up to which record, by its append time, the job has read what decides a group, epoch ms.
        """
        state, tick = self._state, self._config.tick_ms
        for id_, rows in list(state.open_rows.items()):
            written = rows[0].row
            if time_of(written) <= due_ms(written.group_id):
                self._judge_open(id_)
            else:
                self._count("pending", len(rows))
        for id_, verdict in state.derived.items():
            noticed_ms = -(-verdict.time_ms // tick) * tick
            if noticed_ms > due_ms(verdict.group_id) or verdict.ready_ms > known_ms(verdict.group_id):
                self._count("pending")
            elif key_of(id_) not in state.excused:
                self._find_missed(verdict)

    def _judge_open(self, id_: str) -> None:
        for number, row in enumerate(self._state.open_rows.pop(id_, ())):
            if number:
                self._count("repeated")
            else:
                self._judge_unfounded(row)

    # One row

    def _confirm(self, id_: str, verdict: Derived, row: OpenRow) -> None:
        state, held, written = self._state, self._state.groups.get(verdict.group_id), row.row
        state.confirmed.add(key_of(id_), _content(written))
        state.silences.add(_silence_of(written))
        wrong = differences(verdict, written) + _own_differences(written)
        if wrong and not self._is_a_twin(id_, written):
            self._find(FindingKind.WRONG, row, "; ".join(wrong))
            return
        self._count("confirmed")
        state.pace.known(
            Candidate(
                time_of(written),
                verdict.ready_ms,
                row.append_ms,
                row.topic,
                row.partition,
                row.offset,
                written.group_id,
                _member_of(written),
            ),
            written.shard,
        )
        if held is not None:
            self._check_order(held, verdict, row)

    def _check_order(self, held: Held, verdict: Derived, row: OpenRow) -> None:
        """Look whether a row stands where its verdict does among those of its group (P4)."""
        last, order = held.places.get(row.topic), verdict.order
        same = last is not None and last.partition == row.partition
        if last is not None and same and (order - last.order) * (row.offset - last.offset) < 0:
            side = "after" if order < last.order else "before"
            self._find(FindingKind.OUT_OF_ORDER, row, f"it stands {side} {last.partition}@{last.offset}")
            return
        if last is None or order > last.order:
            held.places[row.topic] = Place(order, row.partition, row.offset)
        self._check_pair(held, verdict, row)

    def _check_pair(self, held: Held, verdict: Derived, row: OpenRow) -> None:
        """Look whether an expiry was noticed after the rebalance that it triggers, which is in the other topic.

        Both come from one timer, so one trigger notices both; of no other two rows of two topics the order is promised.
        """
        is_expiry = verdict.type == "expired"
        if not is_expiry and verdict.facts.get("cause") not in _CAUSED_BY_EXPIRY:
            return
        noticed = Noticed(verdict.order, row.row.detected_ms)
        other = held.pairs.get(TRIGGERS if is_expiry else EXPIRATIONS)
        held.pairs[row.topic] = noticed
        if other is None or abs(other.order - noticed.order) != 1:
            return
        expiry, rebalance = (noticed, other) if is_expiry else (other, noticed)
        if expiry.order < rebalance.order and expiry.detected_ms > rebalance.detected_ms:
            words = f"the expiry was noticed at {expiry.detected_ms}, its rebalance at {rebalance.detected_ms}"
            self._find(FindingKind.OUT_OF_ORDER, row, words)

    def _again(self, id_: str, row: OpenRow) -> None:
        """Judge a row of an id that was read before."""
        if self._state.confirmed.get(key_of(id_)) == _content(row.row) or self._is_a_twin(id_, row.row):
            self._count("repeated")
        else:
            self._find(FindingKind.DUPLICATE, row, f"another row with the id {id_} says something else")

    def _is_a_twin(self, id_: str, written: Row) -> bool:
        return any(not differences(twin, written) for twin in self._state.twins.get(id_, ()))

    def _judge_unfounded(self, row: OpenRow) -> None:
        state, written = self._state, row.row
        held = state.groups.get(written.group_id)
        if (held is not None and held.unknown) or (held is None and state.begins):
            self._count("unjudged")
        elif stranger := self._stranger(written):
            self._find(FindingKind.FORGED, row, stranger)
        elif _silence_of(written) in state.silences:
            self._find(FindingKind.DUPLICATE, row, "another row says the same with another id")
        else:
            self._unfounded(row)

    def _stranger(self, written: Row) -> str:
        """Name whom a row is about if nobody in the log is; empty if somebody is, or may have been forgotten."""
        seen = self._state.seen
        if seen.forgot:
            return ""
        if key_of(written.group_id) not in seen:
            return f"group {written.group_id} is not in the log"
        if isinstance(written, ExpirationRow) and key_of(written.group_id, written.member_id) not in seen:
            return f"member {written.member_id} of group {written.group_id} is not in the log"
        return ""

    def _unfounded(self, row: OpenRow) -> None:
        """Judge a row for which there is no verdict: a missed one about the same may be what it should have been."""
        state, written = self._state, row.row
        if self._by_silence is None:
            self._by_silence = {_silence_derived(verdict): id_ for id_, verdict in reversed(state.derived.items())}
        meant = self._by_silence.get(_silence_of(written), "")
        verdict = state.derived.pop(meant, None)
        if verdict is not None:
            state.confirmed.add(key_of(meant), 0)
            self._find(FindingKind.WRONG, row, "; ".join(differences(verdict, written)))
        elif state.confirmed.forgot:
            self._count("unjudged")  # it may repeat a row that was confirmed and forgotten
        else:
            self._find(FindingKind.FALSE, row, _claim(written))

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
            member_id=_member_of(written),
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
        """Note a finding about a group, or put it aside if nothing promises the order of the group's records."""
        held = self._state.groups.get(group_id)
        if (
            held is not None
            and not self._config.judge_strays
            and self._is_stray(held)
            and kind is not FindingKind.FORGED
        ):
            self._state.ledger.unsettled += 1
        else:
            self._state.ledger.add(kind, group_id=group_id, **fields)

    def _count(self, name: str, more: int = 1) -> None:
        counts = self._state.counts
        counts[name] = counts.get(name, 0) + more


def topic_of(row: Row) -> str:
    """Name the topic that a row belongs to."""
    return EXPIRATIONS if isinstance(row, ExpirationRow) else TRIGGERS


def _member_of(row: Row) -> str | None:
    return row.member_id if isinstance(row, ExpirationRow) else None


def _content(row: Row) -> int:
    """Hash all that a row says, but for when it was noticed, which a later trigger may tell anew."""
    facts = [getattr(row, name) for name in row.__struct_fields__ if name not in ("detected_ms", "lateness_ms")]
    return key_of(*facts)


def _silence_of(row: Row) -> int:
    """Make a key of what a row is about: the silence of a member, or the generation of a group."""
    if isinstance(row, ExpirationRow):
        return key_of("expired", row.group_id, row.member_id, row.last_seen_ms)
    return key_of(row.type, row.group_id, row.generation_id)


def _silence_derived(verdict: Derived) -> int:
    facts = verdict.facts
    if verdict.type == "expired":
        return key_of("expired", verdict.group_id, facts["member_id"], facts["last_seen_ms"])
    return key_of(verdict.type, verdict.group_id, facts["generation_id"])


def _own_differences(row: Row) -> list[str]:
    if isinstance(row, ExpirationRow) and row.lateness_ms != row.detected_ms - row.deadline_ms:
        return [f"lateness_ms is {row.lateness_ms}, by its own times {row.detected_ms - row.deadline_ms}"]
    return []


def _claim(row: Row) -> str:
    if isinstance(row, ExpirationRow):
        return f"expired, {row.reason}, deadline {row.deadline_ms}, last seen {row.last_seen_ms}"
    return f"{row.type} of generation {row.generation_id} at {row.time_ms}, {row.cause}"
