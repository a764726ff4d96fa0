"""The number of members of a group with member epochs, counted from arrivals and departures."""

from __future__ import annotations

from typing import Final

MEMBERS_MAX: Final = 10_000
"""Most members of a group that are counted; the size of a larger one is not known."""

_NOBODY: Final[frozenset[str]] = frozenset()
"""The members of every group whose log names none: ten thousand empty sets take 2 MB."""


class LoggedRoster:
    """The members of a group whose broker's log shows arrivals and departures, but never their number.

    The size is known from the group's first epoch on, or from the line of a coordinator that has loaded it.
    """

    __slots__ = ("_present", "size")

    def __init__(self) -> None:
        self.size: int | None = None
        """How many members there are; `None` if the log does not show it."""
        self._present: set[str] | frozenset[str] = _NOBODY

    def loaded(self, size: int | None) -> None:
        """Start from the size in the line of a coordinator that has loaded the group."""
        self.size, self._present = size, _NOBODY

    def begun(self) -> None:
        """Start from the group's first epoch: all members have arrived since."""
        self.size = len(self._present)

    def came(self, member_id: str) -> None:
        """Add a member; one without an id, as in streams groups, ends the count."""
        if not member_id or len(self._present) >= MEMBERS_MAX:
            self.loaded(None)
        elif member_id not in self._present:
            self._add(member_id)
            if self.size is not None:
                self.size += 1

    def went(self, member_id: str) -> None:
        """Remove a member."""
        self._discard(member_id)
        if self.size:
            self.size -= 1

    def replaced(self, member_id: str, new_member_id: str) -> None:
        """Note that a static member is back under a new id."""
        if member_id in self._present:
            self._discard(member_id)
            self._add(new_member_id)

    def _add(self, member_id: str) -> None:
        if not isinstance(self._present, set):
            self._present = set()
        self._present.add(member_id)

    def _discard(self, member_id: str) -> None:
        if isinstance(self._present, set):
            self._present.discard(member_id)
