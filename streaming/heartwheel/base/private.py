"""Files and folders that are for their owner alone: to read what they hold, or to change it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_OWNER_ALONE: Final = 0o700
_WRITTEN_BY_OTHERS: Final = 0o022


def private_folder(folder: Path) -> None:
    """Make a folder that only this user can look into.

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


def is_trustworthy(file: Path) -> bool:
    """Return whether a file exists, and only this user and root may change or replace it."""
    try:
        found = [file.stat(), file.parent.stat()]
    except OSError:
        return False
    return all(each.st_uid in {0, os.geteuid()} and not each.st_mode & _WRITTEN_BY_OTHERS for each in found)
