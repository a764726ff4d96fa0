"""Troubles of groups, for the notifier: storms, lost groups, flapping members, late polls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.readers.live.trouble import WINDOW_MS, TroubleKind, troubles_of

LOOK_EVERY_MS: Final = 2_000
"""How often groups are checked: it takes milliseconds with the most groups that are known by name."""

_ROWS_MAX: Final = 20_000


class GroupTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """One trouble of a group.

    Args:
        count: how often it happened, as `heartwheel.readers.live.trouble.Trouble` counts it.
    """

    kind: TroubleKind
    words: str
    count: int


class TroubleWatch:
    """The groups in trouble, by the rows that this process has read.

    A process that has just started knows nothing of the time before. So a trouble that an earlier process saw is over
    only if something shows that: for an empty or too small group, that a member joined; for the others, that a whole
    window has passed.

    Args:
        expected_members: how many members groups should have, by the group's id.
    """

    def __init__(
        self,
        storm: StormRule,
        *,
        canary_prefix: str,
        expected_members: Mapping[str, int] | None = None,
    ) -> None:
        self._storm = storm
        self._window_ms = max(WINDOW_MS, storm.window_ms)
        self._picture = Picture(
            expirations_max=_ROWS_MAX,
            triggers_max=_ROWS_MAX,
            window_ms=self._window_ms,
            canary_prefix=canary_prefix,
            expected_members=expected_members,
        )
        self._since_ms: int | None = None
        self._looked_ms = 0
        self._seen: set[tuple[str, TroubleKind]] = set()
        """Troubles that this process has seen itself, and whose end it will see."""

    def take(self, rows: Sequence[TopicRow], *, now_ms: int) -> None:
        """Add rows of the topics."""
        self._picture.apply(rows, now_ms=now_ms)

    def is_due(self, now_ms: int) -> bool:
        """Return whether it is time for the next check; the clock may have been set back."""
        return not 0 <= now_ms - self._looked_ms < LOOK_EVERY_MS

    def find(self, earlier: Mapping[str, Iterable[GroupTrouble]], *, now_ms: int) -> dict[str, list[GroupTrouble]]:
        """Return the troubles of each group, the worst first.

        Args:
            earlier: the troubles of the last check, by group; those that nothing contradicts are still there.
        """
        self._looked_ms = now_ms
        self._since_ms = now_ms if self._since_ms is None else min(self._since_ms, now_ms)
        self._picture.apply((), now_ms=now_ms)
        found: dict[str, list[GroupTrouble]] = {}
        for name, entry in self._picture.groups.entries.items():
            if self._picture.is_canary(name):
                continue
            troubles = troubles_of(entry, self._storm, now_ms=now_ms)
            if listed := [GroupTrouble(kind=each.kind, words=each.words, count=each.count) for each in troubles]:
                found[name] = listed
        self._seen |= {(name, each.kind) for name, troubles in found.items() for each in troubles}
        for name, before in earlier.items():
            seen = {each.kind for each in found.get(name, ())}
            kept = [each for each in before if each.kind not in seen and not self._is_over(name, each.kind, now_ms)]
            if kept:
                found[name] = sorted([*found.get(name, ()), *kept], key=lambda each: list(TroubleKind).index(each.kind))
        self._seen &= {(name, each.kind) for name, troubles in found.items() for each in troubles}
        return found

    def _is_over(self, group_id: str, kind: TroubleKind, now_ms: int) -> bool:
        """Return whether a trouble that was not found is certain to be over."""
        if (group_id, kind) in self._seen:
            return True
        if kind in {TroubleKind.EMPTY, TroubleKind.OVERDUE, TroubleKind.TOO_FEW}:
            entry = self._picture.groups.entries.get(group_id)
            return entry is not None and entry.newest is not None
        return self._since_ms is not None and now_ms - self._since_ms >= self._window_ms
