"""Hold all that the engine wrote against what the audit's rules derive from the log: of every group, every verdict.

The judge of presence groups (`heartwheel.proof.members.judge`) says their rule in a few lines. This one knows Kafka's
protocol too: joins, syncs, static members and rebalances. It runs the rules of the audit, which are none of the
engine's.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from heartwheel.kafka.readback import LogRecord
from heartwheel.proof.audit.config import AuditConfig
from heartwheel.proof.audit.derived import Derived, Row, differences, time_of
from heartwheel.proof.audit.order import in_log_order
from heartwheel.proof.audit.rules.groups import advance, apply
from heartwheel.proof.audit.rules.model import AuditedGroup
from heartwheel.wire.events import RejectedError
from heartwheel.wire.requests import decode_request
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

EXAMPLES_MAX: Final = 20
"""Most faults of a kind that are named."""

_EXPIRED: Final = "expired"
_BEGUN: Final = "rebalance_triggered"


class VerdictFault(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict that was written and is false, or was not written; `detail` says what is wrong."""

    type: str
    group_id: str
    member_id: str | None
    time_ms: int
    detail: str = ""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison of rows with derived verdicts came to.

    Args:
        expected: verdicts that had to be written by the time of judgement.
        written: those that were.
        false: rows that the log does not give, and rows that say something else of what it gives.
        missed: expected verdicts that are not there.
        examples_false: some of the false ones.
        examples_missed: some of the missed ones.
    """

    expected: int
    written: int
    false: int
    missed: int
    examples_false: list[VerdictFault]
    examples_missed: list[VerdictFault]


class VerdictsJudged(msgspec.Struct, frozen=True, kw_only=True):
    """What all rows came to.

    Args:
        fed: good records in the heartbeat topic.
        expirations: of members of classic groups.
        rebalances: rows about rebalances of classic groups.
        begun: how many rebalances began.
        arrivals: rows about who came to presence groups and went.
    """

    fed: int
    expirations: Compared
    rebalances: Compared
    begun: int
    arrivals: Compared

    @property
    def ok(self) -> bool:
        """Return whether every verdict was written, and nothing else."""
        return not any(each.false or each.missed for each in (self.expirations, self.rebalances, self.arrivals))


class OutputRow(msgspec.Struct, frozen=True):
    """A row of the two topics of verdicts, and when it was appended, epoch ms."""

    row: Row
    append_ms: int


class Derivation:
    """A derivation of every verdict of a log.

    Args:
        config: what the job was set to.
        left_out: what the names of groups begin with that are not judged; empty for none.
    """

    def __init__(self, config: AuditConfig, *, left_out: str = "") -> None:
        self._config, self._left_out = config, left_out
        self._groups: dict[str, AuditedGroup] = {}
        self._said: list[Derived] = []
        self.fed = 0

    def is_judged(self, group_id: str) -> bool:
        """Return whether a group is one of those that are judged."""
        return not (self._left_out and group_id.startswith(self._left_out))

    def read(self, records: Sequence[LogRecord]) -> None:
        """Take the whole heartbeat topic."""
        partitions: dict[int, list[LogRecord]] = collections.defaultdict(list)
        for record in records:
            partitions[record.partition].append(record)
        for record in in_log_order([partitions[number] for number in sorted(partitions)]):
            self._take(record)

    def _take(self, record: LogRecord) -> None:
        try:
            event = decode_request(record.value, size_max=self._config.value_bytes_max)
        except RejectedError:
            return
        if not self.is_judged(event.group_id):
            return
        self.fed += 1
        group = self._groups.setdefault(event.group_id, AuditedGroup(event.group_id))
        apply(group, event, record.append_ms, self._config, self._said)

    def until(self, clock_ms: int) -> dict[str, Derived]:
        """Advance the time, and return all verdicts by the id that their rows must have.

        Args:
            clock_ms: up to when, epoch ms; what the records themselves have passed is there anyway.
        """
        for group in self._groups.values():
            advance(group, clock_ms, self._config, self._said)
        return {each.id(): each for each in self._said}


def judge_verdicts(
    derivation: Derivation, written: Iterable[OutputRow], *, until_ms: int, is_presence: Callable[[str], bool]
) -> VerdictsJudged:
    """Compare what was written with what is derived.

    Args:
        derivation: of the heartbeat topic, which was read after the verdicts.
        written: rows of both topics, in the order of their partitions.
        until_ms: verdicts that become true later may still be under way and are not missed, epoch ms.
        is_presence: tells of a group whether its members only send heartbeats; those have a judge of their own for
            their expirations.
    """
    rows: dict[str, OutputRow] = {}
    for each in written:
        if derivation.is_judged(each.row.group_id):
            rows.setdefault(each.row.id, each)  # at least once is what is promised
    last_ms = max((time_of(each.row) for each in rows.values()), default=until_ms)
    derived = derivation.until(max(until_ms, last_ms))

    def compare(*, expired: bool, of_presence: bool) -> Compared:
        def is_wanted(group_id: str, type_: str) -> bool:
            return (type_ == _EXPIRED) is expired and is_presence(group_id) is of_presence

        wanted = {id_: one for id_, one in derived.items() if is_wanted(one.group_id, one.type)}
        found = {id_: one for id_, one in rows.items() if is_wanted(one.row.group_id, _type(one.row))}
        return _compared(wanted, found, until_ms)

    return VerdictsJudged(
        fed=derivation.fed,
        expirations=compare(expired=True, of_presence=False),
        rebalances=compare(expired=False, of_presence=False),
        begun=sum(one.type == _BEGUN and not is_presence(one.group_id) for one in derived.values()),
        arrivals=compare(expired=False, of_presence=True),
    )


def _compared(derived: dict[str, Derived], written: dict[str, OutputRow], until_ms: int) -> Compared:
    due = {id_ for id_, one in derived.items() if one.time_ms <= until_ms}
    false = list(_false(derived, written))
    missed = sorted(due - written.keys(), key=lambda id_: derived[id_].time_ms)
    return Compared(
        expected=len(due),
        written=len(due & written.keys()),
        false=len(false),
        missed=len(missed),
        examples_false=false[:EXAMPLES_MAX],
        examples_missed=[_missed(derived[id_]) for id_ in missed[:EXAMPLES_MAX]],
    )


def _false(derived: dict[str, Derived], written: dict[str, OutputRow]) -> Iterator[VerdictFault]:
    for id_, one in written.items():
        wrong = differences(derived[id_], one.row) if id_ in derived else ["the log does not give it"]
        if wrong:
            yield _fault(one.row, "; ".join(wrong))


def _fault(row: Row, detail: str) -> VerdictFault:
    member_id = row.member_id if isinstance(row, ExpirationRow) else None
    return VerdictFault(
        type=_type(row), group_id=row.group_id, member_id=member_id, time_ms=time_of(row), detail=detail
    )


def _missed(one: Derived) -> VerdictFault:
    member_id = one.facts.get("member_id")
    return VerdictFault(
        type=one.type,
        group_id=one.group_id,
        member_id=str(member_id) if member_id else None,
        time_ms=one.time_ms,
        detail="it was never written",
    )


def _type(row: Row) -> str:
    return row.type if isinstance(row, TriggerRow) else _EXPIRED
