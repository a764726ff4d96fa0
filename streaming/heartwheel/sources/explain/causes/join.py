"""Find what happened to a member's pod or machine before it was removed.

A happening belongs to a member if an id of it (client, instance or member id) contains the pod's name as a whole, or if
its host is an address of the pod; of several names the longest counts. What happens to a node belongs to the members
in the pods that were on it then: a pod may come back under its name on another node, and an address may have been
another pod's before. What belongs to nobody by name, such as a deployment, is *possible*: only its time agrees. It is
shown only where nothing is known by name. A pod's name is one of its namespace: if several have it, and the member's
host does not tell which it is, what happened to each of them is possible, too.
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from heartwheel.sources.explain.causes.happening import ENDS_PROCESS, Happening, HappeningKind, PodKey
from heartwheel.sources.explain.causes.words import words_of
from heartwheel.wire.explained import REASON_OF, Evidence, ExplainedCause, ExplainedEvent, Happened

_BEFORE_MS: Final = 30_000
"""How long before a member's last heartbeat something may have begun, ms."""

_NODE_AFTER_MS: Final = 60_000
"""How long after a removal a node may be reported: its controller waits for 40 s, longer than some sessions."""

_SESSION_MS: Final = 45_000
_POLL_MS: Final = 300_000
_SHOWN_MAX: Final = 2
_NAME_CHARS_MIN: Final = 3
_ALIVE: Final = frozenset({Happened.POLL_TIMEOUT})
_KINDS: Final = list(HappeningKind)

Place = TypeVar("Place", str, PodKey)
_PARTS: Final = re.compile(r"[^-._/:@ ]+")


class Causes:
    """Happenings, by what they happened to.

    Args:
        happenings: the first ones.
        kept_max: so many that were added last are kept, and at most twice as many; `None` keeps all.
    """

    def __init__(self, happenings: Iterable[Happening] = (), *, kept_max: int | None = None) -> None:
        self._kept_max = kept_max
        self._clear()
        self.add(happenings)

    def _clear(self) -> None:
        self._known: dict[Happening, Happening] = {}
        """Each without its line: a file that is written again has the same on other lines."""
        self._by_pod: dict[PodKey, list[Happening]] = defaultdict(list)
        self._pods: dict[str, set[PodKey]] = defaultdict(set)
        """The pods of each name."""
        self._by_node: dict[str, list[Happening]] = defaultdict(list)
        self._of_nobody: list[Happening] = []
        self._pods_at: dict[str, list[tuple[int, PodKey]]] = defaultdict(list)
        """Which pod was seen at each address: when, epoch ms, and the pod."""
        self._nodes_of: dict[PodKey, list[tuple[int, str]]] = defaultdict(list)
        """Where each pod was seen: when, epoch ms, and the node."""

    @property
    def size(self) -> int:
        """How many happenings are kept."""
        return len(self._known)

    def add(self, happenings: Iterable[Happening]) -> list[Happening]:
        """Add happenings, and return those that are new."""
        found = {msgspec.structs.replace(each, line=0): each for each in reversed(list(happenings))}
        new = {key: found[key] for key in reversed(found) if key not in self._known}
        if self._kept_max is not None and len(self._known) + len(new) > 2 * self._kept_max:
            # Those that were added last, as in a history: a time in the future keeps no place.
            kept = dict(list((self._known | new).items())[-self._kept_max :])
            self._clear()
            self._put(kept)
        else:
            self._put(new)
        return list(new.values())

    def _put(self, happenings: Mapping[Happening, Happening]) -> None:
        self._known |= happenings
        for each in happenings.values():
            for address in each.addresses:
                _note_seen(self._pods_at[address], each.time_ms, each.key)
            if each.pod and each.node:
                _note_seen(self._nodes_of[each.key], each.time_ms, each.node)
            if each.pod:
                self._pods[each.pod].add(each.key)
                bisect.insort(self._by_pod[each.key], each, key=_time)
            elif each.node:
                bisect.insort(self._by_node[each.node], each, key=_time)
            elif each.kind is not HappeningKind.POD:
                bisect.insort(self._of_nobody, each, key=_time)

    def times_near(self, new: Iterable[Happening]) -> list[int]:
        """Return when that happened which new happenings may join to members, epoch ms, in order.

        Of a happening that says where a pod is that is all that is known of the pod and its nodes.
        """
        near: set[int] = set()
        for each in new:
            if each.kind is not HappeningKind.POD:
                near.add(each.time_ms)
            if each.pod and (each.addresses or each.node):
                for pod in self._same(each.key):
                    near.update(map(_time, self._by_pod.get(pod, ())))
                    for node in {node for _, node in self._nodes_of.get(pod, ())}:
                        near.update(map(_time, self._by_node.get(node, ())))
        return sorted(near)

    def of(self, event: ExplainedEvent) -> tuple[ExplainedCause, ...]:
        """Return what may have caused a removal, the most telling first; nothing for other events."""
        if event.kind not in REASON_OF or not self._known:
            return ()
        pods = self._pods_of(event)
        named = self._told(event, list(self._named(event, pods)))
        if named:
            is_ambiguous = len({pod.namespace for pod in pods if pod.namespace}) > 1
            certainty = "possible" if is_ambiguous else "certain"
            return tuple(_cause(each, event, certainty, is_ambiguous=is_ambiguous) for each in named)
        possible = self._told(event, _within(self._of_nobody, event))
        return tuple(_cause(each, event, "possible") for each in possible)

    def _told(self, event: ExplainedEvent, found: list[Happening]) -> list[Happening]:
        was_alive = event.kind in _ALIVE or (event.returned_as is not None and event.returned_as == event.member_id)
        fitting = [each for each in found if each.kind is not HappeningKind.POD]
        fitting = [each for each in fitting if not (was_alive and each.kind in ENDS_PROCESS)]
        # The newest of a kind: pods that crash in a loop have many.
        best = {each.kind: each for each in sorted(fitting, key=_time)}
        return sorted(best.values(), key=lambda each: _KINDS.index(each.kind))[:_SHOWN_MAX]

    def _named(self, event: ExplainedEvent, pods: Iterable[PodKey]) -> Iterator[Happening]:
        for pod in pods:
            yield from _within(self._by_pod.get(pod, []), event)
            for node in _seen_then(self._nodes_of.get(pod, []), event):
                yield from _within(self._by_node.get(node, []), event)
        host = (event.client_host or "").removeprefix("/")
        if host in self._by_node:
            yield from _within(self._by_node[host], event)

    def _pods_of(self, event: ExplainedEvent) -> list[PodKey]:
        """Return the pods that a member may be in: those of its host's address, else those that its ids name."""
        host = (event.client_host or "").removeprefix("/")
        seen = _seen_then(self._pods_at.get(host, []), event)
        at = {pod for each in seen for pod in self._same(each)}
        ids = filter(None, (event.group_instance_id, event.client_id, event.member_id, host))
        name = max((name for each in ids for name in _names_in(each) if name in self._pods), key=len, default="")
        named = self._pods.get(name, set())
        return sorted((named & at if at else named) or at)

    def _same(self, pod: PodKey) -> set[PodKey]:
        """Return a pod under each key that it may have: what does not name its namespace may be about it."""
        named = self._pods.get(pod.name, {pod})
        return {each for each in named if not pod.namespace or each.namespace in {"", pod.namespace}} | {pod}


