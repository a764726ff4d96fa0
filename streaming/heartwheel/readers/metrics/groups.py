"""Which groups have a label value of their own: a thousand groups must not become a thousand series."""

from __future__ import annotations

from typing import Final

OTHER: Final = "other"
"""The label value that all other groups share."""


class GroupLabels:
    """Label values of groups: one for each of the first groups, permanently, and one for all others.

    The first groups keep theirs: a label that moved from group to group would make meaningless counters.

    Args:
        labels_max: how many groups get their own.
    """

    def __init__(self, labels_max: int) -> None:
        self._labels_max = labels_max
        self._labels: set[str] = set()

    def __getitem__(self, group_id: str) -> str:
        """Return the label value of a group."""
        if group_id in self._labels:
            return group_id
        if len(self._labels) < self._labels_max:
            self._labels.add(group_id)
            return group_id
        return OTHER
