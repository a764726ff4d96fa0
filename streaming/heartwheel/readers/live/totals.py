"""Totals over all shards, from their newest reports."""

from __future__ import annotations

from typing import NamedTuple

from heartwheel.readers.live.group_entry import GroupEntry
from heartwheel.readers.live.picture import Picture


class Totals(NamedTuple):
    """Totals over all shards.

    Args:
        members: how many, not counting hidden groups.
        groups: the number of groups, not counting hidden ones.
        clock_ms: up to where every shard has fired its timers, epoch ms; -1 before all have reported.
    """

    members: int
    groups: int
    clock_ms: int


def totals_of(picture: Picture, *, shards: int, hidden: list[GroupEntry]) -> Totals:
    """Return the sums of the shards' reports; hold the lock during that.

    Args:
        hidden: groups that do not count, such as the canary's.
    """
    rows = picture.status.values()
    return Totals(
        # Reports and groups are from slightly different moments.
        members=max(0, sum(row.members for row in rows) - sum(entry.members or 0 for entry in hidden)),
        groups=max(0, sum(row.groups for row in rows) - len(hidden)),
        clock_ms=min(row.clock_ms for row in rows) if rows and len(rows) >= shards else -1,
    )
