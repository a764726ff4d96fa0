"""What a runtime of containers shows of those whose logs are followed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class PresentContainer(NamedTuple):
    """What a name stands for now.

    Args:
        id: of the container; empty if it has not been started.
        previous_id: of the one before it, whose log can still be read; empty if there is none.
        is_running: whether it writes.
    """

    id: str
    previous_id: str
    is_running: bool


class Containers(Protocol):
    """Some containers whose logs are followed; a context manager."""

    @property
    def label(self) -> str:
        """What a page calls them."""
        ...

    def names(self) -> list[str]:
        """Return the names of their logs as they are now."""
        ...

    def close(self) -> None:
        """End all answers that are being read, and refuse others."""
        ...

    def present(self, name: str) -> PresentContainer | None:
        """Return the container of a log; `None` if there is none."""
        ...

    def entries(
        self, name: str, container: str, since_s: int, *, previous: bool, follow: bool
    ) -> AbstractContextManager[Iterator[list[bytes]]]:
        """Read a log.

        Args:
            name: of the log.
            container: the id of the container whose log it must be.
            since_s: from when on, epoch s; 0 for all.
            previous: whether that of the container before the present one.
            follow: whether to wait for more.

        Returns:
            Entries as they come, each with its time before it, whole lines unless the container's runtime has cut them.

        Raises:
            ApiError: it cannot be read, or the connection broke; 404 if the name stands for another container by now.
        """
        ...
