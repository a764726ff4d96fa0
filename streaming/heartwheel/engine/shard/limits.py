"""The limits of a shard (promise P6): a record over them is refused by name and counted, never silently dropped."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ShardLimits:
    """The limits of what one shard holds and writes.

    Args:
        members_max: most members of all groups together.
        groups_max: most groups, those without members counted too.
        verdicts_max: verdicts after which a batch starts no further group that is due only by the clock. Those groups
            are decided in the next batch, with the same verdicts.
        state_bytes_max: size of the encoded state, bytes, from which on no batch adds a member or group; the present
            ones continue. Ids and metadata may be long, so a count of members alone does not bound the memory. The
            heartbeats that are kept (`heartwheel.engine.shard.heartbeats`) have a limit of their own and do not count.
    """

    members_max: int = 250_000
    members_per_group_max: int = 100_000
    groups_max: int = 250_000
    verdicts_max: int = 100_000
    state_bytes_max: int = 256 << 20
