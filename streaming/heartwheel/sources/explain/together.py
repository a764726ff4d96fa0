"""Members that were out at once: of one host, one group, or many groups, each of which has other causes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from heartwheel.base.phrases import count, length
from heartwheel.wire.explained import ExplainedEvent, Happened

WITHIN_MS: Final = 15_000
"""Longest time from the first to the last of members that are out at once, ms."""

_SETTLE_AT: Final = 5_000
"""How many members wait for others before those are looked for that need not wait any longer."""

_OUTS_MAX: Final = 100_000
"""Most members that wait; of more at once several incidents are made."""

_LATER_MS: Final = 7_200_000
"""How far back in time a member may be out that is added later: a poll timeout shows when the member is back, ms."""

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
    """Collects the times at which members were out, and keeps the newest incidents.

    Args:
        brokers: starts and stops of brokers; may grow.
    """

    def __init__(self, brokers: Sequence[ExplainedEvent]) -> None:
        self._brokers = brokers
        self._outs: list[_Out] = []
        self._settle_at = _SETTLE_AT
        self._incidents: list[SharedIncident] = []
        """Those that are over."""

    def add(self, event: ExplainedEvent) -> None:
        """Add a member that a timeout has removed."""
        if event.kind not in _TOGETHER:
            return
        self._outs.append(_Out(event.kind, event.time_ms, event.group_id, (event.client_host or "").removeprefix("/")))
        if len(self._outs) > self._settle_at:
            self._settle()

    def incidents(self) -> list[SharedIncident]:
        """Return the newest incidents, in the order of time."""
        return self._newest([*self._incidents, *self._found(self._clusters())])

    def _settle(self) -> None:
        """Make incidents of those to whom nobody can be added any more, as the log is hours past them."""
        clusters = list(self._clusters())
        until_ms = max(outs[-1].time_ms for outs in clusters) - _LATER_MS
        over = clusters if len(self._outs) > _OUTS_MAX else [outs for outs in clusters if outs[-1].time_ms < until_ms]
        self._incidents = self._newest([*self._incidents, *self._found(over)])
        self._outs = (
            [] if over is clusters else [out for outs in clusters if outs[-1].time_ms >= until_ms for out in outs]
        )
        self._settle_at = max(_SETTLE_AT, 2 * len(self._outs))

    def _found(self, clusters: Iterable[list[_Out]]) -> Iterator[SharedIncident]:
        return (_incident(outs, self._brokers) for outs in clusters if len(outs) >= _MEMBERS_MIN)

    def _newest(self, found: list[SharedIncident]) -> list[SharedIncident]:
        return sorted(found, key=lambda each: each.from_ms)[-_INCIDENTS_MAX:]

    def _clusters(self) -> Iterator[list[_Out]]:
        """Split the members of each kind into stretches of at most `WITHIN_MS`: another timer has another cause."""
        cluster: list[_Out] = []
        for out in sorted(self._outs):
            if cluster and (out.kind is not cluster[0].kind or out.time_ms - cluster[0].time_ms > WITHIN_MS):
                yield cluster
                cluster = []
            cluster.append(out)
        if cluster:
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
