"""When which canary beats: one group for each shard, all of them shifted against each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

from heartwheel.settings import Settings
from heartwheel.wire.partitioner import shard_of

_BEATS_A_SESSION: Final = 6
_BEATS_BETWEEN_SILENCES: Final = 4


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One group of the canary.

    Args:
        group_id: its name, chosen so that the engine's own hash puts it into `shard`.
        shift_ms: how far into its period it starts, ms.
    """

    group_id: str
    shard: int
    shift_ms: int


@dataclass(frozen=True, kw_only=True)
class CanaryPlan:
    """The schedule of a canary.

    Args:
        probes: its groups, one for each shard.
        beat_ms: time between two heartbeats, ms.
        session_ms: session timeout that its members ask for, ms.
        silent_ms: how long a member is silent, ms; longer than the session, so it must be expired.
        period_ms: from one silence of a member to the next, ms.
    """

    probes: tuple[Probe, ...]
    beat_ms: int
    session_ms: int
    silent_ms: int
    period_ms: int

    def talks(self, probe: Probe, at_ms: int) -> bool:
        """Return whether a member beats.

        Args:
            at_ms: time since the start, ms.
        """
        return (at_ms + probe.shift_ms) % self.period_ms < self.period_ms - self.silent_ms


def plan_of(settings: Settings) -> CanaryPlan:
    """Make the schedule that the configuration asks for.

    A session is the shortest that the engine accepts, so that verdicts come soon, and six heartbeats at least. It is
    silent for two heartbeats more, then comes back: whether the engine has noticed by then must not matter. Where a
    period of the configuration is too short for that, it is as short as can be.
    """
    canary, beat_ms = settings.canary, settings.canary.heartbeat_interval_ms
    session_ms = max(settings.coordinator.group_min_session_timeout_ms, _BEATS_A_SESSION * beat_ms)
    silent_ms = session_ms + 2 * beat_ms
    period_ms = max(canary.period_ms, silent_ms + _BEATS_BETWEEN_SILENCES * beat_ms)
    groups = groups_of(canary.group_prefix, settings.engine.shards)
    shifts = (period_ms * shard // len(groups) for shard in range(len(groups)))
    probes = tuple(
        Probe(group_id=group, shard=shard, shift_ms=shift)
        for shard, (group, shift) in enumerate(zip(groups, shifts, strict=True))
    )
    return CanaryPlan(probes=probes, beat_ms=beat_ms, session_ms=session_ms, silent_ms=silent_ms, period_ms=period_ms)


def groups_of(prefix: str, shards: int) -> list[str]:
    """Find a group name for each shard, always the same ones.

    Args:
        prefix: what the names begin with.

    Returns:
        The names, by shard.
    """
    found: dict[int, str] = {}
    for name in _names(prefix):
        found.setdefault(shard_of(name, shards), name)
        if len(found) == shards:
            break
    return [found[shard] for shard in range(shards)]


def _names(prefix: str) -> Iterator[str]:
    return (f"{prefix}-{number}" for number in count(1))
