"""Which locations are on this machine alone: folders, and masters that run everything in one process."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit


def is_local(location: str) -> bool:
    """Tell whether a location is a folder of a machine, written as a path or as `file:///path`."""
    return "://" not in location or location.startswith("file://")


def folder_of(location: str) -> Path:
    """Name the folder that a local location means.

    Args:
        location: one that `is_local`.
    """
    return Path(unquote(urlsplit(location).path) if location.startswith("file://") else location)


def runs_elsewhere(master: str) -> bool:
    """Tell whether a Spark master runs the work in processes that may be on other machines."""
    return not master.startswith("local")
