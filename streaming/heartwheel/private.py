"""Folders that hold what only their owner should read: members' ids, positions, logs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_OWNER_ALONE: Final = 0o700


def private_folder(folder: Path) -> None:
    """Make a folder that nobody but this user can look into.

    One that is there already stays as it is: whoever has opened a folder to a group meant it.

    Args:
        folder: where; those above it are made as usual.

    Raises:
        OSError: it cannot be made.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=_OWNER_ALONE)
    except FileExistsError:
        if not folder.is_dir():
            raise
