"""The state of an audit between two records. It can be written to a snapshot and read again."""

from __future__ import annotations

import msgspec

from heartwheel.proof.audit.config import AuditConfig
from heartwheel.proof.audit.derived import Derived
from heartwheel.proof.audit.fed import FeedSource
from heartwheel.proof.audit.ledger import Ledger
from heartwheel.proof.audit.pace import LatenessJudge
from heartwheel.proof.audit.partitions import Partition
from heartwheel.proof.audit.recent import Recent
from heartwheel.proof.audit.rules.model import AuditedGroup
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

FORMAT = 6
"""The version of the snapshot's format."""


class Place(msgspec.Struct, frozen=True):
    """The place of a group's newest confirmed row in one topic."""

    order: int
    partition: int
    offset: int


class Noticed(msgspec.Struct, frozen=True):
    """The order of a verdict, and the timestamp of the trigger that detected it, epoch ms."""

    order: int
    detected_ms: int


class RecordPlace(msgspec.Struct, frozen=True):
    """The place of a record: its effective time (epoch ms), its partition or its feed's source, and its offset.

    An event that a feed relays has the time that the feed gives.
    """

    time_ms: int
    partition: int
    offset: int


class GroupNotes(msgspec.Struct):
    """A group, and the audit's notes about its records and rows.

    Args:
        hash: hash of its id, by which clients choose its partition; -1 until it is needed.
        parts: the partitions, or the sources, of its records, in the order of their first record.
        seen: partitions or sources whose records were applied since the group began; an outage there is the group's.
        filed: the earliest moment for which it is scheduled to run, by partition or source, epoch ms.
        waiting: heap of records (time, 0, partition, offset, value) and outages (begin, 1, partition, end, nothing)
            that an unread record may come before; epoch ms.
        newest_ms: time of the newest relayed event that was applied, epoch ms.
        newest_from: the source of that event.
        missed: the last span that one of its feeds missed: source, begin and end, epoch ms.
        unknown: whether it may have begun before the log does.
        places: the place of its newest confirmed row, by topic.
        pairs: when the newest confirmed expiry, and the newest rebalance that an expiry triggers, were detected.
    """

    group: AuditedGroup
    hash: int = -1
    parts: list[int] = []
    seen: list[int] = []
    filed: dict[int, int] = {}
    waiting: list[tuple[int, int, int, int, bytes]] = []
    newest_ms: int = -1
    newest_from: int = -1
    missed: tuple[int, int, int] = (-1, -1, -1)
    unknown: bool = False
    places: dict[str, Place] = {}
    pairs: dict[str, Noticed] = {}


class OpenRow(msgspec.Struct, frozen=True):
    """A row that was written and is not derived yet."""

    topic: str
    partition: int
    offset: int
    append_ms: int
    expired: ExpirationRow | None
    trigger: TriggerRow | None

    @property
    def row(self) -> ExpirationRow | TriggerRow:
        """The row itself."""
        row = self.expired or self.trigger
        assert row is not None, "an open row has one of the two"  # noqa: S101 - `Audit.written` makes it so
        return row


class OpenReject(msgspec.Struct, frozen=True):
    """A reject that was read and has no record yet, or that is expected and was not read yet."""

    cause: str
    append_ms: int
    row_partition: int = -1
    row_offset: int = -1
    group_id: str | None = None


class Begin(msgspec.Struct, frozen=True):
    """The first append time of a partition, after its deleted records."""

    append_ms: int


class AuditState(msgspec.Struct):
    """The state of an audit.

    Args:
        partitions: the clock of each partition.
        sources: the clock of each feed, in the order in which they first appeared.
        partitions_max: the topic's number of partitions; a tick that names more is forged.
        partition_counts: the numbers of partitions that the topic has had, in growing order.
        derived: verdicts that are not written yet, by id.
        twins: further verdicts with the id of another verdict.
        open_rows: rows that are not derived yet, by id.
        open_times: heap of (time, id) of those rows.
        confirmed: a hash of the row of each confirmed id.
        silences: the subject of each confirmed verdict.
        excused: ids of verdicts whose row was forged: they do not count as missed, too.
        seen: groups and members that the log has named.
        expected_rejects: records that cannot be used and are not on the rejects topic yet.
        open_rejects: rejects of records that were not read yet.
        settled_rejects: rejects that were found right.
        begins: partitions whose first records were deleted.
        unread: offsets of the heartbeat topic that no reader can read, as (first, last) of each range.
        positions: the next offset of each partition of each topic, for the reader.
        settled_ms: when rows were last judged, epoch ms.
        counts: the report's counts, by name.
    """

    config: AuditConfig
    ledger: Ledger
    pace: LatenessJudge
    confirmed: Recent
    silences: Recent
    excused: Recent
    seen: Recent
    settled_rejects: Recent
    format: int = FORMAT
    groups: dict[str, GroupNotes] = {}
    partitions: dict[int, Partition] = {}
    sources: list[FeedSource] = []
    partitions_max: int = 2**31
    partition_counts: list[int] = msgspec.field(default_factory=lambda: [0])
    derived: dict[str, Derived] = {}
    twins: dict[str, list[Derived]] = {}
    open_rows: dict[str, list[OpenRow]] = {}
    open_times: list[tuple[int, str]] = []
    expected_rejects: dict[int, dict[int, OpenReject]] = {}
    open_rejects: dict[int, dict[int, OpenReject]] = {}
    begins: dict[int, Begin] = {}
    unread: dict[int, list[tuple[int, int]]] = {}
    positions: dict[str, dict[int, int]] = {}
    settled_ms: int = -1
    counts: dict[str, int] = {}

    def count(self, name: str, more: int = 1) -> None:
        """Raise one of the report's counts."""
        self.counts[name] = self.counts.get(name, 0) + more
