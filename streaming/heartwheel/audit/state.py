"""All that an audit knows between two records: it can be written down and read again."""

from __future__ import annotations

import msgspec

from heartwheel.audit.clocks import Clocks
from heartwheel.audit.config import AuditConfig
from heartwheel.audit.derived import Derived
from heartwheel.audit.fed import Source
from heartwheel.audit.ledger import Ledger
from heartwheel.audit.pace import Pace
from heartwheel.audit.partitions import Partition
from heartwheel.audit.recent import Recent
from heartwheel.audit.rules.model import Group
from heartwheel.wire.verdicts import ExpirationRow, TriggerRow

FORMAT = 4
"""The version of what is written down."""


class Place(msgspec.Struct, frozen=True):
    """Hold where the newest row of a group is that was confirmed, in one topic."""

    order: int
    partition: int
    offset: int


class Noticed(msgspec.Struct, frozen=True):
    """Hold the order of a verdict, and the timestamp of the trigger that noticed it, epoch ms."""

    order: int
    detected_ms: int


class Waiting(msgspec.Struct, frozen=True):
    """Hold where a record stands: its effective time (epoch ms), its partition or its feed's source, its offset.

    The time of an event that a feed passes on is the one that the feed says.
    """

    time_ms: int
    partition: int
    offset: int


class Held(msgspec.Struct):
    """Hold one group and what the audit notes about it.

    Args:
        group: the group by the rules.
        hash: of its id, by which clients choose its partition; -1 until it is needed.
        parts: the partitions, or the sources, where its records are, in the order in which that was found.
        seen: where records of it were applied since it began, so that an outage there is one of its own.
        filed: the earliest moment under which it is filed to be run, by partition or source, epoch ms.
        waiting: (time, 0, partition, offset, value) of records, (begin, 1, partition, end, nothing) of outages, which
            something unread may come before, as a heap; epoch ms.
        newest_ms: time of the newest event that was applied of those that feeds pass on, epoch ms.
        newest_from: the source of that event.
        missed: the source of what a feed of it has missed last, and its begin and end, epoch ms.
        unknown: whether it may have begun before the log does.
        places: where its newest confirmed row is, by topic.
        pairs: when the newest confirmed expiry, and the newest rebalance that an expiry triggers, were noticed.
    """

    group: Group
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
    """Hold a row that was written and is not derived yet."""

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
        assert row is not None, "an open row holds one of the two"  # noqa: S101 - how it is made
        return row


class OpenReject(msgspec.Struct, frozen=True):
    """Hold a reject that was read and not found in the log, or found and not read."""

    cause: str
    append_ms: int
    row_partition: int = -1
    row_offset: int = -1
    group_id: str | None = None


class Begin(msgspec.Struct, frozen=True):
    """Hold where a partition begins whose first records are gone."""

    append_ms: int


class State(msgspec.Struct):
    """Hold an audit.

    Args:
        config: what the audited job was set to.
        ledger: the findings.
        pace: lateness.
        format: version of this.
        groups: by id.
        partitions: the time of each.
        sources: the time of each feed in each partition, in the order in which they were met.
        partitions_max: how many it has; a tick that names more is forged.
        partition_counts: how many partitions the topic had, ever more of them.
        named: how many the newest tick names that names more than those before.
        former: how many were named before that, while feeds may be yet to hear of the growth.
        grown_ms: when the newest partition was heard of, or first read, epoch ms.
        derived: verdicts that are not written yet, by id.
        twins: further verdicts with an id that another one has.
        open_rows: rows that are not derived yet, by id.
        open_times: (time, id) of those rows, as a heap.
        confirmed: what was written of each id that was confirmed.
        silences: what each confirmed verdict was about.
        excused: ids of verdicts whose row was forged: they are not missed on top of that.
        seen: groups and members that were named in the log.
        expected_rejects: records that cannot be used and are not on the rejects topic yet.
        open_rejects: rejects of records that were not read yet.
        settled_rejects: rejects that were found right.
        clocks: how far each shard has come.
        begins: partitions whose first records are gone.
        unread: offsets of the heartbeat topic that no reader can read, the first and the last of each stretch.
        positions: the next offset of each partition of each topic, kept for the reader.
        settled_ms: when rows were last judged, epoch ms.
        counts: by name, of what the report tells.
    """

    config: AuditConfig
    ledger: Ledger
    pace: Pace
    confirmed: Recent
    silences: Recent
    excused: Recent
    seen: Recent
    settled_rejects: Recent
    format: int = FORMAT
    groups: dict[str, Held] = {}
    partitions: dict[int, Partition] = {}
    sources: list[Source] = []
    partitions_max: int = 2**31
    partition_counts: list[int] = msgspec.field(default_factory=lambda: [0])
    named: int = 0
    former: list[int] = []
    grown_ms: int = -1
    derived: dict[str, Derived] = {}
    twins: dict[str, list[Derived]] = {}
    open_rows: dict[str, list[OpenRow]] = {}
    open_times: list[tuple[int, str]] = []
    expected_rejects: dict[int, dict[int, OpenReject]] = {}
    open_rejects: dict[int, dict[int, OpenReject]] = {}
    clocks: Clocks = msgspec.field(default_factory=Clocks)
    begins: dict[int, Begin] = {}
    unread: dict[int, list[tuple[int, int]]] = {}
    positions: dict[str, dict[int, int]] = {}
    settled_ms: int = -1
    counts: dict[str, int] = {}
