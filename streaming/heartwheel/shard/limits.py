"""The limits of a shard (promise P6): what is over them is refused by name and counted, never silently dropped."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ShardLimits:
    """Bound what one shard holds and writes.

    Args:
        members_max: most members of all groups together.
        members_per_group_max: most members of one group.
        groups_max: most groups, those without members counted too.
        verdicts_max: verdicts after which a batch starts no further group that is due only by the clock; those groups
            are decided in the next batch, with the same verdicts.
        state_bytes_max: size of the encoded state, bytes, from which on no batch brings a new member or group; those
            that are there go on. Ids and metadata may be long, so that a count of members alone bounds no memory. The
            heartbeats that are kept (`heartwheel.shard.heartbeats`) have a bound of their own, and do not count.
    """

    members_max: int = 250_000
    members_per_group_max: int = 100_000
    groups_max: int = 250_000
    verdicts_max: int = 100_000
    state_bytes_max: int = 256 << 20
