"""Members that were out at once: of one host, one group, or many groups, each of which has other causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from heartwheel.base.phrases import count, length
from heartwheel.wire.explained import ExplainedEvent, Happened

WITHIN_MS: Final = 15_000
"""Longest time from the first to the last of members that are out at once, ms."""

_OUTS_MAX: Final = 100_000
_INCIDENTS_MAX: Final = 100
_MEMBERS_MIN: Final = 3
_GROUPS_MIN: Final = 3
_RECENT_START_MS: Final = 180_000
_NAMED_MAX: Final = 3
_TOGETHER: Final = frozenset({Happened.EXPIRED, Happened.POLL_TIMEOUT, Happened.REMOVED_AT_REBALANCE})


class SharedIncident(msgspec.Struct, frozen=True, kw_only=True):
    """Several members that were out at once.

    Args:
        from_ms: when the first was, epoch ms.
        to_ms: when the last was, epoch ms.
        hosts: their hosts, as far as the log names them.
        words: the likely cause, in a sentence or two.
    """

    from_ms: int
    to_ms: int
    members: int
    groups: list[str]
    hosts: list[str]
    words: str


class _Out(NamedTuple):
    kind: Happened
    time_ms: int
    group_id: str
    host: str


class Together:
    """Collects the times at which members were out."""

    def __init__(self) -> None:
        self._outs: list[_Out] = []

    def add(self, event: ExplainedEvent) -> None:
        """Add a member that a timeout has removed."""
        if event.kind in _TOGETHER and len(self._outs) < _OUTS_MAX:
            host = (event.client_host or "").removeprefix("/")
            self._outs.append(_Out(event.kind, event.time_ms, event.group_id, host))

    def incidents(self, brokers: Sequence[ExplainedEvent]) -> list[SharedIncident]:
        """Return the first incidents, in the order of time."""
        found = [_incident(outs, brokers) for outs in self._clusters() if len(outs) >= _MEMBERS_MIN]
        return sorted(found, key=lambda each: each.from_ms)[:_INCIDENTS_MAX]

    def _clusters(self) -> Iterator[list[_Out]]:
        """Split the members of each kind into stretches of at most `WITHIN_MS`: another timer has another cause."""
        cluster: list[_Out] = []
        for out in sorted(self._outs):
            first = cluster[0] if cluster else out
            if out.kind is not first.kind or out.time_ms - first.time_ms > WITHIN_MS:
                yield cluster
                cluster = []
            cluster.append(out)
        yield cluster


def _incident(outs: Sequence[_Out], brokers: Sequence[ExplainedEvent]) -> SharedIncident:
    groups = list(dict.fromkeys(out.group_id for out in outs))
    hosts = list(dict.fromkeys(out.host for out in outs if out.host))
    return SharedIncident(
        from_ms=outs[0].time_ms,
        to_ms=outs[-1].time_ms,
        members=len(outs),
        groups=groups,
        hosts=hosts,
        words=" ".join([_counted(outs, groups), *_suggested(outs, groups, hosts), *_started(outs, brokers)]),
    )


def _counted(outs: Sequence[_Out], groups: Sequence[str]) -> str:
    named = ", ".join(groups[:_NAMED_MAX]) + (
        f" and {len(groups) - _NAMED_MAX} more" if len(groups) > _NAMED_MAX else ""
    )
    span = length(outs[-1].time_ms - outs[0].time_ms)
    of = f"of {count(len(groups), 'group')} ({named})" if len(groups) > 1 else f"of group {named or '(not named)'}"
    return f"{count(len(outs), 'member')} {of} were out within {span}."


def _suggested(outs: Sequence[_Out], groups: Sequence[str], hosts: Sequence[str]) -> list[str]:
    """Return where to look first, in sentences."""
    if len(hosts) == 1 and all(out.host for out in outs):
        return [f"All were at {hosts[0]}: look at that host."]
    if outs[0].kind is Happened.POLL_TIMEOUT:
        return ["Each was alive and did not poll in time: look at what they share, such as a database."]
    if len(groups) >= _GROUPS_MIN:
        return ["Several groups at once: look at the broker, the network and shared hosts before the applications."]
    if len(groups) == 1:
        return ["No other group was: look at this application, its deployment and what it depends on."]
    return []


def _started(outs: Sequence[_Out], brokers: Sequence[ExplainedEvent]) -> list[str]:
    """Return a sentence if a broker had started or stopped shortly before."""
    first_ms = outs[0].time_ms
    near = [each for each in brokers if 0 <= first_ms - each.time_ms <= _RECENT_START_MS]
    if not near:
        return []
    last = near[-1]
    did = "started" if last.kind is Happened.BROKER_STARTED else "begun to shut down"
    return [f"Broker {last.broker_id} had {did} {length(first_ms - last.time_ms)} before."]
