"""What all shards together have, by their newest reports."""

from __future__ import annotations

from typing import NamedTuple

from heartwheel.live.group_index import GroupEntry
from heartwheel.live.picture import Picture


class Totals(NamedTuple):
    """How much all shards have, and how far they have come.

    Args:
        members: how many, those of hidden groups left out.
        groups: likewise.
        clock_ms: up to where every shard has fired its timers, epoch ms; -1 before all have reported.
    """

    members: int
    groups: int
    clock_ms: int


def totals_of(picture: Picture, *, shards: int, hidden: list[GroupEntry]) -> Totals:
    """Add up what the shards report; hold the lock meanwhile.

    Args:
        picture: what the topics say.
        shards: how many shards report.
        hidden: groups that do not count, such as the canary's.
    """
    rows = picture.status.values()
    return Totals(
        # Reports and groups are of moments close by, and not of the same one.
        members=max(0, sum(row.members for row in rows) - sum(entry.members or 0 for entry in hidden)),
        groups=max(0, sum(row.groups for row in rows) - len(hidden)),
        clock_ms=min(row.clock_ms for row in rows) if rows and len(rows) >= shards else -1,
    )
