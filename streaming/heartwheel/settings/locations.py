"""Which locations are on this machine alone: folders, and masters that run everything in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit


def is_local(location: str) -> bool:
    """Return whether a location is a local folder, written as a path or as `file:///path`."""
    return "://" not in location or location.startswith("file://")


_RENAMES_ATOMICALLY: Final = frozenset({"file", "hdfs", "viewfs", "abfs", "abfss", "ofs"})
"""File systems where a rename is one step, which fails where the name is taken. `abfs` is Azure's with a hierarchical
namespace, `ofs` Ozone's."""


def renames_atomically(location: str) -> bool:
    """Return whether a location's file system is known to rename in one step; object stores copy and delete."""
    return is_local(location) or urlsplit(location).scheme in _RENAMES_ATOMICALLY


def without_atomic_rename(location: str) -> str:
    """Return what may happen to a checkpoint in a store that cannot rename in one step."""
    scheme = urlsplit(location).scheme
    return f"{scheme}:// cannot rename in one step: two jobs on this checkpoint would not notice each other"


ONE_JOB_HINT: Final = "see that no second job is ever started on it, or use hdfs:// or a shared folder; docs/cluster.md"


def folder_of(location: str) -> Path:
    """Name the folder that a local location means.

    Args:
        location: one that `is_local`.
    """
    return Path(unquote(urlsplit(location).path) if location.startswith("file://") else location)


def runs_elsewhere(master: str) -> bool:
    """Return whether a Spark master runs the work in processes that may be on other machines."""
    return not master.startswith("local")
