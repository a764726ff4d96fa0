"""One group of the index: its newest rebalances and expirations, and what is known of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from heartwheel.readers.live.expiration import FROM_A_LOG, Expiration
from heartwheel.readers.live.logged import LoggedLine
from heartwheel.wire.status import ListedGroup, RebalancingGroup
from heartwheel.wire.verdict_rows import TriggerRow

_NO_ROWS: Final[Sequence[Any]] = ()
_FEW_MAX: Final = 64
"""Most rows in a list: a deque takes as much with one, and nearly all groups have few."""

Row = TypeVar("Row")


def with_row(rows: Sequence[Row], row: Row) -> Sequence[Row]:
    """Return rows with one more at the end."""
    if isinstance(rows, deque):
        rows.append(row)
        return rows
    if len(rows) >= _FEW_MAX:
        return deque((*rows, row))
    return [*rows, row]


def without_first(rows: Sequence[Row]) -> Sequence[Row]:
    """Return rows without the first one."""
    if isinstance(rows, deque) and len(rows) > 1:
        rows.popleft()
        return rows
    return rows[1:] if len(rows) > 1 else _NO_ROWS


class GroupEntry:
    """The rebalances and expirations of one group, the oldest first.

    Args:
        group_id: the group.
        expected: how many members it should have; `None` if that is not configured.
    """

    __slots__ = (
        "begun",
        "came",
        "emptied_by",
        "expected",
        "expirations",
        "group_id",
        "is_fresh",
        "judge",
        "leader_seen",
        "lines",
        "listed",
        "listed_shard",
        "logged_troubles",
        "newest",
        "of_consumers",
        "running",
        "triggers",
        "version",
    )

    def __init__(self, group_id: str, expected: int | None = None) -> None:
        self.group_id, self.expected = group_id, expected
        self.triggers: Sequence[TriggerRow] = _NO_ROWS
        self.newest: TriggerRow | None = None
        """The newest row of the triggers topic; kept even when the others are too old."""
        self.came: tuple[TriggerRow, list[Expiration]] | None = None
        """The newest row that names members that arrived, and the expirations that ended with it."""
        self.begun: TriggerRow | None = None
        """The newest row that began a rebalance."""
        self.leader_seen: bool | None = None
        """Whether the newest completed rebalance had a leader, as only those of Kafka's protocol have."""
        self.is_fresh = False
        """Whether that rebalance is completed, and no status row of the shard shows yet whether it is over."""
        self.running: RebalancingGroup | None = None
        """The state of the running rebalance, by the newest status row of the shard; absent if none runs."""
        self.listed: ListedGroup | None = None
        """The group as a status row last listed it."""
        self.listed_shard = 0
        self.expirations: Sequence[Expiration] = _NO_ROWS
        self.emptied_by: Expiration | None = None
        """The expiration that took the last member of the group by its newest row; `None` if that member left."""
        self.lines: Sequence[LoggedLine] = _NO_ROWS
        """The newest other lines of a broker's log."""
        self.judge: Callable[[str], list[str]] | None = None
        """Returns the verdict of a broker's log on a group; `None` if no log feeds it."""
        self.logged_troubles: Sequence[Any] | None = None
        """What was wrong with it at any time of a broker's log; `None` if no log feeds it."""
        self.of_consumers = False
        """Whether it appears only in consumers' own logs: no line of a coordinator, and no engine."""
        self.version = 0
        """Rises with every change; see `GroupIndex.version`."""

    @property
    def verdict(self) -> list[str]:
        """The verdict of a broker's log, in sentences; made when it is asked for, as ten thousand take 10 MB."""
        return [] if self.judge is None else self.judge(self.group_id)

    @property
    def members(self) -> int | None:
        """The number of members; `None` if it is not known."""
        if self.newest is not None:
            return self.newest.member_count
        return None if self.listed is None else self.listed.members

    @property
    def shard(self) -> int | None:
        """The shard of the group."""
        newest = self.newest or (self.expirations[-1] if self.expirations else None)
        if newest is None:
            return None if self.listed is None else self.listed_shard
        return newest.shard

    def expired(self, expiration: Expiration) -> None:
        """Add an expiration."""
        self.expirations = with_row(self.expirations, expiration)
        if self.newest is not None and _is_emptied_by(self.newest, expiration):
            self.emptied_by = expiration

    def triggered(self, row: TriggerRow) -> None:
        """Add a row of the triggers topic."""
        self.triggers = with_row(self.triggers, row)
        self.newest = row
        self.emptied_by = next((each for each in reversed(self.expirations) if _is_emptied_by(row, each)), None)
        # An earlier status row is out of date; one of the same batch comes again, or has come already.
        self.running, self.is_fresh = None, False
        if row.type == "rebalance_triggered":
            self.begun = row
        if row.type == "rebalance_completed" and (row.leader is not None or row.shard != FROM_A_LOG):
            self.leader_seen = row.leader is not None


def _is_emptied_by(row: TriggerRow, expiration: Expiration) -> bool:
    """Return whether a row shows that a group has no members since an expiration."""
    if row.member_count or expiration.out_ms != row.time_ms:
        return False
    # Another member may have left in the same millisecond; only a row of a classic group may name no member.
    return not row.removed_count or expiration.member_id in row.removed
