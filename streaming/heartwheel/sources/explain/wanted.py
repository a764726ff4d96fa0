"""The filter of events, and errors for a group, member or time that the log does not have."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import translate
from typing import Final

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.phrases import moment
from heartwheel.readers.live.lane_store import MemberJoined
from heartwheel.wire.explained import ExplainedEvent

_NAMES_MAX: Final = 20_000
_NAMED_MAX: Final = 8
_TIMES: Final = "nothing happened then, or it is the log of another time, or of another zone: --utc-offset"


class Wanted:
    """A filter of events.

    Args:
        groups: ids of groups, with `*`, `?` and `[...]` as in a shell; all if there are none.
        members: patterns of member ids, client ids or instance ids.
        since_ms: the first time, epoch ms.
        until_ms: the time after the last, epoch ms.
    """

    def __init__(
        self,
        groups: Sequence[str] = (),
        members: Sequence[str] = (),
        since_ms: int | None = None,
        until_ms: int | None = None,
    ) -> None:
        self.groups, self.members = tuple(groups), tuple(members)
        self._since_ms, self._until_ms = since_ms, until_ms
        self._group_patterns = [_pattern(each) for each in groups]
        self._member_patterns = [_pattern(each) for each in members]
        self._names: dict[str, None] = {}

    def takes(self, event: ExplainedEvent) -> bool:
        """Return whether an event passes the filter."""
        if not self.takes_group(event.group_id):
            return False
        if self._member_patterns and not self._is_about_one(event):
            return False
        if self._since_ms is not None and event.time_ms < self._since_ms:
            return False
        return self._until_ms is None or event.time_ms < self._until_ms

    def noting(self, returned: Callable[[ExplainedEvent], None]) -> Callable[[MemberJoined], None]:
        """Return a function that takes each member that joins.

        Args:
            returned: is called with the removals that they return from, if their events passed before they were back.
        """

        def joined(member: MemberJoined) -> None:
            removal = member.removal
            if removal is not None and self.takes(msgspec.structs.replace(removal, returned_as=None)):
                returned(removal)

        return joined

    @property
    def narrows(self) -> bool:
        """Whether some events do not pass."""
        return bool(self.groups or self.members) or self._since_ms is not None or self._until_ms is not None

    def takes_group(self, group_id: str) -> bool:
        """Return whether a group passes the filter."""
        return not self._group_patterns or _matches(group_id, self._group_patterns)

    def missing(self, groups: Collection[str], first_ms: int | None, last_ms: int | None) -> HeartwheelError | None:
        """Return an error if the log has no group, no member or no time that the filter names.

        Args:
            first_ms: the oldest time of a line about a group, epoch ms.
            last_ms: the newest, epoch ms.
        """
        for name, pattern in zip(self.groups, self._group_patterns, strict=True):
            if not any(pattern.fullmatch(group) for group in groups):
                return HeartwheelError(f"no group {name!r} in this log", hint=_hint("group", name, groups))
        for name, pattern in zip(self.members, self._member_patterns, strict=True):
            if not any(pattern.fullmatch(each) for each in self._names):
                where = "of these groups in this log" if self.groups else "in this log"
                return HeartwheelError(f"no member {name!r} {where}", hint=_hint("member", name, self._names))
        if self._since_ms is not None and last_ms is not None and last_ms < self._since_ms:
            since = moment(self._since_ms)
            return HeartwheelError(
                f"the newest line about a group is of {moment(last_ms)}, before --since ({since})", hint=_TIMES
            )
        if self._until_ms is not None and first_ms is not None and first_ms >= self._until_ms:
            until = moment(self._until_ms)
            return HeartwheelError(
                f"the oldest line about a group is of {moment(first_ms)}, not before --until ({until})", hint=_TIMES
            )
        return None

    def _is_about_one(self, event: ExplainedEvent) -> bool:
        names = (event.member_id, event.client_id, event.group_instance_id, event.new_member_id, event.returned_as)
        found = [each for each in (*names, *event.blocked_by, *event.caused_by) if each]
        if len(self._names) < _NAMES_MAX:
            self._names.update(dict.fromkeys(found))
        return any(_matches(each, self._member_patterns) for each in found)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(text)}|{translate(text)}")


def _matches(name: str, patterns: Iterable[re.Pattern[str]]) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)


def _hint(what: str, name: str, known: Collection[str]) -> str:
    """Return the names that exist, the most similar first."""
    if not known:
        return f"it names no {what}"
    near = get_close_matches(name, known, _NAMED_MAX, cutoff=0.4)
    shown = list(dict.fromkeys([*near, *sorted(known)]))[:_NAMED_MAX]
    more = f" and {len(known) - len(shown):,} more" if len(known) > len(shown) else ""
    ids = "member, client and instance ids" if what == "member" else f"{what}{'' if len(known) == 1 else 's'}"
    return f"it has {len(known):,} {ids}: {', '.join(shown)}{more}"