def _names_in(text: str) -> Iterator[str]:
    """Return the parts of an id that may be a name: all that begin and end at its separators."""
    parts = list(_PARTS.finditer(text))[:24]
    for number, first in enumerate(parts):
        for last in parts[number:]:
            if last.end() - first.start() >= _NAME_CHARS_MIN:
                yield text[first.start() : last.end()]


def window_ms(event: ExplainedEvent) -> tuple[int, int]:
    """Return the first and the last moment of what may have caused a removal, epoch ms.

    It begins a while before the member's last heartbeat, and ends when a node may be reported at the latest.
    """
    is_session = event.kind in {Happened.EXPIRED, Happened.PENDING_EXPIRED, Happened.REMOVED, Happened.NO_ANSWER}
    span_ms = (event.session_timeout_ms or _SESSION_MS) if is_session else (event.rebalance_timeout_ms or _POLL_MS)
    return event.time_ms - span_ms - _BEFORE_MS, event.time_ms + _NODE_AFTER_MS


def _within(happenings: list[Happening], event: ExplainedEvent) -> list[Happening]:
    """Return what happened from a while before a member's last heartbeat to its removal."""
    from_ms, to_ms = window_ms(event)
    first = bisect.bisect_left(happenings, from_ms, key=_time)
    last = bisect.bisect_right(happenings, to_ms, key=_time)
    return [
        each
        for each in happenings[first:last]
        if _began_ms(each) <= event.time_ms or each.kind is HappeningKind.NODE_DOWN
    ]


def _began_ms(happening: Happening) -> int:
    return happening.time_ms if happening.began_ms is None else happening.began_ms


def _time(happening: Happening) -> int:
    return happening.time_ms


def _note_seen(seen: list[tuple[int, Place]], time_ms: int, what: Place) -> None:
    """Note what was seen when; of what is seen in turn only the first and the last time are kept."""
    bisect.insort(seen, (time_ms, what))
    at = bisect.bisect_left(seen, (time_ms, what))
    for middle in (at + 1, at, at - 1):
        if 0 < middle < len(seen) - 1 and seen[middle - 1][1] == seen[middle][1] == seen[middle + 1][1]:
            del seen[middle]


def _seen_then(seen: list[tuple[int, Place]], event: ExplainedEvent) -> set[Place]:
    """Return what was there from a while before a member's last heartbeat to its removal.

    Before the first time at which anything was seen, that was there.
    """
    first = bisect.bisect_right(seen, window_ms(event)[0], key=_seen_ms)
    last = bisect.bisect_right(seen, event.time_ms, key=_seen_ms)
    return {what for _, what in seen[max(0, first - 1) : max(1, last)]}


def _seen_ms(seen: tuple[int, object]) -> int:
    return seen[0]


def _cause(
    happening: Happening, event: ExplainedEvent, certainty: str, *, is_ambiguous: bool = False
) -> ExplainedCause:
    return ExplainedCause(
        kind=happening.kind.value,
        time_ms=happening.time_ms,
        certainty=certainty,
        words=words_of(happening, event.time_ms, is_possible=certainty == "possible", is_ambiguous=is_ambiguous),
        evidence=Evidence(happening.file, happening.line),
    )
